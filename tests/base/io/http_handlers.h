// SPDX-License-Identifier: Apache-2.0
// Handlers that the tests of the HTTP server put behind its routes.
#pragma once

#include "base/io/http.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace muster::io {

/// Has no answer while a test lasts.
inline Task<ServerResponse> never(ServerRequest) {
  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::hours(1));
  co_await timer.async_wait(asio::use_awaitable);
  co_return ServerResponse::text(200, "");
}

}  // namespace muster::io
