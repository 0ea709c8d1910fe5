// SPDX-License-Identifier: Apache-2.0
#include "base/async/deadline.h"

#include "base/clock.h"

#include <fmt/format.h>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/system/system_error.hpp>

namespace muster {

namespace async {

Task<bool> endsWithin(Clock& clock, std::chrono::milliseconds limit, Task<void> work) {
  using namespace asio::experimental::awaitable_operators;
  auto timer = clock.waitFor(limit);  // ends without a throw when the work has ended
  const auto first = co_await (std::move(work) || std::move(timer));
  if (first.index() == 0) co_return true;
  if (!std::get<1>(first))
    throw boost::system::system_error(asio::error::operation_aborted);  // all of it was cancelled
  co_return false;
}

}  // namespace async

Error deadlineMissed(const std::string& what, std::chrono::milliseconds limit) {
  return {ErrorCode::Timeout,
          fmt::format("{} did not finish within {:g} s", what, limit.count() / 1000.0)};
}

}  // namespace muster
