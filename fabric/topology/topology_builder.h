// SPDX-License-Identifier: Apache-2.0
// Puts a declared topology together cable by cable, each port at most once.
#pragma once

#include "fabric/topology/topology.h"
#include "inventory/model/fabric.h"

#include <bitset>
#include <unordered_map>

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
  bool has(const std::string& name) const { return ends_.contains(name); }

  /// Errors: InvalidInput (no such port, a port used twice, both ends at one device)
  Result<void> cable(Port one, Port other, const std::string& link,
                     const inventory::FabricCable* declared = nullptr);

  Topology finish();

 private:
  static constexpr std::size_t kPortNumbers = 256;  ///< 8 bits
  /// What is asked of a device for each cable: half a million in the largest shapes.
  struct Ends {
    int ports = 0;
    std::uint32_t rank = 0;  ///< of its name among all; known when all are
    std::bitset<kPortNumbers> used;
  };

  void add(Device device) {
    if (!ends_.try_emplace(device.name, Ends{.ports = device.ports}).second) return;
    auto name = device.name;
    topology_.devices.emplace(std::move(name), std::move(device));
  }

  const inventory::Fabric& fabric_;
  Topology topology_;
  std::unordered_map<std::string, Ends> ends_;
};

std::unexpected<Error> refuse(const inventory::Fabric& fabric, std::string text);

/// The shapes that are trees: rail-optimized and fat-tree. Errors: InvalidInput
Result<void> buildTree(TopologyBuilder& build, const inventory::Fabric& fabric,
                       const std::vector<Host>& hosts);

}  // namespace muster::fabric
