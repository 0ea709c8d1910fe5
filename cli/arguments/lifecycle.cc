// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/lifecycle.h"
#include "cli/arguments/arguments.h"
#include "cli/commands/inventory.h"

namespace muster::cli {
namespace {

constexpr const char* kOnlyNodes = "Only these nodes (hostlist)";
constexpr const char* kExpand = "List the actions node by node, not grouped";
constexpr const char* kHostlist = "Hostlist";

void addPlanAndApply(CLI::App& app, Invocation& call) {
  auto [plan_command, plan_args] =
      addCommand(app, "plan", "Show what apply would change, and why", call, plan);
  plan_command.add_option("--out,-o", plan_args.out,
                          "Save the plan as JSON, for apply to run exactly it");
  plan_command.add_option("--nodes", plan_args.nodes, kOnlyNodes);
  plan_command.add_flag("--no-refresh", plan_args.no_refresh,
                        "Plan from the stored facts, without observing the nodes");
  plan_command.add_flag("--expand", plan_args.expand, kExpand);
  plan_command.add_flag("--detailed-exitcode", plan_args.detailed_exit_code,
                        "Exit with 2 where apply would change something, with 0 where not");
  asksServer(plan_command, call);
  auto [apply_command, apply_args] = addCommand(
      app, "apply", "Change the nodes until they are as the inventory declares them", call, apply);
  apply_command.add_option("plan", apply_args.plan,
                           "A saved plan; refused when what it was computed from has changed");
  apply_command.add_option("--nodes", apply_args.nodes, kOnlyNodes);
  apply_command.add_flag("--yes,-y", apply_args.yes,
                         "Do not ask before the nodes are changed; it asks on a terminal only");
  apply_command.add_flag("--expand", apply_args.expand, kExpand);
  apply_command
      .add_option("--after-restart", apply_args.after_restart,
                  "What a run does when the process or host that works on it dies: continue by "
                  "itself, or pause until somebody resumes it")
      ->check(CLI::IsMember({"continue", "pause"}))
      ->capture_default_str();
  apply_command.add_flag("--direct", call.options.direct,
                         "Carry it out in this process, although a monitor serves the site: the "
                         "monitor waits meanwhile");
  asksServer(apply_command, call);
}

void addNodeFilter(CLI::App& command, app::NodeFilter& filter, const char* name, const char* help) {
  command.add_option(name, filter.nodes, help);
  command.add_option("--state", filter.state, "Only nodes in this state, as `status` shows it")
      ->check(CLI::Validator(
          [](const std::string& state) {
            return state.find('/') == std::string::npos
                       ? std::string()
                       : "is the state of nodes here; the state folder is said before the command: "
                         "muster --state FOLDER …";
          },
          ""));
  command.add_option("--rack", filter.rack, "Only nodes of this rack");
  command.add_option("--pool", filter.pool, "Only nodes that are declared for this pool");
  command.add_option("--profile", filter.profile, "Only nodes of this profile");
}

void addStatus(CLI::App& app, Invocation& call) {
  auto [status_command, status_args] =
      addCommand(app, "status", "Show the state of the nodes", call, status);
  addNodeFilter(status_command, status_args.filter, "nodes", "Only these nodes (hostlist)");
  status_command.add_flag("--expand", status_args.expand,
                          "A row for every node, also where they are many");
  status_command.add_flag("--watch", status_args.watch,
                          "Print again when something changes, until interrupted");
  asksServer(status_command, call);
  auto [why_command, why_args] = addCommand(
      app, "why", "Explain the state of nodes: expected, observed, evidence, next step", call, why);
  addNodeFilter(why_command, why_args.filter, "node", "Hostlist, or @cluster");
  why_command.require_option(1, 0);
  asksServer(why_command, call);
  auto [findings_command, findings_args] =
      addCommand(app, "findings", "List open findings: what is wrong, who raised it, what to do",
                 call, findings);
  asksServer(findings_command, call);
  findings_command.add_option("nodes", findings_args.nodes, "Hostlist, or @cluster; default: all");
  auto* clear = findings_command.add_option(
      "--clear", findings_args.clear,
      "Clear the findings of this facet; what still holds is found again");
  clear->needs(
      findings_command
          .add_option("--reason", findings_args.reason, "With --clear: why; recorded in the log")
          ->needs(clear));
}

void addRecords(CLI::App& app, Invocation& call) {
  auto [events_command, events_args] =
      addCommand(app, "events", "List what has happened", call, events);
  asksServer(events_command, call);
  events_command.add_option("node", events_args.node, "Only this node");
  events_command.add_option("--limit", events_args.limit, "Only this many, the newest")
      ->capture_default_str();
  auto [history_command, history_args] = addCommand(
      app, "history", "Show who ran which plan, and how each action ended", call, history);
  asksServer(history_command, call);
  history_command.add_option(
      "what", history_args.what,
      "A node, @cluster, or the first characters of a plan's hash; default: all plans");
  history_command.add_option("--limit", history_args.limit,
                             "Only this many actions or plans, the newest");
}

void addWipeAndErase(CLI::App& app, Invocation& call) {
  auto [wipe_command, wipe_args] = addCommand(
      app, "wipe", "Permit that apply wipes these nodes' disks once (journaled)", call, wipe);
  asksServer(wipe_command, call);
  wipe_command.add_option("nodes", wipe_args.request.nodes, kHostlist);
  wipe_command.add_option("--reason", wipe_args.request.reason, "Why; recorded in the journal");
  wipe_command.add_flag("--data", wipe_args.request.data,
                        "The disks of storage sets too, whatever they hold; default: system disks "
                        "only");
  wipe_command.add_flag("--list", wipe_args.list, "Show which nodes may be wiped; permit nothing");
  auto [erase_command, erase_args] = addCommand(
      app, "erase",
      "Erase a node's disks irrecoverably. Without --confirm, only show what would be erased", call,
      erase);
  erase_command.add_option("node", erase_args.node)->required();
  erase_command.add_option("--disks", erase_args.disks, "Serials; default: all built-in disks")
      ->delimiter(',');
  erase_command.add_option("--confirm", erase_args.confirm,
                           "Repeat the node's name to erase the disks");
  erase_command.add_option("--reason", erase_args.reason,
                           "Why; recorded in the journal and in the report");
  erase_command.add_flag("--report", erase_args.report,
                         "Show the report of the last erasure; erase nothing");
  erase_command.add_flag("--cancel", erase_args.cancel, "Cancel an erasure that has not begun");
  erase_command.add_option("--out,-o", erase_args.out, "Write the report as JSON");
  asksServer(erase_command, call);
}

}  // namespace

void addInventoryCommands(CLI::App& app, Invocation& call) {
  auto& group = addGroup(app, "inventory", "Check and show the declared inventory");
  addCommand(group, "check", "Report every error and warning of the inventory", call,
             inventoryCheck);
  auto [show, args] = addCommand(group, "show", "Show the expanded cluster", call, inventoryShow);
  show.add_flag("--ansible", args.ansible,
                "As a dynamic inventory of Ansible: groups by profile, pool and rack");
  auto [netbox, netbox_args] =
      addCommand(addGroup(group, "import", "Take over what other programs know"), "netbox",
                 "Compare the nodes with NetBox's devices, and add rows for those that are missing",
                 call, inventoryImportNetbox);
  auto& request = netbox_args.request;
  netbox.add_option("--url", request.url, "NetBox's root, https://netbox.example.com")->required();
  netbox.add_option("--token-file", request.token_file,
                    "A file with an API token that may look; else NETBOX_TOKEN");
  netbox.add_option("--ca", request.ca,
                    "Certificates that NetBox's must lead to; else the system's");
  netbox.add_option("--site", request.query.sites, "Devices of these sites (slugs)");
  netbox.add_option("--tag", request.query.tags, "Devices with all of these tags (slugs)");
  netbox.add_option("--role", request.query.roles, "Devices of these roles (slugs)");
  auto* write =
      netbox.add_option("--write", request.csv, "The CSV of nodes that gets rows for new nodes");
  netbox
      .add_flag("--diff", netbox_args.diff,
                "Exit status 2 where both differ, 0 where they agree; write nothing")
      ->excludes(write);
  addCommand(group, "schema", "Print the JSON Schema of the inventory", call, inventorySchema);
}

void addLifecycleCommands(CLI::App& app, Invocation& call) {
  addPlanAndApply(app, call);
  addStatus(app, call);
  addRecords(app, call);
  addWipeAndErase(app, call);
}

}  // namespace muster::cli
