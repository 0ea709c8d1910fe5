// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/model/pool_hold.h"

#include <fmt/format.h>

namespace muster::lifecycle {

std::optional<std::string> poolHoldOf(const FactSet& facts, const Subject& subject) {
  auto hold = facts.value(subject, FacetName(std::string(kPoolHoldFacet)));
  return hold == kPoolNotHeld ? std::nullopt : hold;
}

std::optional<std::string> bindingHoldOf(const FactSet& facts, const Subject& subject) {
  auto hold = poolHoldOf(facts, subject);
  const auto overridden = facts.value(subject, FacetName(std::string(kPoolOverrideFacet)));
  return hold == overridden ? std::nullopt : hold;
}

std::string poolHoldText(const Subject& subject, const std::string& hold) {
  return fmt::format(
      "a person has taken {0} out of its pool ({1}), so nothing disturbs it until it is resumed "
      "there; to disturb it all the same: `muster pool override {0} --reason TEXT`",
      subject.str(), hold);
}

}  // namespace muster::lifecycle
