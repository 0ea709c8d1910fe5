// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_validation.h"

#include "app/runs/run_rounds.h"
#include "app/site/effective_cluster.h"
#include "app/validation/gate_plan.h"
#include "base/printable.h"
#include "inventory/model/cluster.h"
#include "validate/synchronized_load.h"

#include <fmt/format.h>

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

/// As if the gates that are to run again had never run. Errors: NotFound (a gate), Conflict (the
/// nodes need something else first), InvalidInput (a rack cannot bear the load that was asked for)
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

/// What the plan is to see again.
Result<void> forgetGates(const RunWork& work, const Run& run) {
  TRY(facts, work.store.facts());
  TRY(again, gatesToRun(work, run, facts));
  for (const auto& [subject, facets] : again) TRY_OK(work.store.forgetFacts(subject, facets));
  return {};
}

/// While it lives the nodes of each rack begin their gates at one moment.
class LoadAtOnce final : public ApplyScope {
 public:
  explicit LoadAtOnce(validate::SynchronizedLoad& load) : load_(load) {}
  ~LoadAtOnce() override { load_.end(); }

 private:
  validate::SynchronizedLoad& load_;
};

class ValidationRules final : public RunKindRules {
 public:
  Result<void> accept(Run& run) const override {
    if (run.apply.nodes.empty())
      return fail(ErrorCode::InvalidInput, "a validation names its nodes; nothing was done");
    std::set<std::string> gates;
    for (const auto& gate : run.validate.gates)
      if (gate.empty() || !gates.insert(gate).second)
        return fail(ErrorCode::InvalidInput,
                    fmt::format("\"{}\" is no gate, or stands there twice: name each gate once; "
                                "nothing was done",
                                printable(gate)));
    if (gates.size() > kMaxValidatedGates)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("a validation names at most {} gates; without any it runs all",
                              kMaxValidatedGates));
    return {};
  }
  Async<RunPlan> plan(RunWork& work, Run run, FactSet facts, Policy policy) const override {
    CO_TRY(plan, planValidation(work, run, facts, policy));
    co_return RunPlan{std::move(plan)};
  }
  Result<std::unique_ptr<ApplyScope>> prepareApply(const RunWork& work, const Run& run,
                                                   const Plan& plan) const override {
    TRY_OK(forgetGates(work, run));
    if (!run.validate.synchronized_load) return nullptr;
    if (!work.synchronized_load)
      return fail(ErrorCode::Internal, "this process cannot start gates at one moment");
    TRY_OK(work.synchronized_load->request(work.cluster, nodesWithGates(plan)));
    return std::make_unique<LoadAtOnce>(*work.synchronized_load);
  }
};

}  // namespace

const RunKindRules& validationRules() {
  static const ValidationRules rules;
  return rules;
}

}  // namespace muster::app
