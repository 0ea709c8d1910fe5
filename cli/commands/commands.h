// SPDX-License-Identifier: Apache-2.0
// The commands. Each takes parsed options and answers the exit code; views print, folders do the
// work.
#pragma once

#include "app/options.h"
#include "cli/exit_code.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

// inventory
int inventoryCheck(const app::Options& options);
int inventoryShow(const app::Options& options);
int inventorySchema();

// lifecycle
struct Selection {
  std::string nodes;  ///< hostlist; empty: all
};
int plan(const app::Options& options, const Selection& selection, const std::filesystem::path& out,
         bool refresh);
int apply(const app::Options& options, const Selection& selection,
          const std::filesystem::path& saved_plan);
int status(const app::Options& options, bool watch);
int why(const app::Options& options, const std::string& node);
/// Open findings, newest first. `nodes`: hostlist or @cluster; empty: all.
int findings(const app::Options& options, const std::string& nodes);
int findingsClear(const app::Options& options, const std::string& nodes, const std::string& facet,
                  const std::string& reason);
int events(const app::Options& options, const std::string& subject, std::size_t limit);
int history(const app::Options& options, const std::string& what, std::size_t limit);
struct AuditFlags {
  std::filesystem::path file;  ///< an archive instead of the store; empty: the store
  std::string expected;        ///< a hash that was noted elsewhere
  std::string head;            ///< signed heads that were exported: a file, or the line itself
  std::filesystem::path key;   ///< a public key for audit that this state folder does not have
};
int auditVerify(const app::Options& options, const AuditFlags& flags);
int auditHead(const app::Options& options);
struct KeyFlags {
  std::string purpose;
  bool finish = false;  ///< end the rotation instead of beginning one
  bool force = false;   ///< although nodes still hold certificates of the key before
};
int keyList(const app::Options& options);
int keyShow(const app::Options& options, const std::string& purpose);
int keyRotate(const app::Options& options, const KeyFlags& flags);
int auditArchive(const app::Options& options, const std::string& before,
                 const std::filesystem::path& file);
int grantWipe(const app::Options& options, const std::string& nodes, const std::string& reason,
              bool data);
struct EraseFlags {
  std::string node, confirm, reason;
  std::vector<std::string> disks;  ///< serials; empty: all that are built in
  std::filesystem::path out;       ///< of the report as JSON
  bool report = false;             ///< show the last report, do nothing
  bool cancel = false;             ///< take back what has not begun
};
int erase(const app::Options& options, const EraseFlags& flags);

// rollouts
struct RolloutFlags {
  std::filesystem::path change;
  std::string driver, nodes;
  std::optional<int> canaries;
  std::string on_failure,
      when_unclear;  ///< in place of what the change file says; empty: as it says
  std::string wipe_reason, accept_reason;
  std::string id;  ///< which one; empty: the newest
  bool dry_run = false;
};
int rolloutStart(const app::Options& options, const RolloutFlags& flags);
int rolloutStatus(const app::Options& options, const RolloutFlags& flags);
int rolloutPause(const app::Options& options);
int rolloutAbort(const app::Options& options);
int rolloutResume(const app::Options& options, const RolloutFlags& flags);
int rolloutRollback(const app::Options& options, const RolloutFlags& flags);

// after joining
int keep(const app::Options& options);
int keepAcknowledge(const app::Options& options, const std::string& reason);
int quarantineList(const app::Options& options);
int quarantineHold(const app::Options& options, const std::string& nodes,
                   const std::string& reason);
int quarantineLift(const app::Options& options, const std::string& node, const std::string& reason);
struct ConsoleFlags {
  std::optional<int> boot;
  bool last = false, list = false, raw = false, take = false;
};
int console(const app::Options& options, const std::string& node, const ConsoleFlags& flags);
int rma(const app::Options& options, const std::string& node, const std::filesystem::path& out);

// lab
int labUp(const app::Options& options);
int labDown(const app::Options& options);
int labStatus(const app::Options& options);
int labPackages(const app::Options& options, const std::filesystem::path& folder);
struct FaultFlags {
  std::string node, method = "*", path, merge, mishap;
  int status = 0, latency_ms = 0, count = 1;
  bool drop = false, after = false, clear = false;
};
/// What a node's virtual BMC does wrong from now on; without a path and a mishap, what is set.
int labFault(const app::Options& options, const FaultFlags& flags);
/// Runs a program inside the lab's namespace with its tools' environment.
int labExec(const app::Options& options, const std::vector<std::string>& command);

// BMCs
int bmcForgetPin(const app::Options& options, const std::string& node);
int bmcForgetRefusal(const app::Options& options, const std::string& node);
int bmcForgetTpm(const app::Options& options, const std::string& node);
int bmcForgetKey(const app::Options& options, const std::string& node);
int bmcApproveKey(const app::Options& options, const std::string& node,
                  const std::string& fingerprint);
int bmcRevokeKey(const app::Options& options, const std::string& node);
struct BmcFlags {
  std::string node;  ///< or a hostlist
  std::string what, uri, confirm, reason;
  bool ipmi = false, persistent = false, even_in_pool = false, yes = false;
};
/// What is known without asking.
int bmcShow(const app::Options& options, const BmcFlags& flags);
/// on, shutdown, off, restart, ac-cycle, nmi; reset: the BMC's own restart.
int bmcPower(const app::Options& options, const BmcFlags& flags);
int bmcBoot(const app::Options& options, const BmcFlags& flags);
int bmcRotate(const app::Options& options, const BmcFlags& flags);
int bmcCertificate(const app::Options& options, const BmcFlags& flags);

