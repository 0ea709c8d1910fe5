// SPDX-License-Identifier: Apache-2.0
// Gates: which checks a gate means for a profile, with expected values and their sources.
#pragma once

#include "base/result.h"
#include "inventory/model/fwd.h"
#include "wire/messages.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

struct CheckRequest;

/// The node-local checks of the gate (groups "host" and "gpu"; of "rdma" the counting). Pure.
/// `slowness`: of the place where the node is (base/limits.h): limits are so many times as long,
/// measurements are not.
/// Errors: InvalidInput for a group that does not exist
Result<std::vector<CheckRequest>> localChecks(const inventory::Cluster& cluster,
                                              const inventory::Profile& profile,
                                              const inventory::Gate& gate, double slowness = 1);

/// Does the gate test RDMA between nodes (group "rdma")?
bool wantsRdmaPair(const inventory::Gate& gate);
/// … and between the GPUs' memories (group "gdr")?
bool wantsGdrPair(const inventory::Gate& gate);
/// Does it ask the node's BMC (group "bmc")?
bool wantsBmc(const inventory::Gate& gate);

/// The least ib_write_bw average that passes, in Gb/s, for this device on a fabric of this link
/// ("4xHDR").
double rdmaFloorGbits(std::string_view device, std::string_view link);
/// Width and speed of the slowest class of cables that lie between two nodes of a fabric: a pair's
/// floor is not above what any of them carries. "" where the fabric is nullptr.
std::string pairLink(const inventory::Fabric* fabric);

/// The highest median of ib_write_lat that passes, in microseconds one way, for this device;
/// nullopt: nobody has published one.
std::optional<double> rdmaCeilingUs(std::string_view device);

/// So many messages of the agents' size (64 KiB) last about so long on a link that reaches this
/// floor: only a load that lasts fills a link, shows its errors and says its rate. Soft-RoCE gets
/// by with the agents' few.
int rdmaIterations(double floor_gbits, std::chrono::seconds load);

/// How long the whole gate may take.
std::chrono::seconds gateExpected(const inventory::Gate& gate);
std::chrono::seconds gateDeadline(const inventory::Gate& gate);

/// What a failing check of this id asks of people.
std::string_view adviceFor(std::string_view check_id);
/// The same for how it ended: a check that had too little time has found nothing that could be
/// replaced.
std::string_view adviceFor(std::string_view check_id, wire::CheckStatus status);

}  // namespace muster::validate
