// SPDX-License-Identifier: Apache-2.0
// A rollout for people and for machines.
#pragma once

#include "app/plans/rollout_outcome.h"

#include <string>

namespace muster::cli {

/// What was frozen: waves, who is left out and why, what cannot be undone.
std::string frozenText(const lifecycle::RolloutRecord& book);
/// What the frozen plan would do, by kind of action, and to whom.
std::string touchedText(const lifecycle::RolloutRecord& book);
std::string rolloutText(const app::RolloutStatus& status);
std::string rolloutJson(const app::RolloutStatus& status);

}  // namespace muster::cli
