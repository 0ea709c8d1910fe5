// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/discover.h"
#include "cli/arguments/arguments.h"

namespace muster::cli {
namespace {

constexpr int kMaxWatchSeconds = 7 * 86400;

void addScanAndWatch(CLI::App& group, Invocation& call) {
  auto [scan, scan_args] =
      addCommand(group, "scan", "Probe these addresses for BMCs; default: discovery.ranges", call,
                 discoverScan);
  auto& request = scan_args.request;
  scan.add_option("ranges", request.ranges, "FIRST-LAST, a network in CIDR form, or one address");
  scan.add_option("--fingerprints", request.fingerprints,
                  "Certificates of BMCs that were compared and may get a password: lines ADDRESS "
                  "FINGERPRINT, as scan prints them")
      ->check(CLI::ExistingFile);
  scan.add_option("--trust", request.trusted,
                  "One such fingerprint (SHA-256), of any address; may be given several times");
  scan.add_option("--port", scan_args.port, "Where Redfish is served")->check(CLI::Range(1, 65535));
  auto [watch, watch_args] = addCommand(
      group, "watch", "Listen to DHCP and SSDP on the provisioning network", call, discoverWatch);
  watch.add_option("--interface", watch_args.interface,
                   "The interface; default: the one that has the controller's address");
  watch.add_option("--seconds", watch_args.seconds, "How long; default: until interrupted")
      ->check(CLI::Range(1, kMaxWatchSeconds));
}

}  // namespace

void addDiscoverCommands(CLI::App& app, Invocation& call) {
  auto args = std::make_shared<app::AdoptRequest>();
  auto& group = *app.add_subcommand(
      "discover", "List machines that the inventory does not declare yet, as they were seen");
  group.require_subcommand(0, 1);
  asksServer(group, call);
  group.add_option("--write", args->csv,
                   "Add a row for each approved machine to this CSV of nodes");
  group.add_option("--adopt", args->adopt,
                   "With --write: approve the machines of this list (CSV with serial or bmc_mac)");
  addScanAndWatch(group, call);
  auto [approve, approve_args] =
      addCommand(group, "approve", "Approve machines: --write adds them to the inventory", call,
                 discoverApprove);
  approve.add_option("machines", approve_args.machines, "Serials, BMC addresses or MACs");
  approve.add_option("--match", approve_args.matches, "FIELD=GLOB; several must all match");
  approve.add_option("--as", approve_args.as, "The node's name, of one machine");
  approve.add_option("--mac", approve_args.mac, "The NIC that boots, of one machine");
  const auto add_place = [](CLI::App& command, std::string& profile, std::string& rack) {
    command.add_option("--profile", profile, "The machines' profile");
    command.add_option("--rack", rack, "The machines' rack");
  };
  add_place(group, args->profile, args->rack);
  add_place(approve, approve_args.profile, approve_args.rack);
  auto [forget, forget_args] =
      addCommand(group, "forget", "Remove machines from the list", call, discoverForget);
  forget.add_option("machines", forget_args.machines, "Serials, BMC addresses or MACs");
  forget.add_flag("--all", forget_args.all, "The whole list, also one that cannot be read");
  for (auto* command : group.get_subcommands([](CLI::App*) { return true; }))
    asksNoServer(*command, call);
  for (auto* command : {&approve, &forget}) asksServer(*command, call);
  group.callback([&call, args] {
    if (!call.run) call.run = [&call, args] { return discover(call.options, *args); };
  });
}

}  // namespace muster::cli
