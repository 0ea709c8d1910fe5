// SPDX-License-Identifier: Apache-2.0
// Fleet statistics: which nodes, racks and devices differ from their like, and what drifts, with a
// stated budget of false alarms. Pure.
//
// Everything is robust (medians, and the median absolute deviation as scale), because what is
// looked for is in the data. The budget is the number of false alarms that one report may be
// expected to hold; it is shared among all comparisons that are made. Noise of a fleet has heavier
// tails than a normal distribution has, so there is a control: the good sides, where nothing is
// wrong, say how far noise reaches.
#pragma once

#include "lifecycle/store/measurements.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::validate::history {

enum class Better { Higher, Lower, Unknown };
/// From the unit that a metric's name ends in: _gbits, _tflops … higher; _seconds, _us, _c, _errors
/// … lower. Unknown: both sides count.
Better betterOf(std::string_view metric);

struct Policy {
  double false_alarms = 1;  ///< expected in a whole report, when nothing is wrong
  double least_effect =
      0.01;  ///< a share of the typical value below which nothing is worth a person's time
  std::size_t least_group = 8;  ///< fewer values are shown, not evaluated
  /// What is said to have been measured later is of a clock that was wrong, and counts nowhere.
  std::optional<WallTime> now;
};

/// Populations: a part of the SKU is worse than the others, too large to be outliers. Intermittent:
/// good now, bad again and again before. Spread: a rate of which the values of one SKU differ so
/// much, in no places, that none of them is like its peers.
enum class AlarmKind {
  Bits,
  Node,
  Rack,
  Device,
  Drift,
  FleetDrift,
  Populations,
  Intermittent,
  Spread
};
std::string_view toString(AlarmKind kind);

struct Alarm {
  AlarmKind kind = AlarmKind::Node;
  std::string sku, metric, subject;  ///< subject: node, node@device, rack, device, or the sku
  double value = 0, typical = 0;
  double sigmas = 0;  ///< towards the bad side, in robust σ of the group
  double limit = 0;   ///< σ from which on it is an alarm there
  /// Bits: devices that computed what is typical; no noise is in that, and no σ. Populations,
  /// FleetDrift: values that are not of it. Intermittent: how often it has fallen.
  /// Spread: values in all; there `value` is one σ below typical, and `sigmas` σ's share of it.
  std::size_t others = 0;
  /// Populations: nodes of the worse part; FleetDrift: of the part that has drifted, empty: all.
  std::vector<std::string> members;
  double change() const { return typical != 0 ? value / typical - 1 : 0; }
};

/// A point of a trend: quantiles of what was measured in one stretch of time.
struct TrendPoint {
  WallTime at{};
  double low = 0, median = 0, high = 0;  ///< 10 %, 50 %, 90 %
  std::size_t count = 0;
};

/// One metric of one SKU.
struct Group {
  std::string sku, metric;
  Better better = Better::Unknown;
  bool evaluated = false;
  double median = 0, sigma = 0, limit = 0;             ///< limit in σ
  std::vector<std::pair<std::string, double>> latest;  ///< subject → newest value, ordered by value
  std::vector<TrendPoint> trend;
};

struct Statistics {
  std::vector<Group> groups;  ///< by SKU, then metric
  std::vector<Alarm> alarms;  ///< worst first
  std::size_t sets = 0, numbers = 0, comparisons = 0;
  std::size_t from_future = 0;    ///< sets that were left out
  std::size_t no_numbers = 0;     ///< values that are not finite, left out
  std::size_t not_evaluated = 0;  ///< groups: too few values, or all of them nothing
  WallTime from{}, to{};
  Policy policy;
  /// Of every node: σ towards the bad side in its worst metric, and which that is.
  struct NodeState {
    std::string node, rack, sku;
    double worst = 0;
    double share = 0;  ///< of the limit; from 1 on, and with enough effect, it is an alarm
    std::string metric;
    bool alarmed = false;
    bool compared = false;  ///< one of its values at least was held against others'
  };
  std::vector<NodeState> nodes;  ///< by rack, then name
};

/// `sets` are in the order of time, as the store gives them.
Statistics analyse(std::vector<lifecycle::MeasuredSet> sets, const Policy& policy);

}  // namespace muster::validate::history
