// SPDX-License-Identifier: Apache-2.0
#include "validate/history/statistics.h"

#include "validate/history/fingerprint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace muster::validate::history {
namespace {

constexpr double kMadToSigma = 1.4826;
constexpr double kMedianWidth = 1.2533;  ///< σ of a median of n values: so many σ/√n
constexpr double kLeastSigma =
    0.0005;  ///< of the typical value: a scale of nothing would accuse the last digit
constexpr std::size_t kLeastRack = 3;  ///< nodes of a rack that speak for it
constexpr std::size_t kLeastRuns = 4;  ///< of a series, before its drift is looked at
constexpr std::size_t kTrendPoints = 40;
// How the budget is shared; the rest is drift's.
constexpr double kForNodes = 0.5, kForRacks = 0.125, kForDevices = 0.125, kForDrift = 0.25;

struct Word {
  std::string_view end;
  Better better;
};
constexpr std::array kWords{
    Word{"_gbits", Better::Higher},      Word{"_gflops", Better::Higher},
    Word{"_tflops", Better::Higher},     Word{"_gb_s", Better::Higher},
    Word{"_mb_s", Better::Higher},       Word{"_gib_s", Better::Higher},
    Word{"_tops", Better::Higher},       Word{"_iops", Better::Higher},
    Word{"_mhz", Better::Higher},        Word{"_seconds", Better::Lower},
    Word{"_ms", Better::Lower},          Word{"_us", Better::Lower},
    Word{"_ns", Better::Lower},          Word{"_c", Better::Lower},
    Word{"_errors", Better::Lower},      Word{"_replays", Better::Lower},
    Word{"bytes_per_s", Better::Higher}, Word{"_ber", Better::Lower},
};

double medianOf(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

struct Scale {
  double median = 0, sigma = 0;
};
Scale scaleOf(std::vector<double> values) {
  Scale out;
  out.median = medianOf(values);
  for (auto& value : values) value = std::abs(value - out.median);
  out.sigma = kMadToSigma * medianOf(values);
  return out;
}

std::string_view baseOf(std::string_view name) { return name.substr(0, name.rfind('@')); }
std::string_view deviceOf(std::string_view name) {
  const auto at = name.rfind('@');
  return at == std::string_view::npos ? std::string_view() : name.substr(at + 1);
}

double towardsBad(Better better, double sigmas) {
  return better == Better::Higher ? -sigmas : better == Better::Lower ? sigmas : std::abs(sigmas);
}

/// Noise has heavier tails than a normal distribution. How far they reach is seen on the good
/// sides, where nothing is wrong, of all metrics together: one metric has too few values to tell.
/// Its furthest value would do, but for a single one that was mismeasured; so the tail's own shape
/// (Hill's estimator) has a say too.
class Tail {
 public:
  /// Distances towards the good side of one group, in σ. A group of which many are far out is two
  /// populations, and no noise.
  void add(const std::vector<double>& good) {
    if (isMixed(good)) return;
    for (const double each : good)
      if (each > kNear) far_.push_back(each);
    count_ += good.size();
  }
  static bool isMixed(const std::vector<double>& good) {
    const auto far =
        std::count_if(good.begin(), good.end(), [](double each) { return each > kFar; });
    return static_cast<double>(far) > kMixedShare * static_cast<double>(good.size()) && far > 2;
  }
  /// Where one side of `comparisons` values is expected to hold `alarms` by noise alone; at least
  /// what a normal distribution says.
  double limit(double alarms, std::size_t comparisons) {
    const double normal =
        sigmasFor(alarms / static_cast<double>(std::max<std::size_t>(comparisons, 1)));
    std::sort(far_.rbegin(), far_.rend());
    const std::size_t k = std::min(far_.size(), std::max<std::size_t>(kFewestOfTail, count_ / 200));
    if (k < kFewestOfTail) return normal;
    double shape = 0;
    for (std::size_t i = 0; i + 1 < k; ++i)
      shape += std::log(far_[i] / far_[k - 1]) / static_cast<double>(k - 1);
    const double expected = static_cast<double>(k) / static_cast<double>(count_) *
                            static_cast<double>(comparisons) / 2;  // beyond the k-th, on one side
    return std::max(
        normal,
        std::min(far_.front(), far_[k - 1] * std::pow(std::max(expected / alarms, 1.0), shape)));
  }

 private:
  static constexpr double kNear = 1, kFar = 5, kMixedShare = 0.02;
  static constexpr std::size_t kFewestOfTail = 20;
  std::vector<double> far_;
  std::size_t count_ = 0;
};

std::vector<double> goodSide(Better better, const std::vector<double>& sigmas) {
  std::vector<double> good;
  if (better == Better::Unknown) return good;
  for (const double each : sigmas) good.push_back(-towardsBad(better, each));
  return good;
}

/// A group of two populations has its own limit: further out than its good side is.
double limitOf(double common, std::vector<double> good) {
  if (!Tail::isMixed(good)) return common;
  return std::max(common, *std::max_element(good.begin(), good.end()));
}

struct Value {
  WallTime at;
  double number;
};
struct Series {
  std::string subject, node, rack, device;
  std::vector<Value> values;  ///< in time
};
struct Gathered {
  std::vector<Series> series;
  std::unordered_map<std::string, std::size_t> index;  ///< by subject
};
using Groups = std::map<std::pair<std::string, std::string>, Gathered>;  // (sku, metric)

/// Two million numbers have few names: where a name belongs is looked up once.
Groups gather(const std::vector<lifecycle::MeasuredSet>& sets, std::size_t& numbers) {
  struct Slot {
    Gathered* group;
    std::string device;
  };
  Groups groups;
  std::unordered_map<std::string, std::unordered_map<std::string, Slot>>
      slots;  // by SKU, then name
  for (const auto& set : sets) {
    auto& of_sku = slots[set.sku];
    for (const auto& [name, number] : set.numbers) {
      ++numbers;
      auto slot = of_sku.find(name);
      if (slot == of_sku.end())
        slot = of_sku
                   .emplace(name, Slot{&groups[{set.sku, std::string(baseOf(name))}],
                                       std::string(deviceOf(name))})
                   .first;
      auto& [group, device] = slot->second;
      const auto [known, fresh] = group->index.try_emplace(
          device.empty() ? set.node.str() : set.node.str() + "@" + device, group->series.size());
      if (fresh) group->series.push_back({known->first, set.node.str(), set.rack, device, {}});
      auto& series = group->series[known->second];
      if (series.rack != set.rack) series.rack = set.rack;
      series.values.push_back({set.at, number});
    }
  }
  return groups;
}

std::vector<TrendPoint> trendOf(const Gathered& gathered, WallTime from, WallTime to) {
  const auto span = std::max<std::int64_t>((to - from).count(), 1);
  std::vector<std::vector<double>> buckets(kTrendPoints);
  for (const auto& series : gathered.series)
    for (const auto& value : series.values)
      buckets[std::min(kTrendPoints - 1,
                       static_cast<std::size_t>((value.at - from).count() *
                                                static_cast<std::int64_t>(kTrendPoints) / span))]
          .push_back(value.number);
  std::vector<TrendPoint> out;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    auto& values = buckets[b];
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
      return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
    };
    out.push_back({from + std::chrono::milliseconds(span * static_cast<std::int64_t>(2 * b + 1) /
                                                    static_cast<std::int64_t>(2 * kTrendPoints)),
                   at(0.1), at(0.5), at(0.9), values.size()});
  }
  return out;
}

