// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/lab.h"
#include "cli/arguments/arguments.h"
#include "cli/arguments/renamed.h"
#include "cli/commands/monitor.h"

namespace muster::cli {
namespace {

void addFault(CLI::App& group, Invocation& call) {
  auto [fault, args] = addCommand(group, "fault",
                                  "Inject faults into a node's virtual BMC: into its answers, or "
                                  "into updates; without either, show what is set",
                                  call, labFault);
  fault.add_option("node", args.node)->required();
  fault.add_option("--path", args.path, "Glob of the paths that the rule applies to");
  fault.add_option("--method", args.method, "Glob of the methods");
  fault.add_option("--status", args.status, "Answer with this status instead");
  fault.add_option("--latency-ms", args.latency_ms, "Wait before anything else");
  fault.add_flag("--drop", args.drop, "Close the connection");
  fault.add_flag("--after", args.after, "Carry the request out first, then fail");
  fault.add_option("--merge", args.merge, "JSON that is merged into the answer (RFC 7396)");
  fault.add_option("--count", args.count, "How often; negative: until it is cleared");
  fault.add_option("--update-fault", args.update_fault,
                   "How the next updates fail: cut-upload, lost-answer, task-vanishes, task-fails, "
                   "completed-not-installed, exception-but-installed, stuck-mode, "
                   "no-licence, bmc-lost, host-silent");
  refuseOldOption(fault, "--mishap", "--update-fault");
  fault.add_flag("--clear", args.clear, "Remove what was set before");
}

}  // namespace

void addLabCommands(CLI::App& app, Invocation& call, const std::vector<std::string>& foreign) {
  auto& group = addGroup(app, "lab", "The virtual twin of the rack");
  addCommand(group, "up", "Start the twin", call, labUp);
  addCommand(group, "down", "Stop the twin and remove everything that it has created", call,
             labDown);
  addCommand(group, "status", "List the twin's machines", call, labStatus);
  auto [console_command, console_args] =
      addCommand(group, "console", "Connect to a node's serial console", call, console);
  console_command.add_option("node", console_args.node)->required();
  addFault(group, call);
  auto [packages, packages_args] = addCommand(
      group, "packages", "Create the drivers' apt repository and the firmware files of the twin",
      call, labPackages);
  packages.add_option("folder", packages_args.folder, "The inventory's folder")->required();
  group.add_subcommand("exec", "Run a program in the twin's network: muster lab exec sinfo")
      ->callback([&call, foreign] {
        call.run = [&call, foreign] { return labExec(call.options, foreign); };
      });
}

}  // namespace muster::cli
