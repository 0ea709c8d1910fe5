// SPDX-License-Identifier: Apache-2.0
// An order of the API as a request for a run: who asks, what is asked for, and whether they may.
#pragma once

#include "api/answers.h"
#include "app/runs/runs.h"

namespace muster::api {

/// Members that the order of every run may have.
inline constexpr Field kConfirm{"confirm", Kind::Boolean,
                                "Wait for its author's yes when the plan is known"};
inline constexpr Field kAfterRestart{"after_restart", Kind::Text, "continue or pause"};
inline constexpr Field kMeantInventory{
    "inventory", Kind::Text, "Digest of the inventory that is meant; of another one the run fails"};

lifecycle::RunActor runActorOf(const Call& call);
/// A run of this kind as the order's body says it, over nodes that are in the caller's scope.
/// Errors: 400 (a member that belongs to another kind), 403 (the role may not), 404 (a node), those
/// of app::submitRun
std::expected<lifecycle::Run, Problem> submitRun(SiteReader& reader, const Call& call,
                                                 lifecycle::RunKind kind);
/// What to do has a place of its own in a problem.
std::unexpected<Problem> refused(Error error, const std::string& id);

}  // namespace muster::api
