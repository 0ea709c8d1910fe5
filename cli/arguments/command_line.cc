// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/command_line.h"

#include "base/control_signs.h"
#include "base/version.h"
#include "cli/arguments/completion.h"
#include "cli/tree/examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace muster::cli {

namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 failed, or something is bad; 2 the command line is wrong (with plan "
    "--detailed-exitcode: there are changes); 3 work is left that cannot be done now; 4 another "
    "host has taken over; 5 the state was taken away. docs/commands.md";

void addServerOptions(CLI::App& app, app::Options& options) {
  app.add_option_function<std::string>(
      "--server",
      [&options](const std::string& server) {
        options.server = server;
        options.server_given = true;
      },
      "The server that is asked: https://HOST:PORT, or its Unix socket (MUSTER_SERVER); default: "
      "the one that serves this state folder, where one runs");
  app.add_option("--token-file", options.token_file,
                 "A file with the token for --server (MUSTER_TOKEN_FILE; MUSTER_TOKEN is the token "
                 "itself)");
  app.add_option("--server-ca", options.server_ca,
                 "The certificate of the site's authority, for --server (MUSTER_SERVER_CA)");
  app.add_option("--client-cert", options.client_cert,
                 "A certificate that says who asks --server, and its chain (MUSTER_CLIENT_CERT)");
  app.add_option("--client-key", options.client_key,
                 "The key of --client-cert (MUSTER_CLIENT_KEY)");
  app.add_flag("--direct", options.direct, "Ask no server: open the store in this process");
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
  addServerOptions(app, options);
}

constexpr std::size_t kMaxReasonBytes = 2'000;
constexpr std::array kReasons{"reason", "accept", "allow-wipe"};

/// What no argument may be. An empty one is a script's variable that was not set, and would often
/// stand for "all"; control characters would make lines of their own in lists and logs, and signs
/// of direction would make them say something else.
std::string refusalOf(const std::string& value) {
  if (value.find_first_not_of(' ') == std::string::npos)
    return "must not be empty; leave it out, or see whether a variable was set";
  if (hasControlSigns(value))
    return "must not hold line breaks, control characters, or signs that turn words round";
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

}  // namespace

void buildCommandLine(CLI::App& app, Invocation& call, const std::vector<std::string>& foreign) {
  app.set_version_flag("--version", fmt::format("muster {}", kVersion), "Print the version");
  app.require_subcommand(1);
  app.fallthrough();
  addGlobalOptions(app, call.options);
  addSiteCommands(app, call);
  addInventoryCommands(app, call);
  addLifecycleCommands(app, call);
  addRecordCommands(app, call);
  addBackupCommands(app, call);
  addRolloutCommands(app, call);
  addRunCommands(app, call);
  addMonitorCommands(app, call);
  addServerCommands(app, call);
  addNotifyCommands(app, call);
  addUiCommand(app, call);
  addBmcCommands(app, call);
  addDiscoverCommands(app, call);
  addFirmwareCommands(app, call);
  addLabCommands(app, call, foreign);
  addValidateCommands(app, call);
  addFabricCommands(app, call);
  addImageCommands(app, call);
  addCompletionCommands(app, call);
  checkEveryArgument(app);
  addExamples(app);
  app.footer(kExitCodes);
}

}  // namespace muster::cli
