// SPDX-License-Identifier: Apache-2.0
// The action table: what a symptom asks for. Data, with its source; the inventory may add rows and
// replace them (monitor.symptoms).
#pragma once

#include "inventory/model/monitor.h"
#include "wire/health.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::monitor {

using inventory::HealthAction;

struct SymptomRow {
  std::string_view symptom;  ///< id; a trailing '*' stands for any ending
  HealthAction action = HealthAction::Watch;
  std::string_view advice;
  std::string_view source;
  std::uint64_t at_least = 1;                ///< since the node's boot; fewer are only watched
  HealthAction again = HealthAction::Watch;  ///< when it comes back on the same device after a
                                             ///< reset or reboot; Watch: as before
  std::string_view text =
      {};  ///< only when the words hold this; such rows stand before the general one
  std::uint64_t per_hour =
      0;  ///< of a port's counter, in the place of at_least where the agent tells a rate
};
std::span<const SymptomRow> symptomRows();

/// The facet that a symptom belongs to: "gpu", "disk", "network", "system".
std::string_view groupOf(std::string_view symptom_id);

struct SymptomAssessment {
  HealthAction action = HealthAction::Watch;
  std::string advice;
  bool known = true;  ///< false: no row fits, so it is watched and told
};
/// Pure. `boots_before`: in how many earlier boots it was seen on the same device. Of the
/// inventory's rows and the table's the first that fits counts, exact names before those with '*'.
SymptomAssessment assess(const wire::Symptom& symptom, int boots_before,
                         const std::vector<inventory::SymptomRule>& rules);

std::string_view toString(HealthAction action);

}  // namespace muster::monitor
