// SPDX-License-Identifier: Apache-2.0
// firmware plan, sign, retry: what a baseline means for each node, vouching for one, and letting
// what failed be installed again.
#pragma once

#include "app/site/options.h"
#include "base/ids.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace muster::inventory {
struct Cluster;
}
namespace muster::lifecycle {
class FactSet;
}

namespace muster::app {

/// One component from one version to the next.
struct FirmwareStep {
  std::string component, from, to;
};
/// What is switched on together.
struct FirmwareWave {
  std::string activation;  ///< none, bmc-reset, power-cycle, ac-cycle
  int minutes = 0;
  std::vector<FirmwareStep> steps;
};
/// A component that stays as it is, and why.
struct FirmwareUndone {
  std::string component, running, wanted, why;  ///< running: "" is unknown
};
/// A node's path to its baseline.
struct NodeUpgrade {
  NodeName node;
  std::string baseline;
  int flashes = 0, resets = 0, ac_cycles = 0, minutes = 0;
  std::vector<FirmwareWave> waves;
  std::vector<FirmwareUndone> undone;
  std::vector<std::string> forbidden_now;  ///< constraints that what runs breaks
};
nlohmann::json toJson(const NodeUpgrade& upgrade);

/// Nodes that have a baseline, in the order of the inventory.
std::vector<NodeName> nodesWithBaseline(const inventory::Cluster& cluster);
/// Of these nodes those that have a baseline. Pure.
std::vector<NodeUpgrade> firmwareUpgrades(const inventory::Cluster& cluster,
                                          const lifecycle::FactSet& facts,
                                          const std::vector<NodeName>& nodes);
/// From stored facts. `nodes`: hostlist; empty: all. Errors: NotFound (no such node; nothing was
/// observed yet)
Result<std::vector<NodeUpgrade>> firmwareUpgrades(const Options& options, const std::string& nodes);

struct BaselineSignature {
  std::string signature;
  std::string key_id;
  bool is_declared_signer = true;  ///< else the baseline's `signer` is another key
};
/// By this controller's key for firmware. Errors: NotFound
Result<BaselineSignature> signBaseline(const Options& options, const std::string& baseline);

struct FirmwareRetry {
  NodeName node;
  std::size_t components = 0;  ///< that had failed, and may be installed again
};
/// By this process, beside whoever serves the site: only lifts the block; the next apply installs.
/// Errors: InvalidInput (no reason), NotFound, Denied (the inventory asks for approvals of a
/// reset of these nodes, or no window is open; nothing was done)
Result<std::vector<FirmwareRetry>> retryFirmware(const Options& options, const std::string& nodes,
                                                 const std::string& reason);

}  // namespace muster::app
