// SPDX-License-Identifier: Apache-2.0
// Every await on the outside goes through a deadline.
#pragma once

#include "base/async/start.h"
#include "base/async/task.h"

#include <chrono>
#include <optional>
#include <string>

namespace muster {

class Clock;

namespace async {

/// Awaits `work` for at most `limit`; past it the work is cancelled and the answer is false. Throws
/// what `work` throws, and operation_aborted when all of it was cancelled.
Task<bool> endsWithin(Clock& clock, std::chrono::milliseconds limit, Task<void> work);

}  // namespace async

/// Timeout: `what` took longer than `limit`.
Error deadlineMissed(const std::string& what, std::chrono::milliseconds limit);

/// Awaits `work` for at most `limit`; past it the work is cancelled and the answer is Timeout
/// naming `what`.
template <class T>
Async<T> withDeadline(Clock& clock, std::chrono::milliseconds limit, std::string what,
                      Async<T> work) {
  std::optional<Result<T>> answer;
  if (!co_await async::endsWithin(clock, limit, async::answerInto(answer, std::move(work))))
    co_return fail(deadlineMissed(what, limit));
  co_return std::move(*answer);
}

}  // namespace muster
