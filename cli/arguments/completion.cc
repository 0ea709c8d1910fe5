// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/completion.h"

#include "app/site/names.h"
#include "base/io/files.h"
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

/// muster.1, and one page for each command: muster-bmc.1.
int writeManPages(const CLI::App& app, const std::filesystem::path& folder) {
  const auto tree = commandTree(app);
  const auto write = [&folder](const CommandInfo& command, const std::string& name) {
    return io::writeFileAtomic(folder / (name + ".1"), manPage(command, kVersion), 0644);
  };
  auto written = write(tree, "muster");
  for (const auto& command : tree.commands) {
    if (!written) break;
    written = write(command, "muster-" + command.name());
  }
  return written ? kOk : report(written.error());
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
  auto* one = man->add_option("command", *page, "Of this command; default: of muster");
  auto folder = std::make_shared<std::string>();
  man->add_option("--all", *folder, "Write the page of each command into this folder instead")
      ->check(CLI::ExistingDirectory)
      ->excludes(one);
  man->callback([&app, &call, page, folder] {
    call.run = [&app, page, folder] {
      return folder->empty() ? printManPage(app, *page) : writeManPages(app, *folder);
    };
  });
}

}  // namespace muster::cli
