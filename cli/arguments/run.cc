// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/run.h"
#include "cli/arguments/arguments.h"

namespace muster::cli {

void addRunCommands(CLI::App& app, Invocation& call) {
  auto& group = addGroup(app, "run", "Show and steer work that outlives terminals and processes");
  asksServer(group, call);
  auto [list, list_args] = addCommand(group, "list", "List runs, newest first", call, runList);
  list.add_flag("--open", list_args.open, "Only those that are not over");
  list.add_option("--limit", list_args.limit, "Only this many, the newest")->capture_default_str();
  const auto addOne = [&](const char* name, const char* help,
                          int (*run)(const app::Options&, const RunArgs&)) -> RunArgs& {
    auto [command, args] = addCommand(group, name, help, call, run);
    command.add_option("id", args.id, "Which run: `muster run list` shows them")->required();
    return args;
  };
  addOne("show", "Show what a run does, who has agreed to it and how far it is", runShow);
  addOne("follow", "Follow a run until it ends; Ctrl-C stops only the following", runFollow);
  addOne("cancel", "Begin nothing new in a run and end it; what had begun is left as it is",
         runCancel);
  addOne("pause", "Begin nothing new in a run until it is resumed", runPause);
  addOne("resume", "Continue a run that is paused", runResume);
  auto [approve, approve_args] = addCommand(
      group, "approve", "Agree to the plan of a run; your own runs you confirm", call, runApprove);
  approve.add_option("id", approve_args.id, "Which run: `muster run list` shows them")->required();
  approve.add_option("--plan", approve_args.plan,
                     "The hash of the plan that you have looked at; refused when the run has "
                     "another one by now. Default: the one it has");
  auto [override_, override_args] = addCommand(
      group, "override",
      "Let a run begin without its approvals, or outside a maintenance window; status shows it "
      "until somebody acknowledges it",
      call, runOverride);
  override_.add_option("id", override_args.id, "Which run: `muster run list` shows them")
      ->required();
  override_.add_option("--reason", override_args.reason, "Why; kept in the journal")->required();
  override_.add_option("--plan", override_args.plan,
                       "The hash of the plan that you have looked at. Default: the one it has");
  addOne("acknowledge", "Say that you know of a run's overrides; status is silent about them then",
         runAcknowledge);
}

}  // namespace muster::cli
