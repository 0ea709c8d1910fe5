// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/fabric.h"
#include "cli/arguments/arguments.h"
#include "cli/arguments/renamed.h"

namespace muster::cli {
namespace {

constexpr const char* kFound =
    "Use this output of ibnetdiscover or iblinkinfo instead of "
    "discovering the fabric";
constexpr const char* kOut = "Write to this file instead of standard output";
constexpr const char* kFabric = "The fabric, where the inventory has several";
constexpr const char* kPrometheus = "Print metrics for node_exporter's textfile collector";

void addDiffAndPlot(CLI::App& group, Invocation& call) {
  auto [diff, args] =
      addCommand(group, "diff",
                 "Compare the fabric with its declaration and list the cables to move; exit 0 "
                 "equal, 1 deviations, 2 could not discover completely",
                 call, fabricDiff);
  diff.add_option("--watch", args.watch_seconds,
                  "Compare again at this interval in seconds and print what has changed, until "
                  "interrupted")
      ->check(CLI::Range(1, 86400));
  diff.add_flag("--prometheus", args.prometheus, kPrometheus);
  diff.add_option("--found", args.request.found, kFound)->check(CLI::ExistingFile);
  diff.add_option("--fabric", args.request.fabric, kFabric);
  auto [plan_command, plan_args] =
      addCommand(group, "plan", "Print the cabling sheet as CSV: a label for each cable end", call,
                 fabricPlan);
  plan_command.add_option("--rack", plan_args.rack, "Only the ends in this rack");
  plan_command.add_option("--out,-o", plan_args.out, kOut);
  plan_command.add_option("--fabric", plan_args.fabric, kFabric);
  auto [plot, plot_args] = addCommand(
      group, "plot", "Draw the discovered fabric (SVG), faults in red", call, fabricPlot);
  plot.add_flag("--declared", plot_args.request.declared_only,
                "Draw the declaration, without discovering the fabric");
  plot.add_option("--found", plot_args.request.found, kFound)->check(CLI::ExistingFile);
  plot.add_option("--out,-o", plot_args.out, kOut);
  plot.add_option("--fabric", plot_args.request.fabric, kFabric);
}

void addRehearse(CLI::App& group, Invocation& call) {
  auto [rehearse, args] = addCommand(
      group, "rehearse",
      "Build the declared fabric in ibsim with real OpenSM and inject fault after fault; "
      "exit 0 all survived, 1 something broke, 2 no answer",
      call, fabricRehearse);
  rehearse.add_flag(
      "--alone", args.alone,
      "Inject one fault at a time; default: independent faults together, and one at a "
      "time where that breaks something");
  rehearse.add_option("--fabric", args.fabric, kFabric);
  rehearse.add_option("--faults", args.faults, "Only these kinds")
      ->delimiter(',')
      ->check(CLI::IsMember(
          {"cable-pulled", "switch-lost", "rail-swapped", "partitions-typo", "manager-lost"}));
}

void addQosCheck(CLI::App& group, Invocation& call) {
  auto args = std::make_shared<app::QosCheckRequest>();
  auto& qos =
      *group.add_subcommand("qos-check",
                            "Compare the QoS settings of a switch or host with the declared "
                            "RoCE settings; exit 0 equal, 1 different, 2 no answer");
  auto* config =
      qos.add_option("--config,--sonic", args->switch_config,
                     "A switch's SONiC config_db.json, or Cumulus' nv config show -o json")
          ->check(CLI::ExistingFile);
  qos.add_option("--switch", args->switch_name,
                 "The declared name of this switch: check every port that has a cable")
      ->needs(config);
  auto* app_option =
      qos.add_option("--dcb-app", args->dcb_app, "A host's dcb -j app show dev INTERFACE")
          ->check(CLI::ExistingFile)
          ->excludes(config);
  app_option->needs(qos.add_option("--dcb-pfc", args->dcb_pfc, "Its dcb -j pfc show dev INTERFACE")
                        ->check(CLI::ExistingFile));
  qos.add_option("--fabric", args->fabric, kFabric);
  qos.add_option("--mtu", args->mtu, "The MTU of its interface")->check(CLI::Range(68, 65535));
  qos.callback([&call, args] {
    if (args->switch_config.empty() && args->dcb_app.empty())
      throw CLI::RequiredError("--config or --dcb-app");
    call.run = [&call, args] { return fabricQosCheck(call.options, *args); };
  });
  refuseOldCommand(group, "marking", "muster fabric qos-check");
}

void addHealth(CLI::App& group, Invocation& call) {
  auto [health, args] =
      addCommand(group, "health",
                 "Read every cable's counters over a time window, under the load that you run "
                 "meanwhile; exit 0 all good, 1 bad cables, 2 nothing proven",
                 call, fabricHealth);
  auto& request = args.request;
  health.add_option("--fabric", request.fabric, kFabric);
  health
      .add_option("--window", request.window_seconds,
                  "Seconds between the readings; 5 to 10 minutes under load find what matters")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  health
      .add_option("--min-load", request.min_load_percent,
                  "A cable that carried less than this share of its rate (percent) is not proven")
      ->check(CLI::Range(0.0, 100.0));
  health
      .add_option("--transceivers", request.transceivers,
                  "CSV: device, port, serial (vendor, part): the cables' serial numbers")
      ->check(CLI::ExistingFile);
  auto* found = health
                    .add_option("--found", request.found,
                                "With --before and --after: what ibnetdiscover printed then")
                    ->check(CLI::ExistingFile);
  auto* before = health
                     .add_option("--before", request.before,
                                 "Use this first reading by perfquery (-x), or ibqueryerrors with "
                                 "and without --counters, instead of reading now")
                     ->check(CLI::ExistingFile);
  before
      ->needs(
          health.add_option("--after", request.after, "The second reading, --window seconds later")
              ->check(CLI::ExistingFile))
      ->needs(found);
  health.add_flag("--all", args.all, "Also list good cables and informational entries");
  health.add_flag("--prometheus", args.prometheus, kPrometheus);
}

void addShow(CLI::App& group, Invocation& call) {
  auto [show, args] = addCommand(
      group, "show",
      "Show the fabric as declared and what the newest look at it and at its counters has found; "
      "nothing is discovered for it",
      call, fabricShow);
  show.add_option("--fabric", args.fabric, kFabric);
  show.add_option("--device", args.device, "Only the cables of this switch, HCA or node");
  show.add_flag("--all", args.all, "Also cables that are as declared and have no errors");
  asksServer(show, call);
}

}  // namespace

void addFabricCommands(CLI::App& app, Invocation& call) {
  auto& group = addGroup(app, "fabric", "The fabric as declared and as discovered");
  addShow(group, call);
  addDiffAndPlot(group, call);
  addRehearse(group, call);
  addQosCheck(group, call);
  addHealth(group, call);
  auto [render, args] =
      addCommand(group, "render",
                 "Write the files that follow from the declaration: cabling sheet, plot, standby "
                 "subnet managers, Slurm, Kubernetes, NCCL",
                 call, fabricRender);
  render.add_option("--out,-o", args.folder, "The folder")->required();
  render.add_option("--fabric", args.fabric, "Only this fabric; default: all, a folder each");
}

}  // namespace muster::cli
