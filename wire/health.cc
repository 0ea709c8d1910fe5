// SPDX-License-Identifier: Apache-2.0
#include "wire/health.h"

#include "base/json_output.h"
#include "wire/json_reader.h"
#include "wire/messages.h"

#include <limits>

namespace muster::wire {

std::string toJson(const HealthReport& report) {
  auto symptoms = nlohmann::json::array();
  for (const auto& symptom : report.symptoms) {
    symptoms.push_back({{"id", symptom.id},
                        {"device", symptom.device},
                        {"count", symptom.count},
                        {"text", symptom.text}});
    if (symptom.last_hour) symptoms.back()["last_hour"] = *symptom.last_hour;
  }
  return jsonText(nlohmann::json{{"symptoms", std::move(symptoms)}, {"sources", report.sources}});
}

Result<HealthReport> parseHealthReport(std::string_view text) {
  TRY(object, parseObject(text, kMaxResultBytes, "health"));
  JsonReader reader(object, "health");
  HealthReport report;
  for (const auto& entry : reader.array("symptoms", kMaxSymptoms)) {
    JsonReader each(entry, "symptom");
    Symptom symptom;
    symptom.id = each.text("id", kMaxNameBytes);
    symptom.device = each.text("device", kMaxNameBytes, true);
    symptom.count = each.unsignedNumber("count", std::numeric_limits<std::uint64_t>::max());
    symptom.text = each.text("text", kMaxSymptomTextBytes, true);
    if (each.field("last_hour", true))
      symptom.last_hour =
          each.unsignedNumber("last_hour", std::numeric_limits<std::uint64_t>::max());
    if (symptom.id.empty()) each.wrong("id", "is empty");
    TRY_OK(each.finish());
    report.symptoms.push_back(std::move(symptom));
  }
  report.sources = readTextMap(reader, "sources", kMaxSources);
  TRY_OK(reader.finish());
  return report;
}

}  // namespace muster::wire
