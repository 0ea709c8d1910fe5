// SPDX-License-Identifier: Apache-2.0
// FabricPhase: subnet manager, partitions and cabling of the cluster; the own ports of each node.
//
// A node goes on when the subnet manager and the partitions are as declared and its own cables are;
// deviations elsewhere keep @cluster/fabric.links unmet and are told as findings, but they hold up
// only the nodes that they touch.
#pragma once

#include "base/ids.h"
#include "base/json_output.h"
#include "base/result.h"
#include "fabric/discovery/discovery.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fwd.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/phase.h"

#include <algorithm>

namespace muster::fabric {

inline constexpr std::string_view kSm = "fabric.sm", kPartitions = "fabric.partitions",
                                  kLinks = "fabric.links", kPorts = "fabric.ports",
                                  kStandby = "fabric.standby";
inline constexpr std::chrono::milliseconds kFresh{
    5000};  ///< one observation of all nodes shares a discovery
inline constexpr std::chrono::seconds kSmSettle{60};  ///< 16,384 HCAs take 52 s to SUBNET UP

/// Everything that follows from the declaration alone.
struct Declared {
  const inventory::Fabric* fabric = nullptr;
  Topology topology;
  PartitionRules partitions;
};
struct PkeyMismatch {
  std::string hca;
  Port port;  // the HCA's own, or the switch port that it hangs at
  std::string declared, found;
  bool is_wider = false;  // it may talk to somebody that it should not

  std::string str() const {
    return fmt::format("{} port {} has PKeys {}, declared {}", port.node, port.number, found,
                       declared);
  }
};

/// The declaration with what a discovery adds.
struct Picture {
  Topology found;
  std::vector<Deviation> deviations;
  PartitionRules rules;  // members as GUIDs
  SmFiles files;
  std::string sm_guid;                                   // port GUID of the controller's HCA
  std::optional<std::vector<PkeyMismatch>> wrong_pkeys;  // read when first asked for
};
using SharedPicture = std::shared_ptr<Picture>;

/// The first few orders to the technician, on one line.
std::string repairs(const std::vector<Deviation>& deviations);

class FabricPhase final : public lifecycle::Phase {
 public:
  FabricPhase(const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
              FabricOptions options);

  std::string_view name() const override { return "fabric"; }
  std::vector<lifecycle::Goal> goals(const inventory::Cluster& cluster,
                                     const lifecycle::Subject& subject,
                                     const lifecycle::FactSet& facts) const override;
  Async<std::vector<lifecycle::Fact>> observe(lifecycle::Subject subject) override {
    return look(std::move(subject), kFresh);
  }
  Async<lifecycle::Outcome> act(lifecycle::Action action, lifecycle::ActContext& context) override;
  Async<std::vector<lifecycle::Fact>> verify(lifecycle::Action action) override {
    return look(action.facet.subject, std::chrono::milliseconds(0));
  }

