// SPDX-License-Identifier: Apache-2.0
// Loop: a control thread for use cases that need no controller.
#pragma once

#include "base/async/task.h"
#include "base/result.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <optional>

namespace muster::app {

struct Loop {
  /// Runs one coroutine to its end on this thread; whatever else it has spawned is left where it
  /// is.
  template <class T>
  Result<T> run(Async<T> work) {
    std::optional<Result<T>> answer;
    asio::co_spawn(context, std::move(work),
                   [this, &answer](std::exception_ptr broken, Result<T> result) {
                     if (broken) std::rethrow_exception(broken);
                     answer.emplace(std::move(result));
                     context.stop();
                   });
    context.restart();
    context.run();
    return std::move(*answer);
  }

  asio::io_context context;
};

}  // namespace muster::app
