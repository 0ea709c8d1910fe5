// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/ui.h"

#include "cli/arguments/arguments.h"

namespace muster::cli {

void addUiCommand(CLI::App& app, Invocation& call) {
  auto [command, args] = addCommand(
      app, "ui", "Open the page to a browser of this host, as the user who types this", call, ui);
  command
      .add_option("--socket", args.socket,
                  "The server's Unix socket (MUSTER_API_SOCKET); default: as of `muster server`")
      ->envname("MUSTER_API_SOCKET");
  command.add_option("--port", args.port, "On 127.0.0.1; default: any that is free");
}

}  // namespace muster::cli
