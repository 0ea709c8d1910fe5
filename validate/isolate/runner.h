// SPDX-License-Identifier: Apache-2.0
// The executor: runs the rounds that an isolation plans. It decides nothing about nodes.
#pragma once

#include "gateway/agent_gateway.h"
#include "validate/isolate/site.h"

#include <functional>
#include <map>
#include <string>

namespace muster::validate::isolate {

/// An engine that runs one round at a time on real nodes.
class RoundRunner {
 public:
  virtual ~RoundRunner() = default;
  /// Whether it runs collectives of more than two nodes, with the rate of every pair of an
  /// all-to-all.
  virtual bool runsGroups() const = 0;
  /// All groups at once. What does not answer within its deadline has said nothing; never an error
  /// of the whole round.
  virtual Task<RoundResult> run(Round round) = 0;
  /// What the last round's test of this group said on this rail, in words: evidence.
  virtual std::string said(std::size_t group, int rail) const = 0;
};

/// Told before and after each round.
using RoundSink = std::function<void(const Round&, const RoundResult*)>;

Task<Verdict> isolateBy(Isolation& isolation, RoundRunner& runner, RoundSink sink);

/// Pairs by the agents' RDMA engine, every rail at once: one task a rail at each end, on ports of
/// its own. `run_id` begins the tasks' ids: a task is never run twice.
class PairRunner final : public RoundRunner {
 public:
  PairRunner(const Site& site, gateway::AgentGateway& agents, std::string run_id)
      : site_(site), agents_(agents), run_id_(std::move(run_id)) {}
  bool runsGroups() const override { return false; }
  Task<RoundResult> run(Round round) override;
  std::string said(std::size_t group, int rail) const override;

 private:
  Task<void> measure(std::size_t group, int a, int b, int rail, std::string task, double& gbits);

  const Site& site_;
  gateway::AgentGateway& agents_;
  std::string run_id_;
  std::map<std::pair<std::size_t, int>, std::string>
      said_;  ///< of the last round, by group and rail
};

}  // namespace muster::validate::isolate
