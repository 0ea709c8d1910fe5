// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_firmware_retry.h"

#include "app/plans/plan.h"
#include "app/runs/run_change.h"
#include "app/runs/run_rounds.h"
#include "app/runs/run_scope.h"
#include "app/site/effective_cluster.h"
#include "firmware/files.h"
#include "inventory/model/cluster.h"

#include <algorithm>

namespace muster::app {

using namespace lifecycle;

GatesByNode failuresSeenBefore(const FactSet& facts, const std::vector<NodeName>& nodes,
                               WallTime before) {
  GatesByNode out;
  for (const auto& node : nodes) {
    const Subject subject(node);
    for (const auto& facet : firmware::failedFacets(facts, subject))
      if (const auto* fact = facts.find(subject, facet); fact && fact->observed_at < before)
        out[subject].push_back(facet);
  }
  return out;
}

namespace {

constexpr std::size_t kMostIntents = 1'000;  ///< of one node, that are looked at
constexpr std::string_view kFirmware = "firmware.";

Result<std::vector<NodeName>> nodesMeant(const RunWork& work, const Run& run) {
  return selectedNodes(work.cluster, run.apply.nodes);
}

const Fact* factOf(const FactSet& facts, const LiftedFailure& lifted) {
  return facts.find(Subject(NodeName(lifted.node)), FacetName(lifted.facet));
}

/// What the run may lift now: what had failed before it was asked for. Once it has lifted
/// something, nothing else, wherever the clock has gone.
Result<GatesByNode> toLift(const RunWork& work, const Run& run, const FactSet& facts) {
  TRY(row, readRun(work.runs, run.id));
  const auto& lifted = row.firmware_retry.lifted;
  if (lifted.empty()) {
    TRY(nodes, nodesMeant(work, run));
    return failuresSeenBefore(facts, nodes, run.asked_at);
  }
  GatesByNode out;
  for (const auto& each : lifted)
    if (const auto* fact = factOf(facts, each);
        fact && fact->value == each.value && fact->observed_at == each.observed_at)
      out[fact->subject].push_back(fact->facet);
  return out;
}

WallTime beganAt(const Run& run) {
  for (const auto& stamp : run.stamps)
    if (stamp.state == RunState::Running) return stamp.at;
  return run.asked_at;
}

Result<bool> hasBegunFirmware(Store& store, const Subject& subject, WallTime since) {
  TRY(intents, store.intentsOf(subject, kMostIntents));
  return std::ranges::any_of(intents, [since](const Intent& intent) {
    return intent.action.facet.facet.str().starts_with(kFirmware) &&
           (intent.state == IntentState::Open || intent.opened_at >= since);
  });
}

Result<void> note(const RunWork& work, const Subject& subject, const std::string& text) {
  TRY_OK(work.store.addEvent({0, work.clock.now(), EventKind::Note, subject, "", text}));
  return {};
}

/// Kept in the row before it is gone.
Result<void> keep(const RunWork& work, const Run& run, const FactSet& facts,
                  const GatesByNode& failures) {
  std::vector<LiftedFailure> lifted;
  for (const auto& [subject, facets] : failures)
    for (const auto& facet : facets)
      if (const auto* fact = facts.find(subject, facet))
        lifted.push_back(
            {subject.str(), facet.str(), fact->value, fact->observed_at, fact->source});
  TRY_OK(changeRun(work.runs, run.id, [&](Run row, std::string&) -> Result<Run> {
    if (row.firmware_retry.lifted.empty()) row.firmware_retry.lifted = lifted;
    return row;
  }));
  return {};
}

/// Of the nodes on which something has failed; where that is none: of all that were named. Errors:
/// NotFound (a node), those of the store
Result<Policy> policyForRetry(const RunWork& work, const Run& run) {
  TRY(policy, policyFor(work.cluster, run.apply.nodes, work.store));
  TRY(facts, work.store.facts());
  TRY(failures, toLift(work, run, facts));
  std::set<Subject> only;
  for (const auto& [subject, facets] : failures) only.insert(subject);
  TRY(row, readRun(work.runs, run.id));
  for (const auto& each : row.firmware_retry.lifted) only.insert(Subject(NodeName(each.node)));
  if (!only.empty()) policy.only = std::move(only);
  return std::move(policy);
}

/// As if nothing had failed; empty where nothing has. Errors: those of the store
Result<Plan> planRetry(const RunWork& work, const Run& run, const FactSet& facts,
                       const Policy& policy) {
  TRY(failures, toLift(work, run, facts));
  if (failures.empty() && !run.begun) {
    Plan nothing;
    nothing.policy = policy;
    nothing.inventory_digest = work.cluster.digest;
    return nothing;
  }
  return work.plan(without(facts, failures), policy);
}

/// Kept in the row first.
Result<void> liftFailures(const RunWork& work, const Run& run) {
  TRY(facts, work.store.facts());
  TRY(failures, toLift(work, run, facts));
  if (failures.empty()) return {};
  TRY_OK(keep(work, run, facts, failures));
  for (const auto& [subject, facets] : failures) {
    TRY_OK(note(work, subject,
                fmt::format("{}@{} lets failed firmware be installed again (run {}): {}",
                            run.asked_by.principal, run.asked_by.address, run.id,
                            run.firmware_retry.reason)));
    TRY_OK(work.store.forgetFacts(subject, facets));
  }
  return {};
}

/// Puts back what was lifted of nodes whose firmware nobody has begun to install since. Answers a
/// line for each of them.
Result<std::vector<std::string>> putBackFailures(const RunWork& work, const Run& run) {
  std::vector<std::string> out;
  if (run.firmware_retry.lifted.empty()) return out;
  TRY(facts, work.store.facts());
  std::map<std::string, std::vector<Fact>> back;
  for (const auto& each : run.firmware_retry.lifted)
    if (!factOf(facts, each))
      back[each.node].push_back({Subject(NodeName(each.node)),
                                 FacetName(each.facet),
                                 each.value,
                                 each.observed_at,
                                 each.source,
                                 {}});
  for (const auto& [node, failures] : back) {
    const Subject subject{NodeName(node)};
    TRY(has_begun, hasBegunFirmware(work.store, subject, beganAt(run)));
    if (has_begun) continue;
    TRY_OK(work.store.putFacts(failures));
    const auto text = fmt::format(
        "run {} has not begun to install its firmware: what failed there stays blocked", run.id);
    TRY_OK(note(work, subject, text));
    out.push_back(fmt::format("{}: {}", node, text));
  }
  return out;
}

class FirmwareRetryRules final : public RunKindRules {
 public:
  Result<void> accept(Run& run) const override {
    run.firmware_retry.lifted.clear();
    if (run.apply.nodes.empty())
      return fail(ErrorCode::InvalidInput, "a firmware retry names its nodes; nothing was done");
    if (!isRunReason(run.firmware_retry.reason))
      return fail(ErrorCode::InvalidInput,
                  fmt::format("a firmware retry needs a reason, of at most {} bytes: what was "
                              "found, or repaired; it is kept in the log; nothing was done",
                              kMaxRunReasonBytes));
    return {};
  }
  Run asAsked(Run run) const override {
    run.firmware_retry.lifted.clear();
    return run;
  }
  Result<Policy> policy(const RunWork& work, const Run& run) const override {
    return policyForRetry(work, run);
  }
  Async<RunPlan> plan(RunWork& work, Run run, FactSet facts, Policy policy) const override {
    CO_TRY(plan, planRetry(work, run, facts, policy));
    co_return RunPlan{std::move(plan)};
  }
  /// What others have begun is apply's.
  std::optional<std::string> nothingLeft(const Run& run, const Plan& plan,
                                         const std::set<std::string>& open) const override {
    if (!plan.empty() || (run.begun && !open.empty())) return std::nullopt;
    return "no firmware of these nodes has failed";
  }
  Result<std::unique_ptr<ApplyScope>> prepareApply(const RunWork& work, const Run& run,
                                                   const Plan&) const override {
    TRY_OK(liftFailures(work, run));
    return nullptr;
  }
  Result<std::vector<std::string>> takeBack(const RunWork& work, const Run& run) const override {
    return putBackFailures(work, run);
  }
};

}  // namespace

const RunKindRules& firmwareRetryRules() {
  static const FirmwareRetryRules rules;
  return rules;
}

}  // namespace muster::app
