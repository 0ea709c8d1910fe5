// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/regression.h"

#include "base/json_input.h"
#include "inventory/model/node.h"
#include "inventory/model/rollout_policy.h"

#include <fmt/format.h>
#include <boost/math/distributions/students_t.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace muster::lifecycle {
namespace {

constexpr std::size_t kFewestNodes = 2;  ///< one difference has no scatter to evaluate it by

struct UnitRow {
  std::string_view suffix;
  Direction direction;
};
/// A measure whose unit is not here says nothing about speed.
constexpr std::array kUnits = std::to_array<UnitRow>({
    {"_gflops", Direction::HigherIsBetter},
    {"_tflops", Direction::HigherIsBetter},
    {"_gbits", Direction::HigherIsBetter},
    {"_gib_s", Direction::HigherIsBetter},
    {"_gb_s", Direction::HigherIsBetter},
    {"_mib_s", Direction::HigherIsBetter},
    {"_iops", Direction::HigherIsBetter},
    {"_seconds", Direction::LowerIsBetter},
    {"_ms", Direction::LowerIsBetter},
    {"_us", Direction::LowerIsBetter},
});

double lossPercent(double before, double after, Direction direction) {
  const double loss = direction == Direction::HigherIsBetter ? before - after : after - before;
  return 100 * loss / before;
}

void evaluate(Comparison& out, const std::vector<double>& losses) {
  const auto n = static_cast<double>(losses.size());
  out.nodes = losses.size();
  out.mean_loss_percent = std::accumulate(losses.begin(), losses.end(), 0.0) / n;
  if (losses.size() < kFewestNodes) return;
  double squares = 0;
  for (const double loss : losses)
    squares += (loss - out.mean_loss_percent) * (loss - out.mean_loss_percent);
  const double error_of_mean = std::sqrt(squares / (n - 1) / n);
  const double t =
      boost::math::quantile(boost::math::students_t(n - 1), out.confidence_percent / 100.0);
  out.least_loss_percent = out.mean_loss_percent - t * error_of_mean;
  out.most_loss_percent = out.mean_loss_percent + t * error_of_mean;
  if (out.least_loss_percent > out.tolerated_percent)
    out.verdict = RegressionVerdict::Slower;
  else if (out.most_loss_percent <= out.tolerated_percent)
    out.verdict = RegressionVerdict::Holds;
}

void take(const nlohmann::json& values, Measures& out) {
  if (!values.is_object()) return;
  for (const auto& [name, value] : values.items()) {
    const auto direction = directionOf(name);
    if (!direction || !value.is_number()) continue;
    const double number = value.get<double>();
    if (!std::isfinite(number) || number <= 0) continue;
    const auto [known, fresh] = out.emplace(name, number);
    if (!fresh)
      known->second = *direction == Direction::HigherIsBetter ? std::min(known->second, number)
                                                              : std::max(known->second, number);
  }
}

}  // namespace

std::string_view toString(RegressionVerdict verdict) {
  switch (verdict) {
    case RegressionVerdict::Holds:
      return "holds";
    case RegressionVerdict::Slower:
      return "slower";
    case RegressionVerdict::Inconclusive:
      break;
  }
  return "inconclusive";
}

std::optional<Direction> directionOf(std::string_view measure) {
  for (const auto& row : kUnits)
    if (measure.ends_with(row.suffix)) return row.direction;
  return std::nullopt;
}

Measures measuresOf(const std::vector<Fact>& facts) {
  Measures out;
  for (const auto& fact : facts) {
    if (fact.evidence.find("\"values\"") == std::string::npos) continue;
    const auto evidence = jsonOrNone(fact.evidence, kKeptJson);
    const auto checks = evidence.is_object() ? evidence.find("results") : evidence.end();
    if (checks == evidence.end() || !checks->is_array()) continue;
    for (const auto& check : *checks)
      if (check.is_object() && check.contains("values")) take(check["values"], out);
  }
  return out;
}

std::string Comparison::text() const {
  const auto change =
      fmt::format("{}: {} of {:.1f} % on average over {} nodes", measure,
                  mean_loss_percent >= 0 ? "loss" : "gain", std::abs(mean_loss_percent), nodes);
  if (nodes < kFewestNodes)
    return fmt::format("{}; one node is too few to tell whether that is more than {:.0f} %", change,
                       tolerated_percent);
  switch (verdict) {
    case RegressionVerdict::Slower:
      return fmt::format(
          "{}; with {} % confidence the loss is at least {:.1f} %, and {:.0f} % is tolerated; the "
          "most, {:.1f} %, on {}",
          change, confidence_percent, least_loss_percent, tolerated_percent, worst_loss_percent,
          worst_node);
    case RegressionVerdict::Holds:
      return fmt::format(
          "{}; with {} % confidence the loss is at most {:.1f} %, and {:.0f} % is tolerated",
          change, confidence_percent, std::max(most_loss_percent, 0.0), tolerated_percent);
    case RegressionVerdict::Inconclusive:
      break;
  }
  return fmt::format(
      "{}; too few nodes for so much scatter: with {} % confidence it is between {:.1f} and {:.1f} "
      "%, and {:.0f} % is tolerated; "
      "the most, {:.1f} %, on {}",
      change, confidence_percent, least_loss_percent, most_loss_percent, tolerated_percent,
      worst_loss_percent, worst_node);
}

std::vector<Comparison> compareMeasures(const std::vector<NodeMeasures>& nodes,
                                        const inventory::RegressionRule& rule) {
  std::map<std::string, std::vector<std::pair<double, std::string>>> losses;
  for (const auto& node : nodes)
    for (const auto& [name, before] : node.before)
      if (const auto after = node.after.find(name); after != node.after.end() && before > 0)
        if (const auto direction = directionOf(name))
          losses[name].emplace_back(lossPercent(before, after->second, *direction),
                                    node.node.str());
  std::vector<Comparison> out;
  for (const auto& [name, all] : losses) {
    Comparison comparison;
    comparison.measure = name;
    comparison.confidence_percent = rule.confidence_percent;
    comparison.tolerated_percent = directionOf(name) == Direction::HigherIsBetter
                                       ? rule.tolerated_percent
                                       : rule.tolerated_slower_percent;
    const auto worst = std::max_element(all.begin(), all.end());
    comparison.worst_loss_percent = worst->first;
    comparison.worst_node = worst->second;
    std::vector<double> numbers;
    for (const auto& [loss, node] : all) numbers.push_back(loss);
    evaluate(comparison, numbers);
    out.push_back(std::move(comparison));
  }
  return out;
}

nlohmann::json toJson(const Comparison& c) {
  nlohmann::json out = {{"measure", c.measure},
                        {"nodes", c.nodes},
                        {"verdict", toString(c.verdict)},
                        {"mean_loss_percent", c.mean_loss_percent},
                        {"tolerated_percent", c.tolerated_percent},
                        {"confidence_percent", c.confidence_percent},
                        {"worst_node", c.worst_node},
                        {"worst_loss_percent", c.worst_loss_percent},
                        {"text", c.text()}};
  if (c.nodes >= kFewestNodes)
    out.update(
        {{"least_loss_percent", c.least_loss_percent}, {"most_loss_percent", c.most_loss_percent}});
  return out;
}

}  // namespace muster::lifecycle
