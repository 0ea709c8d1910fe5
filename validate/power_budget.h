// SPDX-License-Identifier: Apache-2.0
// Power: how many nodes of a rack may be under load at once. A gate's load on eight GPUs is 10 kW a
// node; a rack is built for fewer nodes at full load than it holds more often than not. Starts
// within a rack are staggered, so that its load never steps up at once.
#pragma once

#include "base/ids.h"
#include "inventory/model/fwd.h"
#include "inventory/model/node.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::validate {

/// What a node draws under full load: as its profile says, else estimated on the high side.
int wattsOf(const inventory::Profile& profile);

class PowerBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit PowerBudget(const inventory::Cluster& cluster) : cluster_(cluster) {}

  /// Takes the node's share of its rack. Taking twice is taking once. Racks without a declared
  /// budget only stagger. Answers why it must wait; nullopt: it may start now
  std::optional<std::string> take(const inventory::Node& node, Time now);
  /// The load runs already (it was begun before a restart): counted, whether there is room or not.
  void takeRunning(const inventory::Node& node);
  void giveBack(const NodeName& node);
  bool holds(const NodeName& node) const { return held_.contains(node); }
  /// The shares of several nodes of one rack at once, without a stagger: all of them, or none and
  /// why.
  std::optional<std::string> takeAll(const std::vector<inventory::Node>& nodes, Time now);

  /// What the rack may draw: the smaller of power and cooling; nullopt: it is not declared.
  std::optional<int> limitOf(const std::string& rack) const;
  /// How often the nodes of this rack have to take turns, at least 1: waiting is expected for so
  /// long.
  int turns(const std::string& rack) const;

  static constexpr std::chrono::seconds kStagger{2};  ///< between two starts in a rack

 private:
  struct Load {
    int watts = 0;
    std::optional<Time> last_start;
  };
  struct Held {
    std::string rack;
    int watts;
  };

  const inventory::Cluster& cluster_;
  std::map<std::string, Load> racks_;
  std::map<NodeName, Held> held_;
  mutable std::map<std::string, int> turns_;
};

/// Gives a node's share back when the load is over, whatever came of it: also when the work is
/// dropped at its deadline.
class PowerHold {
 public:
  PowerHold(PowerBudget& budget, NodeName node) : budget_(budget), node_(std::move(node)) {}
  ~PowerHold() { budget_.giveBack(node_); }
  PowerHold(const PowerHold&) = delete;
  PowerHold& operator=(const PowerHold&) = delete;

 private:
  PowerBudget& budget_;
  NodeName node_;
};

}  // namespace muster::validate
