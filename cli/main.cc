// SPDX-License-Identifier: Apache-2.0
// muster's command line: words → options → one command.
#include "app/actor.h"
#include "base/main_guard.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"

#include "base/log.h"

#include <CLI/CLI.hpp>

#include <iostream>

using namespace muster;
using namespace muster::cli;

namespace {

struct Parsed {
  app::Options options = app::defaultOptions();
  Selection selection;
  RolloutFlags rollout;
  DiscoverFlags discover;
  EraseFlags erase;
  ConsoleFlags console;
  ValidateFlags validate;
  CertFlags cert;
  FabricFlags fabric;
  AuditFlags audit;
  KeyFlags key;
  FaultFlags fault;
  BmcFlags bmc;
  std::filesystem::path file, folder;
  std::string node, reason, facet;
  std::vector<std::filesystem::path> trust;
  std::vector<std::string> command;
  std::size_t limit = 200;
  bool no_refresh = false, watch = false, acknowledge = false, wipe_data = false;
  std::function<int()> run;
};

CLI::App* sub(CLI::App& parent, const char* name, const char* what, Parsed& parsed,
              std::function<int()> run) {
  auto* command = parent.add_subcommand(name, what);
  command->callback([&parsed, run = std::move(run)] { parsed.run = run; });
  return command;
}

void addInventory(CLI::App& app, Parsed& p) {
  auto* group =
      app.add_subcommand("inventory", "Check and show what is declared")->require_subcommand(1);
  sub(*group, "check", "Report everything that is wrong with the inventory", p,
      [&p] { return inventoryCheck(p.options); });
  sub(*group, "show", "Show the expanded cluster", p, [&p] { return inventoryShow(p.options); });
  sub(*group, "schema", "Print the JSON Schema of the inventory", p,
      [] { return inventorySchema(); });
}

void addKeys(CLI::App& app, Parsed& p) {
  auto* group =
      app.add_subcommand("key",
                         "The site's keys, one a purpose: images, certificates, firmware, audit")
          ->require_subcommand(1);
  sub(*group, "list", "Which key signs, and which one before it still verifies", p,
      [&p] { return keyList(p.options); });
  sub(*group, "show",
      "Print the public half (PEM); while a rotation is under way that of both keys", p,
      [&p] { return keyShow(p.options, p.key.purpose); })
      ->add_option("purpose", p.key.purpose)
      ->required();
  auto* rotate =
      sub(*group, "rotate",
          "Make a new key that signs from now on; the one before verifies until --finish", p,
          [&p] { return keyRotate(p.options, p.key); });
  rotate->add_option("purpose", p.key.purpose)->required();
  auto* finish = rotate->add_flag(
      "--finish", p.key.finish, "End the rotation: what the key before has signed counts no more");
  rotate
      ->add_flag("--force", p.key.force,
                 "With --finish: although nodes have certificates of the key before; these end")
      ->needs(finish);
}

void addLifecycle(CLI::App& app, Parsed& p) {
  auto* plan_command = sub(app, "plan", "Show what apply would do, and why", p,
                           [&p] { return plan(p.options, p.selection, p.file, !p.no_refresh); });
  plan_command->add_option("--out,-o", p.file, "Save the plan as JSON; apply runs exactly it");
  plan_command->add_option("--nodes", p.selection.nodes, "Only these nodes (hostlist)");
  plan_command->add_flag("--no-refresh", p.no_refresh,
                         "Plan from the stored facts, look at nothing");
  auto* apply_command =
      sub(app, "apply", "Make it so", p, [&p] { return apply(p.options, p.selection, p.file); });
  apply_command->add_option("plan", p.file,
                            "A saved plan; refused when what it was computed from has changed");
  apply_command->add_option("--nodes", p.selection.nodes, "Only these nodes (hostlist)");
  auto* status_command = sub(app, "status", "Where every node is on its road", p,
                             [&p] { return status(p.options, p.watch); });
  status_command->add_flag("--watch", p.watch, "Redraw when something changes, until interrupted");
  sub(app, "why", "Why a node is where it is: expected, observed, evidence, next step", p,
      [&p] { return why(p.options, p.node); })
      ->add_option("node", p.node)
      ->required();
  auto* findings_command =
      sub(app, "findings", "What is wrong, who raised it, and what to do", p, [&p] {
        return p.facet.empty() ? findings(p.options, p.selection.nodes)
                               : findingsClear(p.options, p.selection.nodes, p.facet, p.reason);
      });
  findings_command->add_option("nodes", p.selection.nodes,
                               "Hostlist, or @cluster; without it, all");
  auto* clear = findings_command->add_option(
      "--clear", p.facet, "End the findings of this facet; what still holds is found again");
  clear->needs(
      findings_command->add_option("--reason", p.reason, "With --clear: why; kept in the log")
          ->needs(clear));
  auto* events_command = sub(app, "events", "What has happened", p,
                             [&p] { return events(p.options, p.node, p.limit); });
  events_command->add_option("node", p.node, "Only this node");
  events_command->add_option("--limit", p.limit, "At most so many, the newest");
  auto* history_command = sub(app, "history", "Who asked for what, and what became of every action",
                              p, [&p] { return history(p.options, p.node, p.limit); });
  history_command->add_option(
      "what", p.node, "A node, @cluster, or the beginning of a plan's hash; without it, all plans");
  history_command->add_option("--limit", p.limit, "At most so many actions or plans, the newest");
  auto* audit = app.add_subcommand("audit", "The log as evidence")->require_subcommand(1);
  auto* verify =
      sub(*audit, "verify",
          "Check the chain of hashes; exit 1 when an entry was changed, removed, inserted or moved",
          p, [&p] { return auditVerify(p.options, p.audit); });
  verify->add_option("file", p.audit.file, "An archive, instead of the log in the store");
  verify->add_option(
      "--expect", p.audit.expected,
      "A hash that was noted elsewhere: it must be in the chain, an archive must end with it");
  verify->add_option("--head", p.audit.head,
                     "Signed heads that were exported earlier, as a file (an extract of syslog "
                     "will do) or the line itself: the log must still hold each");
  verify
      ->add_option("--key", p.audit.key,
                   "A public key (PEM) whose heads count too: one that was retired, or of another "
                   "state folder")
      ->check(CLI::ExistingFile);
  sub(*audit, "head", "Sign and print where the log ends now; keep it on another machine", p,
      [&p] { return auditHead(p.options); });
  auto* archive = sub(*audit, "archive", "Move old entries into a file; the chain stays provable",
                      p, [&p] { return auditArchive(p.options, p.reason, p.file); });
  archive->add_option("--before", p.reason, "Entries older than this date (2026-01-31) or time")
      ->required();
  archive->add_option("--to", p.file, "A new file; the same one again goes on after a crash")
      ->required();
  addKeys(app, p);
  auto* wipe_command =
      sub(app, "wipe", "Allow that these nodes' disks are wiped once (journaled)", p,
          [&p] { return grantWipe(p.options, p.selection.nodes, p.reason, p.wipe_data); });
  wipe_command->add_option("nodes", p.selection.nodes, "Hostlist")->required();
  wipe_command->add_option("--reason", p.reason, "Why; kept in the journal")->required();
  wipe_command->add_flag(
      "--data", p.wipe_data,
      "The disks of their storage sets too, whatever these hold; without it, only system disks");
  auto* erase_command =
      sub(app, "erase", "Erase a node's disks for good: without --confirm, what would be done", p,
          [&p] { return erase(p.options, p.erase); });
  erase_command->add_option("node", p.erase.node)->required();
  erase_command
      ->add_option("--disks", p.erase.disks, "Serials; without it, every disk that is built in")
      ->delimiter(',');
  erase_command->add_option("--confirm", p.erase.confirm,
                            "The node's name once more; then it is done");
  erase_command->add_option("--reason", p.erase.reason,
                            "Why; kept in the journal and in the report");
  erase_command->add_flag("--report", p.erase.report,
                          "Show the report of the last time; nothing is done");
  erase_command->add_flag("--cancel", p.erase.cancel,
                          "Take back what was asked for and has not begun");
  erase_command->add_option("--out,-o", p.erase.out, "Write the report as JSON");
}

void addRollout(CLI::App& app, Parsed& p) {
  auto* group = app.add_subcommand(
                       "rollout", "A change, laid over some nodes in waves that stop by themselves")
                    ->require_subcommand(1);
  auto* start = sub(*group, "start", "Freeze the plan, then go on wave by wave", p,
                    [&p] { return rolloutStart(p.options, p.rollout); });
  start->add_option("--change", p.rollout.change,
                    "What becomes different: a fragment of an inventory (YAML)");
  start->add_option("--driver", p.rollout.driver,
                    "A declared driver, in the place of the one of its kind");
  start->add_option("--nodes", p.rollout.nodes, "Hostlist")->required();
  start->add_flag("--dry-run", p.rollout.dry_run,
                  "Show waves, nodes and what would be done to them; nothing is written or begun");
  start->add_option("--canaries", p.rollout.canaries, "So many nodes go first")
      ->check(CLI::Range(1, 10'000));
  start->add_option("--on-failure", p.rollout.on_failure, "What a failed gate does")
      ->check(CLI::IsMember({"halt", "roll-back"}));
  start
      ->add_option("--when-unclear", p.rollout.when_unclear,
                   "What to do while nobody can tell whether nodes became slower")
      ->check(CLI::IsMember({"halt", "go-on"}));
  auto* status_command = sub(*group, "status", "How far a rollout is, and why it stands", p,
                             [&p] { return rolloutStatus(p.options, p.rollout); });
  sub(*group, "pause", "Finish the nodes that are under way, start no others", p,
      [&p] { return rolloutPause(p.options); });
  sub(*group, "abort", "The same, for good; what has changed stays changed", p,
      [&p] { return rolloutAbort(p.options); });
  auto* resume = sub(*group, "resume", "Go on; nodes that failed in this wave are tried again", p,
                     [&p] { return rolloutResume(p.options, p.rollout); });
  resume->add_option("--accept", p.rollout.accept_reason,
                     "Go on although the wave's gate failed, and why; kept in the journal");
  auto* back = sub(*group, "rollback", "Bring the changed nodes back to what they were", p,
                   [&p] { return rolloutRollback(p.options, p.rollout); });
  for (auto* command : {status_command, back})
    command->add_option("--id", p.rollout.id, "Which one; the newest without it");
  for (auto* command : {start, back})
    command->add_option(
        "--allow-wipe", p.rollout.wipe_reason,
        "Allow each node's disk to be wiped once for its image, and why; kept in the journal");
}

void addKeep(CLI::App& app, Parsed& p) {
  auto* keep_command = sub(
      app, "keep", "Stay: watch, and take out of their pools the nodes that may not take jobs", p,
      [&p] { return p.acknowledge ? keepAcknowledge(p.options, p.reason) : keep(p.options); });
  keep_command->add_flag("--acknowledge", p.acknowledge,
                         "Let keep go on where its circuit breaker has stopped it");
  keep_command->add_option("--reason", p.reason,
                           "With --acknowledge: what was found; kept in the log");
  auto* group = app.add_subcommand("quarantine", "Nodes that join no pool until a person lifts it")
                    ->require_subcommand(1);
  sub(*group, "list", "Who is in quarantine, since when and why", p,
      [&p] { return quarantineList(p.options); });
  auto* hold = sub(*group, "hold", "Put nodes in", p,
                   [&p] { return quarantineHold(p.options, p.selection.nodes, p.reason); });
  hold->add_option("nodes", p.selection.nodes, "Hostlist")->required();
  hold->add_option("--reason", p.reason, "Why")->required();
  auto* lift = sub(*group, "lift", "Let a node go", p,
                   [&p] { return quarantineLift(p.options, p.node, p.reason); });
  lift->add_option("node", p.node)->required();
  lift->add_option("--reason", p.reason, "What was repaired; kept in the log")->required();
  auto* console_command = sub(app, "console", "A node's serial console, live, or as it was kept", p,
                              [&p] { return console(p.options, p.node, p.console); });
  console_command->add_option("node", p.node)->required();
  console_command->add_option("--boot", p.console.boot, "Show what is kept of this boot")
      ->excludes(console_command->add_flag("--last", p.console.last, "Show the newest boot"));
  console_command->add_flag("--list", p.console.list, "The boots that are kept");
  console_command->add_flag(
      "--raw", p.console.raw,
      "With --boot or --last: bytes as they came, terminal sequences and all");
  console_command->add_flag("--take", p.console.take,
                            "End the session of whoever has the BMC's serial console now");
  auto* rma_command =
      sub(app, "rma", "Everything known of a node in one archive, for whoever repairs it", p,
          [&p] { return rma(p.options, p.node, p.file); });
  rma_command->add_option("node", p.node)->required();
  rma_command->add_option("--out,-o", p.file, "FILE.tar.zst or FILE.tar.gz")->required();
}

void addFirmware(CLI::App& app, Parsed& p) {
  auto* group = app.add_subcommand("firmware", "Baselines of firmware")->require_subcommand(1);
  sub(*group, "plan",
      "Each node's way to its baseline: order, resets, AC cycles, time, and what is left undone", p,
      [&p] { return firmwarePlan(p.options, p.selection.nodes); })
      ->add_option("--nodes", p.selection.nodes, "Only these nodes (hostlist)");
  sub(*group, "sign",
      "Sign a baseline with this controller's key; the signature goes to standard output", p,
      [&p] { return firmwareSign(p.options, p.node); })
      ->add_option("baseline", p.node)
      ->required();
  auto* retry = sub(*group, "retry", "What failed for good may be installed again", p,
                    [&p] { return firmwareRetry(p.options, p.selection.nodes, p.reason); });
  retry->add_option("nodes", p.selection.nodes, "Hostlist")->required();
  retry->add_option("--reason", p.reason, "What was found, or repaired; kept in the log")
      ->required();
}

void addLab(CLI::App& app, Parsed& p) {
  auto* group = app.add_subcommand("lab", "The virtual twin of the rack")->require_subcommand(1);
  sub(*group, "up", "Start the twin", p, [&p] { return labUp(p.options); });
  sub(*group, "down", "Stop it; nothing stays behind", p, [&p] { return labDown(p.options); });
  sub(*group, "status", "What runs", p, [&p] { return labStatus(p.options); });
  sub(*group, "console", "Follow a node's serial console", p,
      [&p] { return console(p.options, p.node, {}); })
      ->add_option("node", p.node)
      ->required();
  auto* fault = sub(*group, "fault",
                    "Make a node's virtual BMC misbehave: answers by rule, updates by mishap; "
                    "without either, show what is set",
                    p, [&p] { return labFault(p.options, p.fault); });
  fault->add_option("node", p.fault.node)->required();
  fault->add_option("--path", p.fault.path, "Glob of the paths that a rule is for");
  fault->add_option("--method", p.fault.method, "Glob of the methods");
  fault->add_option("--status", p.fault.status, "Answer this instead");
  fault->add_option("--latency-ms", p.fault.latency_ms, "Wait before anything else");
  fault->add_flag("--drop", p.fault.drop, "Break the connection");
  fault->add_flag("--after", p.fault.after, "Carry the request out first, then fail");
  fault->add_option("--merge", p.fault.merge, "JSON that is laid over the answer (RFC 7396)");
  fault->add_option("--count", p.fault.count, "How often; negative: until it is cleared");
  fault->add_option("--mishap", p.fault.mishap,
                    "How the next updates end: cut-upload, lost-answer, task-vanishes, task-fails, "
                    "completed-not-installed, exception-but-installed, stuck-mode, "
                    "no-licence, bmc-lost, host-silent");
  fault->add_flag("--clear", p.fault.clear, "Forget what was set before");
  sub(*group, "packages", "Make the drivers' apt repository and the firmware files of the twin", p,
      [&p] { return labPackages(p.options, p.folder); })
      ->add_option("folder", p.folder, "The inventory's folder")
      ->required();
  // The words after `lab exec` belong to the other program: main takes them off before the line is
  // parsed.
  sub(*group, "exec", "Run a program inside the twin's network: muster lab exec sinfo", p,
      [&p] { return labExec(p.options, p.command); });
}

void addBmc(CLI::App& app, Parsed& p) {
  auto& flags = p.bmc;
  auto* group =
      app.add_subcommand(
             "bmc", "BMCs: what is remembered of them, power, boot device, password, certificate")
          ->require_subcommand(1);
  sub(*group, "show",
      "What is remembered: certificate, refused passwords, changes of the password; nobody is "
      "asked",
      p, [&p] { return bmcShow(p.options, p.bmc); })
      ->add_option("--nodes", flags.node, "Only these nodes (hostlist)");
  auto* power = sub(*group, "power",
                    "Switch a machine, and see that it is so. What takes something away is only "
                    "shown without --confirm",
                    p, [&p] { return bmcPower(p.options, p.bmc); });
  power->add_option("node", flags.node)->required();
  power
      ->add_option("action", flags.what,
                   "reset is the BMC's own restart; ac-cycle takes standby power away too")
      ->required()
      ->check(CLI::IsMember({"on", "shutdown", "off", "restart", "ac-cycle", "nmi", "reset"}));
  power->add_option("--confirm", flags.confirm, "The node's name once more; then it is done");
  power->add_option("--reason", flags.reason, "Why; kept in the log");
  power->add_flag("--even-in-pool", flags.even_in_pool, "Although the node may be running jobs");
  power->add_flag(
      "--ipmi", flags.ipmi,
      "By IPMI, although Redfish is silent: whether firmware is being written cannot be seen then");
  auto* boot = sub(*group, "boot", "What the machine boots from the next time", p,
                   [&p] { return bmcBoot(p.options, p.bmc); });
  boot->add_option("node", flags.node)->required();
  boot->add_option("from", flags.what)
      ->required()
      ->check(CLI::IsMember({"none", "pxe", "disk", "http"}));
  boot->add_option("--uri", flags.uri, "With http: what is loaded; without it, what DHCP says");
  boot->add_flag("--persistent", flags.persistent, "Until it is changed again");
  auto* rotate =
      sub(*group, "rotate",
          "Change the BMCs' password to the credential's next; without --yes, what would be done",
          p, [&p] { return bmcRotate(p.options, p.bmc); });
  auto* certificate = sub(*group, "certificate",
                          "Give the BMCs certificates of the site's CA, and trust those; without "
                          "--yes, what would be done",
                          p, [&p] { return bmcCertificate(p.options, p.bmc); });
  for (auto* command : {rotate, certificate}) {
    command->add_option("nodes", flags.node, "Hostlist")->required();
    command->add_flag("--yes", flags.yes,
                      "Do it: one BMC first, then some at a time; several failures stop the rest");
  }
  sub(*group, "forget-pin",
      "After its certificate was replaced on purpose: trust the one it shows next", p,
      [&p] { return bmcForgetPin(p.options, p.node); })
      ->add_option("node", p.node)
      ->required();
  sub(*group, "forget-refusal", "After its account was put right: try the same password once more",
      p, [&p] { return bmcForgetRefusal(p.options, p.node); })
      ->add_option("node", p.node)
      ->required();
  sub(*group, "forget-tpm",
      "After its main board was replaced: the TPM that it shows next is its own", p,
      [&p] { return bmcForgetTpm(p.options, p.node); })
      ->add_option("node", p.node)
      ->required();
  sub(*group, "forget-key",
      "After muster's store came back from an older backup: the key that its agent shows next is "
      "its own",
      p, [&p] { return bmcForgetKey(p.options, p.node); })
      ->add_option("nodes", p.node, "Hostlist")
      ->required();
  auto* approve = sub(*group, "approve-key",
                      "Where neither DHCP nor the neighbour table can show who a node is: its RAM "
                      "OS with this key is the node",
                      p, [&p] { return bmcApproveKey(p.options, p.node, p.bmc.what); });
  approve->add_option("node", p.node)->required();
  approve->add_option("fingerprint", flags.what, "As the node's console shows it (32 hex digits)")
      ->required();
  sub(*group, "revoke-key",
      "After a disk was stolen or copied: no agent of it is listened to until it is imaged again",
      p, [&p] { return bmcRevokeKey(p.options, p.node); })
      ->add_option("nodes", p.node, "Hostlist")
      ->required();
}

void addDiscover(CLI::App& app, Parsed& p) {
  auto& flags = p.discover;
  auto* group = app.add_subcommand(
      "discover", "Machines that nobody has declared yet: without more words, what was seen");
  group->add_option("--write", flags.write,
                    "Add a row for each approved machine to this CSV of nodes");
  group->add_option("--adopt", flags.adopt,
                    "With --write: approve the machines of this list (CSV with serial or bmc_mac)");
  group->require_subcommand(0, 1);
  auto* scan = sub(*group, "scan", "Ask these addresses for BMCs; without ranges, discovery.ranges",
                   p, [&p] { return discoverScan(p.options, p.discover); });
  scan->add_option("ranges", flags.words, "FIRST-LAST, network in CIDR form, or one address");
  scan->add_option("--fingerprints", flags.fingerprints,
                   "Certificates of BMCs that were compared and may get a password: lines ADDRESS "
                   "FINGERPRINT, as scan prints them")
      ->check(CLI::ExistingFile);
  scan->add_option("--trust", flags.trusted,
                   "One such fingerprint (SHA-256), of any address; may be given several times");
  scan->add_option("--port", flags.port, "Where Redfish is served")->check(CLI::Range(1, 65535));
  auto* watch = sub(*group, "watch", "Listen to DHCP and SSDP on the provisioning network", p,
                    [&p] { return discoverWatch(p.options, p.discover); });
  watch->add_option("--interface", flags.interface,
                    "Instead of the one that has the controller's address");
  watch->add_option("--seconds", flags.seconds, "End after so long; without it, when interrupted")
      ->check(CLI::Range(1, 7 * 86400));
  auto* approve = sub(*group, "approve", "Let machines become nodes", p,
                      [&p] { return discoverApprove(p.options, p.discover); });
  approve->add_option("machines", flags.words, "Serials, BMC addresses or MACs");
  approve->add_option("--match", flags.matches, "FIELD=GLOB; several must all fit");
  approve->add_option("--as", flags.as, "The node's name, of one machine");
  approve->add_option("--mac", flags.mac, "The NIC that boots, of one machine");
  for (auto* command : {group, approve}) {
    command->add_option("--profile", flags.profile, "What they are");
    command->add_option("--rack", flags.rack, "Where they stand");
  }
  auto* forget = sub(*group, "forget", "Take machines out of the list", p,
                     [&p] { return discoverForget(p.options, p.discover); });
  forget->add_option("machines", flags.words, "Serials, BMC addresses or MACs");
  forget->add_flag("--all", flags.all, "The whole list, also one that cannot be read");
  group->callback([&p] {
    if (!p.run)
      p.run = [&p] {
        return p.discover.write.empty() && p.discover.adopt.empty()
                   ? discoverList(p.options, p.discover)
                   : discoverWrite(p.options, p.discover);
      };
  });
}

void addValidate(CLI::App& app, Parsed& p) {
  auto& flags = p.validate;
  auto* group = app.add_subcommand("validate", "Measure nodes, name what is bad, and report")
                    ->require_subcommand(1);
  auto* run = sub(
      *group, "run",
      "Run gates again, within the power of their racks; killed anywhere, the same command goes on",
      p, [&p] { return validateRun(p.options, p.validate); });
  run->add_option("--nodes", flags.nodes, "Hostlist")->required();
  run->add_option("--gates", flags.gates, "Only these; without it, all of the nodes' profiles")
      ->delimiter(',');
  run->add_option("--minutes", flags.minutes,
                  "End after so long with status 1; the same command goes on, and what nodes had "
                  "begun is taken up")
      ->check(CLI::Range(1, 7 * 24 * 60));
  run->add_flag("--dry-run", flags.dry_run, "Show what would be done; nothing is begun");
  run->add_flag("--together", flags.together,
                "Each rack's nodes begin a gate at one moment, to see whether its supplies bear "
                "the step; refused where its declared power would not");
  auto* isolate = sub(
      *group, "isolate",
      "Which node, NIC, switch or pair is bad, by tests between nodes; exit 1 when something is", p,
      [&p] { return validateIsolate(p.options, p.validate); });
  isolate->add_option("--nodes", flags.nodes,
                      "Hostlist; without it, all nodes that may be disturbed");
  isolate
      ->add_option(
          "--least-gbits", flags.least_gbits,
          "What a healthy pair reaches at least; without it, the floor of its device and link")
      ->check(CLI::PositiveNumber);
  isolate
      ->add_option("--engine", flags.engine,
                   "What tests nodes: rdma (pairs by perftest), nccl or tcp (collectives); auto: "
                   "nccl where all nodes have it, else rdma")
      ->check(CLI::IsMember({"auto", "rdma", "nccl", "tcp"}))
      ->capture_default_str();
  isolate->add_option("--seed", flags.seed, "Plan the same rounds again");
  auto* report = sub(
      *group, "report",
      "What all measurements say: outliers, racks, devices, drift; exit 1 when something differs",
      p, [&p] { return validateReport(p.options, p.validate); });
  report->add_option("--html", flags.html, "Write a page for people: one file, nothing fetched");
  report->add_option("--json-file", flags.json, "Write it for programs");
  report->add_option("--junit", flags.junit, "Write it as test results, a case a node");
  report
      ->add_option("--false-alarms", flags.false_alarms,
                   "How many false alarms it may be expected to hold")
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str();
  sub(*group, "checks",
      "All checks: what they look at, from which level on, what they need, where their expected "
      "values come from",
      p, [&p] { return validateChecks(p.options); });
  auto* baseline = sub(*group, "baseline", "What is typical of each SKU, learnt from its history",
                       p, [&p] { return validateBaseline(p.options, p.validate); });
  for (auto* command : {report, baseline})
    command->add_option("--days", flags.days, "How much of the history counts")
        ->check(CLI::Range(1, 3650))
        ->capture_default_str();
}

void addFabricHealth(CLI::App& group, Parsed& p) {
  auto& flags = p.fabric;
  auto* health = sub(group, "health",
                     "What every cable's counters do in a window, under the load that you run "
                     "meanwhile; exit 0 all good, 1 bad cables, 2 nothing proven",
                     p, [&p] { return fabricHealth(p.options, p.fabric); });
  health
      ->add_option("--window", flags.window_seconds,
                   "Seconds between the readings; 5 to 10 minutes under load find what matters")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  health
      ->add_option("--min-load", flags.min_load_percent,
                   "A cable that carried less than this share of its rate (percent) is not proven")
      ->check(CLI::Range(0.0, 100.0));
  health
      ->add_option("--transceivers", flags.transceivers,
                   "CSV: device, port, serial (vendor, part): the cables' serial numbers")
      ->check(CLI::ExistingFile);
  auto* found = health
                    ->add_option("--found", flags.found,
                                 "With --before and --after: what ibnetdiscover printed then")
                    ->check(CLI::ExistingFile);
  auto* before = health
                     ->add_option("--before", flags.before,
                                  "Do not look: the first reading by perfquery (-x), or "
                                  "ibqueryerrors with and without --counters")
                     ->check(CLI::ExistingFile);
  before
      ->needs(
          health->add_option("--after", flags.after, "The second reading, --window seconds later")
              ->check(CLI::ExistingFile))
      ->needs(found);
  health->add_flag("--all", flags.all, "Also the good ones, and what is for information");
  health->add_flag("--prometheus", flags.prometheus,
                   "As metrics, for node_exporter's textfile collector");
}

void addFabric(CLI::App& app, Parsed& p) {
  auto& flags = p.fabric;
  auto* group =
      app.add_subcommand("fabric", "The fabric as declared and as found")->require_subcommand(1);
  auto* diff = sub(*group, "diff",
                   "Compare, and say which cables to move; exit 0 equal, 1 deviations, 2 could not "
                   "discover completely",
                   p, [&p] { return fabricDiff(p.options, p.fabric); });
  diff->add_option("--watch", flags.watch_seconds,
                   "Look again every so many seconds, tell what has changed, until interrupted")
      ->check(CLI::Range(1, 86400));
  auto* plan = sub(*group, "plan", "The cabling sheet as CSV: a label for each end of each cable",
                   p, [&p] { return fabricPlan(p.options, p.fabric); });
  plan->add_option("--rack", flags.rack, "Only the ends in this rack");
  auto* plot = sub(*group, "plot", "Draw the fabric as it is found (SVG), faults in red", p,
                   [&p] { return fabricPlot(p.options, p.fabric); });
  plot->add_flag("--declared", flags.declared_only, "As declared, without looking");
  auto* rehearse = sub(*group, "rehearse",
                       "Build the declared fabric in ibsim with real OpenSM, break it fault by "
                       "fault; exit 0 all held, 1 something broke, 2 no answer",
                       p, [&p] { return fabricRehearse(p.options, p.fabric); });
  rehearse->add_flag("--alone", flags.alone,
                     "Each fault by itself; otherwise faults that have nothing in common are there "
                     "at once, and alone only where that breaks");
  rehearse->add_option("--faults", flags.faults, "Only these kinds")
      ->delimiter(',')
      ->check(CLI::IsMember(
          {"cable-pulled", "switch-lost", "rail-swapped", "partitions-typo", "manager-lost"}));
  auto* marking = group->add_subcommand("marking",
                                        "Whether a switch or host marks RoCE as declared; exit 0 "
                                        "it does, 1 it does not, 2 no answer");
  auto* sonic =
      marking
          ->add_option(
              "--config,--sonic", flags.sonic,
              "What a switch has: SONiC's config_db.json, or Cumulus' nv config show -o json")
          ->check(CLI::ExistingFile);
  marking
      ->add_option(
          "--switch", flags.switch_name,
          "Which switch of the declaration it is: every port that is cabled there is looked at")
      ->needs(sonic);
  auto* app_option =
      marking->add_option("--dcb-app", flags.dcb_app, "A host's dcb -j app show dev INTERFACE")
          ->check(CLI::ExistingFile)
          ->excludes(sonic);
  app_option->needs(
      marking->add_option("--dcb-pfc", flags.dcb_pfc, "Its dcb -j pfc show dev INTERFACE")
          ->check(CLI::ExistingFile));
  marking->add_option("--mtu", flags.mtu, "The MTU of its interface")->check(CLI::Range(68, 65535));
  marking->callback([&p] {
    if (p.fabric.sonic.empty() && p.fabric.dcb_app.empty())
      throw CLI::RequiredError("--config or --dcb-app");
    p.run = [&p] { return fabricMarking(p.options, p.fabric); };
  });
  addFabricHealth(*group, p);
  auto* render = sub(*group, "render",
                     "Write what follows from the declaration: cabling sheet, plot, standby subnet "
                     "managers, Slurm, Kubernetes, NCCL",
                     p, [&p] { return fabricRender(p.options, p.fabric); });
  render->add_option("--out,-o", flags.out, "The folder")->required();
  diff->add_flag("--prometheus", flags.prometheus,
                 "As metrics, for node_exporter's textfile collector");
  for (auto* command : {diff, plot})
    command
        ->add_option("--found", flags.found,
                     "Do not look: what ibnetdiscover or iblinkinfo printed")
        ->check(CLI::ExistingFile);
  for (auto* command : {plan, plot})
    command->add_option("--out,-o", flags.out, "A file instead of standard output");
}

void addRest(CLI::App& app, Parsed& p) {
  auto* image = app.add_subcommand("image", "Images and the RAM OS")->require_subcommand(1);
  sub(*image, "build", "Build what is missing (all images and the RAM OS, or one image)", p, [&p] {
    return imageBuild(p.options, p.node);
  })->add_option("name", p.node);
  sub(*image, "list", "What is kept: size, digest, who signed it, which profile uses it", p,
      [&p] { return imageList(p.options); });
  sub(*image, "verify", "Unpack and check every chunk, and every signature", p, [&p] {
    return imageVerify(p.options, p.node);
  })->add_option("image", p.node);
  auto* diff = sub(*image, "diff",
                   "Files, packages and kernels that differ, and what a node would have to fetch",
                   p, [&p] { return imageDiff(p.options, p.node, p.reason); });
  diff->add_option("from", p.node)->required();
  diff->add_option("to", p.reason)->required();
  sub(*image, "gc", "Remove what neither inventory nor journal nor any node names; asks first", p,
      [&p] { return imageGc(p.options, p.acknowledge); })
      ->add_flag("--yes", p.acknowledge, "Do not ask");
  auto* export_command =
      sub(*image, "export", "Write an image to one signed file, for another controller", p,
          [&p] { return imageExport(p.options, p.node, p.file); });
  export_command->add_option("image", p.node)->required();
  export_command->add_option("file", p.file)->required();
  auto* import_command = sub(*image, "import", "Take an exported image over", p, [&p] {
    return imageImport(p.options, p.file, p.trust, p.acknowledge);
  });
  import_command->add_option("file", p.file)->required();
  import_command->add_option(
      "--trust", p.trust,
      "Public key (PEM) of a site whose signature counts, besides this site's own");
  import_command->add_flag("--older", p.acknowledge,
                           "Take it although a newer image of its name is here");
  sub(*image, "sign", "Check an image's pack and sign it anew with this site's key", p,
      [&p] { return imageSign(p.options, p.node); })
      ->add_option("image", p.node)
      ->required();
  sub(*image, "key", "Print this site's public key", p, [&p] { return imageKey(p.options); });
  auto* cert = app.add_subcommand("cert", "Certificates")->require_subcommand(1);
  sub(*cert, "show", "Show a node's certificate", p, [&p] { return certShow(p.options, p.node); })
      ->add_option("node", p.node)
      ->required();
  auto* verify = sub(*cert, "verify",
                     "Verify one node's certificate, or all; or a file, far from its controller, "
                     "by the public key",
                     p, [&p] {
                       return p.cert.file.empty() ? certVerify(p.options, p.cert.node)
                                                  : certVerifyOffline(p.cert);
                     });
  verify->add_option("node", p.cert.node);
  auto* file = verify->add_option("--file", p.cert.file,
                                  "A certificate; neither store nor inventory is needed");
  auto* key = verify
                  ->add_option("--key", p.cert.key,
                               "The site's public key (PEM, `muster key show certificates`)")
                  ->needs(file);
  file->needs(key);
  verify->add_option("--revocations", p.cert.revocations, "The site's signed list")->needs(file);
  auto* revoke =
      sub(*cert, "revoke",
          "A certificate, and the passes before it, count no more: the node validates again", p,
          [&p] { return certRevoke(p.options, p.cert); });
  revoke->add_option("node", p.cert.node)->required();
  revoke->add_option("--reason", p.cert.reason, "Why; kept in the list and in the log")->required();
  sub(*cert, "export", "Write all certificates and the signed list of revocations, to be carried",
      p, [&p] { return certExport(p.options, p.cert); })
      ->add_option("--to", p.cert.to, "Folder; absent: `certificates` in the state folder");
  auto* word = sub(*cert, "override",
                   "Let a node join by your word although gates have not passed; only for whom "
                   "certificates.may_override names",
                   p, [&p] { return certOverride(p.options, p.cert); });
  word->add_option("node", p.cert.node)->required();
  word->add_option("--reason", p.cert.reason, "Why; kept in the certificate and in the log")
      ->required();
  word->add_option("--hours", p.cert.hours, "How long it lives")
      ->check(CLI::Range(1, 72))
      ->capture_default_str();
}

/// Cuts the line behind `lab exec`; answers what stood there.
std::vector<std::string> takeForeignCommand(int& argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i - 1]) != "lab" || std::string_view(argv[i]) != "exec") continue;
    if (i + 1 < argc && std::string_view(argv[i + 1]) == "--help") break;
    std::vector<std::string> command(argv + i + 1, argv + argc);
    argc = i + 1;
    return command;
  }
  return {};
}

