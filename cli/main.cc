// SPDX-License-Identifier: Apache-2.0
// muster's command line: words → options → one command.
#include "app/actor.h"
#include "base/main_guard.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "base/version.h"
#include "cli/arguments/arguments.h"
#include "cli/exit_code.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>

using namespace muster;
using namespace muster::cli;

namespace {

/// Cuts the line behind `lab exec`; answers what stood there.
std::vector<std::string> splitForeignCommand(int& argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i - 1]) != "lab" || std::string_view(argv[i]) != "exec") continue;
    if (i + 1 < argc && std::string_view(argv[i + 1]) == "--help") break;
    std::vector<std::string> command(argv + i + 1, argv + argc);
    argc = i + 1;
    return command;
  }
  return {};
}

constexpr std::size_t kMaxCommandBytes = 2'000;

/// The line for the journal; what stands between ':' and '@' of a URL is a password.
std::string journaled(int argc, char** argv) {
  std::string out = "muster";
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    const auto scheme = word.find("://"), at = word.find('@');
    if (scheme != std::string::npos && at != std::string::npos && at > scheme)
      if (const auto colon = word.find(':', scheme + 3); colon < at)
        word.replace(colon + 1, at - colon - 1, "…");
    out += " " + word;
  }
  return std::string(cutToBytes(out, kMaxCommandBytes));
}

void addGlobalOptions(CLI::App& app, app::Options& options) {
  app.add_option("--inventory,-f", options.inventory, "The inventory (MUSTER_INVENTORY)")
      ->capture_default_str();
  app.add_option_function<std::vector<std::string>>(
         "--allow-path", app::allowPaths,
         "A folder besides the inventory's own whose files the inventory may name "
         "(MUSTER_ALLOW_PATH, separated by ':')")
      ->check(CLI::Validator(
          [](const std::string& folder) {
            std::error_code not_there;
            const bool is_folder =
                folder.empty() || std::filesystem::is_directory(folder, not_there);
            return is_folder ? std::string() : folder + " is no folder";
          },
          ""))
      ->allow_extra_args(false);
  app.add_option("--state", options.state, "State folder (MUSTER_STATE)")->capture_default_str();
  app.add_option("--store", options.store,
                 "postgresql://… when several controllers share the work; default: SQLite in the "
                 "state folder (MUSTER_STORE)");
  app.add_option("--lab", options.lab, "The twin's run folder (MUSTER_LAB)");
  app.add_flag("--json", options.json, "Print machine-readable output");
}

constexpr std::size_t kMaxReasonBytes = 2'000;
constexpr std::array kReasons{"reason", "accept", "allow-wipe"};

/// What no argument may be. An empty one is a script's variable that was not set, and would often
/// stand for "all"; control characters would make lines of their own in lists and logs.
std::string refusalOf(const std::string& value) {
  if (value.find_first_not_of(' ') == std::string::npos)
    return "must not be empty; leave it out, or see whether a variable was set";
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(value, control)) return "must not hold line breaks or control characters";
  return {};
}

/// Reasons are kept for ever, in the log and in lists.
std::string refusalOfReason(const std::string& value) {
  return value.size() <= kMaxReasonBytes
             ? ""
             : fmt::format("must not be longer than {} bytes; name a ticket", kMaxReasonBytes);
}

void checkEveryArgument(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    if (option->get_items_expected_max() > 0) option->check(CLI::Validator(refusalOf, ""));
    if (std::ranges::any_of(kReasons, [&](auto* name) { return option->check_lname(name); }))
      option->check(CLI::Validator(refusalOfReason, ""));
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    checkEveryArgument(*command);
}

int run(int argc, char** argv) {
  Invocation call;
  call.options.command_line = journaled(argc, argv) + app::sudoClaimText();
  const auto foreign = splitForeignCommand(argc, argv);
  CLI::App app{"muster: from bare metal to a trusted pool"};
  app.set_version_flag("--version", fmt::format("muster {}", kVersion), "Print the version");
  app.require_subcommand(1);
  app.fallthrough();
  addGlobalOptions(app, call.options);
  addInventoryCommands(app, call);
  addLifecycleCommands(app, call);
  addRecordCommands(app, call);
  addRolloutCommands(app, call);
  addMonitorCommands(app, call);
  addBmcCommands(app, call);
  addDiscoverCommands(app, call);
  addFirmwareCommands(app, call);
  addLabCommands(app, call, foreign);
  addValidateCommands(app, call);
  addFabricCommands(app, call);
  addImageCommands(app, call);
  checkEveryArgument(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  return call.run();
}

}  // namespace

int main(int argc, char** argv) {
  const PrintableStream out(std::cout),
      problems(std::cerr);  // whatever a command prints of what machines say
  const int code = guardedMain("muster", [&] { return run(argc, argv); });
  return codeOnceWritten("muster", code, std::cout, STDOUT_FILENO);
}
