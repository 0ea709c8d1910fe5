// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/completion.h"

#include "app/names.h"
#include "base/version.h"
#include "cli/exit_code.h"
#include "cli/tree/completion.h"
#include "cli/tree/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <memory>

namespace muster::cli {
namespace {

int printScript(const CLI::App& app, const std::string& shell) {
  std::cout << *completionScript(shell, commandTree(app));
  return kOk;
}

/// For the shell: nothing is said where nothing can be known.
int printWords(const app::Options& options, const std::string& kind) {
  const auto names = app::knownNames(options, kind);
  if (!names) return kFailed;
  for (const auto& name : *names) std::cout << name << '\n';
  return kOk;
}

int printManPage(const CLI::App& app, const std::vector<std::string>& words) {
  const auto tree = commandTree(app);
  const CommandInfo* command = &tree;
  for (const auto& word : words) {
    const auto below = std::ranges::find(command->commands, word, &CommandInfo::name);
    if (below == command->commands.end())
      return report(Error(ErrorCode::NotFound,
                          fmt::format("there is no command muster {}; see `muster --help`",
                                      fmt::join(words, " "))));
    command = &*below;
  }
  std::cout << manPage(*command, kVersion);
  return kOk;
}

}  // namespace

void addCompletionCommands(CLI::App& app, Invocation& call) {
  auto& group = addGroup(app, "completion", "Print a shell's completion script");
  for (const char* shell : {"bash", "zsh", "fish"})
    group.add_subcommand(shell, fmt::format("Print the completion script of {}", shell))
        ->callback(
            [&app, &call, shell] { call.run = [&app, shell] { return printScript(app, shell); }; });
  auto kind = std::make_shared<std::string>();
  auto* words = group.add_subcommand("words", "Print names that the inventory knows, for a shell");
  words->add_option("kind", *kind, "What is completed")
      ->required()
      ->check(CLI::IsMember({"nodes", "profiles", "pools", "racks", "rollouts"}));
  words->callback(
      [&call, kind] { call.run = [&call, kind] { return printWords(call.options, *kind); }; });
  auto page = std::make_shared<std::vector<std::string>>();
  auto* man = app.add_subcommand("man", "Print a manual page: muster man bmc | man -l -");
  man->add_option("command", *page, "Of this command; default: of muster");
  man->callback(
      [&app, &call, page] { call.run = [&app, page] { return printManPage(app, *page); }; });
}

}  // namespace muster::cli
