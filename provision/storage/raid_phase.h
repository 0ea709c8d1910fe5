// SPDX-License-Identifier: Apache-2.0
// The phase that makes the volumes of RAID controllers which profiles declare under `raid`.
#pragma once

#include "bmc/bmc.h"
#include "gateway/agent_gateway.h"
#include "lifecycle/model/phase.h"
#include "provision/storage/data_wipe.h"

#include <functional>
#include <memory>
#include <string>

namespace muster::provision {

struct RaidDeps {
  const inventory::Cluster& cluster;
  bmc::BmcFleet& bmcs;
  gateway::AgentGateway& agents;  ///< what the machine's own system saw on its disks
  Clock& clock;
  /// Uses up the node's permission to empty its data disks, if there is one (data_wipe.h).
  std::function<Result<bool>(const NodeName&, const DataWipeOrder&)> take_data_wipe;
  std::function<Result<void>(const NodeName&, const std::string& intent)> end_data_wipe;
};
std::unique_ptr<lifecycle::Phase> makeRaidPhase(RaidDeps deps);

}  // namespace muster::provision
