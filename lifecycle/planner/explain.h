// SPDX-License-Identifier: Apache-2.0
// `muster why NODE`: a pure function from what is known to what a person needs: what is the state,
// what was expected, what was seen, the last evidence, and the next step.
#pragma once

#include "lifecycle/executor/duration_estimate.h"
#include "lifecycle/executor/engine.h"
#include "lifecycle/planner/roster.h"

#include <string>
#include <vector>

namespace muster::lifecycle {

struct ExplainInput {
  Subject subject;
  std::vector<Goal> goals;        ///< of the subject, from all phases
  FactSet facts;                  ///< of the subject
  std::vector<Intent> open;       ///< open intents of the subject
  std::vector<Finding> findings;  ///< open findings of the subject, newest first
  std::vector<Event> events;      ///< the last ones of the subject, in order
  std::vector<Action>
      actions;  ///< of the plan as it would be now, for what blocks them; may be empty
  DurationEstimates estimates;  ///< of the subject and its peers, where an intent is open
  WallTime now{};
  double slowness = 1;  ///< of the place (base/limits.h): deadlines are so many times as long
};

/// Everything that view code prints, as words.
struct Explanation {
  Subject subject;
  std::string word;   ///< nodeState
  std::string state;  ///< one sentence; says so when something takes longer than it should
  std::string facet;  ///< what the rest is about; empty when all is as declared
  std::string expected, observed, last_evidence, next_step;
  std::vector<std::string>
      console;  ///< what the machine's console said last, when that is part of the evidence
  std::vector<Finding> findings;
  std::vector<std::string> unmet;  ///< "driver.nvidia: want '575.*', is '570.1' (seen 3 min ago)",
                                   ///< in the order of the stages
  std::vector<std::string> stale;  ///< what could not be read at the last look, and since when
  std::vector<Event> recent;
  std::string rollout;  ///< where the node stands in a rollout (rollout/status.h); empty: in none

  bool asDeclared() const { return facet.empty(); }
  std::string text() const;  ///< several lines, without colours
  std::string toJson() const;
};

/// What explanations of one site are made from; everything outlives it.
struct ExplainSources {
  const inventory::Cluster& cluster;
  const Roster& roster;  ///< of the cluster
  const Phases& phases;
  Store& store;
  const FactSet& facts;  ///< of the whole site: goals of a subject may ask for others'
  KnownDurations& durations;
  WallTime now{};
  std::chrono::steady_clock::time_point steady{};  ///< for `durations`
  double slowness = 1;                             ///< as in ExplainInput
};

/// Reads from the store what else an explanation needs: of this subject, not of the site. Pure but
/// for that. Errors: those of the store, and of makePlan
Result<ExplainInput> gatherExplanation(const ExplainSources& from, const Subject& subject);

/// What it is about, in this order: an action that is under way; an error with evidence; the first
/// unmet goal of the stages.
Explanation explain(const ExplainInput& input);

}  // namespace muster::lifecycle
