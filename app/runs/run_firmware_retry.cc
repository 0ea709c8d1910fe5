// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_firmware_retry.h"

#include "app/plans/plan.h"
#include "app/runs/run_change.h"
#include "app/runs/run_scope.h"
#include "app/site/effective_cluster.h"
#include "firmware/files.h"
#include "inventory/model/cluster.h"

#include <algorithm>

namespace muster::app {

using namespace lifecycle;

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

}  // namespace

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

Result<void> liftFailures(const RunWork& work, const Run& run) {
  if (run.kind != RunKind::FirmwareRetry) return {};
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

Result<std::vector<std::string>> leaveRetry(const RunWork& work, const Run& run) {
  std::vector<std::string> out;
  if (run.kind != RunKind::FirmwareRetry || run.firmware_retry.lifted.empty()) return out;
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

}  // namespace muster::app
