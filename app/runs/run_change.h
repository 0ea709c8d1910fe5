// SPDX-License-Identifier: Apache-2.0
// One change of a run's row, whoever else changes it at the same time. Internal to app/.
#pragma once

#include "app/runs/runs.h"

#include <fmt/format.h>

namespace muster::app {

inline constexpr int kMaxExchanges = 50;  ///< another process may change the row at the same time

/// Reads the row, lets `change(run, note)` say what it becomes and what the journal says, and
/// writes it; again when somebody else was faster. Without a note the row alone is written.
/// Errors: NotFound, those of `change`, Conflict (the row is of a newer muster)
template <class Change>
Result<lifecycle::Run> changeRun(lifecycle::RunStore& runs, const std::string& id,
                                 const Change& change) {
  for (int i = 0; i < kMaxExchanges; ++i) {
    TRY(run, readRun(runs, id));
    if (!run.unreadable.empty())
      return fail(ErrorCode::Conflict,
                  fmt::format("run {} cannot be read by this muster: {}", id, run.unreadable));
    std::string note;
    TRY(next, change(std::move(run), note));
    TRY(stored, runs.exchange(std::move(next), note));
    if (stored) return std::move(*stored);
  }
  return fail(
      Error(ErrorCode::Unavailable, fmt::format("run {} is changed by others all the time", id))
          .retryable(true));
}

}  // namespace muster::app
