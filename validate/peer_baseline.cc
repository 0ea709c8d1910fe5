// SPDX-License-Identifier: Apache-2.0
#include "validate/peer_baseline.h"

#include "validate/checks/burn_floors.h"
#include "validate/history/distribution.h"
#include "validate/history/fingerprint.h"
#include "validate/history/statistics.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace muster::validate {
namespace {

constexpr std::array<std::string_view, 3> kChecks{"gpu.burn/", "gpu.nccl-loopback/",
                                                  "gpu.nccl-tests/"};
constexpr std::string_view kBurn = "gpu.burn/", kPlain = "_plain_gflops";
constexpr std::size_t kMostNamed = 6;

std::string_view metricOf(std::string_view name) { return name.substr(0, name.find('@')); }

bool isEvaluated(std::string_view metric) {
  return std::any_of(kChecks.begin(), kChecks.end(),
                     [metric](auto check) { return metric.starts_with(check); }) &&
         history::betterOf(metric) == history::Better::Higher;
}

/// Of a model that the table knows: a rate of a burn without a floor there. The plain rate is for
/// the share that verifying costs.
bool isLeftToPeers(std::string_view model, std::string_view metric) {
  if (!isEvaluated(metric)) return false;
  if (!Skus::builtIn().find(model)) return true;
  return metric.starts_with(kBurn) && !metric.ends_with(kPlain) &&
         !hasBurnFloor(std::string(model), metric.substr(kBurn.size()));
}

/// Models of the table differ from good board to good board as their node's GPUs may.
double floorOf(const Baseline& baseline, std::string_view metric, bool is_known) {
  if (!is_known) return baseline.floor;
  return std::min(baseline.floor,
                  leastShareOfOthers(metric.substr(kBurn.size())) * baseline.median);
}

/// What more than half of all devices have; nodes without an agreement, or too few of them, say
/// nothing.
template <class Nodes>
std::optional<Baseline> agreed(const Nodes& nodes) {
  std::map<double, std::size_t> counts;
  std::size_t devices = 0;
  for (const auto& [node, newest] : nodes)
    for (const double value : newest.values) ++counts[value], ++devices;
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& x, const auto& y) { return x.second < y.second; });
  if (nodes.size() < kLeastSamples || most == counts.end() || 2 * most->second <= devices)
    return std::nullopt;
  Baseline baseline;
  baseline.samples = nodes.size(), baseline.median = baseline.floor = most->first;
  return baseline;
}

