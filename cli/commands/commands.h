// SPDX-License-Identifier: Apache-2.0
// The commands: each prints what a use case of app/ answers, and answers the exit status. A
// command's options are one struct: app's own request where that says all.
#pragma once

#include "app/audit.h"
#include "app/certificates.h"
#include "app/discovery.h"
#include "app/fabric_reports.h"
#include "app/images.h"
#include "app/isolation.h"
#include "app/measurements.h"
#include "app/options.h"
#include "app/rollouts.h"
#include "app/twin.h"
#include "app/validate_run.h"
#include "app/wipe.h"
#include "cli/exit_code.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

struct NodeArgs {
  std::string node;
};
struct NodesArgs {
  std::string nodes;  ///< hostlist; empty: all, where that is allowed
};
struct NodesReasonArgs {
  std::string nodes, reason;
};
struct NodeReasonArgs {
  std::string node, reason;
};

// inventory
int inventoryCheck(const app::Options& options);
int inventoryShow(const app::Options& options);
int inventorySchema(const app::Options& options);

// lifecycle
struct PlanArgs {
  std::string nodes;
  std::filesystem::path out;  ///< of the plan as JSON
  bool no_refresh = false;
};
int plan(const app::Options& options, const PlanArgs& args);
struct ApplyArgs {
  std::string nodes;
  std::filesystem::path plan;  ///< a saved plan
};
int apply(const app::Options& options, const ApplyArgs& args);
struct StatusArgs {
  bool watch = false;
};
int status(const app::Options& options, const StatusArgs& args);
int why(const app::Options& options, const NodeArgs& args);
struct FindingsArgs {
  std::string nodes;  ///< hostlist or @cluster; empty: all
  std::string clear;  ///< a facet whose findings end; empty: they are shown
  std::string reason;
};
int findings(const app::Options& options, const FindingsArgs& args);
struct EventsArgs {
  std::string node;
  std::size_t limit = 200;
};
int events(const app::Options& options, const EventsArgs& args);
struct HistoryArgs {
  std::string what;  ///< a node, @cluster, or the beginning of a plan's hash
  std::size_t limit = 200;
};
int history(const app::Options& options, const HistoryArgs& args);
int wipe(const app::Options& options, const app::WipeRequest& request);
struct EraseArgs {
  std::string node, confirm, reason;
  std::vector<std::string> disks;  ///< serials; empty: all that are built in
  std::filesystem::path out;       ///< of the report as JSON
  bool report = false;             ///< show the last report, do nothing
  bool cancel = false;             ///< withdraw what has not begun
};
int erase(const app::Options& options, const EraseArgs& args);

// audit and keys
struct AuditVerifyArgs {
  std::filesystem::path archive;  ///< instead of the log in the store
  app::AuditRequest request;
};
int auditVerify(const app::Options& options, const AuditVerifyArgs& args);
int auditHead(const app::Options& options);
struct AuditArchiveArgs {
  std::string before;
  std::filesystem::path to;
};
int auditArchive(const app::Options& options, const AuditArchiveArgs& args);
int keyList(const app::Options& options);
struct KeyShowArgs {
  std::string purpose;
};
int keyShow(const app::Options& options, const KeyShowArgs& args);
struct KeyRotateArgs {
  std::string purpose;
  bool finish = false;  ///< end the rotation instead of beginning one
  bool force = false;   ///< although nodes still hold certificates of the key before
};
int keyRotate(const app::Options& options, const KeyRotateArgs& args);

// rollouts
struct RolloutStartArgs {
  app::RolloutRequest request;
  std::string on_failure, on_inconclusive;  ///< as typed; empty: as the change declares
  bool dry_run = false;
};
int rolloutStart(const app::Options& options, const RolloutStartArgs& args);
struct RolloutStatusArgs {
  std::string id;  ///< empty: the newest
};
int rolloutStatus(const app::Options& options, const RolloutStatusArgs& args);
int rolloutPause(const app::Options& options);
int rolloutAbort(const app::Options& options);
struct RolloutResumeArgs {
  std::string accept_reason;
};
int rolloutResume(const app::Options& options, const RolloutResumeArgs& args);
struct RolloutRollbackArgs {
  std::string id, wipe_reason;
};
int rolloutRollback(const app::Options& options, const RolloutRollbackArgs& args);

// after joining
struct MonitorArgs {
  bool acknowledge = false;
  std::string reason;
};
int monitorNodes(const app::Options& options, const MonitorArgs& args);
int quarantineList(const app::Options& options);
int quarantineAdd(const app::Options& options, const NodesReasonArgs& args);
int quarantineRemove(const app::Options& options, const NodeReasonArgs& args);
struct ConsoleArgs {
  std::string node;
  std::optional<int> boot;
  bool last = false, list = false, raw = false, force = false;
};
int console(const app::Options& options, const ConsoleArgs& args);
struct RmaArgs {
  std::string node;
  std::filesystem::path out;
};
int rma(const app::Options& options, const RmaArgs& args);

