// SPDX-License-Identifier: Apache-2.0
// Schemas of plans, firmware and fabrics.
#include "api/schema.h"
#include "api/schema_words.h"

namespace muster::api::schema_words {

json planImpact() {
  const auto domain = object({{"kind", kText},
                              {"name", kText},
                              {"taken_out", kCount},
                              {"already_out", kCount},
                              {"size", kCount},
                              {"limit", kCount}});
  return object({{"actions", kCount},
                 {"blocked", kCount},
                 {"subjects", kCount},
                 {"taken_out", kText},
                 {"taken_out_count", kCount},
                 {"wiped", kText},
                 {"reset", kText},
                 {"domains", arrayOf(domain)},
                 {"at_least_s", kCount}});
}

void addPlanAndFirmware(json& out) {
  const auto group = object({{"facet", kText},
                             {"from", kText},
                             {"to", kText},
                             {"disruption", words({"none", "drain", "reset", "wipe"})},
                             {"reason", kText},
                             {"blocked", kText},
                             {"expected_s", kCount},
                             {"nodes", kText},
                             {"nodes_count", kCount}});
  const auto unread = object({{"what", kText}, {"nodes", kText}, {"nodes_count", kCount}});
  out["Plan"] = object({{"nodes", kText},
                        {"as_of", kTime},
                        {"inventory_digest", kText},
                        {"groups", arrayOf(group)},
                        {"groups_count", kCount},
                        {"impact", planImpact()},
                        {"exceeded", kTexts},
                        {"unread", arrayOf(unread)}});
  out["FirmwareCell"] = object({{"profile", kText},
                                {"baseline", kText},
                                {"component", kText},
                                {"place", kCount},
                                {"declared", kText},
                                {"found", kText},
                                {"state", words({"as-declared", "to-update", "left", "unknown"})},
                                {"through", kTexts},
                                {"staged", kText},
                                {"why", kText},
                                {"nodes", kText},
                                {"nodes_count", kCount}});
  const auto step = object({{"component", kText}, {"from", kText}, {"to", kText}});
  const auto wave = object({{"activation", kText}, {"minutes", kCount}, {"steps", arrayOf(step)}});
  const auto undone =
      object({{"component", kText}, {"running", kText}, {"wanted", kText}, {"why", kText}});
  out["FirmwareUpgrade"] = object({{"node", kText},
                                   {"baseline", kText},
                                   {"flashes", kCount},
                                   {"resets", kCount},
                                   {"ac_cycles", kCount},
                                   {"minutes", kCount},
                                   {"waves", arrayOf(wave)},
                                   {"undone", arrayOf(undone)},
                                   {"forbidden_now", kTexts}});
}

void addFabric(json& out) {
  const auto level = object({{"level", kCount},
                             {"switches", kText},
                             {"switches_count", kCount},
                             {"cables", kCount},
                             {"deviating", kCount},
                             {"bad", kCount}});
  const auto found = object({{"looked_at", kTime},
                             {"error", kText},
                             {"note", kText},
                             {"devices", kCount},
                             {"links", kCount},
                             {"deviations", kCount},
                             {"excluded", kCount},
                             {"repairs", kTexts}});
  const auto health = object({{"looked_at", kTime},
                              {"error", kText},
                              {"window_s", kNumber},
                              {"grades", mapOf(kCount)},
                              {"hints", kTexts}});
  const auto pairs = object({{"title", kText}, {"names", kTexts}, {"shares", arrayOf(kNumber)}});
  out["Fabric"] = object({{"name", kText},
                          {"fabrics", kTexts},
                          {"switches", kCount},
                          {"hcas", kCount},
                          {"cables", kCount},
                          {"faulty", kCount},
                          {"levels", arrayOf(level)},
                          {"found", found, kOptional},
                          {"health", health, kOptional},
                          {"pairs", pairs, kOptional}});
  const auto fault =
      object({{"kind", kText}, {"declared", kText}, {"found", kText}, {"repair", kText}});
  const auto cable_health =
      object({{"grade", kText}, {"complaints", kTexts}, {"advice", kText}, {"transceiver", kText}});
  out["Cable"] = object({{"a", kText},
                         {"a_port", kCount},
                         {"b", kText},
                         {"b_port", kCount},
                         {"width_speed", kText},
                         {"level", kCount},
                         {"state", words({"not-seen", "as-declared", "deviates", "excused"})},
                         {"faults", arrayOf(fault)},
                         {"health", cable_health, kOptional}});
}

}  // namespace muster::api::schema_words
