// SPDX-License-Identifier: Apache-2.0
#include "wire/health.h"

#include "wire/fields.h"
#include "wire/messages.h"

namespace muster::wire {

template <>
inline constexpr auto kFields<Symptom> =
    std::tuple(field("id", &Symptom::id, Text{kMaxNameBytes}).checked(kNotEmpty),
               field("device", &Symptom::device, Text{kMaxNameBytes}).optional(),
               field("count", &Symptom::count, Whole{}),
               field("text", &Symptom::text, Text{kMaxSymptomTextBytes}).optional(),
               field("last_hour", &Symptom::last_hour, Maybe{Whole{}}).omitted());

template <>
inline constexpr auto kFields<HealthReport> =
    std::tuple(field("symptoms", &HealthReport::symptoms, Items{kMaxSymptoms}),
               field("sources", &HealthReport::sources, TextMap{kMaxSources}));

std::string toJson(const HealthReport& report) { return printMessage(report); }

Result<HealthReport> parseHealthReport(std::string_view text) {
  return parseMessage<HealthReport>(text, kMaxResultBytes, "health", "health");
}

}  // namespace muster::wire
