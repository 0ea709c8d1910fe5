// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/gate.h"

#include <fmt/format.h>

namespace muster::lifecycle {
namespace {

constexpr std::size_t kMaxNodesNamed = 3;

/// What could not be told, and what the policy makes of it.
void unclear(GateReport& gate, const inventory::RegressionRule& rule, const std::string& what) {
  if (rule.on_inconclusive == inventory::OnInconclusive::Halt)
    gate.reasons.push_back(what + "; policy: halt while it is unclear");
  else
    gate.notes.push_back(what + "; policy: go on while it is unclear");
}

void judgeFailures(GateReport& gate, const RolloutBook& book, const Wave& wave) {
  std::string named, skipped;
  std::size_t names = 0;
  for (const auto& node : wave.nodes) {
    const auto& progress = book.of(node);
    if (progress.state == NodeState::Done || progress.state == NodeState::Failed) ++gate.attempted;
    if (progress.state == NodeState::Skipped && skipped.empty())
      skipped = fmt::format("{}: {}", node.str(), progress.why);
    if (progress.state != NodeState::Failed) continue;
    ++gate.failed;
    if (names++ < kMaxNodesNamed) named += fmt::format("; {}: {}", node.str(), progress.why);
  }
  if (gate.attempted == 0)
    gate.reasons.push_back("no node of the wave was changed, so nothing speaks for the next ones" +
                           (skipped.empty() ? "" : "; " + skipped));
  if (tooManyFailed(static_cast<std::size_t>(gate.failed), static_cast<std::size_t>(gate.attempted),
                    book.rollout().policy))
    speakAgainst(gate,
                 fmt::format("{} of {} nodes failed, and {} % may{}", gate.failed, gate.attempted,
                             book.rollout().policy.max_failed_percent, named));
}

void judgeSpeed(GateReport& gate, const RolloutBook& book) {
  const auto& rule = book.rollout().policy.regression;
  std::vector<NodeMeasures> nodes;
  for (const auto& [node, progress] : book.progress())
    if (progress.state == NodeState::Done)
      if (const auto* frozen = book.frozen(node);
          frozen && !frozen->before.empty() && !progress.after.empty())
        nodes.push_back({node, frozen->before, progress.after});
  gate.comparisons = compareMeasures(nodes, rule);
  for (const auto& comparison : gate.comparisons) {
    if (comparison.verdict == Verdict::Slower) speakAgainst(gate, comparison.text());
    if (comparison.verdict == Verdict::Unclear) unclear(gate, rule, comparison.text());
  }
  if (gate.comparisons.empty() && gate.attempted > gate.failed)
    unclear(gate, rule,
            "no node was measured both before and after, so nothing is known of its speed");
}

}  // namespace

void speakAgainst(GateReport& gate, std::string reason) {
  gate.reasons.push_back(std::move(reason));
  gate.speaks_against = true;
}

bool tooManyFailed(std::size_t failed, std::size_t of, const inventory::RolloutPolicy& policy) {
  return failed * 100 > static_cast<std::size_t>(policy.max_failed_percent) * of;
}

GateReport judgeWave(const RolloutBook& book, std::size_t wave) {
  GateReport gate;
  gate.wave = book.rollout().waves[wave].name;
  judgeFailures(gate, book, book.rollout().waves[wave]);
  judgeSpeed(gate, book);
  gate.passed = gate.reasons.empty();
  gate.accepted_by = gate.passed ? "" : book.rollout().accepted_by;
  return gate;
}

std::string textOf(const GateReport& gate) {
  std::string out = fmt::format("wave '{}': {} of {} nodes changed", gate.wave,
                                gate.attempted - gate.failed, gate.attempted);
  for (const auto& reason : gate.reasons) out += "\n  FAILED: " + reason;
  for (const auto& comparison : gate.comparisons)
    if (comparison.verdict == Verdict::Holds) out += "\n  " + comparison.text();
  for (const auto& note : gate.notes) out += "\n  note: " + note;
  if (!gate.accepted_by.empty()) out += "\n  accepted by " + gate.accepted_by;
  return out;
}

}  // namespace muster::lifecycle