/// The change of one series: the mean of its newest third against that of the rest, relative to the
/// group's median.
std::optional<double> changeOf(const Series& series, double median) {
  const auto& values = series.values;
  if (values.size() < kLeastRuns || median == 0) return std::nullopt;
  const std::size_t recent = std::max<std::size_t>(2, values.size() / 3),
                    earlier = values.size() - recent;
  double before = 0, after = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    (i < earlier ? before : after) += values[i].number;
  return (after / static_cast<double>(recent) - before / static_cast<double>(earlier)) /
         std::abs(median);
}

std::vector<double> newestOf(const Gathered& gathered) {
  std::vector<double> out;
  out.reserve(gathered.series.size());
  for (const auto& series : gathered.series) out.push_back(series.values.back().number);
  return out;
}
double medianOfNewest(const Gathered& gathered) {
  auto values = newestOf(gathered);
  return medianOf(values);
}

struct Changes {
  std::vector<double> values;
  std::vector<const Series*> of;
};
Changes changesOf(const Gathered& gathered, double median) {
  Changes out;
  for (const auto& series : gathered.series)
    if (const auto change = changeOf(series, median))
      out.values.push_back(*change), out.of.push_back(&series);
  return out;
}

/// Values as distances from their median, in robust σ; never finer than a σ of kLeastSigma of what
/// they are relative to.
struct Scaled {
  double median = 0, sigma = 0;
  std::vector<double> sigmas;
};
Scaled scaled(const std::vector<double>& values, std::optional<double> relative_to = std::nullopt) {
  const auto scale = scaleOf(values);
  Scaled out{scale.median,
             std::max(scale.sigma, kLeastSigma * std::abs(relative_to.value_or(scale.median))),
             {}};
  out.sigmas.reserve(values.size());
  for (const double value : values)
    out.sigmas.push_back(out.sigma > 0 ? (value - out.median) / out.sigma : 0);
  return out;
}

