// SPDX-License-Identifier: Apache-2.0
// FabricPhase: subnet manager, partitions and cabling of one InfiniBand fabric; the ports of each
// node on it.
//
// A node goes on when the subnet manager and the partitions are as declared and its own cables are;
// deviations elsewhere keep @cluster/fabric.links unmet and are told as findings, but they hold up
// only the nodes that they touch.
#pragma once

#include "base/ids.h"
#include "base/json_output.h"
#include "base/result.h"
#include "fabric/acting.h"
#include "fabric/inspection.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/fwd.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/phase.h"

#include <algorithm>

namespace muster::fabric {

class FabricPhase final : public lifecycle::Phase {
 public:
  /// `fabric`: its name; empty: the only one.
  FabricPhase(const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
              FabricOptions options, const std::string& fabric);

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
  /// Ethernet has no subnet manager; what its nodes need is NodeServicesPhase's.
  bool isInfiniBand() const {
    const auto own = cluster_.fabrics.find(fabric_);
    return own != cluster_.fabrics.end() && !own->second.roce;
  }
  bool onFabric(const inventory::Node& node) const {
    return isInfiniBand() && inventory::isOn(cluster_.profileOf(node), fabric_);
  }
  bool concerns(const lifecycle::Subject& subject) const {
    if (subject.isCluster()) return isInfiniBand();
    const auto* node = cluster_.findNode(subject.node());
    return node && onFabric(*node);
  }
  /// What fabric.sm must be.
  std::string wantedManager() const;
  std::vector<std::string_view> facetsOf(const lifecycle::Subject& subject) const {
    if (!subject.isCluster()) return {kPorts};
    std::vector<std::string_view> out = {kSm, kLinks};
    if (inspection_.hasStandby()) out.push_back(kStandby);
    if (inspection_.looksAtPartitions()) out.push_back(kPartitions);
    return out;
  }
  FacetName nameOf(std::string_view facet) const { return FacetName(std::string(facet) + suffix_); }
  static std::string errorJson(const Error& error) {
    return jsonText(nlohmann::json{{"error", error.str()}});
  }
  lifecycle::Fact fact(const lifecycle::Subject& subject, std::string_view facet, std::string value,
                       std::string source, std::string evidence = {}) const {
    return {subject,      nameOf(facet),     std::move(value),
            clock_.now(), std::move(source), std::move(evidence)};
  }

  Async<std::vector<lifecycle::Fact>> look(lifecycle::Subject subject,
                                           std::chrono::milliseconds max_age);
  lifecycle::Fact linksFact(const Picture& picture) const;
  lifecycle::Fact factOf(const lifecycle::Subject& subject, std::string_view facet,
                         const Result<std::string>& problem, std::string wanted,
                         std::string source) const;

  const inventory::Cluster& cluster_;
  Clock& clock_;
  const std::string fabric_, suffix_;
  FabricInspection inspection_;
  FabricActing acting_;
  AsyncSemaphore tools_semaphore_;
};

}  // namespace muster::fabric
