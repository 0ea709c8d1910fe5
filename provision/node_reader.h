// SPDX-License-Identifier: Apache-2.0
// What a node's BMC and its agent say of it, as facts of the provision phase.
#pragma once

#include "provision/built_images.h"
#include "provision/identity.h"
#include "provision/inspection.h"
#include "provision/provision.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::provision {

class NodeReader {
 public:
  NodeReader(const ProvisionDeps& deps, const BuiltImages& images) : deps_(deps), images_(images) {}

  /// Errors: Timeout, and the BMC's own
  Async<bmc::SystemInfo> bmc(NodeName node) const;
  /// Is the machine behind the BMC the one that the inventory declares?
  lifecycle::Fact enrolledFact(const inventory::Node& node, const bmc::SystemInfo& system) const;
  /// Hardware, image and system, from the agent's last report.
  void addAgentFacts(const inventory::Node& node, const gateway::AgentState& state,
                     std::vector<lifecycle::Fact>& facts) const;
  /// Drivers and the network as they run now, asked of the agent by a task of its own when its last
  /// poll does not tell, or when it must be fresh.
  /// Errors: the task's own; Corrupt when its result cannot be read
  Async<void> addDriverFacts(NodeName node, bool fresh, std::vector<lifecycle::Fact>* facts) const;
  /// The node with its hardware as it is now: the agent tells it together with the end of the task.
  /// Errors: the task's own; Unavailable when the agent is away
  Async<gateway::AgentState> lookAgain(NodeName node) const;
  /// What the node is compared with.
  InspectionContext contextOf(const inventory::Node& node) const;
  lifecycle::Fact fact(const NodeName& node, std::string_view name, std::string value,
                       std::string source, std::string evidence = {}) const;

 private:
  const ProvisionDeps& deps_;
  const BuiltImages& images_;
  mutable std::optional<IdentityIndex> identity_index_;  ///< made when first asked for
};

}  // namespace muster::provision
