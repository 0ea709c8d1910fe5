// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/bmc.h"
#include "cli/arguments/arguments.h"
#include "cli/arguments/renamed.h"
#include "cli/commands/firmware.h"

namespace muster::cli {
namespace {

void addPowerAndBoot(CLI::App& group, Invocation& call) {
  auto [power, args] =
      addCommand(group, "power",
                 "Switch a machine's power and verify the result. A disruptive action is only "
                 "checked without --confirm",
                 call, bmcPower);
  asksServer(power, call);
  power.add_option("node", args.node)->required();
  power
      .add_option("action", args.action,
                  "reset restarts the BMC itself; ac-cycle cuts standby power too")
      ->required()
      ->check(CLI::IsMember({"on", "shutdown", "off", "restart", "ac-cycle", "nmi", "reset"}));
  power.add_option("--confirm", args.confirm, "Repeat the node's name to do it");
  power.add_option("--reason", args.reason, "Why; recorded in the log");
  power.add_flag("--force", args.force, "Also when the node may be running jobs");
  power.add_flag("--override", args.override_inventory,
                 "Also when the inventory asks others to agree first, or no maintenance window of "
                 "its pool is open; stays a finding until it is cleared");
  power.add_flag("--ipmi", args.ipmi,
                 "Use IPMI when Redfish does not answer: muster cannot see then whether firmware "
                 "is being written");
  refuseOldFlag(power, "--even-in-pool", "--force");
  auto [boot, boot_args] =
      addCommand(group, "boot", "Set the device that the machine boots from next", call, bmcBoot);
  boot.add_option("node", boot_args.node)->required();
  boot.add_option("from", boot_args.from)
      ->required()
      ->check(CLI::IsMember({"none", "pxe", "disk", "http", "cd"}));
  boot.add_option("--uri", boot_args.uri, "With http: what is loaded; default: what DHCP says");
  boot.add_flag("--persistent", boot_args.persistent, "Until it is changed again");
  auto [order, order_args] =
      addCommand(group, "boot-order",
                 "Show the order in which the machine's firmware tries to boot, or change it", call,
                 bmcBootOrder);
  order.add_option("node", order_args.node)->required();
  order.add_option(
      "--first", order_args.first,
      "Put these to the front, separated by commas: all options of a kind in their order (network: "
      "PXE; http; disk), or one by its reference. Example: disk,Boot0003");
  auto [media, media_args] = addCommand(
      group, "media",
      "Show what is in a machine's virtual CDs, insert an image that the BMC reads, or eject all",
      call, bmcMedia);
  media.add_option("node", media_args.node)->required();
  auto* insert = media.add_option("--insert", media_args.insert,
                                  "URL of an image; then: muster bmc boot NODE cd");
  media.add_flag("--eject", media_args.eject, "Take all images out")->excludes(insert);
  auto [locate, locate_args] = addCommand(
      group, "locate", "Switch the LED by which a machine is found in its rack, or show it", call,
      bmcLocate);
  asksServer(locate, call);
  locate.add_option("node", locate_args.node)->required();
  locate.add_option("state", locate_args.state)->check(CLI::IsMember({"on", "off"}));
}

void addCredentials(CLI::App& group, Invocation& call) {
  auto [rotate, rotate_args] =
      addCommand(group, "rotate",
                 "Change the BMCs' password to the credential's next one. Without --yes, only show "
                 "which",
                 call, bmcRotate);
  auto [certificate, certificate_args] =
      addCommand(group, "certificate",
                 "Install certificates of the site's CA on the BMCs, and trust those. Without "
                 "--yes, only show which",
                 call, bmcCertificate);
  for (auto& [command, args] :
       {std::pair<CLI::App&, BmcChangeArgs&>(rotate, rotate_args),
        std::pair<CLI::App&, BmcChangeArgs&>(certificate, certificate_args)}) {
    command.add_option("nodes", args.nodes, "Hostlist")->required();
    command.add_flag("--yes", args.yes,
                     "Do it: one BMC first, then several at a time; three failures stop the rest. "
                     "Where a monitor serves the site it is a run, which is followed");
    command.add_flag("--direct", call.options.direct,
                     "Do it in this process, although a monitor serves the site: the monitor waits "
                     "meanwhile");
    asksServer(command, call);
  }
}

CLI::App& addNodesCommand(CLI::App& group, const char* name, const char* help, Invocation& call,
                          int (*run)(const app::Options&, const NodesArgs&)) {
  auto [command, args] = addCommand(group, name, help, call, run);
  command.add_option("nodes", args.nodes, "Hostlist")->required();
  return command;
}

void addIdentities(CLI::App& group, Invocation& call) {
  auto& trust = addNodesCommand(
      addGroup(group, "trust", "The BMC's certificate and SSH host key"), "reset",
      "After the BMC or its certificate was replaced: pin the certificate and the SSH "
      "host key that it presents next",
      call, bmcTrustReset);
  auto& auth =
      addNodesCommand(addGroup(group, "auth", "muster's login at the BMC"), "reset",
                      "After the BMC's account was repaired: try the refused password once more",
                      call, bmcAuthReset);
  for (auto* command : {&trust, &auth}) asksServer(*command, call);
  refuseOldCommand(group, "forget-pin", "muster bmc trust reset");
  refuseOldCommand(group, "forget-refusal", "muster bmc auth reset");
  addNodesCommand(group, "forget-tpm",
                  "After the main board was replaced: accept the TPM that proves itself next", call,
                  bmcForgetTpm);
  addNodesCommand(group, "forget-key",
                  "After muster's store was restored from an older backup: accept the key that the "
                  "agent presents next",
                  call, bmcForgetKey);
  addNodesCommand(group, "revoke-key",
                  "After a disk was stolen or copied: accept no agent of the node until it is "
                  "imaged again",
                  call, bmcRevokeKey);
  auto [approve, args] = addCommand(
      group, "approve-key",
      "Where neither DHCP nor the neighbour table can prove which node it is: accept the "
      "RAM OS with this key as the node",
      call, bmcApproveKey);
  approve.add_option("node", args.node)->required();
  approve
      .add_option("fingerprint", args.fingerprint, "As the node's console shows it (32 hex digits)")
      ->required();
}

}  // namespace

void addBmcCommands(CLI::App& app, Invocation& call) {
  auto& group = addGroup(
      app, "bmc", "BMCs: power, boot device, passwords, certificates, and what is known of them");
  auto [show, args] = addCommand(group, "show",
                                 "Show the stored certificates, refused passwords and password "
                                 "changes; no BMC is asked",
                                 call, bmcShow);
  show.add_option("--nodes", args.nodes, "Only these nodes (hostlist)");
  asksServer(show, call);
  addPowerAndBoot(group, call);
  addCredentials(group, call);
  addIdentities(group, call);
}

void addFirmwareCommands(CLI::App& app, Invocation& call) {
  auto& group = addGroup(app, "firmware", "Firmware baselines");
  auto [plan_command, plan_args] =
      addCommand(group, "plan",
                 "Show each node's path to its baseline: order, resets, AC cycles, time, and what "
                 "is left undone",
                 call, firmwarePlan);
  asksServer(plan_command, call);
  plan_command.add_option("--nodes", plan_args.nodes, "Only these nodes (hostlist)");
  auto [sign, sign_args] = addCommand(
      group, "sign", "Sign a baseline with this controller's key, and print the signature", call,
      firmwareSign);
  sign.add_option("baseline", sign_args.baseline)->required();
  auto [retry, retry_args] = addCommand(
      group, "retry",
      "Install again what has failed for good: as a run of whoever serves the site; where nobody "
      "does, apply may do it",
      call, firmwareRetry);
  retry.add_option("nodes", retry_args.nodes, "Hostlist")->required();
  retry
      .add_option("--reason", retry_args.reason, "What was found, or repaired; recorded in the log")
      ->required();
  retry.add_flag("--direct", call.options.direct,
                 "Ask nobody: only lift the block, so that the next apply installs it");
  asksServer(retry, call);
}

}  // namespace muster::cli
