// SPDX-License-Identifier: Apache-2.0
#include "validate/history/statistics.h"

#include "validate/history/distribution.h"
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

constexpr double kMedianWidth = 1.2533;  ///< σ of a median of n values: so many σ/√n
constexpr double kLeastSigma =
    0.0005;  ///< of the typical value: a scale of nothing would accuse the last digit
constexpr std::size_t kLeastRack = 3;  ///< nodes of a rack that speak for it
constexpr std::size_t kLeastRuns = 4;  ///< of a series, before its drift is looked at
constexpr std::size_t kTrendPoints = 40;
// How the budget is shared; the rest is drift's.
constexpr double kForNodes = 0.5, kForRacks = 0.125, kForDevices = 0.125, kForDrift = 0.25;

/// Two populations count when they are so far apart, a share of the greater, and when robust scales
/// are not those of the good one any more: a smaller worse part is named node by node.
constexpr double kLeastApart = 0.05, kLeastWorse = 0.25;
/// Robust σ of a rate, a share of its median: parts of one kind differ less.
constexpr double kWidest = 0.1;
constexpr std::size_t kLeastFalls = 2;  ///< of a series that is bad again and again
/// A fall is looked for in all of the past, so it must be further than noise reaches in a long one:
/// the budget's limit is that of the newest values alone.
constexpr double kLeastFallSigmas = 6;
constexpr double kGoodAgain = 0.5;  ///< of the limit: flicker around the limit is no fall
/// The controller's clock may have been so far ahead of the one that asks.
constexpr std::chrono::minutes kClocksApart{5};

struct Word {
  std::string_view end;
  Better better;
  /// A finer scale is none: the counts of a Poisson process around nothing differ by one; error
  /// rates are counted to about 1e-13 (validate/checks/gpu_nvlink_ber.cc accepts 1e-12).
  double least_sigma = 0;
};
constexpr std::array kWords{
    Word{"_gbits", Better::Higher},      Word{"_gflops", Better::Higher},
    Word{"_tflops", Better::Higher},     Word{"_gb_s", Better::Higher},
    Word{"_mb_s", Better::Higher},       Word{"_gib_s", Better::Higher},
    Word{"_tops", Better::Higher},       Word{"_iops", Better::Higher},
    Word{"_mhz", Better::Higher},        Word{"_seconds", Better::Lower},
    Word{"_ms", Better::Lower},          Word{"_us", Better::Lower},
    Word{"_ns", Better::Lower},          Word{"_c", Better::Lower},
    Word{"_errors", Better::Lower, 1},   Word{"_replays", Better::Lower, 1},
    Word{"bytes_per_s", Better::Higher}, Word{"_ber", Better::Lower, 1e-13},
};

std::string_view baseOf(std::string_view name) { return name.substr(0, name.rfind('@')); }
std::string_view deviceOf(std::string_view name) {
  const auto at = name.rfind('@');
  return at == std::string_view::npos ? std::string_view() : name.substr(at + 1);
}

/// Nothing: the unit is not known.
const Word* wordOf(std::string_view metric) {
  metric = baseOf(metric);
  const auto* found = std::ranges::find_if(
      kWords, [metric](const Word& word) { return metric.ends_with(word.end); });
  return found != kWords.end() ? found : nullptr;
}

double towardsBad(Better better, double sigmas) {
  return better == Better::Higher ? -sigmas : better == Better::Lower ? sigmas : std::abs(sigmas);
}

std::vector<double> goodSide(Better better, const std::vector<double>& sigmas) {
  std::vector<double> good;
  if (better == Better::Unknown) return good;
  for (const double each : sigmas) good.push_back(-towardsBad(better, each));
  return good;
}

/// A group of which many are far on the good side has its own limit: further out than that side is.
double limitOf(double common, std::vector<double> good) {
  if (!NoiseTail::isMixed(good)) return common;
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
Groups gather(const std::vector<lifecycle::MeasuredSet>& sets, Statistics& out) {
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
      if (!std::isfinite(number)) {
        ++out.no_numbers;
        continue;
      }
      ++out.numbers;
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
      return values[static_cast<std::size_t>(
          std::lround(share * static_cast<double>(values.size() - 1)))];
    };
    out.push_back({from + std::chrono::milliseconds(span * static_cast<std::int64_t>(2 * b + 1) /
                                                    static_cast<std::int64_t>(2 * kTrendPoints)),
                   at(0.1), at(0.5), at(0.9), values.size()});
  }
  return out;
}

