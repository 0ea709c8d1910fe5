// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/server.h"

#include "cli/arguments/arguments.h"
#include "cli/commands/login.h"

namespace muster::cli {

void addServerCommands(CLI::App& app, Invocation& call) {
  auto [command, args] =
      addCommand(app, "server",
                 "Run until stopped: watch the nodes as `muster monitor` does, and answer the API",
                 call, server);
  command
      .add_option("--socket", args.api.socket,
                  "The Unix socket (MUSTER_API_SOCKET); default: /run/muster/api.sock for "
                  "/var/lib/muster, one of its own for another state folder")
      ->envname("MUSTER_API_SOCKET");
  command.add_option("--listen", args.api.listen, "ADDRESS:PORT where HTTPS is served, too");
  command.add_option("--announce", args.api.announce,
                     "https://HOST:PORT by which clients elsewhere reach it, where --listen does "
                     "not say it; of two hosts, the one that stands by sends them there");
  command.add_option("--access", args.api.access_file,
                     "The file that says which local users may do what; default: "
                     "/etc/muster/access.conf");
  command.add_flag("--api-only", args.api_only, "Answer, and do not watch");

  auto& group = addGroup(app, "token", "Tokens of the API: who may ask it from elsewhere");
  asksServer(group, call);
  auto [create, create_args] =
      addCommand(group, "create", "Create a token; it is shown this once", call, tokenCreate);
  create.add_option("name", create_args.name, "Letters, digits, '.', '_', '-'")->required();
  create.add_option("--role", create_args.role, "viewer, operator, approver, robot or admin")
      ->capture_default_str();
  create.add_option("--owner", create_args.owner,
                    "The person who uses it (user name); default: who makes it. What they ask for "
                    "nobody approves with it, and nor does who has made it");
  create.add_option("--hours", create_args.hours, "How long it lives")
      ->check(CLI::Range(1, 24 * 366))
      ->capture_default_str();
  create.add_option("--pools", create_args.pools,
                    "It opens the nodes of these pools (A,B); without pools, racks and nodes: all");
  create.add_option("--racks", create_args.racks, "And the nodes in these racks (R1,R2)");
  create.add_option("--nodes", create_args.nodes, "And these nodes (hostlist)");
  addCommand(group, "list", "List the tokens: role, scope, end; never what they are", call,
             tokenList);
  auto [revoke, revoke_args] =
      addCommand(group, "revoke", "End a token at once", call, tokenRevoke);
  revoke.add_option("token", revoke_args.token, "Its id or name")->required();

  asksServer(
      addCommand(app, "login",
                 "Log in to --server by the site's provider of OpenID Connect: prints a code "
                 "to enter in a browser, and keeps a token for this user",
                 call, login),
      call);
  asksServer(addCommand(app, "logout", "End the login to --server, there and here", call, logout),
             call);
}

}  // namespace muster::cli
