// SPDX-License-Identifier: Apache-2.0
#include "monitor/health_gate.h"

#include "monitor/health_phase.h"

namespace muster::monitor {

Result<void> HealthGate::requireValid(const NodeName& node) const {
  auto facts = store_.factsOf(lifecycle::Subject(node));
  if (!facts) return fail(Error(ErrorCode::Denied, facts.error().text()).within("health"));
  for (const auto& fact : *facts)
    if (const auto action = actionWordOf(fact); !action.empty())
      return fail(ErrorCode::Denied,
                  fmt::format("{} reports {} ({}); `muster why {}` says what to do", node.str(),
                              symptomsOf(fact), action, node.str()));
  return next_.requireValid(node);
}

}  // namespace muster::monitor
