// SPDX-License-Identifier: Apache-2.0
// Starts coroutines from outside of coroutines. What Asio instantiates for that is compiled once,
// in start.cc, and not again for every type of answer.
#pragma once

#include "base/async/task.h"

#include <exception>
#include <functional>
#include <optional>

namespace muster::async {

/// Hears of the end of a coroutine: what it threw, or null.
using Ended = std::function<void(std::exception_ptr thrown)>;

/// `work` runs when `loop` does; `ended` is called on the loop, and not at all when the loop is
/// destroyed first.
void start(asio::io_context& loop, Task<void> work, Ended ended);

/// Puts the answer of `work` into `answer`, which must live until then.
template <class T>
Task<void> answerInto(std::optional<T>& answer, Task<T> work) {
  answer.emplace(co_await std::move(work));
}

}  // namespace muster::async
