// SPDX-License-Identifier: Apache-2.0
// Puts a declared topology together cable by cable, each port at most once.
#pragma once

#include "fabric/topology/topology.h"
#include "inventory/model/fabric.h"

namespace muster::fabric {

class TopologyBuilder {
 public:
  explicit TopologyBuilder(const inventory::Fabric& fabric) : fabric_(fabric) {}

  /// `level`: 0 where the cables say it.
  void addSwitch(const std::string& name, int level = 0) {
    Device device{name, true, fabric_.switch_ports, {}, {}};
    device.level = level;
    add(std::move(device));
  }
  void addHca(const std::string& name,
              inventory::AttachedRole role = inventory::AttachedRole::None) {
    Device device{name, false, 1, {}, {}, role};
    device.is_attached = role != inventory::AttachedRole::None || hostOf(name) == "controller";
    add(std::move(device));
  }
  bool has(const std::string& name) const { return topology_.devices.count(name) > 0; }

  /// Errors: InvalidInput (no such port, a port used twice)
  Result<void> cable(Port one, Port other, const inventory::FabricCable* declared = nullptr);

  Topology finish();

 private:
  void add(Device device) { topology_.devices.try_emplace(device.name, device); }

  const inventory::Fabric& fabric_;
  Topology topology_;
  std::set<Port> used_;
};

std::unexpected<Error> refuse(const inventory::Fabric& fabric, std::string text);

/// The shapes that are trees: rail-optimized and fat-tree. Errors: InvalidInput
Result<void> buildTree(TopologyBuilder& build, const inventory::Fabric& fabric,
                       const std::vector<Host>& hosts);

}  // namespace muster::fabric
