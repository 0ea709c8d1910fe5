// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_validation.h"

#include "app/site/effective_cluster.h"
#include "app/validation/gate_plan.h"
#include "inventory/model/cluster.h"
#include "validate/synchronized_load.h"

namespace muster::app {

using namespace lifecycle;

namespace {

Result<GatesByNode> gatesToRun(const RunWork& work, const Run& run, const FactSet& facts) {
  TRY(nodes, selectedNodes(work.cluster, run.apply.nodes));
  TRY(gates, gatesOf(work.cluster, nodes, run.validate.gates));
  return gatesSeenBefore(facts, nodes, gates, run.asked_at);
}

std::vector<NodeName> nodesWithGates(const Plan& plan) {
  std::set<NodeName> out;
  for (const auto& action : plan.actions)
    if (isGate(action.facet.facet)) out.insert(action.facet.subject.node());
  return {out.begin(), out.end()};
}

}  // namespace

Result<Plan> planValidation(const RunWork& work, const Run& run, const FactSet& facts,
                            const Policy& policy) {
  TRY(again, gatesToRun(work, run, facts));
  TRY(plan, work.plan(without(facts, again), policy));
  TRY_OK(onlyGates(plan));
  if (run.validate.synchronized_load) {
    validate::SynchronizedLoad asked;  // told before anybody is asked to agree
    TRY_OK(asked.request(work.cluster, nodesWithGates(plan)));
  }
  return std::move(plan);
}

Result<void> forgetGates(const RunWork& work, const Run& run) {
  if (run.kind != RunKind::Validate) return {};
  TRY(facts, work.store.facts());
  TRY(again, gatesToRun(work, run, facts));
  for (const auto& [subject, facets] : again) TRY_OK(work.store.forgetFacts(subject, facets));
  return {};
}

Result<LoadAtOnce> LoadAtOnce::begin(const RunWork& work, const Run& run, const Plan& plan) {
  if (run.kind != RunKind::Validate || !run.validate.synchronized_load) return LoadAtOnce(nullptr);
  if (!work.synchronized_load)
    return fail(ErrorCode::Internal, "this process cannot start gates at one moment");
  TRY_OK(work.synchronized_load->request(work.cluster, nodesWithGates(plan)));
  return LoadAtOnce(work.synchronized_load);
}

LoadAtOnce::~LoadAtOnce() {
  if (load_) load_->end();
}

}  // namespace muster::app
