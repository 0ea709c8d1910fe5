// SPDX-License-Identifier: Apache-2.0
// Erasing a node's disks, as the controller sees it: what was asked for, and the report.
// docs/adr/0022.
//
// A request lies in the store until its report is complete, so that a controller that was killed
// goes on; its id is never used again. It gives the node one goal, `erased`; the action wipes, so
// it needs the permission that the same command has journaled, and the pool is asked before it
// begins.
#pragma once

#include "lifecycle/model/phase.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/store/store.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::provision {

inline constexpr std::string_view kErased = "erased";
inline constexpr std::string_view kErasePhase = "erase";

struct EraseRequest {
  std::string id;  ///< of this request; the fact `erased` is "complete:ID" when it is done
  std::string
      serial;  ///< of the machine that is meant; its agent compares it with its own firmware's
  std::vector<std::string> disks;  ///< serials; empty: all that are built in
  std::string who, reason;
};

/// What was asked for and is not complete. Errors: of the store, Corrupt
Result<std::map<NodeName, EraseRequest>> eraseRequests(lifecycle::Store& store);
/// Asks, in the place of what was asked before. Errors: of the store, Conflict (another controller
/// asks at this moment)
Result<void> askForErasure(lifecycle::Store& store, const NodeName& node,
                           const EraseRequest& request);
/// Only the request with this id: another may have been asked for since.
Result<void> forgetErasure(lifecycle::Store& store, const NodeName& node, const std::string& id);
/// Whether the kept report is of this request and all its disks are erased. Errors: of the store
Result<bool> isComplete(lifecycle::Store& store, const NodeName& node, const std::string& id);

/// `fresh`, or with its id the one that asks for the same disks of the same machine and is not
/// complete. Errors: of the store, Conflict (the journal has another erasure of the node open,
/// whose task would be taken for this one's)
Result<EraseRequest> requestToGoOnWith(lifecycle::Store& store, const NodeName& node,
                                       EraseRequest fresh);
/// Asks, and journals the wipe permission that the plan's action will use up: none for an action
/// that goes on with its own. Errors: of the store, Conflict (the plan erases nothing; then nothing
/// is written)
Result<void> beginErasure(lifecycle::Store& store, const lifecycle::Plan& plan,
                          const NodeName& node, const EraseRequest& request, WallTime at);

/// Takes back what was asked for, with the wipe permission that nothing has used: the journal says
/// who. Nothing may have been handed to the node. Answers what was asked for, for people. Errors:
/// NotFound (nobody asks), Conflict (it has begun: what to do), of the store
Result<std::string> cancelErasure(lifecycle::Store& store, const NodeName& node,
                                  const std::string& who, WallTime at);

/// The phase. What lies in the store when it is made is asked for already.
class Erasures : public lifecycle::Phase {
 public:
  /// In this process, besides what the store holds: also for a plan that is only shown.
  virtual void ask(const NodeName& node, const EraseRequest& request) = 0;
  /// Forgets what this process knows of it; what the store holds stays.
  virtual void forget(const NodeName& node) = 0;
};

/// For a plan that is only shown, or waits for people: it wants what the request would want, and no
/// plan that others make meanwhile does. It observes nothing and carries nothing out.
std::unique_ptr<lifecycle::Phase> makeErasureDraft(const NodeName& node,
                                                   const EraseRequest& request);

/// Takes back what has not begun, as cancelErasure does, if it is the request with this id. Answers
/// a sentence for people; none: nothing is asked for under this id, or it has begun and goes on on
/// its node. Errors: of the store
Result<std::optional<std::string>> withdrawErasure(lifecycle::Store& store, const NodeName& node,
                                                   const std::string& id, const std::string& who,
                                                   WallTime at);

/// Pure. Why a node's disks may not be erased now: its pool may still give it jobs, or nobody
/// knows.
std::optional<std::string> whyNotErase(const inventory::Cluster& cluster, const NodeName& node,
                                       const lifecycle::FactSet& facts);

/// The last report: {"node", "request", "who", "reason", "ended", "report": EraseReport of the
/// agent}.
Result<std::optional<std::string>> erasureReport(lifecycle::Store& store, const NodeName& node);
/// For people, one line a disk.
std::string erasureText(const std::string& report);

}  // namespace muster::provision
