// SPDX-License-Identifier: Apache-2.0
// validate report, validate baseline: from the store's measurements alone; no node is asked.
#include "base/json_output.h"
#include "cli/commands/commands.h"
#include "cli/session.h"
#include "validate/checks/expectations.h"
#include "validate/report/report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

using validate::history::Statistics;

constexpr std::size_t kShown = 40;  ///< alarms on the screen
constexpr std::size_t kMaxEvidenceBytes = 512u << 20;

struct Measured {
  Statistics statistics;
  validate::report::Subject subject;
};

/// Of the newest isolation; none is no error.
std::optional<validate::report::Matrix> newestMatrix(const std::filesystem::path& state) {
  std::filesystem::path newest;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(state / "validation", none))
    if (const auto name = file.path().filename().string();
        name.starts_with("isolate-") && name.ends_with(".json"))
      if (newest.empty() ||
          std::pair(name.size(), name) >
              std::pair(newest.filename().string().size(), newest.filename().string()))
        newest = file.path();
  if (newest.empty()) return std::nullopt;
  const auto text = io::readFile(newest, kMaxEvidenceBytes);
  auto matrix = text ? validate::report::matrixOf(*text)
                     : Result<validate::report::Matrix>(fail(text.error()));
  if (!matrix) {
    std::cerr << fmt::format("{}: {}; the report is made without it\n", newest.string(),
                             matrix.error().str());
    return std::nullopt;
  }
  return std::move(*matrix);
}

/// A SKU is "profile, GPU model", or a profile alone.
std::string expectedOf(const std::string& sku) {
  const auto comma = sku.find(", ");
  if (comma == std::string::npos) return "the profile, and what needs no table";
  const auto* known = validate::Skus::builtIn().find(sku.substr(comma + 2));
  return known ? fmt::format("table row {}", known->name)
               : "no table knows these GPUs: learnt from this fleet";
}

Result<Measured> gather(const app::Options& options, const ValidateFlags& flags) {
  TRY(live, effectiveCluster(options));
  TRY(session, Session::openStored(options, std::move(live)));
  const auto now = session->controller->clock().now();
  TRY(sets, session->controller->measurements().since(now - std::chrono::hours(24) * flags.days));
  Measured out;
  out.statistics = validate::history::analyse(sets, {.false_alarms = flags.false_alarms});
  out.subject = {session->cluster().name, now, newestMatrix(options.state), {}};
  for (const auto& group : out.statistics.groups)
    out.subject.expected.try_emplace(group.sku, expectedOf(group.sku));
  return out;
}

Result<void> writeFiles(const Measured& measured, const ValidateFlags& flags) {
  if (!flags.html.empty())
    TRY_OK(io::writeFileAtomic(flags.html, toHtml(measured.statistics, measured.subject)));
  if (!flags.json.empty())
    TRY_OK(io::writeFileAtomic(flags.json, toJson(measured.statistics, measured.subject)));
  if (!flags.junit.empty())
    TRY_OK(io::writeFileAtomic(flags.junit, toJunit(measured.statistics, measured.subject)));
  return {};
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
  if (statistics.alarms.empty())
    std::cout
        << (statistics.numbers
                ? "everything that was judged is like its peers\n"
                : "nothing has been measured yet: gates and `muster validate isolate` measure\n");
}

}  // namespace

int validateReport(const app::Options& options, const ValidateFlags& flags) {
  const auto measured = gather(options, flags);
  if (!measured) return report(measured.error());
  if (const auto written = writeFiles(*measured, flags); !written) return report(written.error());
  if (options.json)
    std::cout << toJson(measured->statistics, measured->subject);
  else
    print(measured->statistics);
  return measured->statistics.alarms.empty() ? kOk : kFailed;
}

int validateBaseline(const app::Options& options, const ValidateFlags& flags) {
  const auto measured = gather(options, flags);
  if (!measured) return report(measured.error());
  if (options.json) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& group : measured->statistics.groups)
      out.push_back({{"sku", group.sku},
                     {"metric", group.metric},
                     {"median", group.median},
                     {"sigma", group.sigma},
                     {"values", group.latest.size()},
                     {"source", "learnt from this fleet's history"}});
    std::cout << jsonText(out, 2) << '\n';
    return kOk;
  }
  std::cout << fmt::format(
      "learnt from this fleet's last {} days, not from a vendor: what is typical here may still be "
      "bad\n",
      flags.days);
  std::cout << fmt::format("{:<34}{:<40}{:>8}{:>12}{:>9}\n", "sku", "metric", "values", "median",
                           "σ");
  for (const auto& group : measured->statistics.groups)
    std::cout << fmt::format("{:<34}{:<40}{:>8}{:>12}{:>9}\n", group.sku, group.metric,
                             group.latest.size(), validate::report::shortNumber(group.median),
                             validate::report::shortNumber(group.sigma));
  return kOk;
}

}  // namespace muster::cli
