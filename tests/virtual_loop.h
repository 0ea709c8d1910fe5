// SPDX-License-Identifier: Apache-2.0
// VirtualLoop: runs coroutines in virtual time. Time moves on only when nothing else can: no
// handler is ready and the one worker thread has nothing to do. No sleeps, and a test that waits
// for ever fails instead of hanging.
#pragma once

#include "base/async/start.h"
#include "base/async/task.h"
#include "base/clock.h"
#include "tests/idle_workers.h"

#include <boost/asio/io_context.hpp>

#include <optional>
#include <stdexcept>

namespace muster::test {

class VirtualLoop {
 public:
  asio::io_context io;
  FakeClock clock;
  Workers workers{1};

  /// Exceptions of the coroutine come out here.
  template <class T>
  T run(Task<T> task) {
    std::optional<T> answer;
    std::exception_ptr thrown;
    bool done = false;
    async::start(io, async::answerInto(answer, std::move(task)), [&](std::exception_ptr e) {
      thrown = e;
      done = true;
    });
    for (int step = 0; !done; ++step) {
      if (step > kMaxSteps) throw std::runtime_error("the coroutine does not end");
      if (handlersRan() > 0) continue;
      if (done) break;
      if (!clock.advanceToNext())
        throw std::runtime_error("the coroutine waits for something that never comes");
    }
    if (thrown) std::rethrow_exception(thrown);
    return std::move(*answer);
  }

  /// Runs beside the others until it ends by itself.
  void spawn(Task<void> task) {
    async::start(io, std::move(task), [](std::exception_ptr) {});
  }

  /// Runs what is ready without letting time pass.
  void settle() {
    while (handlersRan() > 0) {
    }
  }

 private:
  static constexpr int kMaxSteps = 1000000;

  std::size_t handlersRan() {
    io.restart();
    std::size_t ran = io.poll();
    waitUntilIdle(workers);
    io.restart();
    return ran + io.poll();
  }
};

}  // namespace muster::test
