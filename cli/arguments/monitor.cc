// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/monitor.h"
#include "cli/arguments/arguments.h"
#include "cli/arguments/renamed.h"
#include "cli/commands/pool.h"
#include "cli/commands/rollout.h"

namespace muster::cli {
namespace {

void addMonitor(CLI::App& app, Invocation& call) {
  auto [command, args] =
      addCommand(app, "monitor",
                 "Run until stopped: poll the nodes, and drain those that must not take jobs; "
                 "`muster server` does the same and answers the API",
                 call, monitorNodes);
  asksServer(command, call);
  auto* acknowledge =
      command.add_flag("--acknowledge", args.acknowledge,
                       "Close the circuit breakers that stopped the monitor from draining nodes");
  command.add_flag("--breakers", args.breakers, "List the circuit breakers that are open, and end")
      ->excludes(acknowledge);
  command.add_option("--reason", args.reason,
                     "With --acknowledge: what you found; recorded in the log");
  refuseOldCommand(app, "keep", "muster monitor");
}

void addQuarantine(CLI::App& app, Invocation& call) {
  auto& group =
      addGroup(app, "quarantine", "Keep nodes out of their pools until a person releases them");
  asksServer(group, call);
  addCommand(group, "list", "List the quarantined nodes: since when, by whom, why", call,
             quarantineList);
  auto [add, add_args] = addCommand(
      group, "add", "Quarantine nodes: they are drained and do not rejoin", call, quarantineAdd);
  add.add_option("nodes", add_args.nodes, "Hostlist")->required();
  add.add_option("--reason", add_args.reason, "Why; recorded in the log")->required();
  auto [remove, remove_args] = addCommand(
      group, "remove", "Release a node from quarantine: it must be validated again before it joins",
      call, quarantineRemove);
  remove.add_option("node", remove_args.node)->required();
  remove.add_option("--reason", remove_args.reason, "What was repaired; recorded in the log")
      ->required();
  refuseOldCommand(group, "hold", "muster quarantine add");
  refuseOldCommand(group, "lift", "muster quarantine remove");
}

void addPool(CLI::App& app, Invocation& call) {
  auto& group = addGroup(app, "pool", "Show and override what people have drained in schedulers");
  asksServer(group, call);
  addCommand(group, "holds", "List the nodes that a person has drained, in their words", call,
             poolHolds);
  auto [command, args] = addCommand(
      group, "override",
      "Permit that nodes are disturbed although a person has drained them; until that drain ends",
      call, poolOverride);
  command.add_option("nodes", args.nodes, "Hostlist")->required();
  command.add_option("--reason", args.reason, "Why; recorded in the log")->required();
}

void addConsole(CLI::App& app, Invocation& call) {
  auto [command, args] = addCommand(
      app, "console", "Connect to a node's serial console, or show a recorded boot", call, console);
  asksServer(command, call);
  command.add_option("node", args.node)->required();
  command.add_option("--boot", args.boot, "Show the recording of this boot")
      ->excludes(command.add_flag("--last", args.last, "Show the newest recorded boot"));
  command.add_flag("--list", args.list, "List the recorded boots");
  command.add_flag("--raw", args.raw,
                   "With --boot or --last: print the bytes unchanged, with terminal sequences");
  command.add_flag("--force", args.force,
                   "End the session that holds the BMC's serial console now");
  refuseOldFlag(command, "--take", "--force");
}

}  // namespace

void addMonitorCommands(CLI::App& app, Invocation& call) {
  addMonitor(app, call);
  addQuarantine(app, call);
  addPool(app, call);
  addConsole(app, call);
  auto [command, args] = addCommand(
      app, "rma", "Write everything known of a node into one archive, for its repair", call, rma);
  command.add_option("node", args.node)->required();
  command.add_option("--out,-o", args.out, "FILE.tar.zst or FILE.tar.gz")->required();
}

void addRolloutCommands(CLI::App& app, Invocation& call) {
  auto& group =
      addGroup(app, "rollout", "Apply a change to some nodes in waves that stop when a gate fails");
  auto [start, start_args] =
      addCommand(group, "start", "Freeze the plan of a change, then carry it out wave by wave",
                 call, rolloutStart);
  auto& asked = start_args.asked;
  start.add_option("--change", start_args.change, "The change: a fragment of an inventory (YAML)");
  start.add_option("--driver", asked.driver, "A declared driver that replaces the one of its kind");
  start.add_option("--nodes", start_args.nodes, "Hostlist")->required();
  start.add_flag("--dry-run", start_args.dry_run,
                 "Show the waves and the actions on each node; write and start nothing");
  start.add_option("--canaries", asked.canaries, "Number of nodes in the first wave")
      ->check(CLI::Range(1, 10'000));
  start.add_option("--on-failure", start_args.on_failure, "What to do when a gate fails")
      ->check(CLI::IsMember({"halt", "roll-back"}));
  start
      .add_option("--on-inconclusive", start_args.on_inconclusive,
                  "What to do while the measurements do not show whether nodes became slower")
      ->check(CLI::IsMember({"halt", "continue"}));
  refuseOldOption(start, "--when-unclear", "--on-inconclusive (halt, continue)");
  constexpr const char* kDirect =
      "Carry it out in this process, although a monitor serves the site: the monitor waits "
      "meanwhile";
  start.add_flag("--direct", call.options.direct, kDirect);
  auto [status_command, status_args] = addCommand(
      group, "status", "Show how far a rollout is, and why it does not go on", call, rolloutStatus);
  auto& pause = addCommand(group, "pause", "Finish the nodes in progress, start no others", call,
                           rolloutPause);
  auto& abort =
      addCommand(group, "abort",
                 "Finish the nodes in progress and end the rollout; changed nodes stay changed",
                 call, rolloutAbort);
  auto [resume, resume_args] =
      addCommand(group, "resume", "Continue; nodes that failed in this wave are tried again", call,
                 rolloutResume);
  resume.add_option("--accept", resume_args.accept_reason,
                    "Continue although the wave's gate failed, and why; recorded in the journal");
  auto [back, back_args] =
      addCommand(group, "rollback", "Revert the nodes that were changed", call, rolloutRollback);
  back.add_flag("--direct", call.options.direct, kDirect);
  for (auto* command : {&start, &status_command, &pause, &abort, &resume, &back})
    asksServer(*command, call);
  for (auto& [command, id] : {std::pair<CLI::App&, std::string&>(status_command, status_args.id),
                              std::pair<CLI::App&, std::string&>(back, back_args.id)})
    command.add_option("--id", id, "Which rollout; default: the newest");
  for (auto& [command, reason] : {std::pair<CLI::App&, std::string&>(start, asked.wipe_reason),
                                  std::pair<CLI::App&, std::string&>(back, back_args.wipe_reason)})
    command.add_option(
        "--allow-wipe", reason,
        "Permit that each node's disk is wiped once for its image, and why; recorded "
        "in the journal");
}

}  // namespace muster::cli
