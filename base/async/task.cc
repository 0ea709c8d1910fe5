// SPDX-License-Identifier: Apache-2.0
#include "base/async/task.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

namespace muster::async {

Task<void> runOnPool(Workers& workers, std::function<void()> work) {
  auto home = co_await asio::this_coro::executor;
  auto begin = [&workers, &work, &home](auto resume) {
    asio::post(workers.pool(), [work = std::move(work), home, busy = asio::make_work_guard(home),
                                resume = std::move(resume)]() mutable {
      work();
      work = nullptr;
      asio::post(home, [busy = std::move(busy), resume = std::move(resume)]() mutable {
        std::move(resume)();
      });
    });
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(std::move(begin),
                                                                       asio::use_awaitable);
}

}  // namespace muster::async
