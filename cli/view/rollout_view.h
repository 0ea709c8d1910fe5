// SPDX-License-Identifier: Apache-2.0
// A rollout for people and for machines.
#pragma once

#include "lifecycle/rollout/record.h"

#include <string>

namespace muster::cli {

/// What was frozen: waves, who is left out and why, what cannot be undone.
std::string frozenText(const lifecycle::RolloutRecord& book);
/// What the frozen plan would do, by kind of action, and to whom.
std::string touchedText(const lifecycle::RolloutRecord& book);
/// `order`: what another process was told to do and has not done yet.
std::string rolloutText(const lifecycle::RolloutRecord& book, const lifecycle::GivenOrder& order);
std::string rolloutJson(const lifecycle::RolloutRecord& book, const lifecycle::GivenOrder& order);

}  // namespace muster::cli
