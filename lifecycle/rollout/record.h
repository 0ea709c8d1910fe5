// SPDX-License-Identifier: Apache-2.0
// RolloutRecord: one rollout in the store. Every record is replaced by comparison with what was
// read, so that of two runners only the newer one writes: taking over rewrites all of them with a
// higher epoch.
//
//   rollout.list          the rollouts that may lie over the inventory, oldest first
//   rollout.last          the newest one, for when none of them lies over it any more
//   rollout.ID            what was asked for, waves, state                     (small, rewritten at
//   each step of the whole) rollout.ID.frozen     the frozen plan and what was measured before
//   (written once) rollout.ID.nodes.K    progress of kNodesPerRecord nodes (rewritten at each step
//   of one of them) rollout.ID.order      pause or abort, from another process
#pragma once

#include "lifecycle/rollout/rollout.h"
#include "lifecycle/store/store.h"

namespace muster::lifecycle {

inline constexpr std::size_t kNodesPerPage = 128;

enum class Order { None, Pause, Abort };
std::string_view toString(Order order);
struct GivenOrder {
  Order order = Order::None;
  std::string by;
};

class RolloutRecord {
 public:
  /// A record that nobody has written down: to be looked at, or to be begun.
  static RolloutRecord draft(Store& store, Rollout rollout, std::map<NodeName, FrozenNode> frozen,
                             std::map<NodeName, NodeProgress> progress);
  /// Writes a draft down. Errors: Conflict (another rollout was written meanwhile), those of the
  /// store. Until it is in the list, nothing has begun.
  Result<void> begin();
  /// Errors: NotFound, Corrupt
  static Result<RolloutRecord> open(Store& store, const std::string& id);
  static Result<std::vector<std::string>> list(Store& store);
  /// Errors: Conflict (one is running, paused or halted)
  static Result<void> noneIsOpen(Store& store);
  /// Takes those out of the list that have nothing to say any more.
  static Result<void> drop(Store& store, const std::vector<std::string>& ids);
  /// The newest rollout. Errors: NotFound
  static Result<RolloutRecord> newest(Store& store);
  /// The one that is open: an older one may be on its way back. Where none is, the newest. Errors:
  /// NotFound
  static Result<RolloutRecord> current(Store& store);

  const Rollout& rollout() const { return rollout_; }
  const std::map<NodeName, NodeProgress>& progress() const { return progress_; }
  const NodeProgress& of(const NodeName& node) const { return progress_.at(node); }
  const FrozenNode* frozen(const NodeName& node) const;
  std::size_t count(RolloutNodeState state) const;

  /// From here on no runner that began before can write. Orders given to it are void, but for an
  /// abort on the way forward: it was given to a runner that had died, and the next one obeys it.
  Result<void> takeOver(RolloutDirection direction);
  /// Errors: Conflict (another runner has taken over)
  Result<void> save(Rollout next);
  Result<void> put(const NodeName& node, NodeProgress progress);

  /// Writes the rollout's wipe grant down for this node, under words of its own, by which
  /// revokeWipe knows it again: a grant that the node has not used must not outlive it.
  /// The latter answers whether there was one.
  Result<void> grantWipe(const NodeName& node, WallTime at);
  Result<bool> revokeWipe(const NodeName& node);

  Result<GivenOrder> order() const;
  Result<void> give(GivenOrder order);

 private:
  explicit RolloutRecord(Store& store) : store_(&store) {}
  std::string key(std::string_view part) const;
  std::string pageText(std::size_t page) const;
  Result<void> writePage(std::size_t page);
  void number();

  Store* store_;
  Rollout rollout_;
  std::string text_;  ///< of rollout.ID as it is in the store
  std::map<NodeName, FrozenNode> frozen_;
  std::map<NodeName, NodeProgress> progress_;
  std::vector<std::string> pages_;              ///< as they are in the store
  std::vector<std::vector<NodeName>> members_;  ///< of each record
  std::map<NodeName, std::size_t> page_of_;
};

}  // namespace muster::lifecycle
