// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/gate.h"

#include "inventory/model/gates.h"
#include "inventory/model/node.h"
#include "inventory/model/rollout_policy.h"

#include <fmt/format.h>

namespace muster::lifecycle {
namespace {

constexpr std::size_t kMaxNodesNamed = 3;

/// What could not be told, and what the policy makes of it.
void addInconclusive(GateReport& gate, const inventory::RegressionRule& rule,
                     const std::string& what) {
  if (rule.on_inconclusive == inventory::OnInconclusive::Halt)
    gate.reasons.push_back(what + "; policy: halt while it is inconclusive");
  else
    gate.notes.push_back(what + "; policy: go on while it is inconclusive");
}

void evaluateFailures(GateReport& gate, const RolloutRecord& record, const Wave& wave) {
  std::string named, skipped;
  std::size_t names = 0;
  for (const auto& node : wave.nodes) {
    const auto& progress = record.of(node);
    if (progress.state == RolloutNodeState::Done || progress.state == RolloutNodeState::Failed)
      ++gate.attempted;
    if (progress.state == RolloutNodeState::Skipped && skipped.empty())
      skipped = fmt::format("{}: {}", node.str(), progress.why);
    if (progress.state != RolloutNodeState::Failed) continue;
    ++gate.failed;
    if (names++ < kMaxNodesNamed) named += fmt::format("; {}: {}", node.str(), progress.why);
  }
  if (gate.attempted == 0)
    gate.reasons.push_back(
        "no node of the wave was changed, so there is no evidence for the next wave" +
        (skipped.empty() ? "" : "; " + skipped));
  if (tooManyFailed(static_cast<std::size_t>(gate.failed), static_cast<std::size_t>(gate.attempted),
                    record.rollout().policy))
    blameChange(gate,
                fmt::format("{} of {} nodes failed, and {} % may{}", gate.failed, gate.attempted,
                            record.rollout().policy.max_failed_percent, named));
}

void evaluateSpeed(GateReport& gate, const RolloutRecord& record) {
  const auto& rule = record.rollout().policy.regression;
  std::vector<NodeMeasures> nodes;
  for (const auto& [node, progress] : record.progress())
    if (progress.state == RolloutNodeState::Done)
      if (const auto* frozen = record.frozen(node);
          frozen && !frozen->before.empty() && !progress.after.empty())
        nodes.push_back({node, frozen->before, progress.after});
  gate.comparisons = compareMeasures(nodes, rule);
  for (const auto& comparison : gate.comparisons) {
    if (comparison.verdict == RegressionVerdict::Slower) blameChange(gate, comparison.text());
    if (comparison.verdict == RegressionVerdict::Inconclusive)
      addInconclusive(gate, rule, comparison.text());
  }
  if (gate.comparisons.empty() && gate.attempted > gate.failed)
    addInconclusive(gate, rule,
                    "no node was measured both before and after, so nothing is known of its speed");
}

}  // namespace

void blameChange(GateReport& gate, std::string reason) {
  gate.reasons.push_back(std::move(reason));
  gate.blames_change = true;
}

bool tooManyFailed(std::size_t failed, std::size_t of, const inventory::RolloutPolicy& policy) {
  return failed * 100 > static_cast<std::size_t>(policy.max_failed_percent) * of;
}

GateReport evaluateWave(const RolloutRecord& record, std::size_t wave) {
  GateReport gate;
  gate.wave = record.rollout().waves[wave].name;
  evaluateFailures(gate, record, record.rollout().waves[wave]);
  evaluateSpeed(gate, record);
  gate.passed = gate.reasons.empty();
  gate.accepted_by = gate.passed ? "" : record.rollout().accepted_by;
  return gate;
}

std::string textOf(const GateReport& gate) {
  std::string out = fmt::format("wave '{}': {} of {} nodes changed", gate.wave,
                                gate.attempted - gate.failed, gate.attempted);
  for (const auto& reason : gate.reasons) out += "\n  FAILED: " + reason;
  for (const auto& comparison : gate.comparisons)
    if (comparison.verdict == RegressionVerdict::Holds) out += "\n  " + comparison.text();
  for (const auto& note : gate.notes) out += "\n  note: " + note;
  if (!gate.accepted_by.empty()) out += "\n  accepted by " + gate.accepted_by;
  return out;
}

}  // namespace muster::lifecycle
