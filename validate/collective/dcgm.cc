// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/dcgm.h"

#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "base/json_problem.h"
#include "validate/collective/dcgm_text.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

namespace muster::collective {
namespace {

using nlohmann::json;

constexpr int kMostGpus = 1024;  ///< an id beyond that is none

DcgmStatus statusOf(const json& from) {
  auto word = from.is_object() && from.contains("status") && from["status"].is_string()
                  ? from["status"].get<std::string>()
                  : "";
  for (auto& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word == "pass") return DcgmStatus::Pass;
  if (word == "warn") return DcgmStatus::Warn;
  if (word == "skip" || word == "skipped") return DcgmStatus::Skip;
  if (word == "fail") return DcgmStatus::Fail;
  return DcgmStatus::Missing;  // "Not Run", and a word that nobody knows, is no pass
}

/// 4: a number; before: "0", or "0,1,2".
std::vector<int> idsOf(const json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= kMostGpus)
    return {value.get<int>()};
  std::vector<int> ids;
  if (!value.is_string()) return ids;
  std::istringstream list(value.get<std::string>());
  for (std::string one; std::getline(list, one, ',');) {
    int id = 0;
    const auto first = one.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    const auto read = std::from_chars(one.data() + first, one.data() + one.size(), id);
    if (read.ec == std::errc() && id >= 0 && id <= kMostGpus) ids.push_back(id);
  }
  return ids;
}

struct Warning {
  std::string text;
  int error_id = 0, severity = 0;
};
/// 4: objects; 3: objects or texts; 2: one text.
std::vector<Warning> warningsOf(const json& result) {
  std::vector<Warning> out;
  const auto add = [&out](const json& one) {
    if (one.is_string() && !one.get_ref<const std::string&>().empty())
      out.push_back({one.get<std::string>()});
    if (one.is_object())
      out.push_back(
          {textOf(one, "warning"), one.value("error_id", 0), one.value("error_severity", 0)});
  };
  const auto warnings = result.find("warnings");
  if (warnings == result.end() || warnings->is_null()) return out;
  if (warnings->is_array())
    for (const auto& one : *warnings) add(one);
  else
    add(*warnings);
  return out;
}

/// What a member says whose name is of errors ("runtime_error", "error", "errors", "error_id"),
/// where it says anything: releases differ in the word, and none of them says good news there.
std::string troubleIn(const json& from) {
  if (!from.is_object()) return {};
  for (const auto& [key, value] : from.items()) {
    auto name = key;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (!name.contains("error")) continue;
    const bool is_silent = value.is_null() || value == json(false) || value == json(0) ||
                           value == json("") || (value.is_structured() && value.empty());
    if (!is_silent)
      return fmt::format("{}: {}", key,
                         value.is_string() ? value.get<std::string>() : jsonText(value));
  }
  return {};
}

/// Whose result it is: of which GPUs, and in words.
struct Subject {
  std::vector<int> gpus;
  std::string entity;
};
Subject subjectOf(const json& result) {
  if (result.contains("entity_id")) {
    const auto group = textOf(result, "entity_group");
    return {group == "GPU" ? idsOf(result["entity_id"]) : std::vector<int>(),
            fmt::format("{} {}", group.empty() ? "entity" : group, jsonText(result["entity_id"]))};
  }
  for (const char* key : {"gpu_id", "gpu_ids"})
    if (result.contains(key)) {
      auto ids = idsOf(result[key]);
      auto entity = fmt::format("GPU {}", fmt::join(ids, ", "));
      return {std::move(ids), std::move(entity)};
    }
  return {};
}

using Serials = std::map<std::string, std::string>;

void takeResult(const std::string& test, const json& result, const Serials& serials,
                DcgmReport& report) {
  const auto subject = subjectOf(result);
  const auto status = statusOf(result);
  const auto warnings = warningsOf(result);
  // A pass with a warning is none: DCGM 4.5 passes a memory test that could not allocate memory.
  const bool is_doubtful = !warnings.empty() || !troubleIn(result).empty();
  const auto counts = status == DcgmStatus::Pass && is_doubtful ? DcgmStatus::Warn : status;
  const auto serial = serials.find(subject.entity);
  const bool is_known = serial != serials.end() && !serial->second.starts_with("<<<");
  DcgmFinding finding{test, subject.entity, is_known ? serial->second : "", counts,
                      std::string(said(counts))};
  const auto name = dcgmTestName(test);
  std::vector<std::optional<int>> of(subject.gpus.begin(), subject.gpus.end());
  if (of.empty()) of.push_back(std::nullopt);
  report.gpus.insert(subject.gpus.begin(), subject.gpus.end());
  if (warnings.empty() && is_doubtful) finding.text = troubleIn(result);
  if (!warnings.empty()) {
    finding.text = warnings.front().text.empty() ? finding.text : warnings.front().text;
    finding.error_id = warnings.front().error_id, finding.severity = warnings.front().severity;
  }
  addDcgmResult(report, {name, of.front(), counts}, finding);
  for (std::size_t i = 1; i < of.size(); ++i) report.results.push_back({name, of[i], counts});
  for (std::size_t i = 1; i < warnings.size(); ++i) {
    finding.text = warnings[i].text, finding.error_id = warnings[i].error_id;
    finding.severity = warnings[i].severity;
    report.findings.push_back(finding);
  }
}

void takeTest(const json& test, const Serials& serials, DcgmReport& report) {
  if (test.is_null()) return;  // the validation suite itself prints such between its tests
  const auto name = test.value("name", "a test without a name");
  const auto results = test.value("results", json::array()).get<json::array_t>();
  if (results.empty())
    report.findings.push_back({name, "", "", DcgmStatus::Missing, "it gave no result"});
  if (const auto summary = test.find("test_summary"); summary != test.end()) {
    const auto status = statusOf(*summary);
    const auto text = fmt::format("as a whole it {}", said(status));
    const bool optional = status == DcgmStatus::Skip && isOptionalDcgmTest(dcgmTestName(name));
    if (status != DcgmStatus::Pass && !optional)
      report.findings.push_back({name, "", "", status, text});
    for (const auto& warning : warningsOf(*summary))
      report.findings.push_back(
          {name, "", "", DcgmStatus::Warn, warning.text, warning.error_id, warning.severity});
  }
  for (const auto& result : results) takeResult(name, result, serials, report);
}

/// 4: groups of entities beside the diagnostic; before: lists in it.
Serials identify(const json& root, const json& diagnostic, DcgmReport& report) {
  Serials serials;
  std::size_t devices = 0;
  for (const auto& group : root.value("entity_groups", json::array()))
    for (const auto& entity : group.value("entities", json::array())) {
      if (!entity.contains("entity_id")) continue;
      const auto name = textOf(group, "entity_group");
      if (name == "GPU") {
        for (const int gpu : idsOf(entity["entity_id"])) report.gpus.insert(gpu);
        ++devices;
      }
      serials[fmt::format("{} {}", name, jsonText(entity["entity_id"]))] =
          textOf(entity, "serial_num");
    }
  if (const auto ids = diagnostic.find("GPU Device IDs");
      ids != diagnostic.end() && ids->is_array())
    devices = std::max(devices, ids->size());
  report.devices = std::max(report.devices, devices);
  if (const auto list = diagnostic.find("GPU Device Serials");
      list != diagnostic.end() && list->is_object())
    for (const auto& [gpu, serial] : list->items())
      if (serial.is_string()) serials["GPU " + gpu] = serial.get<std::string>();
  const auto metadata = root.value("metadata", json::object());
  for (const auto* from : {&metadata, &diagnostic}) {
    if (report.version.empty()) report.version = textOf(*from, "version");
    if (report.driver.empty()) report.driver = textOf(*from, "Driver Version Detected");
  }
  return serials;
}

Result<void> takeRun(const json& root, DcgmReport& report) {
  const char* const key =
      root.contains("DCGM Diagnostic") ? "DCGM Diagnostic" : "DCGM GPU Diagnostic";
  if (!root.is_object() || !root.contains(key) || !root[key].is_object())
    return fail(ErrorCode::Corrupt, "dcgmi printed no diagnostic as JSON");
  const auto& diagnostic = root[key];
  const auto serials = identify(root, diagnostic, report);
  for (const auto* from : {&root, &diagnostic}) {
    if (const auto text = textOf(*from, "Warning"); !text.empty())
      report.findings.push_back({"dcgmi diag", "", "", DcgmStatus::Fail, text});
    if (const auto text = troubleIn(*from); !text.empty())
      report.findings.push_back({"dcgmi diag", "", "", DcgmStatus::Fail, text});
    for (const auto& warning : warningsOf(*from))
      report.findings.push_back({"dcgmi diag", "", "", DcgmStatus::Warn, warning.text,
                                 warning.error_id, warning.severity});
  }
  for (const auto& category : diagnostic.value("test_categories", json::array()))
    for (const auto& test : category.value("tests", json::array())) takeTest(test, serials, report);
  return {};
}

Result<DcgmReport> readJson(const json& root) {
  DcgmReport report;
  if (root.contains("iterations")) {  // of --iterations: each of them counts
    if (!root["iterations"].is_array() || root["iterations"].empty())
      return fail(ErrorCode::Corrupt, "the diagnostic has no iteration");
    for (const auto& run : root["iterations"]) TRY_OK(takeRun(run, report));
    if (textOf(root, "Overall Result") != "Pass")
      report.findings.push_back(
          {"dcgmi diag", "", "", DcgmStatus::Fail, "not all iterations came to their end"});
  } else {
    TRY_OK(takeRun(root, report));
  }
  if (report.results.empty() && !report.findings.empty())
    return fail(ErrorCode::Unavailable, "dcgmi could not run: " + report.findings.front().text);
  if (report.results.empty()) return fail(ErrorCode::Corrupt, "the diagnostic names no test");
  return report;
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

std::string_view said(DcgmStatus status) {
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

void addDcgmResult(DcgmReport& report, DcgmResult result, DcgmFinding finding) {
  if (result.status == DcgmStatus::Pass)
    ++report.passed;
  else if (result.status == DcgmStatus::Skip && isOptionalDcgmTest(result.test))
    report.skipped.insert(result.test);
  else
    report.findings.push_back(std::move(finding));
  report.results.push_back(std::move(result));
}

Result<DcgmReport> parseDcgmDiag(std::string_view text) {
  const auto brace = text.find('{');
  const auto table = text.find("+-----");
  if (table != std::string_view::npos && table < brace) return parseDcgmTable(text);
  auto limits = kToolJson;
  limits.duplicates = DuplicateKeys::Refused;  // of "Fail" and "Pass" neither may win
  const auto parsed = parseJson(text.substr(std::min(text.size(), brace)), limits);
  if (!parsed || !parsed->is_object())
    return fail(ErrorCode::Corrupt, "dcgmi printed no diagnostic as JSON" +
                                        (parsed ? "" : ": " + parsed.error().text()));
  const auto& root = *parsed;
  try {
    return readJson(root);
  } catch (const json::exception& error) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the diagnostic's JSON has another shape: {}", jsonProblem(error)));
  }
}

}  // namespace muster::collective
