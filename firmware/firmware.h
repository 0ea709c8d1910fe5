// SPDX-License-Identifier: Apache-2.0
// Facade of firmware/: every declared component at its baseline version, done only when the
// inventory says so.
#pragma once

#include "base/io/http.h"
#include "bmc/bmc.h"
#include "lifecycle/model/phase.h"

#include <memory>
#include <string>
#include <vector>

namespace muster::gateway {
class AgentGateway;
}

namespace muster::firmware {

/// `image_url`: where imageRoutes are mounted ("http://10.20.0.1:8080"), for BMCs that fetch for
/// themselves; empty: they are refused. `agents`: who installs what the BMC does not reach
/// (inventory/model/in_band.h); null: such components cannot be read.
std::unique_ptr<lifecycle::Phase> makeFirmwarePhase(const inventory::Cluster& cluster,
                                                    bmc::BmcFleet& bmcs, Clock& clock,
                                                    Workers& workers, std::string image_url = {},
                                                    gateway::AgentGateway* agents = nullptr);

/// BIOS attributes as profiles declare them: facet `bios`.
std::unique_ptr<lifecycle::Phase> makeBiosPhase(const inventory::Cluster& cluster,
                                                bmc::BmcFleet& bmcs, Clock& clock);

/// GET /firmware/SHA256/NAME: the files that baselines declare, as long as they have that digest,
/// and nothing else.
std::vector<io::Route> imageRoutes(const inventory::Cluster& cluster, Clock& clock,
                                   Workers& workers);

}  // namespace muster::firmware
