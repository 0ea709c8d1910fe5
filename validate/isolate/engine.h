// SPDX-License-Identifier: Apache-2.0
// What runs the tests between nodes: perftest for pairs, muster-collective by NCCL or TCP for
// groups of any size.
#pragma once

#include "gateway/agent_gateway.h"
#include "wire/task_params.h"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate::isolate {

enum class EngineKind { Rdma, Nccl, Tcp };
std::string_view toString(EngineKind kind);  ///< "rdma"
Result<EngineKind> parseEngine(std::string_view name);

/// What a part may lack of its peers' rate before it counts as bad (isolation.h). Over TCP both
/// hosts' stacks are in every rate, and they stall for moments that no median of a few repetitions
/// hides: rates that differ less say nothing of the network.
double toleranceOf(EngineKind kind);

/// What runs the tests between nodes.
struct Engine {
  EngineKind kind = EngineKind::Rdma;
  int ranks_per_node = 1;  ///< of collectives: GPUs
};

/// The engine that was asked for, or for "auto" NCCL where all of these nodes have it and as many
/// GPUs, else perftest. Errors: Unavailable with what is missing where (NCCL, muster-collective),
/// InvalidInput (no such engine, nodes with different counts of GPUs)
Async<Engine> chooseEngine(std::string wish, std::vector<NodeName> nodes,
                           gateway::AgentGateway& agents, std::string run_id);

/// The parameters of a RunChecks task with one check.
wire::RunChecksParams oneCheck(std::string_view id, nlohmann::json params,
                               std::chrono::seconds deadline);

}  // namespace muster::validate::isolate
