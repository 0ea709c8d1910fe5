// SPDX-License-Identifier: Apache-2.0
// An order of the API as a request for a run: who asks, what is asked for, and whether they may.
#pragma once

#include "api/answers.h"
#include "app/runs/runs.h"

namespace muster::api {

lifecycle::RunActor runActorOf(const Call& call);
/// A run of this kind as the order's body says it, over nodes that are in the caller's scope.
/// Errors: 400 (a member that belongs to another kind), 403 (the role may not), 404 (a node), those
/// of app::submitRun
std::expected<lifecycle::Run, Problem> submitRun(SiteReader& reader, const Call& call,
                                                 lifecycle::RunKind kind);
/// What to do has a place of its own in a problem.
std::unexpected<Problem> refused(Error error, const std::string& id);

}  // namespace muster::api
