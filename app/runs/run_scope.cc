// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_scope.h"

#include "inventory/parse/hostlist.h"

#include <algorithm>

namespace muster::app {

using namespace lifecycle;

namespace {

std::string folded(const std::set<std::string>& names) {
  return inventory::foldHostlist({names.begin(), names.end()});
}

}  // namespace

std::set<std::string> namesOf(const std::string& hostlist) {
  if (hostlist.empty()) return {};
  const auto names = inventory::expandHostlist(hostlist);
  return names ? std::set<std::string>(names->begin(), names->end()) : std::set<std::string>();
}

std::string with(const std::string& hostlist, const std::vector<NodeName>& nodes) {
  auto names = namesOf(hostlist);
  for (const auto& node : nodes) names.insert(node.str());
  return folded(names);
}

std::string withSubjects(const std::string& hostlist, const Plan& plan) {
  auto names = namesOf(hostlist);
  for (const auto& action : plan.actions)
    if (!action.facet.subject.isCluster()) names.insert(action.facet.subject.str());
  return folded(names);
}

bool isWithin(const std::vector<NodeName>& nodes, const std::string& agreed) {
  const auto names = namesOf(agreed);
  return std::all_of(nodes.begin(), nodes.end(),
                     [&names](const NodeName& node) { return names.contains(node.str()); });
}

/// Open intents that a command or a run has begun on what the policy is about; the monitor's are
/// its own.
Result<std::set<std::string>> declaredIntents(Store& store, const Policy& policy) {
  std::set<std::string> out;
  TRY(open, store.openIntents());
  for (const auto& intent : open) {
    const auto& subject = intent.action.facet.subject;
    const bool is_ours =
        policy.only.empty() || subject.isCluster() || policy.only.contains(subject);
    if (is_ours && intent.action.cause == ActionCause::Declared) out.insert(intent.action.id);
  }
  return out;
}

Result<std::set<std::string>> openActionsOf(Store& store, const Run& run) {
  std::set<std::string> out;
  const auto nodes = namesOf(run.subjects);
  TRY(open, store.openIntents());
  for (const auto& intent : open) {
    const auto& subject = intent.action.facet.subject;
    const bool is_ours = subject.isCluster() || nodes.contains(subject.str());
    if (is_ours && intent.action.cause == ActionCause::Declared) out.insert(intent.action.id);
  }
  return out;
}

bool hasSomethingToAsk(const PlanImpact& impact) { return impact.actions != impact.blocked; }

void addProblems(Run& run, const std::vector<std::string>& problems) {
  for (const auto& problem : problems)
    if (run.problems.size() < kMaxRunProblems)
      run.problems.push_back(problem.substr(0, kCutRunTextBytes));
}

void notePlan(Run& run, const Plan& plan, const PlanImpact& impact, WallTime now) {
  run.plan_hash = plan.hash();
  run.inventory_digest = plan.inventory_digest;
  run.impact = impact;
  run.planned_at = now;
  run.subjects = withSubjects(run.subjects, plan);
}

}  // namespace muster::app
