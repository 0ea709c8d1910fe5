// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/measurements.h"

#include "app/site/session.h"
#include "inventory/model/cluster.h"
#include "validate/checks/expectations.h"

#include <utility>

namespace muster::app {
namespace {

constexpr std::size_t kMaxEvidenceBytes = 512u << 20;

/// A SKU is "profile, GPU model", or a profile alone.
std::string expectedOf(const std::string& sku) {
  const auto comma = sku.find(", ");
  if (comma == std::string::npos) return "the profile, and what needs no table";
  const auto* known = validate::Skus::builtIn().find(sku.substr(comma + 2));
  return known ? fmt::format("table row {}", known->name)
               : "no table knows these GPUs: learned from this fleet";
}

}  // namespace

std::filesystem::path newestIsolation(const std::filesystem::path& state) {
  std::filesystem::path newest;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(state / "validation", none))
    if (const auto name = file.path().filename().string();
        name.starts_with("isolate-") && name.ends_with(".json"))
      if (newest.empty() ||
          std::pair(name.size(), name) >
              std::pair(newest.filename().string().size(), newest.filename().string()))
        newest = file.path();
  return newest;
}

Result<MeasurementsReport> reportMeasurements(const Options& options,
                                              const MeasurementsRequest& request) {
  TRY(live, effectiveCluster(options));
  TRY(session, Session::openStored(options, std::move(live)));
  const auto now = session->controller->clock().now();
  TRY(sets, session->controller->measurements().since(now - std::chrono::hours(24) * request.days));
  MeasurementsReport out;
  out.statistics = validate::history::analyse(std::move(sets),
                                              {.false_alarms = request.false_alarms, .now = now});
  out.subject = {session->cluster().name, now, std::nullopt, {}};
  if (const auto file = newestIsolation(options.state); !file.empty()) {
    const auto text = io::readFile(file, kMaxEvidenceBytes);
    auto matrix = text ? validate::report::matrixOf(*text)
                       : Result<validate::report::Matrix>(fail(text.error()));
    if (matrix)
      out.subject.matrix = std::move(*matrix);
    else
      out.left_out = fmt::format("{}: {}", file.string(), matrix.error().str());
  }
  for (const auto& group : out.statistics.groups)
    out.subject.expected.try_emplace(group.sku, expectedOf(group.sku));
  return out;
}

std::string toText(const MeasurementsReport& report, ReportFormat format) {
  switch (format) {
    case ReportFormat::Html:
      return toHtml(report.statistics, report.subject);
    case ReportFormat::Json:
      return toJson(report.statistics, report.subject);
    case ReportFormat::Junit:
      return toJunit(report.statistics, report.subject);
  }
  return {};
}

MeasuredFleet fleetOf(const MeasurementsReport& report) {
  const auto& statistics = report.statistics;
  MeasuredFleet out;
  out.numbers = statistics.numbers;
  out.nodes = statistics.nodes.size();
  out.comparisons = statistics.comparisons;
  out.false_alarms = statistics.policy.false_alarms;
  for (const auto& alarm : statistics.alarms)
    out.alarms.push_back({std::string(toString(alarm.kind)), validate::report::sentence(alarm),
                          alarm.sigmas, alarm.limit});
  for (const auto& group : statistics.groups)
    out.typical.push_back(
        {group.sku, group.metric, group.latest.size(), group.median, group.sigma});
  out.not_said = validate::report::leftOutText(report.statistics);
  out.left_out = report.left_out;
  return out;
}

Result<MeasuredFleet> measuredFleet(const Options& options, const MeasurementsRequest& request,
                                    const std::vector<ReportFormat>& formats) {
  TRY(report, reportMeasurements(options, request));
  auto out = fleetOf(report);
  for (const auto format : formats) out.documents.emplace(format, toText(report, format));
  return out;
}

}  // namespace muster::app
