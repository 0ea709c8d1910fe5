// SPDX-License-Identifier: Apache-2.0
// What the parts of a running rollout share: its record, who is out of its pool at the moment, and
// why no more nodes start.
#pragma once

#include "inventory/model/cluster.h"
#include "lifecycle/executor/engine.h"
#include "lifecycle/rollout/effective_cluster.h"
#include "lifecycle/rollout/record.h"
#include "lifecycle/rollout/window.h"

namespace muster::lifecycle {

inline constexpr std::size_t kMaxNodesUnderWay = 64;  ///< at once, whatever the ceilings allow
inline constexpr std::chrono::seconds kRoomPoll{2};   ///< a lane without a node looks again
inline constexpr std::chrono::seconds kPoolPoll{
    300};  ///< state of nodes that others take out of work
inline constexpr std::chrono::seconds kPoolPollWaiting{30};  ///< … while nothing can go on
inline constexpr std::chrono::seconds kSoakPoll{10};         ///< for orders
inline constexpr std::chrono::minutes kNoRoomLimit{
    30};  ///< nothing under way and nobody may start: it halts

struct RolloutServices {  // borrowed
  EffectiveCluster& effective;
  Engine& engine;
  const Phases& phases;
  Store& store;
  Clock& clock;
  EventSink sink;
  LeafSwitchesOf leaves;
  Worker worker = {};  ///< for whom the engine works
  /// Why no node, or not this one, is begun now; empty: it may. What is under way is finished, then
  /// the rollout is paused. An empty name: whatever the node.
  std::function<std::string(const NodeName&)> hold = {};
};

struct RolloutCourse {
  RolloutServices services;
  RolloutRecord& record;
  std::optional<Window> window;  ///< once it runs
  std::set<NodeName> under_way;
  GivenOrder order;
  std::string held;         ///< what RolloutServices::hold has said
  std::string stop_reason;  ///< why no more nodes start
  std::optional<Error> error;
  std::optional<std::chrono::steady_clock::time_point> no_room_since;

  void readOrders();
  bool stopped() const {
    return error || order.order != Order::None || !held.empty() || !stop_reason.empty();
  }
  /// Whether the node may be begun; if not, nothing more is.
  bool mayBegin(const NodeName& node) {
    if (held.empty() && services.hold) held = services.hold(node);
    return held.empty();
  }
  bool isDeclared(const NodeName& node) const {
    return services.effective.cluster().findNode(node) != nullptr;
  }
  void note(const NodeName& node, std::string text) const;
  void note(std::string text) const { note(NodeName(), std::move(text)); }
};

}  // namespace muster::lifecycle
