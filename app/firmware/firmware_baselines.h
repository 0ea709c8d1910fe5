// SPDX-License-Identifier: Apache-2.0
// firmware plan, sign, retry: what a baseline means for each node, vouching for one, and letting
// what failed be installed again.
#pragma once

#include "app/site/options.h"
#include "firmware/baselines.h"
#include "inventory/model/node.h"
#include "lifecycle/rollout/effective_cluster.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::app {

struct NodeUpgrade {
  NodeName node;
  const inventory::FirmwareBaseline* baseline = nullptr;  ///< of FirmwareUpgrades::live
  firmware::Versions running;
  firmware::UpgradePath path;
};
struct FirmwareUpgrades {
  std::unique_ptr<lifecycle::EffectiveCluster> live;
  std::vector<NodeUpgrade> nodes;  ///< those that have a baseline
};
/// From stored facts. `nodes`: hostlist; empty: all. Errors: NotFound (nothing was observed yet)
Result<FirmwareUpgrades> firmwareUpgrades(const Options& options, const std::string& nodes);

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
