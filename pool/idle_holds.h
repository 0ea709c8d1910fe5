// SPDX-License-Identifier: Apache-2.0
// Idle nodes that a Slurm cluster lends for a check: a short reservation keeps jobs away for as
// long as the check runs, and is given back as soon as a job waits that could want the node.
// docs/adr/0374
//
// A reservation is muster's by its name, which holds the cluster and its one node. It is short, and
// made longer while the check goes on: of a process that was killed it ends by itself, and the next
// process deletes it before.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/io/process.h"
#include "inventory/model/fwd.h"
#include "pool/pool.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::pool {

/// One node as `scontrol show node -o` tells it.
struct ListedNode {
  std::string name, state;
  std::vector<std::string> partitions;
};
/// Pure. Errors: Corrupt (a record without a name or a state)
Result<std::vector<ListedNode>> parseListedNodes(std::string_view text);

/// A job that waits, of `squeue --states=PENDING` with kWaitingFormat.
struct WaitingJob {
  std::string id;
  std::vector<std::string> partitions;
  std::set<std::string> nodes;  ///< that it asks for by name; empty: any
  std::string reason;           ///< the scheduler's own word
};
inline constexpr const char* kWaitingFormat = "%i|%P|%n|%r";
/// Pure. Errors: Corrupt
Result<std::vector<WaitingJob>> parseWaitingJobs(std::string_view text);
/// Whether the job may start as soon as one of these nodes of these partitions is free. In doubt it
/// may: one that waits for a licence, its time or a person does not. Pure.
bool mayWant(const WaitingJob& job, const std::set<std::string>& partitions,
             const std::set<std::string>& nodes);

/// "muster-CLUSTER-check-NODE"
std::string holdName(const std::string& cluster, const std::string& node);

/// Of the pools with active_checks. Borrowed.
class IdleHolds {
 public:
  IdleHolds(const inventory::Cluster& cluster, io::ProcessRunner& processes, PoolOptions options);

  /// The pool's nodes on which nothing runs or is held back; none while a job waits that may want
  /// one. Errors: Unavailable (slurmctld does not answer), Corrupt
  Async<std::vector<NodeName>> idle(std::string pool);
  /// Whether a job waits that may want one of the pool's nodes that are held now.
  Async<bool> isWanted(std::string pool);
  /// From now to `until` no job starts on the node; of one that is held already: to this time.
  /// Answers whether it is held: not where something runs there, or others have reserved it.
  Async<bool> hold(std::string pool, NodeName node, WallTime until);
  Async<void> release(std::string pool, NodeName node);
  /// Deletes whatever a muster of this cluster has left, in pools with active_checks.
  Async<void> releaseAll();

 private:
  Async<std::string> tool(std::string pool, std::string program, std::vector<std::string> args);
  Async<std::vector<ListedNode>> nodesOf(std::string pool);
  Async<bool> isFree(std::string pool, std::string node);
  Async<bool> doesJobWait(std::string pool, std::set<std::string> nodes);
  std::string confOf(const std::string& pool) const;

  const inventory::Cluster& cluster_;
  io::ProcessRunner& processes_;
  const PoolOptions options_;
  std::map<std::string, std::set<std::string>> held_;        ///< pool → nodes, by this process
  std::map<std::string, std::set<std::string>> partitions_;  ///< pool → of its nodes
};

}  // namespace muster::pool
