// SPDX-License-Identifier: Apache-2.0
// Runs a coroutine to its end in virtual time: whenever nothing is ready, time jumps to the next
// sleeper.
#pragma once

#include "base/async/start.h"
#include "base/clock.h"
#include "tests/idle_workers.h"

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <memory>
#include <optional>

namespace muster::test {

/// Answers whether a handler was ready when the worker had done all it was given.
inline bool workersLeftSomething(Workers& workers, asio::io_context& context) {
  waitUntilIdle(workers);
  return context.poll_one() > 0;
}

/// Answers nothing when `*stop` became true (the process "died": nothing more runs, its frames are
/// destroyed) or when the coroutine waits for something that never comes. Time stands still while
/// `workers` (of one thread) have something to do.
template <class T>
std::optional<T> runInVirtualTime(FakeClock& clock, Task<T> task, const bool* stop = nullptr,
                                  Workers* workers = nullptr) {
  std::optional<T> answer;
  std::exception_ptr thrown;
  bool finished = false;
  asio::io_context context;
  // A job of a process that "died" may still run, and posts its answer to the context: that has to
  // be there until then.
  const std::unique_ptr<Workers, void (*)(Workers*)> idle_at_the_end(
      workers, [](Workers* each) { waitUntilIdle(*each); });
  async::start(context, async::answerInto(answer, std::move(task)), [&](std::exception_ptr error) {
    thrown = error;
    finished = true;
  });
  while (!finished) {
    const bool progressed = context.poll_one() > 0;
    if (stop && *stop) return std::nullopt;
    if (progressed || finished) continue;
    if (workers && workersLeftSomething(*workers, context)) continue;
    if (!clock.advanceToNext()) {
      ADD_FAILURE() << "everything waits and nobody sleeps: a dead-lock";
      return std::nullopt;
    }
  }
  if (thrown) std::rethrow_exception(thrown);
  return answer;
}

}  // namespace muster::test
