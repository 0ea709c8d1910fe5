// SPDX-License-Identifier: Apache-2.0
#include "monitor/node_rules.h"

#include "monitor/symptoms.h"

namespace muster::monitor {
namespace {

wire::HealthRule ruleOf(const inventory::SymptomRule& rule) {
  return {.symptom = rule.name,
          .text = {},
          .at_least = static_cast<std::uint64_t>(rule.min_count),
          .per_hour = static_cast<std::uint64_t>(rule.per_hour.value_or(0)),
          .takes_out = rule.action != HealthAction::Watch};
}

wire::HealthRule ruleOf(const SymptomRow& row) {
  return {.symptom = std::string(row.symptom),
          .text = std::string(row.text),
          .at_least = row.at_least,
          .per_hour = row.per_hour,
          .takes_out = row.action != HealthAction::Watch};
}

}  // namespace

wire::HealthRules nodeRules(const inventory::MonitorPolicy& policy, bool expects_gpus) {
  wire::HealthRules out;
  out.expects_gpus = expects_gpus;
  for (const bool exact : {true, false})  // as assess: exact names of the inventory come first
    for (const auto& rule : policy.symptoms)
      if (rule.name.ends_with('*') != exact) out.rules.push_back(ruleOf(rule));
  for (const auto& row : symptomRows()) out.rules.push_back(ruleOf(row));
  return out;
}

}  // namespace muster::monitor
