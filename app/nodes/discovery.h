// SPDX-License-Identifier: Apache-2.0
// discover: machines that nobody has declared yet: what was seen, looking for more, deciding about
// them, and writing them into the inventory.
#pragma once

#include "app/site/options.h"
#include "discovery/classify.h"
#include "discovery/csv_rows.h"
#include "discovery/machine_registry.h"
#include "discovery/scanner.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::app {

struct DiscoveredMachine {
  discovery::Machine machine;
  std::string node;  ///< whose it is in the inventory; empty: none's
};

struct Discovered {
  std::vector<DiscoveredMachine> machines;
  std::vector<discovery::Anomaly> anomalies;
};
Result<Discovered> discoveredMachines(const Options& options);
/// The same of a store and an inventory that are open.
Result<Discovered> discoveredMachines(const inventory::Cluster& cluster, lifecycle::Store& store);
/// The machine's own members, `known_as` (its node) and `state`: node, approved, unknown.
nlohmann::json toJson(const DiscoveredMachine& seen);

/// Decides about the certificates of BMCs that no node declares.
class CertificateReviewer {
 public:
  virtual ~CertificateReviewer() = default;
  /// What becomes of those that nobody has approved.
  enum class Policy {
    TrustFirstContact,  ///< bmc_trust is first-contact: they get passwords now
    Refuse,             ///< bmc_trust is declared: only approve() lets them get one
    NoPassword          ///< discovery.credentials names none that could be sent
  };
  /// Whether a person approves these certificates now.
  virtual bool approve(const std::vector<discovery::Contact>& contacts, Policy policy) = 0;
};

struct ScanRequest {
  std::vector<std::string> ranges;     ///< empty: those of the inventory
  std::filesystem::path fingerprints;  ///< of certificates that were compared: a file
  std::vector<std::string> trusted;    ///< … or one by one
  std::uint16_t port = 443;
};
struct ScanResult {
  discovery::ScanReport report;
  Discovered discovered;
};
/// Keeps each machine as it is seen: an interrupted scan has not been for nothing.
Result<ScanResult> scanForBmcs(const Options& options, const ScanRequest& request,
                               CertificateReviewer& reviewer);

struct WatchRequest {
  std::string interface;                      ///< empty: the one that has the controller's address
  std::optional<std::chrono::seconds> limit;  ///< nothing: until the process ends
};
class WatchListener {
 public:
  virtual ~WatchListener() = default;
  virtual void onListening(const std::string& interface, bool ssdp) = 0;
  virtual void onMachine(const discovery::Machine& machine) = 0;  ///< once for each new sight
  virtual void onNotice(const std::string& text) = 0;
};
/// Listens to DHCP and SSDP on the provisioning network; answers nobody.
Result<void> watchNetwork(const Options& options, const WatchRequest& request,
                          WatchListener& listener);

struct ApproveRequest {
  std::vector<std::string> machines;  ///< serials, BMC addresses or MACs; or
  std::vector<std::string> matches;   ///< FIELD=GLOB, which must all match
  std::string profile, rack;
  std::string as, mac;  ///< of one machine
};
/// Answers the ids of the machines that may become nodes. Errors: InvalidInput, NotFound
Result<std::vector<std::string>> approveMachines(const Options& options,
                                                 const ApproveRequest& request);

Result<void> forgetMachines(const Options& options, const std::vector<std::string>& machines);
/// The whole list, also one that cannot be read.
Result<void> forgetAllMachines(const Options& options);

struct AdoptRequest {
  std::filesystem::path csv;    ///< of nodes: gets a row for each approved machine
  std::filesystem::path adopt;  ///< a list whose machines are approved; empty: none
  std::string profile, rack;    ///< of those
};
struct Adopted {
  std::filesystem::path csv;
  std::vector<discovery::CsvFields> rows;
  std::vector<std::string> left_out, not_seen;  ///< and why, for people
};
/// The file is replaced only when the whole inventory is valid with the new rows.
Result<Adopted> writeApprovedMachines(const Options& options, const AdoptRequest& request);

}  // namespace muster::app
