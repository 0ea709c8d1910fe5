// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/backup.h"
#include "cli/arguments/arguments.h"

namespace muster::cli {

void addBackupCommands(CLI::App& app, Invocation& call) {
  auto [backup_command, backup_args] =
      addCommand(app, "backup", "Write store, keys, inventory and secrets into one encrypted file",
                 call, backup);
  backup_command.add_option("file", backup_args.file, "The new file; an old one is replaced")
      ->required();
  auto [restore_command, restore_args] =
      addCommand(app, "restore", "Make the state folder anew from a backup", call, restore);
  restore_command.add_option("file", restore_args.file, "What `muster backup` has written")
      ->required();
  restore_command.add_flag("--replace", restore_args.replace,
                           "Move a state folder that is not empty aside");
  for (auto& [command, file] :
       {std::pair<CLI::App&, std::filesystem::path&>(backup_command, backup_args.passphrase_file),
        std::pair<CLI::App&, std::filesystem::path&>(restore_command,
                                                     restore_args.passphrase_file)})
    command.add_option("--passphrase-file", file,
                       "Take the passphrase from this file's first line instead of asking");
  auto& store = addGroup(app, "store", "The store itself");
  addCommand(store, "check",
             "Read all of it: integrity, schema, the journal's chain, keys that fit", call,
             storeCheck);
}

}  // namespace muster::cli
