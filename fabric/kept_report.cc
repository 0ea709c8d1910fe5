// SPDX-License-Identifier: Apache-2.0
#include "fabric/kept_report.h"

#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"

namespace muster::fabric {
namespace {

constexpr std::size_t kMaxReportBytes = 256u << 20;

std::filesystem::path fileOf(const std::filesystem::path& run_folder, KeptReportKind kind) {
  return run_folder / (kind == KeptReportKind::Diff ? "last-diff.json" : "last-health.json");
}

}  // namespace

Result<void> keepReport(const std::filesystem::path& run_folder, KeptReportKind kind, WallTime at,
                        std::string_view report_json) {
  TRY(report, parseJson(report_json, kKeptJson));
  TRY_OK(io::makeDirs(run_folder, 0700));
  return io::writeFileAtomic(
      fileOf(run_folder, kind),
      jsonText(nlohmann::json{{"at", muster::toString(at)}, {"report", std::move(report)}}), 0600);
}

std::optional<KeptReport> keptReport(const std::filesystem::path& run_folder, KeptReportKind kind) {
  const auto text = io::readFile(fileOf(run_folder, kind), kMaxReportBytes);
  if (!text) return std::nullopt;
  auto json = jsonOrNone(*text, kKeptJson);
  if (!json.is_object() || !json.contains("report") || !json["report"].is_object() ||
      !json.contains("at") || !json["at"].is_string())
    return std::nullopt;
  const auto at = parseWallTime(json["at"].get<std::string>());
  if (!at) return std::nullopt;
  return KeptReport{*at, std::move(json["report"])};
}

}  // namespace muster::fabric