 private:
  /// opensm.conf names the folder, and opensm has a working folder of its own.
  static FabricOptions absolute(FabricOptions options) {
    options.run_folder = std::filesystem::absolute(options.run_folder);
    return options;
  }
  /// Ethernet has no subnet manager; what its nodes need is NodeServicesPhase's.
  static bool isInfiniBand(const inventory::Cluster& cluster) {
    return std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                       [](const auto& one) { return !one.second.roce; });
  }
  bool onFabric(const inventory::Node& node) const {
    const auto fabric = cluster_.fabrics.find(cluster_.profileOf(node).fabric);
    return fabric != cluster_.fabrics.end() && !fabric->second.roce;
  }
  bool concerns(const lifecycle::Subject& subject) const {
    if (subject.isCluster()) return isInfiniBand(cluster_);
    const auto* node = cluster_.findNode(subject.node());
    return node && onFabric(*node);
  }
  /// UFM's or a managed switch's: muster runs none, and checks what that one does.
  static bool isExternal(const inventory::Fabric& fabric) { return fabric.subnet_managers.empty(); }
  bool managerIsExternal() const { return declared_ && isExternal(*declared_->fabric); }
  /// Who runs its own subnet manager always has the partition Default; of another's only what is
  /// declared is looked at.
  static bool looksAtPartitions(const inventory::Fabric& fabric) {
    return !isExternal(fabric) || !fabric.partitions.empty();
  }
  bool looksAtPartitions() const { return declared_ && looksAtPartitions(*declared_->fabric); }
  /// What fabric.sm must be.
  std::string wantedManager() const;
  bool hasStandby() const { return declared_ && declared_->fabric->subnet_managers.size() > 1; }
  std::vector<std::string_view> facetsOf(const lifecycle::Subject& subject) const {
    if (!subject.isCluster()) return {kPorts};
    std::vector<std::string_view> out = {kSm, kLinks};
    if (hasStandby()) out.push_back(kStandby);
    if (looksAtPartitions()) out.push_back(kPartitions);
    return out;
  }
  static std::string errorJson(const Error& error) {
    return jsonText(nlohmann::json{{"error", error.str()}});
  }
  lifecycle::Fact fact(const lifecycle::Subject& subject, std::string_view facet, std::string value,
                       std::string source, std::string evidence = {}) const {
    return {subject,           FacetName(std::string(facet)),
            std::move(value),  clock_.now(),
            std::move(source), std::move(evidence)};
  }

  Async<std::vector<lifecycle::Fact>> look(lifecycle::Subject subject,
                                           std::chrono::milliseconds max_age);
  Async<SharedPicture> picture(std::chrono::milliseconds max_age);
  lifecycle::Fact linksFact(const Picture& picture) const;
  lifecycle::Fact factOf(const lifecycle::Subject& subject, std::string_view facet,
                         const Result<std::string>& problem, std::string wanted,
                         std::string source) const;
  std::vector<Deviation> deviationsOf(const NodeName& node, const Picture& picture) const;

  Async<std::string> smProblem(const Picture& picture);
  Async<std::string> externalSmProblem(const Picture& picture);
  /// Whether a subnet manager on this device is one that was declared.
  bool mayManage(const std::string& device) const;
  /// Names a subnet manager that nobody declared.
  Async<std::string> strangeManager(const Picture& picture);
  Async<std::string> standbyProblem(const Picture& picture);
  Async<const std::vector<PkeyMismatch>*> wrongPkeys(Picture& picture);
  /// Of one node (its own name), or of all (empty).
  Async<std::vector<PkeyMismatch>> readPkeys(const Picture& picture, std::string node);
  Async<std::string> partitionsProblem(Picture& picture);
  std::string ownPartitionsProblem(Picture& picture) const;
  Async<std::string> portsProblem(NodeName node, Picture& picture);

  Async<lifecycle::Outcome> actExternal(lifecycle::FacetRef facet, lifecycle::ActContext& context);
  Async<lifecycle::Outcome> actSm(lifecycle::FacetRef facet, lifecycle::ActContext& context);
  Async<lifecycle::Outcome> awaitSm(lifecycle::FacetRef facet, SharedPicture now,
                                    lifecycle::ActContext& context);
  Async<lifecycle::Outcome> applyPartitions(lifecycle::FacetRef facet, SharedPicture now,
                                            lifecycle::ActContext& context);
  /// Puts the former partitions back and reads every table again; in words how that went.
  Async<std::string> rollBack(SharedPicture now);
  Async<lifecycle::Outcome> actPartitions(lifecycle::FacetRef facet,
                                          lifecycle::ActContext& context);
  Async<lifecycle::Outcome> actStandby(lifecycle::FacetRef facet, lifecycle::ActContext& context);
  Async<lifecycle::Outcome> actCables(lifecycle::FacetRef facet, lifecycle::ActContext& context);

  const inventory::Cluster& cluster_;
  Clock& clock_;
  const FabricOptions options_;
  Tools tools_;
  SubnetManager manager_;
  Discovery discovery_;
  AsyncSemaphore turnstile_;
  const Result<Declared> declared_;
  FirmwareMemory firmware_;
  SharedPicture last_;
  std::optional<Error> last_error_;
  std::chrono::steady_clock::time_point last_at_{};
};

}  // namespace muster::fabric
