// SPDX-License-Identifier: Apache-2.0
// The RDMA test of a node against partners, over as many calls of act as it takes. One bad partner
// is no verdict on the node: what fails is confirmed with another partner where there is one.
#pragma once

#include "inventory/model/node.h"
#include "lifecycle/model/phase.h"
#include "validate/pair_partner.h"
#include "validate/validate.h"
#include "wire/task_params.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace muster::validate {

inline constexpr std::string_view kPairCheck = "rdma.pair";
inline constexpr std::string_view kGdrCheck = "gdr.pair";

/// Where the data of a pair test lie: in the hosts' memory, or in that of each rail's GPU
/// (GPUDirect RDMA).
enum class PairMemory { Host, Gpu };

class PairTests {
 public:
  /// Of every rail; nullopt: as device, link and GPU say.
  struct Limits {
    std::optional<double> min_gbits, max_latency_us;
  };
  using Answer = std::variant<lifecycle::Again, wire::CheckResult>;
  using Busy =
      std::set<NodeName>;  ///< in a test now: two tests on one NIC would only measure each other

  PairTests(const inventory::Cluster& cluster, gateway::AgentGateway& agents, const Clock& clock,
            PoolStateReader pool_state, PairMemory memory, Busy& busy)
      : cluster_(cluster),
        agents_(agents),
        clock_(clock),
        pool_state_(std::move(pool_state)),
        memory_(memory),
        paired_(busy) {}
  std::string_view check() const { return memory_ == PairMemory::Host ? kPairCheck : kGdrCheck; }

  /// What to wait for, or the node's verdict. Errors: those of the node's own agent; the engine
  /// tries again, with fresh tasks
  Async<Answer> run(inventory::Node node, FacetName gate, Limits limits,
                    lifecycle::ActContext& context);
  void forget(const std::string& intent) { trials_.erase(intent); }

 private:
  /// What is known of one intent's test.
  struct Trial {
    int attempts = 0;    ///< begun: a task id is never run twice
    int unmeasured = 0;  ///< of them, those that ended without a number
    std::vector<std::pair<NodeName, wire::CheckResult>> failed;
    bool tried(const NodeName& node) const;
  };
  struct Choice {
    std::optional<Partner> partner;
    std::string why_not;       ///< why nobody can serve now
    bool one_is_soon = false;  ///< somebody is only in another test
  };

  Async<Choice> choose(inventory::Node node, Trial trial, lifecycle::ActContext& context);
  Async<std::string> whyNot(Partner partner);
  struct Rail {
    std::string own, partner;
    std::size_t number = 0, count = 1;
    std::string fabric = {};  ///< that both are on
  };
  /// Rails of one fabric with the partner's of the same; why there are none.
  Result<std::vector<Rail>> railsOn(const inventory::Node& node, const Partner& partner,
                                    const std::string& fabric) const;
  Async<wire::CheckResult> measure(inventory::Node node, Partner partner, Limits limits,
                                   std::string task_id);
  Async<wire::CheckResult> measureRail(inventory::Node node, Partner partner, Rail rail,
                                       Limits limits, std::string task_id);
  void addLatency(wire::RdmaPairParams& params, const Rail& rail, const Limits& limits) const;
  wire::CheckResult broken(std::string text) const;
  /// Adds the GPU of this rail; an error's words when the node tells of none.
  std::optional<std::string> addGpu(wire::RdmaPairParams& params, const NodeName& node,
                                    const Rail& rail) const;
  double floorOf(const inventory::Node& node, const Rail& rail) const;
  wire::CheckResult verdict(const Trial& trial, const std::string& note) const;
  void warnOf(const Trial& trial, const inventory::Node& node, const FacetName& gate,
              const Partner& good, lifecycle::ActContext& context) const;

  const inventory::Cluster& cluster_;
  gateway::AgentGateway& agents_;
  const Clock& clock_;
  PoolStateReader pool_state_;
  std::map<std::string, Trial> trials_;  ///< by intent
  const PairMemory memory_;
  Busy& paired_;
};

}  // namespace muster::validate
