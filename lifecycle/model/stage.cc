// SPDX-License-Identifier: Apache-2.0
// nodeState: the word of a subject, derived from facets.
#include "lifecycle/model/stage.h"

#include "lifecycle/executor/engine.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/model/quarantine.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

constexpr std::string_view kHealthFacets = "health.";

bool fits(std::string_view prefix, std::string_view facet) {
  return prefix.ends_with('.') ? facet.starts_with(prefix) : facet == prefix;
}

std::string wordOfCluster(const FactSet& facts, const std::vector<Goal>& goals,
                          const std::vector<Finding>& findings, const std::vector<Intent>& open) {
  if (!open.empty()) return "working";
  const auto faulty = [](const Finding& finding) { return finding.severity == Severity::Error; };
  if (std::any_of(findings.begin(), findings.end(), faulty)) return "faulty";
  const bool met = std::all_of(goals.begin(), goals.end(),
                               [&facts](const Goal& goal) { return isMet(goal, facts); });
  return met ? "as declared" : "not as declared";
}

/// The last step such that it and all before it are met.
std::string_view reached(const FactSet& facts, const std::vector<Goal>& goals) {
  std::string_view word = "declared";
  for (std::size_t step = 0; step < stages().size(); ++step) {
    bool any = false;
    for (const auto& goal : goals) {
      if (stageOf(goal.facet.facet) != step) continue;
      if (!isMet(goal, facts)) return word;
      any = true;
    }
    if (any) word = stages()[step].reached;
  }
  return word;
}

}  // namespace

const std::vector<Stage>& stages() {
  static const std::vector<Stage> steps{
      {"enrolled", "enrolling", "enrolled"},
      {"firmware.", "updating firmware", "firmware as declared"},
      {"inspected", "inspecting", "inspected"},
      {"image", "imaging", "imaged"},
      {"os", "first boot", "booted"},
      {"driver.", "configuring", "configured"},
      {"fabric.", "checking fabric", "on fabric"},
      {"gate.", "validating", "validated"},
      {"certificate", "certifying", "certified"},
      {"pool", "joining", "in pool"},
  };
  return steps;
}

std::size_t stageOf(const FacetName& facet) {
  const auto& steps = stages();
  auto it = std::find_if(steps.begin(), steps.end(),
                         [&facet](const Stage& step) { return fits(step.prefix, facet.str()); });
  return static_cast<std::size_t>(it - steps.begin());
}

std::vector<Goal> inStageOrder(std::vector<Goal> goals) {
  std::sort(goals.begin(), goals.end(), [](const Goal& a, const Goal& b) {
    const auto x = stageOf(a.facet.facet), y = stageOf(b.facet.facet);
    return x != y ? x < y : a.facet.facet < b.facet.facet;
  });
  return goals;
}

bool isMet(const Goal& goal, const FactSet& facts) {
  const Fact* fact = facts.find(goal.facet.subject, goal.facet.facet);
  return fact && matches(goal.want, fact->value);
}

std::string nodeState(const Subject& subject, const FactSet& facts, const std::vector<Goal>& goals,
                      const std::vector<Finding>& findings, const std::vector<Intent>& open) {
  if (subject.isCluster()) return wordOfCluster(facts, goals, findings, open);
  for (const auto& intent : open) {
    if (intent.action.facet.subject != subject) continue;
    if (intent.action.id.ends_with(kDrainSuffix)) return "draining";
    const auto step = stageOf(intent.action.facet.facet);
    return step < stages().size() ? std::string(stages()[step].doing)
                                  : "working on " + intent.action.facet.facet.str();
  }
  const auto pool = facts.value(subject, FacetName(std::string(kPoolFacet)));
  if (pool == kPoolIn) return "in pool";
  // Somebody holds it: as the list says, or its finding, where the fact has not been observed yet.
  const auto held = [&subject](const Finding& finding) {
    return finding.facet.subject == subject && finding.source == kQuarantineSource;
  };
  if (facts.value(subject, FacetName(std::string(kQuarantineFacet))) == kQuarantineHeld ||
      std::any_of(findings.begin(), findings.end(), held))
    return "quarantined";
  const auto faulty = [&subject](const Finding& finding) {
    return finding.severity == Severity::Error && finding.facet.subject == subject;
  };
  const auto sick = [&](const Finding& finding) {
    return faulty(finding) && finding.facet.facet.str().starts_with(kHealthFacets);
  };
  if (std::any_of(findings.begin(), findings.end(), sick)) return "unhealthy";
  if (std::any_of(findings.begin(), findings.end(), faulty)) return "failed";
  if (pool == kPoolDrained) return "maintenance";
  return std::string(reached(facts, goals));
}

}  // namespace muster::lifecycle
