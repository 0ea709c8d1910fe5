// SPDX-License-Identifier: Apache-2.0
// Scheduler on Slurm: slurmd is started by the node's agent, everything else is scontrol.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "gateway/agent_gateway.h"
#include "inventory/model/fwd.h"
#include "pool/pool.h"
#include "pool/scheduler.h"
#include "pool/scontrol.h"

namespace muster::pool {

class SlurmScheduler final : public Scheduler {
 public:
  SlurmScheduler(const inventory::Cluster& cluster, const inventory::Pool& pool,
                 gateway::AgentGateway& agents, io::ProcessRunner& processes, Clock& clock,
                 const PoolOptions& options);

  std::string describe() const override;
  std::string source() const override { return "scontrol show node"; }
  std::string unknownNode(const NodeName& node) const override;
  bool registersItself() const override { return false; }
  Async<std::optional<Member>> look(NodeName node) override;
  Async<lifecycle::Outcome> admit(NodeName node, lifecycle::ActContext& context) override;
  Async<void> close(NodeName node, std::string reason) override;
  Async<Remains> release(NodeName node) override;
  Async<void> reopen(NodeName node) override;
  Async<std::vector<std::string>> endWork(NodeName node) override;

 private:
  Result<wire::AgentTask> joinTask(const std::string& id) const;

  const std::string partition_;
  const std::filesystem::path conf_, node_conf_, munge_key_;
  gateway::AgentGateway& agents_;
  Scontrol slurm_;
};

}  // namespace muster::pool