double medianOf(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::map<std::string, Baseline> peerBaselinesFrom(const std::vector<lifecycle::MeasuredSet>& sets,
                                                  std::string_view sku, const NodeName& but) {
  struct Newest {
    WallTime at{};
    std::vector<double> values;
  };
  std::map<std::string, std::map<NodeName, Newest>, std::less<>> metrics;
  for (const auto& set : sets) {
    if (set.sku != sku || set.node == but) continue;
    for (const auto& [name, value] : set.numbers) {
      const auto metric = metricOf(name);
      if (!(isEvaluated(metric) || history::isFingerprint(metric)) || !std::isfinite(value))
        continue;
      auto& newest = metrics[std::string(metric)][set.node];
      if (set.at > newest.at) newest = {set.at, {}};
      if (set.at == newest.at) newest.values.push_back(value);
    }
  }
  std::map<std::string, Baseline> baselines;
  for (auto& [metric, nodes] : metrics) {
    if (history::isFingerprint(metric)) {
      if (const auto same = agreed(nodes)) baselines.emplace(metric, *same);
      continue;
    }
    std::vector<double> values;
    for (auto& [node, newest] : nodes)
      if (!newest.values.empty()) values.push_back(medianOf(newest.values));
    // A median of a fleet of which half is slow would let the slow half pass.
    if (const auto two = history::populationsOf(values))
      std::erase_if(values, [&two](double value) { return two->isLow(value); });
    if (const auto baseline = baselineFrom(std::move(values))) baselines.emplace(metric, *baseline);
  }
  return baselines;
}

bool hasRatesForPeers(std::string_view model, const std::map<std::string, double>& numbers) {
  return !model.empty() && std::ranges::any_of(numbers, [model](const auto& number) {
    return isLeftToPeers(model, metricOf(number.first));
  });
}

std::optional<wire::CheckResult> evaluateByPeers(std::string_view model,
                                                 const std::map<std::string, double>& numbers,
                                                 const std::map<std::string, Baseline>& baselines) {
  if (!hasRatesForPeers(model, numbers)) return std::nullopt;
  const bool is_known = Skus::builtIn().find(model) != nullptr;
  std::vector<std::string> below;
  std::set<std::string> floors;
  std::size_t fewest = 0;
  for (const auto& [name, value] : numbers) {
    const auto metric = std::string(metricOf(name));
    const auto baseline = baselines.find(metric);
    if (!isLeftToPeers(model, metric) || baseline == baselines.end()) continue;
    fewest = fewest ? std::min(fewest, baseline->second.samples) : baseline->second.samples;
    const double floor = floorOf(baseline->second, metric, is_known);
    floors.insert(fmt::format("{} {:.4g}", metric, floor));
    if (!(value >= floor))
      below.push_back(
          fmt::format("{} is {:.4g}, others of its kind reach {:.4g}, {:.4g} is the least", name,
                      value, baseline->second.median, floor));
  }
  if (is_known && floors.empty()) return std::nullopt;
  wire::CheckResult result;
  result.id = std::string(kPeerBaselineCheck);
  result.status = below.empty() ? wire::CheckStatus::Pass : wire::CheckStatus::Fail;
  const auto why = is_known ? fmt::format("the table has no floor for some rates of {}", model)
                            : fmt::format("no table knows {}", model);
  if (floors.empty()) {
    result.text = fmt::format(
        "{}, and fewer than {} other nodes of its kind have been measured: its rates were not "
        "evaluated",
        why, kLeastSamples);
  } else if (below.empty()) {
    result.text =
        fmt::format("{}: compared with {} other nodes of its kind, which reached at least {}", why,
                    fewest, fmt::join(floors, ", "));
  } else {
    const auto more =
        below.size() > kMostNamed ? fmt::format("; and {} more", below.size() - kMostNamed) : "";
    below.resize(std::min(below.size(), kMostNamed));
    result.text = fmt::format("{}, so it is compared with {} other nodes of its kind: {}{}", why,
                              fewest, fmt::join(below, "; "), more);
  }
  return result;
}

bool hasBits(const std::map<std::string, double>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(),
                     [](const auto& each) { return history::isFingerprint(each.first); });
}

std::optional<wire::CheckResult> evaluateBits(const std::map<std::string, double>& numbers,
                                              const std::map<std::string, Baseline>& baselines) {
  std::vector<std::string> other;
  std::size_t compared = 0;
  for (const auto& [name, value] : numbers) {
    const auto metric = std::string(metricOf(name));
    const auto known = history::isFingerprint(metric) ? baselines.find(metric) : baselines.end();
    if (known == baselines.end()) continue;
    ++compared;
    if (value != known->second.median)
      other.push_back(fmt::format("{}: {:012x}, on {} other nodes of its kind {:012x}", name,
                                  static_cast<std::uint64_t>(value), known->second.samples,
                                  static_cast<std::uint64_t>(known->second.median)));
  }
  if (compared == 0) return std::nullopt;
  wire::CheckResult result;
  result.id = std::string(kBitsCheck);
  result.status = other.empty() ? wire::CheckStatus::Pass : wire::CheckStatus::Fail;
  result.text =
      other.empty()
          ? fmt::format("{} results have the same bits as those of other nodes of its kind",
                        compared)
          : fmt::format("{}", fmt::join(other, "; "));
  return result;
}

}  // namespace muster::validate