class Analysis {
 public:
  Analysis(Statistics& out, const Groups& groups) : out_(out), groups_(groups) {
    countComparisons();
    Tail values, drifts;
    for (const auto& [key, gathered] : groups_) {
      const auto better = betterOf(key.second);
      if (gathered.series.size() < out_.policy.least_group || isFingerprint(key.second)) continue;
      values.add(goodSide(better, scaled(newestOf(gathered)).sigmas));
      if (const auto changes = changesOf(gathered, medianOfNewest(gathered)).values;
          changes.size() >= out_.policy.least_group)
        drifts.add(goodSide(better, scaled(changes, 1).sigmas));
    }
    node_limit_ = values.limit(out_.policy.false_alarms * kForNodes, values_);
    drift_limit_ = drifts.limit(out_.policy.false_alarms * kForDrift, drifts_);
  }

  void run() {
    for (const auto& [key, gathered] : groups_)
      if (isFingerprint(key.second))
        evaluateBits(key.first, key.second, gathered);
      else
        evaluate(key.first, key.second, gathered);
    const auto urgency = [](const Alarm& alarm) {
      return alarm.kind == AlarmKind::Bits ? std::numeric_limits<double>::infinity()
                                           : alarm.sigmas / alarm.limit;
    };
    std::stable_sort(out_.alarms.begin(), out_.alarms.end(),
                     [&urgency](const auto& x, const auto& y) { return urgency(x) > urgency(y); });
    for (auto& [ignored, node] : nodes_) out_.nodes.push_back(std::move(node));
    std::sort(out_.nodes.begin(), out_.nodes.end(), [](const auto& x, const auto& y) {
      return std::tie(x.rack, x.node) < std::tie(y.rack, y.node);
    });
  }

