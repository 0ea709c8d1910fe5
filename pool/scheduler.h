// SPDX-License-Identifier: Apache-2.0
// Seam: the scheduler of a pool, as the pool phase needs it. Slurm and Kubernetes are behind it;
// the phase alone knows of certificates and deadlines, a scheduler alone knows its own words.
//
// Every verb looks before it acts and may be called again after a crash at any point.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "lifecycle/model/phase.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::pool {

/// One node as its scheduler sees it.
struct Member {
  bool takes_work = false;  ///< something can start there now, or it is full
  bool has_work = false;   ///< something runs there that a disturbance would end, or is just ending
  bool silent = false;     ///< it is not heard, but would take work as soon as it is
  bool draining = false;   ///< taken out, by whomever: nothing new starts
  bool ordered = false;    ///< no further order of muster is needed to keep new work away
  bool by_person = false;  ///< somebody else than muster took it out; muster does not undo that
  std::string state;       ///< the scheduler's own words
  std::string reason;      ///< of the drain
  std::string ordered_by;  ///< who gave that reason, where the scheduler tells
  std::optional<WallTime> draining_since;
};

/// What still runs on a node that is being drained.
struct Remains {
  std::vector<std::string> work;  ///< each: what, and what it waits for or what holds it
  bool all_leaving = false;       ///< all of it is ending already; only time is needed
  std::chrono::milliseconds look_again{0};
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  virtual std::string describe() const = 0;  ///< "Slurm partition gpu"
  virtual std::string source() const = 0;    ///< of a fact: "scontrol show node"
  /// Why the scheduler may not know the node, and what a person does about it.
  virtual std::string unknownNode(const NodeName& node) const = 0;
  /// Whether a node that it does not know yet makes itself known (a kubelet), or must be written
  /// down by a person (slurm.conf).
  virtual bool registersItself() const = 0;

  /// nullopt: it does not know the node. Errors: Unavailable, Timeout, Denied
  virtual Async<std::optional<Member>> look(NodeName node) = 0;
  /// One step towards taking work. The caller has seen a valid certificate and that no person took
  /// the node out.
  virtual Async<lifecycle::Outcome> admit(NodeName node, lifecycle::ActContext& context) = 0;
  /// From now on nothing new starts there; what runs goes on.
  virtual Async<void> close(NodeName node, std::string reason) = 0;
  /// Asks what may leave a closed node to leave, and says what is still there. Ends nothing by
  /// force.
  virtual Async<Remains> release(NodeName node) = 0;
  /// Undoes `close`.
  virtual Async<void> reopen(NodeName node) = 0;
  /// Ends what is left, by the declared policy only. Answers what it ended.
  virtual Async<std::vector<std::string>> endWork(NodeName node) = 0;
};

}  // namespace muster::pool
