// SPDX-License-Identifier: Apache-2.0
// The engine of collectives: muster-collective on every node of a group, started by the agents. The
// controller gives out where a group meets; there is no MPI and no ssh.
#pragma once

#include "validate/collective/collective.h"
#include "validate/isolate/engine.h"
#include "validate/isolate/runner.h"

namespace muster::validate::isolate {

/// Pairs exchange in both directions at once on every rail; an all-to-all also tells the rate of
/// every pair, by a tournament after it. The rate of a rail is that of all its ranks together, of
/// the slower end. Wrong data is a rate of zero.
class GroupRunner final : public RoundRunner {
 public:
  GroupRunner(const Site& site, Engine engine, gateway::AgentGateway& agents, std::string run_id)
      : site_(site), engine_(engine), agents_(agents), run_id_(std::move(run_id)) {}
  bool runsGroups() const override { return true; }
  Task<RoundResult> run(Round round) override;
  std::string said(std::size_t group, int rail) const override;

 private:
  /// What one node answered.
  struct Answer {
    std::optional<collective::JobReport> report;  ///< nullopt: nothing that can be read
    bool failed =
        false;  ///< it ran and failed, or its agent is gone; else it said nothing of the way
    std::string words;  ///< empty: all is well
  };
  Task<void> ask(int node, collective::Job job, std::string task, Answer& answer);
  GroupResult gather(std::size_t group, const Group& asked, const std::vector<Answer>& answers);
  int railOf(int rank) const;

  const Site& site_;
  const Engine engine_;
  gateway::AgentGateway& agents_;
  const std::string run_id_;
  std::map<std::size_t, std::string> said_;
};

}  // namespace muster::validate::isolate
