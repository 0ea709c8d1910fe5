// SPDX-License-Identifier: Apache-2.0
#include "api/schema.h"

#include "api/schema_words.h"

#include <nlohmann/json.hpp>

#include <set>

namespace muster::api {

using nlohmann::json;

namespace schema_words {
namespace {

json scope() { return object({{"pools", kTexts}, {"racks", kTexts}, {"nodes", kText}}); }
json severity() { return words({"info", "warning", "error"}); }

json problem() {
  return object(
      {{"type", kText},
       {"title", kText},
       {"status", {{"type", "integer"}, {"minimum", 400}, {"maximum", 599}}},
       {"code",
        words({"invalid-input", "unauthenticated", "denied", "not-found", "unknown-resource",
               "method-not-allowed", "conflict", "too-large", "outcome-unknown", "too-many-orders",
               "not-serving", "unavailable", "timeout", "corrupt", "internal"})},
       {"detail", kText},
       {"what_to_do", kText},
       {"retryable", kFlag},
       {"roles", kTexts},
       {"request_id", kText},
       {"diagnostics", arrayOf(refTo("Diagnostic"))},
       {"serves", object({{"holder", kText}, {"address", kText}, {"url", kText}}), kOptional}});
}

json diagnostic() {
  return object({{"severity", severity()},
                 {"file", kText},
                 {"line", kCount},
                 {"column", kCount},
                 {"text", kText},
                 {"what_to_do", kText}});
}

json site() {
  const auto monitor =
      object({{"running", kFlag}, {"breaker_open", kFlag}, {"text", kText}, {"holder", kText}});
  return object(
      {{"name", kText},
       {"version", kText},
       {"host", kText},
       {"as_of", kTime},
       {"nodes", kCount},
       {"states", mapOf(kCount)},
       {"with_findings", kCount},
       {"stale", kCount},
       {"findings", kCount},
       {"racks", kCount},
       {"pools", kCount},
       {"monitor", monitor},
       {"leader", object({{"holder", kText}, {"address", kText}, {"url", kText, kOptional}}),
        kOptional},
       {"several_controllers", kFlag},
       {"rollout", kText, kOptional},
       {"overrides", kTexts},
       {"access_problems", kTexts},
       {"inventory_digest", kText},
       {"last_event", kCount}});
}

json me() {
  return object({{"principal", kText},
                 {"way", words({"unix", "certificate", "token", "oidc"})},
                 {"role", words({"viewer", "operator", "approver", "robot", "admin"})},
                 {"verbs", kTexts},
                 {"scope", scope()},
                 {"person", kText, kOptional},
                 {"expires_at", kTime, kOptional}});
}

json node() {
  const auto stale = object({{"what", kText},
                             {"since", kTime},
                             {"code", kText},
                             {"reason", kText},
                             {"last_read", kTime, kOptional}});
  return object({{"node", kText},
                 {"state", kText},
                 {"pool", kText},
                 {"pool_name", kText},
                 {"image", kText},
                 {"certificate", kText},
                 {"rack", kText},
                 {"profile", kText},
                 {"findings", kCount},
                 {"stale", arrayOf(stale)},
                 {"unit", kInteger, kOptional},
                 {"mac", kText, kOptional},
                 {"address", kText, kOptional},
                 {"bmc", kText, kOptional},
                 {"serial", kText, kOptional},
                 {"declared_image", kText, kOptional},
                 {"firmware", kText, kOptional},
                 {"drivers", kTexts, kOptional},
                 {"gates", kTexts, kOptional},
                 {"quarantine", refTo("Quarantine"), kOptional},
                 {"hold", refTo("Hold"), kOptional}});
}

json explanation() {
  return object({{"subject", kText},
                 {"word", kText},
                 {"state", kText},
                 {"facet", kText},
                 {"as_declared", kFlag},
                 {"expected", kText},
                 {"observed", kText},
                 {"last_evidence", kText},
                 {"console", kTexts},
                 {"next_step", kText},
                 {"unmet", kTexts},
                 {"stale", kTexts},
                 {"rollout", kText},
                 {"findings", arrayOf(refTo("Finding"))},
                 {"events", arrayOf(refTo("Event"))}});
}

json fact() {
  return object({{"subject", kText},
                 {"facet", kText},
                 {"value", kText},
                 {"source", kText},
                 {"observed_at", kTime, kOptional},
                 {"evidence", kAny, kOptional}});
}

json finding() {
  return object({{"subject", kText},
                 {"facet", kText},
                 {"severity", severity()},
                 {"text", kText},
                 {"what_to_do", kText},
                 {"source", kText, kOptional},
                 {"at", kTime, kOptional},
                 {"evidence", kAny, kOptional}});
}

json event() {
  return object({{"sequence", kCount},
                 {"kind", kText},
                 {"text", kText},
                 {"at", kTime, kOptional},
                 {"subject", kText, kOptional},
                 {"action", kText, kOptional},
                 {"fraction", kNumber, kOptional}});
}

json group(std::initializer_list<Member> own) {
  auto out = object({{"nodes", kCount},
                     {"hostlist", kText},
                     {"states", mapOf(kCount)},
                     {"with_findings", kCount},
                     {"stale", kCount}});
  const auto more = object(own);
  out["properties"].update(more["properties"]);
  for (const auto& name : more["required"]) out["required"].push_back(name);
  return out;
}

json rollout() {
  return object({{"id", kText},
                 {"state", kText},
                 {"at", kTime},
                 {"user", kText},
                 {"host", kText},
                 {"command", kText},
                 {"is_open", kFlag}});
}

json certificateState() {
  return object({{"node", kText},
                 {"certificate", kText, kOptional},
                 {"valid", kFlag},
                 {"void_because", kText},
                 {"expires_at", kTime, kOptional},
                 {"override_by", kText, kOptional}});
}

json image() {
  return object({{"image", kText},
                 {"digest", kText},
                 {"key", kText},
                 {"predecessor", kText},
                 {"size_bytes", kCount},
                 {"pack_bytes", kCount},
                 {"declared", kFlag},
                 {"profiles", kTexts},
                 {"signers", kTexts},
                 {"fault", kText}});
}

json inventory() {
  return object({{"name", kText},
                 {"file", kText},
                 {"digest", kText},
                 {"nodes", kCount},
                 {"in_use_since", kTime},
                 {"file_differs", kFlag},
                 {"diagnostics", arrayOf(refTo("Diagnostic"))}});
}

json run() {
  const auto by = object(
      {{"principal", kText}, {"way", kText}, {"address", kText}, {"person", kText, kOptional}});
  const auto approval = object({{"principal", kText},
                                {"way", kText},
                                {"address", kText},
                                {"person", kText, kOptional},
                                {"at", kTime},
                                {"plan_hash", kText},
                                {"confirmation", kFlag},
                                {"void_because", kText}});
  const auto erase = object({{"disks", kTexts}, {"reason", kText}});
  const auto rollout =
      object({{"id", kText}, {"back", kFlag}, {"driver", kText}, {"wipe_reason", kText}});
  const auto validate = object({{"gates", kTexts}, {"synchronized_load", kFlag}});
  const auto isolate =
      object({{"engine", kText}, {"min_gbps", kNumber}, {"seed", kInteger}, {"until", kText}});
  const auto firmware_retry = object({{"reason", kText}});
  const auto image_build = object({{"image", kText}, {"over", kText}});
  const auto stamp = object({{"state", kText}, {"reason", kText}, {"at", kTime}, {"by", kText}});
  const auto overridden = object({{"principal", kText},
                                  {"way", kText},
                                  {"address", kText},
                                  {"at", kTime},
                                  {"plan_hash", kText},
                                  {"against", kText},
                                  {"reason", kText},
                                  {"acknowledged_by", kText},
                                  {"void_because", kText},
                                  {"acknowledged_at", kTime, kOptional}});
  json out = object(
      {{"id", kText}, {"kind", kText}, {"nodes", kText}, {"confirm", kFlag}, {"command", kText}});
  for (const auto* name : {"after_restart", "state", "reason", "text", "order", "ordered_by",
                           "worked_on_by", "inventory_digest", "plan_hash", "subjects"})
    out["properties"][name] = kText;
  out["properties"].update({{"is_over", kFlag},
                            {"asked_by", by},
                            {"asked_at", kTime},
                            {"changed_at", kTime},
                            {"approvals_needed", kCount},
                            {"approvals", arrayOf(approval)},
                            {"overrides", arrayOf(overridden)},
                            {"progress", mapOf(kCount)},
                            {"problems", kTexts},
                            {"stamps", arrayOf(stamp)},
                            {"first_event", kInteger},
                            {"last_event", kInteger}});
  out["required"] = json::array();
  for (const auto& [name, schema] : out["properties"].items()) out["required"].push_back(name);
  out["properties"].update({{"planned_at", kTime},
                            {"waits_until", kTime},
                            {"unreadable", kText},
                            {"impact", planImpact()},
                            {"erase", erase},
                            {"rollout", rollout},
                            {"validate", validate},
                            {"isolate", isolate},
                            {"firmware_retry", firmware_retry},
                            {"image_build", image_build}});
  return out;
}

json token() {
  return object({{"id", kText},
                 {"name", kText},
                 {"role", kText},
                 {"scope", scope()},
                 {"created_at", kTime},
                 {"created_by", kText},
                 {"owner", kText},
                 {"expires_at", kTime},
                 {"revoked", kFlag},
                 {"login", kFlag},
                 {"token", kText, kOptional}});
}

json makeSchemas() {
  json out = {
      {"Problem", problem()},
      {"Diagnostic", diagnostic()},
      {"Site", site()},
      {"Me", me()},
      {"Node", node()},
      {"Explanation", explanation()},
      {"Fact", fact()},
      {"Finding", finding()},
      {"Event", event()},
      {"Rack", group({{"rack", kText},
                      {"power",
                       object({{"drawn_watts", kNumber},
                               {"read_nodes", kCount},
                               {"oldest_at", kTime, kOptional},
                               {"limit_watts", kCount, kOptional},
                               {"full_load_watts", kCount, kOptional},
                               {"estimated_nodes", kCount, kOptional}}),
                       kOptional}})},
      {"Pool", group({{"pool", kText},
                      {"scheduler", words({"slurm", "kubernetes"})},
                      {"partition", kText, kOptional},
                      {"breaker", refTo("Breaker"), kOptional}})},
      {"Profile", group({{"profile", kText},
                         {"image", kText},
                         {"drivers", kTexts},
                         {"firmware", kText},
                         {"gates", kTexts},
                         {"pool", kText},
                         {"fabric", kText},
                         {"other_fabrics", kTexts, kOptional}})},
      {"Rollout", rollout()},
      {"Inventory", inventory()},
      {"Image", image()},
      {"CertificateState", certificateState()},
      {"Token", token()},
  };
  out["Run"] = run();
  out["Validation"] = object(
      {{"run", refTo("Run")},
       {"results",
        arrayOf(object(
            {{"node", kText}, {"gate", kText}, {"result", kText}, {"at", kTime, kOptional}}))}});
  out["RackPower"] = object(
      {{"rack", kText},
       {"nodes", kCount},
       {"drawn_watts", kNumber},
       {"readings",
        arrayOf(object({{"node", kText}, {"watts", kNumber}, {"of", kText}, {"at", kTime}}))},
       {"unread", kTexts},
       {"oldest_at", kTime, kOptional},
       {"limit_watts", kCount, kOptional},
       {"full_load_watts", kCount, kOptional},
       {"estimated_nodes", kCount, kOptional}});
  out["Check"] = object({{"id", kText},
                         {"group", kText},
                         {"level", kText},
                         {"what", kText},
                         {"needs", kText},
                         {"units", kText},
                         {"expected_from", kText},
                         {"what_to_do", kText}});
  out["MeasurementsReport"] = object({{"cluster", kText},
                                      {"at", kTime},
                                      {"sets", kCount},
                                      {"numbers", kCount},
                                      {"comparisons", kCount},
                                      {"not_evaluated", kCount},
                                      {"from_future", kCount},
                                      {"not_said", kText},
                                      {"false_alarms_expected", kNumber},
                                      {"expected_values", mapOf(kText)},
                                      {"alarms", arrayOf(kFree)},
                                      {"groups", arrayOf(kFree)},
                                      {"nodes", arrayOf(kFree)},
                                      {"left_out", kText}});
  out["History"] = object({{"requests", arrayOf(kFree)}, {"actions", arrayOf(kFree)}});
  out["RolloutDetail"] = object({{"id", kText},
                                 {"state", kText},
                                 {"at", kTime},
                                 {"nodes", kFree},
                                 {"counts", mapOf(kCount)},
                                 {"order", kFree}});
  out["RolloutDetail"]["additionalProperties"] = true;
  out["Certificate"] = object({{"node", kText}, {"valid", kFlag}, {"void_because", kText}});
  out["Certificate"]["additionalProperties"] = true;
  out["Measurement"] = object({{"at", kTime},
                               {"origin", kText},
                               {"sku", kText},
                               {"rack", kText},
                               {"numbers", mapOf(kNumber)}});
  out["Revocation"] = object(
      {{"node", kText}, {"certificate", kText}, {"at", kTime}, {"by", kText}, {"reason", kText}});
  out["PoolWindows"] = object(
      {{"pool", kText},
       {"windows",
        arrayOf(object(
            {{"days", kTexts}, {"from", kText}, {"minutes", kCount}, {"time_zone", kText}}))},
       {"is_open", kFlag},
       {"spans", arrayOf(object({{"opens", kTime}, {"closes", kTime}}))},
       {"problem", kText}});
  out["AccessRow"] =
      object({{"kind", words({"user", "group", "certificate", "oidc-user", "oidc-group"})},
              {"who", kText},
              {"role", words({"viewer", "operator", "approver", "robot", "admin"})},
              {"scope", scope()},
              {"wrong", kText}});
  addPlanAndFirmware(out);
  addFabric(out);
  out["RecordedBoot"] = object({{"boot", kCount}, {"began", kTime}, {"why", kText}});
  out["Locator"] = object({{"node", kText},
                           {"state", words({"unknown", "asking", "on", "off", "failed"})},
                           {"text", kText},
                           {"at", kTime, kOptional}});
  out["Power"] = object({{"node", kText},
                         {"state", words({"unknown", "asking", "done", "failed"})},
                         {"action", kText},
                         {"before", kText},
                         {"power", kText},
                         {"text", kText},
                         {"by", kText},
                         {"at", kTime, kOptional}});
  out["AuditHead"] = object({{"sequence", kCount}, {"hash", kText}});
  out["SignedAuditHead"] = object({{"sequence", kCount}, {"hash", kText}, {"line", kText}});
  out["RevocationOrder"] = object({{"node", kText}, {"had_certificate", kFlag}, {"list", kText}});
  out["CertificateOverride"] = object({{"node", kText}, {"until", kTime}});
  out["Receiver"] = object({{"name", kText},
                            {"url", kText},
                            {"format", kText},
                            {"told", kFlag},
                            {"waiting", kCount},
                            {"trouble", kText}});
  out["Approved"] = object({{"approved", kTexts}});
  out["Discovery"] = object(
      {{"known_as", kText}, {"state", words({"node", "approved", "unknown"})}, {"bmc", kText}});
  out["Discovery"]["additionalProperties"] = true;
  out["Bmc"] = object({{"node", kText},
                       {"bmc", kText},
                       {"pin", kText},
                       {"trust", words({"bmc_pin", "bmc_ca", "first-contact", "nothing"})},
                       {"inventory_is_behind", kFlag},
                       {"password_refused", kFlag},
                       {"signer", kText},
                       {"rotation", words({"none", "interrupted", "done"}), kOptional}});
  out["NodeName"] = object({{"node", kText}});
  out["DiscoveryFinding"] = object({{"what", kText}, {"where", kText}, {"what_to_do", kText}});
  out["Quarantine"] = object(
      {{"node", kText}, {"since", kTime}, {"by", kText}, {"reason", kText}, {"evidence", kAny}});
  out["QuarantineOrder"] = object({{"node", kText}, {"is_new", kFlag}, {"reason", kText}});
  out["Hold"] = object({{"node", kText},
                        {"hold", kText},
                        {"seen_at", kTime},
                        {"overridden", kFlag},
                        {"overridden_by", kText}});
  out["Breaker"] = object({{"pool", kText}, {"nodes", kText}, {"nodes_count", kCount}});
  out["WipeGrant"] = object({{"node", kText}});
  out["Accepted"] = object({{"accepted", kFlag}});
  out["Health"] = object({{"status", words({"ok", "unavailable"})}, {"detail", kText}});
  return out;
}

}  // namespace
}  // namespace schema_words

json refTo(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }

json listOf(const std::string& name, const json& more) {
  using namespace schema_words;
  auto out = object(
      {{"items", arrayOf(refTo(name))}, {"next", kText, kOptional}, {"total", kCount, kOptional}});
  for (const auto& [member, schema] : more.items()) {
    out["properties"][member] = schema;
    out["required"].push_back(member);
  }
  return out;
}

json listOf(const std::string& name) { return listOf(name, json::object()); }

const json& schemas() {
  static const json all = schema_words::makeSchemas();
  return all;
}

}  // namespace muster::api