constexpr std::size_t kMaxCommandBytes = 2'000;

/// The line for the journal; what stands between ':' and '@' of a URL is a password.
std::string journaled(int argc, char** argv) {
  std::string out = "muster";
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    const auto scheme = word.find("://"), at = word.find('@');
    if (scheme != std::string::npos && at != std::string::npos && at > scheme)
      if (const auto colon = word.find(':', scheme + 3); colon < at)
        word.replace(colon + 1, at - colon - 1, "…");
    out += " " + word;
  }
  return std::string(cutToBytes(out, kMaxCommandBytes));
}

}  // namespace

namespace {

int run(int argc, char** argv) {
  Parsed parsed;
  parsed.options.command_line = journaled(argc, argv) + app::sudoClaimText();
  parsed.command = takeForeignCommand(argc, argv);
  CLI::App app{"muster: from bare metal to a trusted pool"};
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--inventory,-f", parsed.options.inventory, "The inventory (MUSTER_INVENTORY)")
      ->capture_default_str();
  app.add_option_function<std::vector<std::string>>(
         "--allow-path", app::allowPaths,
         "A folder outside the inventory's own whose files the inventory may name "
         "(MUSTER_ALLOW_PATH, separated by ':')")
      ->allow_extra_args(false);
  app.add_option("--state", parsed.options.state, "State folder (MUSTER_STATE)")
      ->capture_default_str();
  app.add_option("--store", parsed.options.store,
                 "postgresql://… when several controllers share the work; else SQLite in the state "
                 "folder (MUSTER_STORE)");
  app.add_option("--lab", parsed.options.lab, "The twin's run folder (MUSTER_LAB)");
  app.add_flag("--json", parsed.options.json, "Machine-readable output");
  addInventory(app, parsed);
  addLifecycle(app, parsed);
  addRollout(app, parsed);
  addKeep(app, parsed);
  addBmc(app, parsed);
  addDiscover(app, parsed);
  addFirmware(app, parsed);
  addLab(app, parsed);
  addValidate(app, parsed);
  addFabric(app, parsed);
  addRest(app, parsed);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  return parsed.run();
}

}  // namespace

int main(int argc, char** argv) {
  const PrintableStream out(std::cout),
      problems(std::cerr);  // whatever a command prints of what machines say
  return guardedMain("muster", [&] { return run(argc, argv); });
}
