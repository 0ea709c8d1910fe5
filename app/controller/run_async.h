// SPDX-License-Identifier: Apache-2.0
// Loop: a control thread for use cases that need no controller.
#pragma once

#include "base/async/start.h"
#include "base/async/task.h"
#include "base/result.h"

#include <boost/asio/io_context.hpp>

#include <optional>

namespace muster::app {

struct Loop {
  /// Runs one coroutine to its end on this thread; whatever else it has spawned is left where it
  /// is.
  template <class T>
  Result<T> run(Async<T> work) {
    std::optional<Result<T>> answer;
    async::start(context, async::answerInto(answer, std::move(work)),
                 [this](std::exception_ptr broken) {
                   if (broken) std::rethrow_exception(broken);
                   context.stop();
                 });
    context.restart();
    context.run();
    return std::move(*answer);
  }

  asio::io_context context;
};

}  // namespace muster::app
