// SPDX-License-Identifier: Apache-2.0
// The command line's commands: each declares its options and binds them to one function of
// commands/.
#pragma once

#include "app/site/options.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::cli {

/// What was typed: the options of all commands, and the one command to run.
struct Invocation {
  app::Options options = app::defaultOptions();
  bool asks_server = false;  ///< the command is one that a server can answer
  std::function<int()> run;
};

/// A command without options of its own.
inline CLI::App& addCommand(CLI::App& parent, const char* name, const char* help, Invocation& call,
                            int (*run)(const app::Options&)) {
  auto* command = parent.add_subcommand(name, help);
  command->callback([&call, run] { call.run = [&call, run] { return run(call.options); }; });
  return *command;
}

template <class Args>
struct AddedCommand {
  CLI::App& command;
  Args& args;  ///< lives as long as the command
};

/// A command and the struct that its options are parsed into.
template <class Args>
AddedCommand<Args> addCommand(CLI::App& parent, const char* name, const char* help,
                              Invocation& call, int (*run)(const app::Options&, const Args&)) {
  auto args = std::make_shared<Args>();
  auto* command = parent.add_subcommand(name, help);
  command->callback(
      [&call, args, run] { call.run = [&call, args, run] { return run(call.options, *args); }; });
  return {*command, *args};
}

/// Of commands that ask the site by app::SiteClient; --server is refused for the others, which
/// stand in host_commands.cc.
inline void asksServer(CLI::App& command, Invocation& call) {
  command.preparse_callback([&call](std::size_t) { call.asks_server = true; });
}
/// Of a command below one that asks a server.
inline void asksNoServer(CLI::App& command, Invocation& call) {
  command.preparse_callback([&call](std::size_t) { call.asks_server = false; });
}

/// A word under which other commands stand.
inline CLI::App& addGroup(CLI::App& parent, const char* name, const char* help) {
  return *parent.add_subcommand(name, help)->require_subcommand(1);
}

void addInventoryCommands(CLI::App& app, Invocation& call);
void addLifecycleCommands(CLI::App& app, Invocation& call);  ///< plan … history, wipe, erase
void addRecordCommands(CLI::App& app, Invocation& call);     ///< audit, key, cert
void addSiteCommands(CLI::App& app, Invocation& call);       ///< init, doctor
void addRolloutCommands(CLI::App& app, Invocation& call);
void addRunCommands(CLI::App& app, Invocation& call);
void addMonitorCommands(CLI::App& app, Invocation& call);  ///< monitor, quarantine, console, rma
void addServerCommands(CLI::App& app, Invocation& call);   ///< server, token
void addNotifyCommands(CLI::App& app, Invocation& call);
void addUiCommand(CLI::App& app, Invocation& call);
void addBackupCommands(CLI::App& app, Invocation& call);  ///< backup, restore, store
void addBmcCommands(CLI::App& app, Invocation& call);
void addDiscoverCommands(CLI::App& app, Invocation& call);
void addFirmwareCommands(CLI::App& app, Invocation& call);
void addValidateCommands(CLI::App& app, Invocation& call);
void addFabricCommands(CLI::App& app, Invocation& call);
void addImageCommands(CLI::App& app, Invocation& call);
/// `foreign`: the words behind `lab exec`, which belong to another program.
void addLabCommands(CLI::App& app, Invocation& call, const std::vector<std::string>& foreign);

}  // namespace muster::cli
