// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/model/node_state.h"

#include "lifecycle/executor/engine.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/model/quarantine.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

constexpr std::string_view kHealthFacets = "health.";
constexpr std::string_view kDeclared = "declared";
constexpr std::string_view kDraining = "draining";
constexpr std::string_view kInPool = "in pool";
constexpr std::string_view kQuarantined = "quarantined";
constexpr std::string_view kUnhealthy = "unhealthy";
constexpr std::string_view kFailed = "failed";
constexpr std::string_view kMaintenance = "maintenance";
constexpr std::string_view kWorkingOn = "working on ";

std::string wordOfCluster(const FactSet& facts, const std::vector<Goal>& goals,
                          const std::vector<Finding>& findings, const std::vector<Intent>& open) {
  if (!open.empty()) return "working";
  const auto faulty = [](const Finding& finding) { return finding.severity == Severity::Error; };
  if (std::any_of(findings.begin(), findings.end(), faulty)) return "faulty";
  const bool met = std::all_of(goals.begin(), goals.end(),
                               [&facts](const Goal& goal) { return isMet(goal, facts); });
  return met ? "as declared" : "not as declared";
}

/// The last stage such that it and all before it are met.
std::string_view reached(const FactSet& facts, const std::vector<Goal>& goals) {
  std::string_view word = kDeclared;
  for (const auto& row : stageTable()) {
    bool any = false;
    for (const auto& goal : goals) {
      if (stageOf(goal) != row.stage) continue;
      if (!isMet(goal, facts)) return word;
      any = true;
    }
    if (any) word = row.reached;
  }
  return word;
}

std::vector<std::string_view> wordsOfNodes() {
  std::vector<std::string_view> out{kDeclared};
  for (const auto& row : stageTable()) out.insert(out.end(), {row.in_progress, row.reached});
  out.insert(out.end(), {kDraining, kInPool, kQuarantined, kUnhealthy, kFailed, kMaintenance});
  return out;
}

}  // namespace

bool isMet(const Goal& goal, const FactSet& facts) {
  const Fact* fact = facts.find(goal.facet.subject, goal.facet.facet);
  return fact && matches(goal.want, fact->value);
}

std::string nodeState(const Subject& subject, const FactSet& facts, const std::vector<Goal>& goals,
                      const std::vector<Finding>& findings, const std::vector<Intent>& open) {
  if (subject.isCluster()) return wordOfCluster(facts, goals, findings, open);
  for (const auto& intent : open) {
    if (intent.action.facet.subject != subject) continue;
    if (intent.action.id.ends_with(kDrainSuffix)) return std::string(kDraining);
    const auto* row = findStageRow(stageOf(intent.action.facet.facet));
    return row ? std::string(row->in_progress)
               : std::string(kWorkingOn) + intent.action.facet.facet.str();
  }
  const auto pool = facts.value(subject, FacetName(std::string(kPoolFacet)));
  if (pool == kPoolIn) return std::string(kInPool);
  // Somebody holds it: as the list says, or its finding, where the fact has not been observed yet.
  const auto held = [&subject](const Finding& finding) {
    return finding.facet.subject == subject && finding.source == kQuarantineSource;
  };
  if (facts.value(subject, FacetName(std::string(kQuarantineFacet))) == kQuarantineHeld ||
      std::any_of(findings.begin(), findings.end(), held))
    return std::string(kQuarantined);
  const auto faulty = [&subject](const Finding& finding) {
    return finding.severity == Severity::Error && finding.facet.subject == subject;
  };
  const auto unhealthy = [&](const Finding& finding) {
    return faulty(finding) && finding.facet.facet.str().starts_with(kHealthFacets);
  };
  if (std::any_of(findings.begin(), findings.end(), unhealthy)) return std::string(kUnhealthy);
  if (std::any_of(findings.begin(), findings.end(), faulty)) return std::string(kFailed);
  if (pool == kPoolDrained) return std::string(kMaintenance);
  return std::string(reached(facts, goals));
}

bool isNodeState(std::string_view word) {
  const auto words = wordsOfNodes();
  return std::ranges::find(words, word) != words.end();
}

std::string nodeStateWords() {
  std::string out;
  for (const auto word : wordsOfNodes())
    if (!word.empty()) out += (out.empty() ? "" : ", ") + std::string(word);
  return out;
}

}  // namespace muster::lifecycle
