// SPDX-License-Identifier: Apache-2.0
// validate report, validate baseline: from the store's measurements alone; no node is asked.
#include "app/nodes/measurements.h"
#include "app/site/output_file.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "cli/commands/validate.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

using validate::history::Statistics;

constexpr std::size_t kShown = 40;  ///< alarms on the screen

Result<void> writeFiles(const app::Options& options, const app::MeasurementsReport& measured,
                        const ValidateReportArgs& args) {
  if (!args.html.empty())
    TRY_OK(app::writeOutputFile(options, args.html, toHtml(measured.statistics, measured.subject)));
  if (!args.json.empty())
    TRY_OK(app::writeOutputFile(options, args.json, toJson(measured.statistics, measured.subject)));
  if (!args.junit.empty())
    TRY_OK(
        app::writeOutputFile(options, args.junit, toJunit(measured.statistics, measured.subject)));
  return {};
}

/// Says on standard error what could not be used.
Result<app::MeasurementsReport> measure(const app::Options& options,
                                        const app::MeasurementsRequest& request) {
  auto measured = app::reportMeasurements(options, request);
  if (measured && !measured->left_out.empty())
    std::cerr << measured->left_out << "; the report is made without it\n";
  return measured;
}

void print(const Statistics& statistics) {
  std::cout << fmt::format(
      "{} measurements of {} nodes, {} comparisons; about {} false alarms are to be expected\n",
      statistics.numbers, statistics.nodes.size(), statistics.comparisons,
      validate::report::shortNumber(statistics.policy.false_alarms));
  for (std::size_t i = 0; i < std::min(kShown, statistics.alarms.size()); ++i) {
    const auto& alarm = statistics.alarms[i];
    const auto sigmas = alarm.kind == validate::history::AlarmKind::Bits
                            ? std::string()
                            : fmt::format(" ({:.1f} σ, limit {:.1f})", alarm.sigmas, alarm.limit);
    std::cout << fmt::format("{:<12}{}{}\n", toString(alarm.kind),
                             validate::report::sentence(alarm), sigmas);
  }
  if (statistics.alarms.size() > kShown)
    std::cout << fmt::format("… and {} more\n", statistics.alarms.size() - kShown);
  if (const auto left_out = validate::report::leftOutText(statistics); !left_out.empty())
    std::cout << left_out << '\n';
  if (statistics.alarms.empty())
    std::cout
        << (statistics.numbers == 0
                ? "nothing has been measured yet: gates and `muster validate isolate` measure\n"
            : statistics.comparisons == 0
                ? "nothing was compared: this says nothing about any node\n"
                : "everything that was evaluated is like its peers\n");
}

}  // namespace

int validateReport(const app::Options& options, const ValidateReportArgs& args) {
  const auto measured = measure(options, args.request);
  if (!measured) return report(measured.error());
  if (const auto written = writeFiles(options, *measured, args); !written)
    return report(written.error());
  if (options.json)
    std::cout << toJson(measured->statistics, measured->subject);
  else
    print(measured->statistics);
  return measured->statistics.alarms.empty() ? kOk : kFailed;
}

int validateBaseline(const app::Options& options, const app::MeasurementsRequest& request) {
  const auto measured = measure(options, request);
  if (!measured) return report(measured.error());
  if (options.json) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& group : measured->statistics.groups)
      out.push_back({{"sku", group.sku},
                     {"metric", group.metric},
                     {"median", group.median},
                     {"sigma", group.sigma},
                     {"values", group.latest.size()},
                     {"source", "learned from this fleet's history"}});
    std::cout << jsonText(out, 2) << '\n';
    return kOk;
  }
  std::cout << fmt::format(
      "learned from this fleet's last {} days, not from a vendor: what is typical here may still "
      "be "
      "bad\n",
      request.days);
  std::cout << fmt::format("{:<34}{:<40}{:>8}{:>12}{:>9}\n", "sku", "metric", "values", "median",
                           "σ");
  for (const auto& group : measured->statistics.groups)
    std::cout << fmt::format("{:<34}{:<40}{:>8}{:>12}{:>9}\n", group.sku, group.metric,
                             group.latest.size(), validate::report::shortNumber(group.median),
                             validate::report::shortNumber(group.sigma));
  return kOk;
}

}  // namespace muster::cli
