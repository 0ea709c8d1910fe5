// SPDX-License-Identifier: Apache-2.0
// SiteRecords: what is recorded of a site and what it is made of, and orders that are done at once.
// A part of SiteClient, with the same two implementations and one contract
// (tests/api/remote_records_test.cc). docs/adr/0386
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::bmc {
struct KeptBoot;
}
namespace muster::lifecycle {
struct AuditHead;
struct History;
}  // namespace muster::lifecycle
namespace muster::validate {
struct Certificate;
}

namespace muster::app {

struct ApproveRequest;
struct BmcIdentity;
struct CertificateOverride;
struct CertificateVerdict;
struct Discovered;
struct FabricCable;
struct FabricCableFilter;
struct FabricSummary;
struct ImageList;
struct MeasuredFleet;
struct MeasurementsRequest;
struct NodeUpgrade;
struct PowerRequest;
struct PowerResult;
struct ReceiverState;
struct RecordedBoot;
struct WipeGrant;
struct WipeRequest;

enum class ReportFormat;

/// A circuit breaker that is open, or that a person has just closed.
struct PoolBreaker {
  std::string pool;
  std::vector<NodeName> nodes;  ///< are held back; once it is closed they may be drained again
};

struct RevokedCertificate {
  std::filesystem::path list;    ///< the signed list, on the host of the site
  bool had_certificate = false;  ///< if not, only passes of gates from before are void
};

/// Errors of every call: as SiteClient's.
class SiteRecords {
 public:
  virtual ~SiteRecords() = default;

  /// As historyOf.
  virtual Result<lifecycle::History> history(const std::string& what, std::size_t limit) = 0;
  virtual Result<std::vector<NodeUpgrade>> firmwareUpgrades(const std::string& nodes) = 0;
  /// As listImages; KeptImage::folder is known to this host alone.
  virtual Result<ImageList> images() = 0;
  virtual Result<FabricSummary> fabric(const std::string& name) = 0;
  virtual Result<std::vector<FabricCable>> fabricCables(const FabricCableFilter& filter) = 0;
  virtual Result<validate::Certificate> certificate(const std::string& node) = 0;
  /// `node`: empty: all.
  virtual Result<std::vector<CertificateVerdict>> verifyCertificates(const std::string& node) = 0;
  virtual Result<Discovered> discovered() = 0;
  /// What is known of BMCs; none is asked. `nodes`: empty: all.
  virtual Result<std::vector<BmcIdentity>> bmcIdentities(const std::string& nodes) = 0;
  /// JSON. Errors: NotFound (it was never erased)
  virtual Result<std::string> erasureReport(const NodeName& node) = 0;
  virtual Result<std::vector<bmc::KeptBoot>> recordedBoots(const NodeName& node) = 0;
  /// `number`: nothing: the newest. Errors: NotFound
  virtual Result<RecordedBoot> recordedBoot(const NodeName& node, std::optional<int> number) = 0;
  /// Signed by the site's key for audit, as the log ends now.
  virtual Result<lifecycle::AuditHead> auditHead() = 0;

  /// Nodes whose disks may be overwritten once.
  virtual Result<std::vector<NodeName>> wipeGrants() = 0;
  /// Those that are open.
  virtual Result<std::vector<PoolBreaker>> breakers() = 0;
  /// As notificationReceivers.
  virtual Result<std::vector<ReceiverState>> receivers() = 0;

  /// As app::measuredFleet, which takes seconds at a large site.
  virtual Result<MeasuredFleet> measurements(const MeasurementsRequest& request,
                                             const std::vector<ReportFormat>& formats) = 0;

  // Orders.

  virtual Result<RevokedCertificate> revokeCertificate(const std::string& node,
                                                       const std::string& reason) = 0;
  /// As overrideCertificate; of a server the person counts who asks it.
  virtual Result<WallTime> overrideCertificate(const CertificateOverride& request) = 0;
  /// As approveMachines.
  virtual Result<std::vector<std::string>> approveMachines(const ApproveRequest& request) = 0;
  /// `all`: the whole list, also one that cannot be read.
  virtual Result<void> forgetMachines(const std::vector<std::string>& machines, bool all) = 0;
  /// As resetBmcTrust.
  virtual Result<std::vector<NodeName>> resetBmcTrust(const std::string& nodes) = 0;
  /// As resetBmcAuth.
  virtual Result<std::vector<NodeName>> resetBmcAuth(const std::string& nodes) = 0;
  virtual Result<WipeGrant> grantWipe(const WipeRequest& request) = 0;
  virtual Result<std::vector<PoolBreaker>> acknowledgeBreakers(const std::string& reason) = 0;
  /// As powerNode. Errors of a server also InvalidInput (a disruptive command that is not
  /// confirmed)
  virtual Result<PowerResult> power(const PowerRequest& request,
                                    const std::function<void(const std::string&)>& notice) = 0;
  /// As locateNode.
  virtual Result<bool> locate(const NodeName& node, std::optional<bool> on) = 0;
};

}  // namespace muster::app