/// So many of a series are its newest.
std::size_t recentOf(const Series& series) {
  return std::max<std::size_t>(2, series.values.size() / 3);
}

/// The change of one series: the mean of its newest third against that of the rest, relative to the
/// group's median.
std::optional<double> changeOf(const Series& series, double median) {
  const auto& values = series.values;
  if (values.size() < kLeastRuns || median == 0) return std::nullopt;
  const std::size_t recent = recentOf(series), earlier = values.size() - recent;
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

/// Values as distances from what is typical of their population, in robust σ.
struct Scaled {
  double median = 0, sigma = 0;  ///< of all
  std::vector<double> typical, sigmas;
  std::optional<Populations> populations;
};

/// Never finer than a σ of kLeastSigma of what they are relative to, nor than `least`.
Scaled scaled(const std::vector<double>& values, std::optional<double> relative_to, double least,
              std::optional<Populations> populations) {
  const auto floored = [&](Scale scale) {
    const double floor = kLeastSigma * std::abs(relative_to.value_or(scale.median));
    scale.sigma = std::max({scale.sigma, floor, least});
    return scale;
  };
  const auto all = floored(scaleOf(values));
  Scaled out{all.median, all.sigma, {}, {}, std::move(populations)};
  if (out.populations) {
    out.populations->low = floored(out.populations->low);
    out.populations->high = floored(out.populations->high);
    for (auto& part : out.populations->parts) part.scale = floored(part.scale);
  }
  out.typical.reserve(values.size()), out.sigmas.reserve(values.size());
  for (const double value : values) {
    const auto& own = out.populations ? out.populations->of(value) : all;
    out.typical.push_back(own.median);
    out.sigmas.push_back(own.sigma > 0 ? (value - own.median) / own.sigma : 0);
  }
  return out;
}

/// Whether the worse of two populations is too much of the group to be outliers of the better one.
bool areWorthAnAlarm(const Populations& two, Better better) {
  if (better == Better::Unknown) return false;
  const auto worse = static_cast<double>(better == Better::Higher ? two.below : two.above);
  return worse >= kLeastWorse * static_cast<double>(two.below + two.above);
}

bool areApart(const Populations& two) {
  const double most = std::max(std::abs(two.low.median), std::abs(two.high.median));
  return two.high.median - two.low.median >= kLeastApart * most;
}

Scaled scaledValues(std::string_view metric, const std::vector<double>& values) {
  const auto* word = wordOf(metric);
  const auto better = word ? word->better : Better::Unknown;
  const auto counts = [better](const Populations& two) {
    return areApart(two) && areWorthAnAlarm(two, better);
  };
  auto two = populationsOf(values);
  if (two && !counts(*two)) two.reset();
  if (!two && better != Better::Unknown) {  // the best place then, and all that are worse
    auto ways = placesOf(values);
    if (better == Better::Higher) std::ranges::reverse(ways);
    if (const auto way = std::ranges::find_if(ways, counts); way != ways.end()) two = *way;
  }
  return scaled(values, std::nullopt, word ? word->least_sigma : 0, std::move(two));
}

Scaled scaledChanges(const std::vector<double>& changes, Better better, double least_effect) {
  auto two = populationsOf(changes);
  if (two && (two->high.median - two->low.median < least_effect || !areWorthAnAlarm(*two, better)))
    two.reset();
  return scaled(changes, 1, 0, std::move(two));
}

/// What was typical at a time: of the stretch of the trend that is nearest, where it has enough
/// values to say so.
double typicalAt(const std::vector<TrendPoint>& trend, WallTime at, std::size_t least,
                 double otherwise) {
  const TrendPoint* nearest = nullptr;
  for (const auto& point : trend)
    if (point.count >= least &&
        (!nearest || std::chrono::abs(point.at - at) < std::chrono::abs(nearest->at - at)))
      nearest = &point;
  return nearest ? nearest->median : otherwise;
}

class Analysis {
 public:
  Analysis(Statistics& out, const Groups& groups) : out_(out), groups_(groups) {
    countComparisons();
    NoiseTail values, drifts;
    for (const auto& [key, gathered] : groups_) {
      const auto better = betterOf(key.second);
      if (gathered.series.size() < out_.policy.least_group || isFingerprint(key.second)) continue;
      values.add(goodSide(better, scaledValues(key.second, newestOf(gathered)).sigmas));
      if (const auto changes = changesOf(gathered, medianOfNewest(gathered)).values;
          changes.size() >= out_.policy.least_group)
        drifts.add(
            goodSide(better, scaledChanges(changes, better, out_.policy.least_effect).sigmas));
    }
    node_limit_ = values.limit(out_.policy.false_alarms * kForNodes, values_);
    drift_limit_ = drifts.limit(out_.policy.false_alarms * kForDrift, drifts_);
  }

  void run(const std::vector<lifecycle::MeasuredSet>& sets) {
    for (const auto& set : sets)  // also nodes of which nothing can be read
      nodes_.try_emplace(
          set.node.str(),
          Statistics::NodeState{.node = set.node.str(), .rack = set.rack, .sku = set.sku});
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
    if (out_.not_evaluated == out_.groups.size()) out_.comparisons = 0;
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
    const auto all = scaledValues(metric, values);
    group.median = all.median, group.sigma = all.sigma;
    group.evaluated = values.size() >= out_.policy.least_group && group.sigma > 0;
    if (group.evaluated && isTooWide(group, all)) {
      group.evaluated = false;  // nobody is like peers that are not like each other
      evaluateSpread(group, values.size());
      for (const auto& series : gathered.series) note(series, group, 0);
    } else if (group.evaluated) {
      evaluateNodes(group, gathered, all);
      if (all.populations) {
        evaluatePopulations(group, gathered, *all.populations);
      } else {  // places of two populations would only say so again
        evaluatePast(group, gathered);
        evaluatePlaces(group, gathered, AlarmKind::Rack);
        evaluatePlaces(group, gathered, AlarmKind::Device);
      }
      evaluateDrift(group, gathered);
    } else {
      ++out_.not_evaluated;
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

  void evaluateNodes(Group& group, const Gathered& gathered, const Scaled& newest) {
    group.limit = limitOf(node_limit_, goodSide(group.better, newest.sigmas));
    for (std::size_t i = 0; i < newest.sigmas.size(); ++i) {
      const auto& series = gathered.series[i];
      const double bad = towardsBad(group.better, newest.sigmas[i]);
      note(series, group, bad);
      if (raise({AlarmKind::Node, group.sku, group.metric, series.subject,
                 series.values.back().number, newest.typical[i], bad, group.limit}))
        nodes_.at(series.node).alarmed = true;
    }
  }

  static bool isTooWide(const Group& group, const Scaled& all) {
    return group.better == Better::Higher && !all.populations && group.median > 0 &&
           group.sigma > kWidest * group.median;
  }

  void evaluateSpread(const Group& group, std::size_t values) {
    (void)raise({.kind = AlarmKind::Spread,
                 .sku = group.sku,
                 .metric = group.metric,
                 .subject = group.sku,
                 .value = group.median - group.sigma,
                 .typical = group.median,
                 .sigmas = group.sigma / group.median,
                 .limit = kWidest,
                 .others = values});
  }

  /// Which half is right cannot be told from the numbers; which one is worse, can.
  void evaluatePopulations(const Group& group, const Gathered& gathered, const Populations& two) {
    const bool low_is_worse = group.better == Better::Higher;
    const auto &worse = low_is_worse ? two.low : two.high,
               &better = low_is_worse ? two.high : two.low;
    Alarm alarm{.kind = AlarmKind::Populations,
                .sku = group.sku,
                .metric = group.metric,
                .subject = group.sku,
                .value = worse.median,
                .typical = better.median,
                .sigmas = two.sigmas,
                .limit = kTwoPopulations,
                .others = low_is_worse ? two.above : two.below};
    for (const auto& series : gathered.series)
      if (two.isLow(series.values.back().number) == low_is_worse) {
        nodes_.at(series.node).alarmed = true;
        alarm.members.push_back(series.node);
      }
    (void)raise(std::move(alarm));
  }

  /// A series that is good now, and was bad again and again beside its peers of that time.
  void evaluatePast(const Group& group, const Gathered& gathered) {
    const double limit = std::max(group.limit, kLeastFallSigmas);
    for (const auto& series : gathered.series) {
      if (series.values.size() < kLeastRuns) continue;
      Alarm alarm{AlarmKind::Intermittent, group.sku, group.metric, series.subject, 0, 0, 0, limit};
      bool is_bad = false;
      for (const auto& value : series.values) {
        const double typical =
            typicalAt(group.trend, value.at, out_.policy.least_group, group.median);
        const double bad = towardsBad(group.better, (value.number - typical) / group.sigma);
        const bool is_far =
            bad > limit && std::abs(value.number - typical) >= kLeastApart * std::abs(typical);
        if (!is_bad && is_far) ++alarm.others;
        is_bad = is_far || (is_bad && bad > kGoodAgain * limit);
        if (bad > alarm.sigmas)
          alarm.sigmas = bad, alarm.value = value.number, alarm.typical = typical;
      }
      if (!is_bad && alarm.others >= kLeastFalls && raise(std::move(alarm)))
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
    const auto all = scaledChanges(changes.values, group.better, out_.policy.least_effect);
    const double limit = limitOf(drift_limit_, goodSide(group.better, all.sigmas));
    for (std::size_t i = 0; i < changes.values.size(); ++i)
      raise({AlarmKind::Drift, group.sku, group.metric, changes.of[i]->subject,
             group.median * (1 + changes.values[i] - all.typical[i]), group.median,
             towardsBad(group.better, all.sigmas[i]), limit});
    evaluateFleetDrift(group, changes, all, limit);
  }

  /// Of all, or of the part that has drifted where the others have not. What it was: the median of
  /// all but each series' newest third; what it is: of the newest.
  void evaluateFleetDrift(const Group& group, const Changes& changes, const Scaled& all,
                          double limit) {
    Alarm alarm{AlarmKind::FleetDrift, group.sku, group.metric, group.sku};
    std::vector<double> before, now;
    const bool low_is_worse = group.better == Better::Higher;
    for (std::size_t i = 0; i < changes.values.size(); ++i) {
      const auto& series = *changes.of[i];
      if (all.populations && all.populations->isLow(changes.values[i]) != low_is_worse) {
        ++alarm.others;
        continue;
      }
      if (all.populations) alarm.members.push_back(series.node);
      const auto earlier = series.values.size() - recentOf(series);
      for (std::size_t v = 0; v < earlier; ++v) before.push_back(series.values[v].number);
      now.push_back(series.values.back().number);
    }
    const auto& drifted = !all.populations ? Scale{all.median, all.sigma}
                          : low_is_worse   ? all.populations->low
                                           : all.populations->high;
    const double width = kMedianWidth * drifted.sigma / std::sqrt(static_cast<double>(now.size()));
    alarm.value = medianOf(now), alarm.typical = medianOf(before);
    alarm.sigmas = towardsBad(group.better, drifted.median / width), alarm.limit = limit;
    (void)raise(std::move(alarm));
  }

  bool raise(Alarm alarm) {
    const bool is_small =
        alarm.typical != 0 ? std::abs(alarm.change()) < out_.policy.least_effect : alarm.value == 0;
    if (!(alarm.sigmas > alarm.limit) || is_small) return false;
    std::ranges::sort(alarm.members);  // a node has a series for each of its devices
    alarm.members.erase(std::ranges::unique(alarm.members).begin(), alarm.members.end());
    out_.alarms.push_back(std::move(alarm));
    return true;
  }

  void note(const Series& series, const Group& group, double bad) {
    auto& node = nodes_[series.node];
    if (node.node.empty()) node = {.node = series.node, .rack = series.rack, .sku = group.sku};
    node.rack = series.rack;
    node.compared = node.compared || group.evaluated;
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
    case AlarmKind::Populations:
      return "populations";
    case AlarmKind::Intermittent:
      return "intermittent";
    case AlarmKind::Spread:
      return "spread";
  }
  return "?";
}

Better betterOf(std::string_view metric) {
  const auto* word = wordOf(metric);
  return word ? word->better : Better::Unknown;
}

Statistics analyse(std::vector<lifecycle::MeasuredSet> sets, const Policy& policy) {
  Statistics out;
  out.policy = policy;
  if (policy.now) {
    const auto from_future = std::ranges::stable_partition(
        sets, [end = *policy.now + kClocksApart](const auto& set) { return set.at <= end; });
    out.from_future = from_future.size();
    sets.erase(from_future.begin(), from_future.end());
  }
  out.sets = sets.size();
  if (sets.empty()) return out;
  out.from = sets.front().at, out.to = sets.back().at;
  const auto groups = gather(sets, out);
  Analysis(out, groups).run(sets);
  return out;
}

}  // namespace muster::validate::history
