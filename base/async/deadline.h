// SPDX-License-Identifier: Apache-2.0
// Every await on the outside goes through a deadline.
#pragma once

#include "base/async/task.h"
#include "base/limits.h"

#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/system/system_error.hpp>

#include <string>

namespace muster {

/// Awaits `work` for at most `limit`; past it the work is cancelled and the answer is Timeout
/// naming `what`.
template <class T>
Async<T> withDeadline(Clock& clock, std::chrono::milliseconds limit, std::string what,
                      Async<T> work) {
  using namespace asio::experimental::awaitable_operators;
  auto timer = clock.waitFor(limit);  // ends without a throw when the work has ended
  auto first = co_await (std::move(work) || std::move(timer));
  if (first.index() == 0) co_return std::get<0>(std::move(first));
  if (!std::get<1>(first))
    throw boost::system::system_error(asio::error::operation_aborted);  // all of it was cancelled
  co_return fail(ErrorCode::Timeout,
                 what + " did not finish within " + std::to_string(limit.count() / 1000.0) + " s");
}

}  // namespace muster
