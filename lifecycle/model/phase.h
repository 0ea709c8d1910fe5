// SPDX-License-Identifier: Apache-2.0
// Phase: what lifecycle knows of provision, firmware, fabric, validate and pool. Phases never
// include each other.
#pragma once

#include "base/async/task.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/facet.h"
#include "lifecycle/model/finding.h"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace muster::lifecycle {

/// The action has done all it can; the engine now verifies.
struct Done {};
/// Not finished: call again after this long. `waiting_for` is shown to people.
struct Again {
  std::chrono::milliseconds after;
  std::string waiting_for;
  bool is_away = false;  ///< what is asked outside does not answer: the wait is not the action's
                         ///< own time (kLongestAway)
};
/// Cannot go on without a person (or another action). Says why and what would help.
struct Blocked {
  std::string why;
};
using Outcome = std::variant<Done, Again, Blocked>;

/// What the engine lends a phase while it acts. Everything said here is journaled or shown.
class ActContext {
 public:
  virtual ~ActContext() = default;
  /// Unique for this intent and stable across crashes: use it as id of outside work (an agent
  /// task's id).
  virtual const std::string& intentId() const = 0;
  /// The id of outside work recorded by an earlier call of act for the same intent (a Redfish task
  /// URI); empty at first.
  virtual std::string operation() const = 0;
  /// The id is committed before this answers, so that a crash finds it; what many actions record at
  /// one time shares one sync to the disk.
  virtual Async<void> recordOperation(std::string id) = 0;
  /// True when an operator allowed this node's disk to be wiped (journaled, used up by this
  /// action).
  virtual bool wipeAllowed() const = 0;
  virtual void progress(double fraction, std::string_view text) = 0;
  virtual void finding(Finding finding) = 0;
  virtual const FactSet& facts() const = 0;
};

class Phase {
 public:
  virtual ~Phase() = default;
  virtual std::string_view name() const = 0;

  /// Whether an action that was interrupted after it recorded an operation is driven on even when
  /// its facet is met already: it may have begun more than that facet shows. act() then says when
  /// it is done.
  virtual bool resumesAfterMet() const { return false; }

  /// Whether its goals come from what somebody asks for now, not from the inventory: that it wants
  /// nothing says nothing then.
  virtual bool isOnDemand() const { return false; }

  /// Pure. What this phase wants of the subject (a node or Subject::cluster()), given what is
  /// known.
  virtual std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                                  const FactSet& facts) const = 0;

  /// Reads the facets of one subject from the outside. Bounded by a deadline of its own; what
  /// cannot be read now is left out, with a Fact only for what was seen. Never changes anything.
  /// Errors: only when nothing at all could be read
  virtual Async<std::vector<Fact>> observe(Subject subject) = 0;

  /// Drives one action; called again after Again. Must be safe to call anew after a crash at any
  /// point: it looks before it acts. Errors that can be retried are, a bounded number of times.
  virtual Async<Outcome> act(Action action, ActContext& context) = 0;

  /// Re-reads the action's facet (and those that it touched) after Done. The engine compares with
  /// action.to.
  virtual Async<std::vector<Fact>> verify(Action action) = 0;
};

}  // namespace muster::lifecycle
