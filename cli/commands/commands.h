// The commands. Each takes parsed options and answers the exit code; views print, folders do the work.
#pragma once

#include "cli/options.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

// inventory
int inventoryCheck(const Options& options);
int inventoryShow(const Options& options);
int inventorySchema();

// lifecycle
struct Selection {
  std::string nodes;  ///< hostlist; empty: all
};
int plan(const Options& options, const Selection& selection, const std::filesystem::path& out, bool refresh);
int apply(const Options& options, const Selection& selection, const std::filesystem::path& saved_plan);
int status(const Options& options, bool watch);
int why(const Options& options, const std::string& node);
int events(const Options& options, const std::string& subject, std::size_t limit);
int history(const Options& options, const std::string& what, std::size_t limit);
/// `file`: an archive instead of the store; empty: the store.
int auditVerify(const Options& options, const std::string& expected, const std::filesystem::path& file);
int auditArchive(const Options& options, const std::string& before, const std::filesystem::path& file);
int allowWipe(const Options& options, const std::string& nodes, const std::string& reason);
struct EraseFlags {
  std::string node, confirm, reason;
  std::vector<std::string> disks;  ///< serials; empty: all that are built in
  std::filesystem::path out;       ///< of the report as JSON
  bool report = false;             ///< show the last report, do nothing
};
int erase(const Options& options, const EraseFlags& flags);

// rollouts
struct RolloutFlags {
  std::filesystem::path change;
  std::string driver, nodes;
  std::optional<int> canaries;
  std::string on_failure, when_unclear;  ///< in place of what the change file says; empty: as it says
  std::string wipe_reason, accept_reason;
  bool dry_run = false;
};
int rolloutStart(const Options& options, const RolloutFlags& flags);
int rolloutStatus(const Options& options);
int rolloutPause(const Options& options);
int rolloutAbort(const Options& options);
int rolloutResume(const Options& options, const RolloutFlags& flags);
int rolloutRollback(const Options& options, const RolloutFlags& flags);

// after joining
int keep(const Options& options);
int keepAcknowledge(const Options& options, const std::string& reason);
int quarantineList(const Options& options);
int quarantineHold(const Options& options, const std::string& nodes, const std::string& reason);
int quarantineLift(const Options& options, const std::string& node, const std::string& reason);
struct ConsoleFlags {
  std::optional<int> boot;
  bool last = false, list = false, raw = false, take = false;
};
int console(const Options& options, const std::string& node, const ConsoleFlags& flags);
int rma(const Options& options, const std::string& node, const std::filesystem::path& out);

// lab
int labUp(const Options& options);
int labDown(const Options& options);
int labStatus(const Options& options);
int labPackages(const Options& options, const std::filesystem::path& folder);
struct FaultFlags {
  std::string node, method = "*", path, merge, mishap;
  int status = 0, latency_ms = 0, count = 1;
  bool drop = false, after = false, clear = false;
};
/// What a node's virtual BMC does wrong from now on; without a path and a mishap, what is set.
int labFault(const Options& options, const FaultFlags& flags);
/// Runs a program inside the lab's namespace with its tools' environment.
int labExec(const Options& options, const std::vector<std::string>& command);

// BMCs
int bmcForgetPin(const Options& options, const std::string& node);
int bmcForgetRefusal(const Options& options, const std::string& node);
int bmcForgetTpm(const Options& options, const std::string& node);

// firmware
/// `nodes`: hostlist; empty: all.
int firmwarePlan(const Options& options, const std::string& nodes);
int firmwareSign(const Options& options, const std::string& baseline);

// discovery
struct DiscoverFlags {
  std::vector<std::string> words;    ///< ranges, or ids of machines
  std::vector<std::string> matches;  ///< FIELD=GLOB
  std::filesystem::path write, adopt;
  std::string profile, rack, as, mac, interface;
  int port = 443;
  int seconds = 0;
  bool all = false;
};
int discoverList(const Options& options, const DiscoverFlags& flags);
int discoverScan(const Options& options, const DiscoverFlags& flags);
int discoverWatch(const Options& options, const DiscoverFlags& flags);
int discoverApprove(const Options& options, const DiscoverFlags& flags);
int discoverForget(const Options& options, const DiscoverFlags& flags);
int discoverWrite(const Options& options, const DiscoverFlags& flags);

// images, fabric, certificates
int imageBuild(const Options& options, const std::string& name);
int imageList(const Options& options);
int imageVerify(const Options& options, const std::string& name);
/// Exit 0: equal, 1: different.
int imageDiff(const Options& options, const std::string& from, const std::string& to);
int imageGc(const Options& options, bool yes);
int imageExport(const Options& options, const std::string& name, const std::filesystem::path& file);
int imageImport(const Options& options, const std::filesystem::path& file, const std::vector<std::filesystem::path>& trust, bool older);
int imageSign(const Options& options, const std::string& name);
int imageKey(const Options& options);
int fabricDiff(const Options& options);
int certShow(const Options& options, const std::string& node);
int certVerify(const Options& options, const std::string& node);

}  // namespace muster::cli
