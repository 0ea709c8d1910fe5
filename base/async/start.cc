// SPDX-License-Identifier: Apache-2.0
#include "base/async/start.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

namespace muster::async {

void start(asio::io_context& loop, Task<void> work, Ended ended) {
  asio::co_spawn(loop, std::move(work), std::move(ended));
}

}  // namespace muster::async
