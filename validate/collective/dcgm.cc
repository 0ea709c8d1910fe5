// SPDX-License-Identifier: Apache-2.0
// Source: the JSON that DCGM 4's `dcgmi diag -j` writes (dcgmi's DiagResponse).
#include "validate/collective/dcgm.h"

#include "base/json_input.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::collective {
namespace {

using nlohmann::json;

DcgmStatus statusOf(const json& from) {
  const auto word = from.is_object() ? from.value("status", "") : "";
  if (word == "Pass" || word == "PASS") return DcgmStatus::Pass;
  if (word == "Warn" || word == "WARN") return DcgmStatus::Warn;
  if (word == "Skip" || word == "SKIP") return DcgmStatus::Skip;
  if (word == "Fail" || word == "FAIL") return DcgmStatus::Fail;
  return DcgmStatus::Missing;  // a word that nobody knows is no pass
}

std::map<std::string, std::string> serialsOf(const json& root) {
  std::map<std::string, std::string> serials;
  for (const auto& group : root.value("entity_groups", json::array()))
    for (const auto& entity : group.value("entities", json::array()))
      if (entity.contains("entity_id") && entity.contains("serial_num"))
        serials[fmt::format("{} {}", group.value("entity_group", ""),
                            jsonText(entity["entity_id"]))] = entity.value("serial_num", "");
  return serials;
}

const char* said(DcgmStatus status) {
  switch (status) {
    case DcgmStatus::Pass:
      return "passed";
    case DcgmStatus::Warn:
      return "warned";
    case DcgmStatus::Fail:
      return "failed";
    case DcgmStatus::Skip:
      return "was skipped";
    case DcgmStatus::Missing:
      return "gave no result";
  }
  return "gave no result";
}

void read(const json& test, const std::map<std::string, std::string>& serials, DcgmReport& report) {
  const auto name = test.value("name", "a test without a name");
  const auto results = test.value("results", json::array());
  if (results.empty())
    report.findings.push_back({name, "", "", DcgmStatus::Missing, "it gave no result"});
  if (const auto summary = test.find("test_summary");
      summary != test.end() && statusOf(*summary) != DcgmStatus::Pass)
    report.findings.push_back({name, "", "", statusOf(*summary),
                               fmt::format("as a whole it {}", said(statusOf(*summary)))});
  for (const auto& result : results) {
    const auto entity =
        fmt::format("{} {}", result.value("entity_group", "entity"),
                    result.contains("entity_id") ? jsonText(result["entity_id"]) : "?");
    const auto status = statusOf(result);
    const auto warnings = result.value("warnings", json::array());
    const auto serial = serials.find(entity);
    DcgmFinding finding{name, entity, serial == serials.end() ? "" : serial->second, status,
                        said(status)};
    if (status == DcgmStatus::Pass && warnings.empty()) {
      ++report.passed;
      continue;
    }
    if (warnings.empty()) report.findings.push_back(finding);
    for (const auto& warning : warnings) {
      finding.text = warning.value("warning", said(status)),
      finding.error_id = warning.value("error_id", 0),
      finding.severity = warning.value("error_severity", 0);
      if (status == DcgmStatus::Pass) finding.status = DcgmStatus::Warn;
      report.findings.push_back(finding);
    }
  }
}

}  // namespace

std::string_view DcgmFinding::action() const {
  constexpr std::string_view kActions[] = {"none",
                                           "monitor",
                                           "isolate the node",
                                           "unknown: look at the text",
                                           "triage: run long burn-in",
                                           "correct the configuration",
                                           "reset the GPU"};
  return severity >= 0 && severity < static_cast<int>(std::size(kActions)) ? kActions[severity]
                                                                           : kActions[3];
}

Result<DcgmReport> parseDcgmDiag(std::string_view text) {
  const auto root = jsonOrNone(text.substr(std::min(text.size(), text.find('{'))), kToolJson);
  if (!root.is_object() || !root.contains("DCGM Diagnostic"))
    return fail(ErrorCode::Corrupt, "dcgmi printed no diagnostic as JSON");
  DcgmReport report;
  try {
    const auto serials = serialsOf(root);
    const auto metadata = root.value("metadata", json::object());
    report.version = metadata.value("version", ""),
    report.driver = metadata.value("Driver Version Detected", "");
    for (const auto& category : root["DCGM Diagnostic"].value("test_categories", json::array()))
      for (const auto& test : category.value("tests", json::array())) read(test, serials, report);
  } catch (const json::exception& error) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the diagnostic's JSON has another shape: {}", error.what()));
  }
  if (report.passed == 0 && report.findings.empty())
    return fail(ErrorCode::Corrupt, "the diagnostic names no test");
  return report;
}

}  // namespace muster::collective
