// Every await on the outside goes through a deadline.
#pragma once

#include "base/clock.h"
#include "base/task.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <string>

namespace muster {

/// Awaits `work` for at most `limit`; past it the work is cancelled and the answer is Timeout naming `what`.
template <class T>
Async<T> withDeadline(Clock& clock, std::chrono::milliseconds limit, std::string what, Async<T> work) {
  using namespace asio::experimental::awaitable_operators;
  auto timer = clock.sleep(limit);
  auto race = std::move(work) || std::move(timer);
  auto first = co_await std::move(race);
  if (first.index() == 0) co_return std::get<0>(std::move(first));
  co_return fail(ErrorCode::Timeout, what + " did not finish within " + std::to_string(limit.count() / 1000.0) + " s");
}

}  // namespace muster