 private:
  void countComparisons() {
    for (const auto& [key, gathered] : groups_) {
      if (isFingerprint(key.second)) continue;
      std::set<std::string> racks, devices;
      const auto sides = betterOf(key.second) == Better::Unknown ? 2u : 1u;
      for (const auto& series : gathered.series) {
        racks.insert(series.rack), devices.insert(series.device);
        drifts_ += series.values.size() >= kLeastRuns ? sides : 0;
      }
      if (gathered.series.size() < out_.policy.least_group) continue;
      values_ += gathered.series.size() * sides;
      racks_ += racks.size() * sides, devices_ += devices.size() * sides;
    }
    out_.comparisons = values_ + racks_ + devices_ + drifts_;
  }
  double limitFor(double share, std::size_t comparisons) const {
    return sigmasFor(out_.policy.false_alarms * share /
                     static_cast<double>(std::max<std::size_t>(comparisons, 1)));
  }

  void evaluate(const std::string& sku, const std::string& metric, const Gathered& gathered) {
    Group group{.sku = sku, .metric = metric, .better = betterOf(metric)};
    const auto values = newestOf(gathered);
    for (const auto& series : gathered.series)
      group.latest.emplace_back(series.subject, series.values.back().number);
    std::sort(group.latest.begin(), group.latest.end(),
              [](const auto& x, const auto& y) { return x.second < y.second; });
    group.trend = trendOf(gathered, out_.from, out_.to);
    const auto all = scaled(values);
    group.median = all.median, group.sigma = all.sigma;
    group.evaluated = values.size() >= out_.policy.least_group && group.sigma > 0;
    if (group.evaluated) {
      evaluateNodes(group, gathered, all.sigmas);
      evaluatePlaces(group, gathered, AlarmKind::Rack);
      evaluatePlaces(group, gathered, AlarmKind::Device);
      evaluateDrift(group, gathered);
    } else {
      for (const auto& series : gathered.series) note(series, group, 0);
    }
    out_.groups.push_back(std::move(group));
  }