// BMCs
int bmcShow(const app::Options& options, const NodesArgs& args);
struct BmcPowerArgs {
  std::string node, action, confirm, reason;
  bool ipmi = false, force = false;
};
int bmcPower(const app::Options& options, const BmcPowerArgs& args);
struct BmcBootArgs {
  std::string node, from, uri;
  bool persistent = false;
};
int bmcBoot(const app::Options& options, const BmcBootArgs& args);
struct BmcChangeArgs {
  std::string nodes;
  bool yes = false;  ///< else only shown
};
int bmcRotate(const app::Options& options, const BmcChangeArgs& args);
int bmcCertificate(const app::Options& options, const BmcChangeArgs& args);
int bmcTrustReset(const app::Options& options, const NodesArgs& args);
int bmcAuthReset(const app::Options& options, const NodesArgs& args);
int bmcForgetTpm(const app::Options& options, const NodesArgs& args);
int bmcForgetKey(const app::Options& options, const NodesArgs& args);
int bmcRevokeKey(const app::Options& options, const NodesArgs& args);
struct BmcApproveKeyArgs {
  std::string node, fingerprint;
};
int bmcApproveKey(const app::Options& options, const BmcApproveKeyArgs& args);

// firmware
int firmwarePlan(const app::Options& options, const NodesArgs& args);
struct FirmwareSignArgs {
  std::string baseline;
};
int firmwareSign(const app::Options& options, const FirmwareSignArgs& args);
int firmwareRetry(const app::Options& options, const NodesReasonArgs& args);

// discovery
/// Without --write: the list of what was seen.
int discover(const app::Options& options, const app::AdoptRequest& request);
struct DiscoverScanArgs {
  app::ScanRequest request;
  int port = 443;
};
int discoverScan(const app::Options& options, const DiscoverScanArgs& args);
struct DiscoverWatchArgs {
  std::string interface;
  int seconds = 0;  ///< 0: until interrupted
};
int discoverWatch(const app::Options& options, const DiscoverWatchArgs& args);
int discoverApprove(const app::Options& options, const app::ApproveRequest& request);
struct DiscoverForgetArgs {
  std::vector<std::string> machines;
  bool all = false;
};
int discoverForget(const app::Options& options, const DiscoverForgetArgs& args);

// validation
/// Exit 0: all cleared, 1: culprits, or nodes that could not be cleared.
int validateIsolate(const app::Options& options, const app::IsolationRequest& request);
int validateRun(const app::Options& options, const app::ValidateRunRequest& request);
struct ValidateReportArgs {
  app::MeasurementsRequest request;
  std::filesystem::path html, json, junit;
};
/// Exit 0: nothing differs, 1: alarms.
int validateReport(const app::Options& options, const ValidateReportArgs& args);
int validateBaseline(const app::Options& options, const app::MeasurementsRequest& request);
/// Needs no inventory.
int validateChecks(const app::Options& options);

// fabric
struct FabricDiffArgs {
  std::filesystem::path found;  ///< ibnetdiscover's output; empty: discover
  bool prometheus = false;
  int watch_seconds = 0;  ///< 0: once
};
int fabricDiff(const app::Options& options, const FabricDiffArgs& args);
struct FabricPlanArgs {
  std::string rack;
  std::filesystem::path out;  ///< empty: standard output
};
int fabricPlan(const app::Options& options, const FabricPlanArgs& args);
struct FabricPlotArgs {
  app::PlotRequest request;
  std::filesystem::path out;  ///< empty: standard output
};
int fabricPlot(const app::Options& options, const FabricPlotArgs& args);
struct FabricRenderArgs {
  std::filesystem::path folder;
};
int fabricRender(const app::Options& options, const FabricRenderArgs& args);
int fabricQosCheck(const app::Options& options, const app::QosCheckRequest& request);
struct FabricHealthArgs {
  app::LinkHealthRequest request;
  bool all = false, prometheus = false;
};
int fabricHealth(const app::Options& options, const FabricHealthArgs& args);
struct FabricRehearseArgs {
  std::vector<std::string> faults;  ///< empty: all kinds
  bool alone = false;
};
int fabricRehearse(const app::Options& options, const FabricRehearseArgs& args);

// images
struct ImageArgs {
  std::string name;  ///< empty: all, where that is allowed
};
int imageBuild(const app::Options& options, const ImageArgs& args);
int imageList(const app::Options& options);
int imageVerify(const app::Options& options, const ImageArgs& args);
struct ImageDiffArgs {
  std::string from, to;
};
/// Exit 0: equal, 1: different.
int imageDiff(const app::Options& options, const ImageDiffArgs& args);
struct ImageGcArgs {
  bool yes = false;
};
int imageGc(const app::Options& options, const ImageGcArgs& args);
struct ImageExportArgs {
  std::string name;
  std::filesystem::path file;
};
int imageExport(const app::Options& options, const ImageExportArgs& args);
int imageImport(const app::Options& options, const app::ImageImport& request);
int imageSign(const app::Options& options, const ImageArgs& args);
int imageKey(const app::Options& options);

// certificates
int certShow(const app::Options& options, const NodeArgs& args);
/// Of a file, when one is named: without store and inventory.
int certVerify(const app::Options& options, const app::CertificateFile& file);
int certRevoke(const app::Options& options, const NodeReasonArgs& args);
struct CertExportArgs {
  std::filesystem::path to;  ///< empty: the state folder
};
int certExport(const app::Options& options, const CertExportArgs& args);
int certOverride(const app::Options& options, const app::CertificateOverride& request);

// the twin
int labUp(const app::Options& options);
int labDown(const app::Options& options);
int labStatus(const app::Options& options);
struct LabPackagesArgs {
  std::filesystem::path folder;
};
int labPackages(const app::Options& options, const LabPackagesArgs& args);
/// Without a path and an update fault: what is set.
int labFault(const app::Options& options, const app::TwinFault& fault);
/// Runs a program inside the twin's network with its tools' environment.
int labExec(const app::Options& options, const std::vector<std::string>& command);

}  // namespace muster::cli
