// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/notify.h"
#include "cli/arguments/arguments.h"

namespace muster::cli {

void addNotifyCommands(CLI::App& app, Invocation& call) {
  auto& notify = addGroup(app, "notify", "Who outside is told what happens");
  asksServer(
      addCommand(notify, "list", "Receivers, and what they have not taken yet", call, notifyList),
      call);
  auto [test, args] = addCommand(
      notify, "test", "Send a receiver a message that says it is a trial", call, notifyTest);
  test.add_option("name", args.name, "Of notifications in the inventory")->required();
  addCommand(notify, "secret", "Print a new key for the signatures of a webhook", call,
             notifySecret);
}

}  // namespace muster::cli
