// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/command_tree.h"

#include "base/printable.h"
#include "inventory/parse/suggest.h"

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace muster::cli {
namespace {

constexpr std::array<std::pair<std::string_view, ValueKind>, 15> kKinds{
    {{"nodes", ValueKind::Nodes},
     {"node", ValueKind::Nodes},
     {"profile", ValueKind::Profile},
     {"pool", ValueKind::Pool},
     {"rack", ValueKind::Rack},
     {"id", ValueKind::Rollout},
     {"out", ValueKind::File},
     {"plan", ValueKind::File},
     {"change", ValueKind::File},
     {"inventory", ValueKind::File},
     {"html", ValueKind::File},
     {"folder", ValueKind::File},
     {"file", ValueKind::File},
     {"head", ValueKind::File},
     {"allow-path", ValueKind::File}}};

ValueKind kindOf(std::string_view name) {
  const auto* found =
      std::ranges::find(kKinds, name, &std::pair<std::string_view, ValueKind>::first);
  return found == kKinds.end() ? ValueKind::Text : found->second;
}

/// What CLI::IsMember prints: "{halt,roll-back}".
std::vector<std::string> choicesOf(const CLI::Option& option) {
  const auto type = option.get_type_name();
  const auto open = type.find('{'), close = type.rfind('}');
  std::vector<std::string> out;
  if (open == std::string::npos || close == std::string::npos || close < open) return out;
  std::string word;
  for (const char c : type.substr(open + 1, close - open - 1)) {
    if (c != ',') {
      word += c;
      continue;
    }
    out.push_back(std::exchange(word, ""));
  }
  if (!word.empty()) out.push_back(word);
  return out;
}

OptionInfo infoOf(const CLI::Option& option) {
  OptionInfo out;
  if (option.get_positional()) {
    out.names = {option.get_name()};
  } else {
    for (const auto& name : option.get_lnames()) out.names.push_back("--" + name);
    for (const auto& name : option.get_snames()) out.names.push_back("-" + name);
  }
  out.help = option.get_description();
  out.choices = choicesOf(option);
  out.required = option.get_required();
  if (option.get_items_expected_max() > 0) {
    const auto& bare = out.names.front();
    out.value = kindOf(bare.starts_with("--") ? bare.substr(2) : bare);
  }
  return out;
}

CommandInfo infoOf(const CLI::App& app, std::vector<std::string> path) {
  CommandInfo out;
  out.help = app.get_description();
  out.footer = app.get_footer();
  for (const auto* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? out.positionals : out.options).push_back(infoOf(*option));
  }
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;
    auto below = path;
    below.push_back(command->get_name());
    out.commands.push_back(infoOf(*command, std::move(below)));
  }
  out.path = std::move(path);
  return out;
}

}  // namespace

std::string wordOf(ValueKind kind) {
  switch (kind) {
    case ValueKind::Nodes:
      return "nodes";
    case ValueKind::Profile:
      return "profiles";
    case ValueKind::Pool:
      return "pools";
    case ValueKind::Rack:
      return "racks";
    case ValueKind::Rollout:
      return "rollouts";
    case ValueKind::None:
    case ValueKind::Text:
    case ValueKind::File:
      break;
  }
  return {};
}

CommandInfo commandTree(const CLI::App& app) { return infoOf(app, {}); }

std::string adviceOnWords(const CLI::App& app, const std::vector<std::string>& words) {
  const auto root = commandTree(app);
  const CommandInfo* at = &root;
  const auto optionNamed = [&root, &at](std::string_view name) -> const OptionInfo* {
    for (const auto* of : {at, &root})
      for (const auto& option : of->options)
        if (std::ranges::find(option.names, name) != option.names.end()) return &option;
    return nullptr;
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& word = words[i];
    if (word.starts_with("-")) {
      const auto name = word.substr(0, word.find('='));
      if (const auto* option = optionNamed(name)) {
        i += option->value != ValueKind::None && name.size() == word.size();
        continue;
      }
      std::vector<std::string_view> names;
      for (const auto* of : {at, &root})
        for (const auto& option : of->options)
          names.insert(names.end(), option.names.begin(), option.names.end());
      const auto near = inventory::nearest(name, names);
      return near.empty() ? std::string() : fmt::format("did you mean {}?", near);
    }
    if (at->commands.empty()) continue;  // a value
    const auto next = std::ranges::find(at->commands, word, &CommandInfo::name);
    if (next != at->commands.end()) {
      at = &*next;
      continue;
    }
    std::vector<std::string> known;
    for (const auto& command : at->commands) known.push_back(command.name());
    const auto near =
        inventory::nearest(word, std::vector<std::string_view>(known.begin(), known.end()));
    auto path = at->path;
    if (near.empty()) {
      path.push_back(word);
      return fmt::format("there is no `muster {}`",
                         printable(fmt::format("{}", fmt::join(path, " "))));
    }
    path.push_back(near);
    return fmt::format("did you mean `muster {}`?", fmt::join(path, " "));
  }
  return {};
}

}  // namespace muster::cli
