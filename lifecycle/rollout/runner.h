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
#include "lifecycle/rollout/node_change.h"

namespace muster::lifecycle {

class RolloutRunner {
 public:
  RolloutRunner(RolloutServices services, RolloutRecord& record)
      : course_{.services = std::move(services), .record = record} {}
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
  /// Works the nodes off; the course says why it ended early.
  Async<void> runNodes(std::vector<NodeName> nodes);
  Task<void> lane();
  Pick pick();
  Task<void> runNode(NodeName node);

  Result<void> gate();
  bool isOrderedToStop() const;
  Result<void> stop();
  Result<void> end(RolloutState state, std::vector<std::string> reasons);

  RolloutCourse course_;
  PoolWatch pools_{course_};
  NodeChange nodes_{course_, pools_};
  std::vector<NodeName> queue_;
  std::size_t wave_size_ = 0, failed_ = 0;
  std::size_t accepted_failed_ =
      0;  ///< of failed_: those that had failed when the gate was accepted
  std::vector<std::string> left_pool_;  ///< of the changed nodes, after their soak
};

}  // namespace muster::lifecycle