  /// All must be equal. When most are, the others are wrong; when none are most, it is only known
  /// that somebody is.
  void evaluateBits(const std::string& sku, const std::string& metric, const Gathered& gathered) {
    std::map<double, std::size_t> counts;
    for (const auto& series : gathered.series) ++counts[series.values.back().number];
    const auto most =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& x, const auto& y) { return x.second < y.second; });
    const bool agreed = 2 * most->second > gathered.series.size();
    for (const auto& series : gathered.series) {
      auto& node = nodes_[series.node];
      if (node.node.empty()) node = {.node = series.node, .rack = series.rack, .sku = sku};
      if (counts.size() == 1 || (agreed && series.values.back().number == most->first)) continue;
      node.alarmed = true;
      out_.alarms.push_back({.kind = AlarmKind::Bits,
                             .sku = sku,
                             .metric = metric,
                             .subject = series.subject,
                             .value = series.values.back().number,
                             .typical = most->first,
                             .others = agreed ? most->second : 0});
    }
  }

  void evaluateNodes(Group& group, const Gathered& gathered, const std::vector<double>& sigmas) {
    group.limit = limitOf(node_limit_, goodSide(group.better, sigmas));
    for (std::size_t i = 0; i < sigmas.size(); ++i) {
      const auto& series = gathered.series[i];
      const double bad = towardsBad(group.better, sigmas[i]);
      note(series, group, bad);
      if (raise({AlarmKind::Node, group.sku, group.metric, series.subject,
                 series.values.back().number, group.median, bad, group.limit}))
        nodes_.at(series.node).alarmed = true;
    }
  }

  /// Medians of racks, or of devices of the same name, against each other. Racks differ a little by
  /// themselves; so their own spread counts.
  void evaluatePlaces(const Group& group, const Gathered& gathered, AlarmKind kind) {
    std::map<std::string, std::vector<double>> places;
    for (const auto& series : gathered.series)
      if (const auto& place = kind == AlarmKind::Rack ? series.rack : series.device; !place.empty())
        places[place].push_back(series.values.back().number);
    std::erase_if(places, [](const auto& each) { return each.second.size() < kLeastRack; });
    if (places.size() < 2) return;
    std::vector<double> medians;
    std::vector<std::pair<std::string, std::size_t>> names;
    for (auto& [place, values] : places)
      names.emplace_back(place, values.size()), medians.push_back(medianOf(values));
    const auto spread = scaleOf(medians);
    for (std::size_t i = 0; i < medians.size(); ++i) {
      const double own =
          kMedianWidth * group.sigma / std::sqrt(static_cast<double>(names[i].second));
      const double sigma =
          std::max(own, names.size() >= out_.policy.least_group ? spread.sigma : 0);
      const double bad = towardsBad(group.better, (medians[i] - spread.median) / sigma);
      raise({kind, group.sku, group.metric, names[i].first, medians[i], spread.median, bad,
             limitFor(kind == AlarmKind::Rack ? kForRacks : kForDevices,
                      kind == AlarmKind::Rack ? racks_ : devices_)});
    }
  }

  /// A series drifts when it changes otherwise than its like: what moves all of them is the fleet's
  /// drift.
  void evaluateDrift(const Group& group, const Gathered& gathered) {
    const auto changes = changesOf(gathered, group.median);
    if (changes.values.size() < out_.policy.least_group) return;
    const auto all = scaled(changes.values, 1);
    const double limit = limitOf(drift_limit_, goodSide(group.better, all.sigmas));
    for (std::size_t i = 0; i < changes.values.size(); ++i)
      raise({AlarmKind::Drift, group.sku, group.metric, changes.of[i]->subject,
             group.median * (1 + changes.values[i] - all.median), group.median,
             towardsBad(group.better, all.sigmas[i]), limit});
    const double width =
        kMedianWidth * all.sigma / std::sqrt(static_cast<double>(changes.values.size()));
    raise({AlarmKind::FleetDrift, group.sku, group.metric, group.sku,
           group.median * (1 + all.median), group.median,
           towardsBad(group.better, all.median / width), limit});
  }

  bool raise(Alarm alarm) {
    if (!(alarm.sigmas > alarm.limit) || std::abs(alarm.change()) < out_.policy.least_effect)
      return false;
    out_.alarms.push_back(std::move(alarm));
    return true;
  }

  void note(const Series& series, const Group& group, double bad) {
    auto& node = nodes_[series.node];
    if (node.node.empty()) node = {.node = series.node, .rack = series.rack, .sku = group.sku};
    node.rack = series.rack;
    if (const double share = group.limit > 0 ? bad / group.limit : 0; share > node.share)
      node.worst = bad, node.share = share, node.metric = group.metric;
  }

  Statistics& out_;
  const Groups& groups_;
  std::size_t values_ = 0, racks_ = 0, devices_ = 0, drifts_ = 0;
  double node_limit_ = 0, drift_limit_ = 0;
  std::unordered_map<std::string, Statistics::NodeState> nodes_;
};

}  // namespace

std::string_view toString(AlarmKind kind) {
  switch (kind) {
    case AlarmKind::Bits:
      return "bits";
    case AlarmKind::Node:
      return "node";
    case AlarmKind::Rack:
      return "rack";
    case AlarmKind::Device:
      return "device";
    case AlarmKind::Drift:
      return "drift";
    case AlarmKind::FleetDrift:
      return "fleet-drift";
  }
  return "?";
}

Better betterOf(std::string_view metric) {
  metric = baseOf(metric);
  for (const auto& word : kWords)
    if (metric.ends_with(word.end)) return word.better;
  return Better::Unknown;
}

double sigmasFor(double probability) {
  double low = 0, high = 12;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(middle / std::sqrt(2.0)) > probability ? low : high) = middle;
  }
  return high;
}

Statistics analyse(const std::vector<lifecycle::MeasuredSet>& sets, const Policy& policy) {
  Statistics out;
  out.policy = policy;
  out.sets = sets.size();
  if (sets.empty()) return out;
  out.from = sets.front().at, out.to = sets.back().at;
  const auto groups = gather(sets, out.numbers);
  Analysis(out, groups).run();
  return out;
}

}  // namespace muster::validate::history
