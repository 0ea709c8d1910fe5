// SPDX-License-Identifier: Apache-2.0
#include "monitor/agent_liveness.h"

#include "base/json_input.h"
#include "base/json_members.h"
#include "inventory/model/cluster.h"
#include "inventory/model/monitor.h"
#include "lifecycle/model/fact_source.h"
#include "lifecycle/model/json.h"
#include "monitor/health_phase.h"
#include "monitor/symptoms.h"

namespace muster::monitor {
namespace {

using namespace lifecycle;
using nlohmann::json;

constexpr std::string_view kSymptom = "system.agent-silent";

json rowsOf(const Fact& fact) {
  const auto evidence = jsonOrNone(fact.evidence, kKeptJson);
  auto rows = evidence.is_object() ? evidence.value("symptoms", json::array()) : json::array();
  return rows.is_array() ? rows : json::array();
}

bool isSilence(const json& row) {
  return row.is_object() && row.value("symptom", json()) == kSymptom;
}

/// The newest thing that its agent is known to have said. What silence itself has written is
/// nothing that it said.
std::optional<WallTime> lastReport(const std::vector<Fact>& facts, const Subject& subject) {
  std::optional<WallTime> out;
  for (const auto& fact : facts) {
    const bool is_agents = fact.source == lifecycle::agentSource(subject) &&
                           fact.evidence.find(kSymptom) == std::string::npos;
    if (is_agents && (!out || *out < fact.observed_at)) out = fact.observed_at;
  }
  return out;
}

}  // namespace

Result<std::optional<Fact>> AgentLiveness::factWhenSilent(const NodeName& node) {
  const auto since = since_.try_emplace(node, Since{clock_.steady(), clock_.now()}).first->second;
  const auto absent = clock_.steady() - since.steady;
  if (absent < (heard_.contains(node) ? kAgentSilentAfter : kAgentStartupGrace))
    return std::optional<Fact>();
  const Subject subject(node);
  TRY(stored, store_.factsOf(subject));
  const auto reported = heard_.contains(node) ? std::nullopt : lastReport(stored, subject);
  const auto last = reported ? std::min(*reported, since.wall) : since.wall;
  if (absent < kAgentSilentAfter && clock_.now() - last < kAgentSilentAfter)
    return std::optional<Fact>();
  FactSet facts;
  for (auto& fact : stored) facts.put(std::move(fact));
  if (!mayTakeJobs(facts.value(subject, FacetName(std::string(kPoolFacet)))))
    return std::optional<Fact>();

  const FacetName facet(std::string(kHealthPrefix) + "system");
  const auto* before = facts.find(subject, facet);
  if (before && !actionWordOf(*before).empty() && symptomsOf(*before) != kSymptom)
    return std::optional<Fact>();
  wire::Symptom symptom{std::string(kSymptom), "", 1, "no report since " + muster::toString(last)};
  json rows = json::array();
  for (auto& row : before ? rowsOf(*before) : json::array()) {
    if (!isSilence(row))
      rows.push_back(row);
    else if (auto text = textOf(row, "text"); !text.empty())
      symptom.text = std::move(text);  // an earlier process has noticed it first
  }
  const auto assessment = assess(symptom, 0, cluster_.monitor->symptoms);
  const json row = {{"symptom", symptom.id},
                    {"device", ""},
                    {"count", 1},
                    {"text", symptom.text},
                    {"advice", assessment.advice},
                    {"action", toString(assessment.action)}};
  rows.insert(rows.begin(), row);
  Fact fact{subject,
            facet,
            std::string(kHealthy),
            clock_.now(),
            lifecycle::agentSource(subject),
            canonical({{"symptoms", std::move(rows)}})};
  if (assessment.action != HealthAction::Watch)
    fact.value = fmt::format("{}:{}", toString(assessment.action), kSymptom);
  return std::optional(std::move(fact));
}

std::string silenceText(const Fact& fact) {
  if (fact.value != kHealthy || fact.evidence.find(kSymptom) == std::string::npos) return {};
  for (const auto& row : rowsOf(fact))
    if (isSilence(row))
      return fmt::format("its agent does not report, so its health is not known: {}",
                         textOf(row, "text"));
  return {};
}

}  // namespace muster::monitor