// firmware
/// `nodes`: hostlist; empty: all.
int firmwarePlan(const app::Options& options, const std::string& nodes);
int firmwareSign(const app::Options& options, const std::string& baseline);
/// What has failed may be installed again.
int firmwareRetry(const app::Options& options, const std::string& nodes, const std::string& reason);

// discovery
struct DiscoverFlags {
  std::vector<std::string> words;    ///< ranges, or ids of machines
  std::vector<std::string> matches;  ///< FIELD=GLOB
  std::filesystem::path write, adopt;
  std::filesystem::path fingerprints;  ///< of BMCs' certificates that were compared: a file
  std::vector<std::string> trusted;    ///< … or one by one
  std::string profile, rack, as, mac, interface;
  int port = 443;
  int seconds = 0;
  bool all = false;
};
int discoverList(const app::Options& options, const DiscoverFlags& flags);
int discoverScan(const app::Options& options, const DiscoverFlags& flags);
int discoverWatch(const app::Options& options, const DiscoverFlags& flags);
int discoverApprove(const app::Options& options, const DiscoverFlags& flags);
int discoverForget(const app::Options& options, const DiscoverFlags& flags);
int discoverWrite(const app::Options& options, const DiscoverFlags& flags);

// validation
struct ValidateFlags {
  std::string nodes;                  ///< hostlist
  std::optional<double> least_gbits;  ///< of a healthy pair
  std::string engine = "auto";        ///< of tests between nodes: auto, rdma, nccl, tcp
  std::uint64_t seed = 0;             ///< 0: a new one
  std::vector<std::string> gates;     ///< empty: all of the nodes' profiles
  bool dry_run = false;
  bool together = false;       ///< each rack's nodes begin a gate at one moment
  std::optional<int> minutes;  ///< after which `run` ends; what nodes have begun goes on there
  std::filesystem::path html, json, junit;
  double false_alarms = 1;  ///< that a report may be expected to hold
  int days = 90;            ///< of history that count
};
/// Exit 0: all cleared, 1: culprits, or nodes that could not be cleared. Killed anywhere, the same
/// command goes on.
int validateIsolate(const app::Options& options, const ValidateFlags& flags);
/// Runs gates again, also those that have passed. Killed anywhere, the same command goes on.
int validateRun(const app::Options& options, const ValidateFlags& flags);
/// Exit 0: nothing differs, 1: alarms.
int validateReport(const app::Options& options, const ValidateFlags& flags);
/// What is typical of each SKU, as learnt from its own history.
int validateBaseline(const app::Options& options, const ValidateFlags& flags);
/// All checks that gates and isolation know. Needs no inventory.
int validateChecks(const app::Options& options);

// images, fabric, certificates
int imageBuild(const app::Options& options, const std::string& name);
int imageList(const app::Options& options);
int imageVerify(const app::Options& options, const std::string& name);
/// Exit 0: equal, 1: different.
int imageDiff(const app::Options& options, const std::string& from, const std::string& to);
int imageGc(const app::Options& options, bool yes);
int imageExport(const app::Options& options, const std::string& name,
                const std::filesystem::path& file);
int imageImport(const app::Options& options, const std::filesystem::path& file,
                const std::vector<std::filesystem::path>& trust, bool older);
int imageSign(const app::Options& options, const std::string& name);
int imageKey(const app::Options& options);
struct FabricFlags {
  std::filesystem::path found;                    ///< ibnetdiscover's output; empty: look
  std::filesystem::path out;                      ///< empty: standard output
  std::filesystem::path sonic, dcb_app, dcb_pfc;  ///< what a switch, or a host, reports
  int mtu = 0;                                    ///< of that host's interface; 0: not said
  std::string switch_name;  ///< whose configuration `sonic` is: its declared ports are looked at
  std::string rack;
  bool declared_only = false;
  bool prometheus = false;
  int watch_seconds = 0;            ///< 0: look once
  std::vector<std::string> faults;  ///< kinds to rehearse; empty: all
  bool alone = false;               ///< rehearse: no two faults at once
  // health
  double window_seconds = 300, min_load_percent = 0;
  std::filesystem::path before, after,
      transceivers;  ///< of readings that were made elsewhere, window_seconds apart
  bool all = false;
};
int fabricHealth(const app::Options& options, const FabricFlags& flags);
int fabricRender(const app::Options& options, const FabricFlags& flags);
int fabricMarking(const app::Options& options, const FabricFlags& flags);
int fabricRehearse(const app::Options& options, const FabricFlags& flags);
int fabricDiff(const app::Options& options, const FabricFlags& flags);
int fabricPlan(const app::Options& options, const FabricFlags& flags);
int fabricPlot(const app::Options& options, const FabricFlags& flags);
int certShow(const app::Options& options, const std::string& node);
int certVerify(const app::Options& options, const std::string& node);
struct CertFlags {
  std::string node, reason;
  int hours = 24;
  std::filesystem::path file, key, revocations;  ///< to verify far from the controller
  std::filesystem::path to;                      ///< of an export; empty: the state folder
};
/// Without store and inventory: signature, expiry and revocation.
int certVerifyOffline(const CertFlags& flags);
int certRevoke(const app::Options& options, const CertFlags& flags);
int certExport(const app::Options& options, const CertFlags& flags);
int certOverride(const app::Options& options, const CertFlags& flags);

}  // namespace muster::cli
