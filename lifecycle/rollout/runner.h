// SPDX-License-Identifier: Apache-2.0
// RolloutRunner: carries a rollout on from where its record says it is. docs/adr/0013
//
// A fixed number of lanes take nodes of a wave, one after the other, as the window lets them go.
// What is decided about a node is committed before anything happens to it; the node's own work is
// the engine's, with the engine's journal. So a runner may die anywhere: the next one first takes
// up the nodes that were under way.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
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
};

class RolloutRunner {
 public:
  RolloutRunner(RolloutServices services, RolloutRecord& record)
      : services_(std::move(services)), record_(record) {}
  RolloutRunner(const RolloutRunner&) = delete;

  /// Goes on in this direction until it is done, rolled back, halted, paused or aborted; the record
  /// says which. Errors: Conflict (another runner has taken over), those of the store
  Async<void> run(RolloutDirection direction);

 private:
  enum class Next { Go, Wait, Finished };
  struct Pick {
    Next next = Next::Finished;
    NodeName node;
  };

  Async<void> forward();
  Async<void> back();
  /// Waits until the wave has been watched for long enough, then asks the pools who of all changed
  /// nodes has left them.
  Async<void> soak();
  Async<void> checkChangedNodes();
  /// Works the nodes off; stop_ says why it ended early.
  Async<void> runNodes(std::vector<NodeName> nodes);
  Task<void> lane();
  Pick pick();
  void readOrders();
  bool stopped() const { return error_ || order_.order != Order::None || !stop_reason_.empty(); }

  Task<void> runNode(NodeName node);
  bool isDeclared(const NodeName& node) const {
    return services_.effective.cluster().findNode(node) != nullptr;
  }
  /// nullopt: nothing was done to it; it waits for another turn.
  Async<std::optional<NodeProgress>> changeNode(NodeName node);
  Async<std::optional<NodeProgress>> revertNode(NodeName node);
  /// Makes the plan of a node that nothing was done to yet. Answers what it is then: Started,
  /// Skipped, or Waiting as before.
  Async<NodeProgress> prepare(NodeName node, Plan& plan);
  /// Whether the ceilings still let it go, now that it was looked at; if not, it counts as working.
  bool reserveRoom(const NodeName& node, const FactSet& facts);
  /// Looks at the node until its pool has answered too; nullopt: it is to wait (an order, or the
  /// pool stays away).
  Async<std::optional<FactSet>> observeWithPool(NodeName node);
  /// Plan and apply until nothing is left. Answers what failed; empty: nothing.
  Async<std::string> converge(NodeName node, std::optional<Plan> plan);
  /// Whether all that is left of the node is a person's: who drained it while it was worked on.
  Async<std::string> heldByAPerson(NodeName node);
  Result<Plan> planFor(const NodeName& node, const FactSet& facts) const;
  Result<void> grantWipe(const Plan& plan, const NodeName& node);
  Result<void> revokeWipe(const NodeName& node);
  /// Facts and findings of facets that the node's other declaration names and this one does not:
  /// nobody looks at those any more.
  Result<void> forgetOtherFacets(const NodeName& node);
  std::set<FacetName> facetsOf(const NodeName& node, const FactSet& facts) const;
  Async<Measures> measure(NodeName node, WallTime since);

  Async<void> pollPools();
  Task<void> pollPool(NodeName node);
  /// Is it in its pool by the facts? A node without a pool counts as in.
  bool works(const NodeName& node, const FactSet& facts) const;
  /// Does it belong into a pool that has not said where it is?
  bool poolIsUnknown(const NodeName& node, const FactSet& facts) const;
  void updateWindow(const NodeName& node);

  Result<void> gate();
  Result<void> end(RolloutState state, std::vector<std::string> reasons);
  void note(const NodeName& node, std::string text) const;
  void note(std::string text) const { note(NodeName(), std::move(text)); }

  RolloutServices services_;
  RolloutRecord& record_;
  std::optional<Window> window_;
  std::vector<NodeName> queue_;
  std::size_t wave_size_ = 0, failed_ = 0;
  std::size_t accepted_failed_ =
      0;  ///< of failed_: those that had failed when the gate was accepted
  std::set<NodeName> under_way_;
  GivenOrder order_;
  std::string stop_reason_;             ///< why no more nodes start
  std::vector<std::string> left_pool_;  ///< of the changed nodes, after their soak
  std::optional<Error> error_;
  std::optional<std::chrono::steady_clock::time_point> pools_polled_at_, no_room_since_;
  bool polling_ = false;
};

}  // namespace muster::lifecycle
