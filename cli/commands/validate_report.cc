// SPDX-License-Identifier: Apache-2.0
// validate report, validate baseline: from the measurements of the site's store; no node is asked.
#include "app/nodes/measurements.h"
#include "app/site/output_file.h"
#include "app/site/site_records.h"
#include "base/json_output.h"
#include "base/printable.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/validate.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

using app::MeasuredFleet;
using app::ReportFormat;

constexpr std::size_t kShown = 40;  ///< alarms on the screen

std::vector<std::pair<ReportFormat, std::filesystem::path>> filesOf(
    const ValidateReportArgs& args) {
  std::vector<std::pair<ReportFormat, std::filesystem::path>> out;
  for (const auto& [format, file] :
       {std::pair(ReportFormat::Html, &args.html), std::pair(ReportFormat::Json, &args.json),
        std::pair(ReportFormat::Junit, &args.junit)})
    if (!file->empty()) out.emplace_back(format, *file);
  return out;
}

/// Of a server, where one serves the site. Says on standard error what could not be used.
Result<MeasuredFleet> measure(const app::Options& options, const app::MeasurementsRequest& request,
                              const std::vector<ReportFormat>& formats) {
  TRY(site, askedSite(options));
  auto measured = site->records().measurements(request, formats);
  if (measured && !measured->left_out.empty())
    std::cerr << measured->left_out << "; the report is made without it\n";
  return measured;
}

void print(const MeasuredFleet& measured) {
  std::cout << fmt::format(
      "{} measurements of {} nodes, {} comparisons; about {} false alarms are to be expected\n",
      measured.numbers, measured.nodes, measured.comparisons,
      validate::report::shortNumber(measured.false_alarms));
  constexpr auto kBits = validate::history::AlarmKind::Bits;
  for (std::size_t i = 0; i < std::min(kShown, measured.alarms.size()); ++i) {
    const auto& alarm = measured.alarms[i];
    const auto sigmas = alarm.kind == toString(kBits)
                            ? std::string()
                            : fmt::format(" ({:.1f} σ, limit {:.1f})", alarm.sigmas, alarm.limit);
    std::cout << fmt::format("{:<13}{}{}\n", printable(alarm.kind), printable(alarm.text), sigmas);
  }
  if (measured.alarms.size() > kShown)
    std::cout << fmt::format("… and {} more\n", measured.alarms.size() - kShown);
  if (!measured.not_said.empty()) std::cout << printable(measured.not_said) << '\n';
  if (measured.alarms.empty())
    std::cout
        << (measured.numbers == 0
                ? "nothing has been measured yet: gates and `muster validate isolate` measure\n"
            : measured.comparisons == 0 ? "nothing was compared: this says nothing about any node\n"
                                        : "everything that was evaluated is like its peers\n");
}

}  // namespace

int validateReport(const app::Options& options, const ValidateReportArgs& args) {
  const auto files = filesOf(args);
  std::vector<ReportFormat> formats;
  for (const auto& [format, file] : files) formats.push_back(format);
  if (options.json && args.json.empty()) formats.push_back(ReportFormat::Json);
  const auto measured = measure(options, args.request, formats);
  if (!measured) return report(measured.error());
  for (const auto& [format, file] : files)
    if (const auto written = app::writeOutputFile(options, file, measured->documents.at(format));
        !written)
      return report(written.error());
  if (options.json)
    std::cout << measured->documents.at(ReportFormat::Json);
  else
    print(*measured);
  return measured->alarms.empty() ? kOk : kFailed;
}

int validateBaseline(const app::Options& options, const app::MeasurementsRequest& request) {
  const auto measured = measure(options, request, {});
  if (!measured) return report(measured.error());
  if (options.json) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& group : measured->typical)
      out.push_back({{"sku", group.sku},
                     {"metric", group.metric},
                     {"median", group.median},
                     {"sigma", group.sigma},
                     {"values", group.values},
                     {"source", "learned from this fleet's history"}});
    std::cout << jsonText(out, 2) << '\n';
    return kOk;
  }
  std::cout << fmt::format(
      "learned from this fleet's last {} days, not from a vendor: what is typical here may still "
      "be "
      "bad\n",
      request.days);
  std::cout << fmt::format("{:<34}{:<40}{:>8}{:>12}{:>12}\n", "sku", "metric", "values", "median",
                           "σ");
  for (const auto& group : measured->typical)
    std::cout << fmt::format("{:<34}{:<40}{:>8}{:>12}{:>12}\n", group.sku, group.metric,
                             group.values, validate::report::shortNumber(group.median),
                             validate::report::shortNumber(group.sigma));
  return kOk;
}

}  // namespace muster::cli
