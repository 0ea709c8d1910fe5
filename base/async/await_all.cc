// SPDX-License-Identifier: Apache-2.0
#include "base/async/await_all.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>

#include <exception>
#include <utility>

namespace muster::async {

Task<void> awaitAll(std::vector<Task<void>> tasks) {
  if (tasks.empty()) co_return;
  auto executor = co_await asio::this_coro::executor;
  using Operation = decltype(asio::co_spawn(executor, std::move(tasks.front()), asio::deferred));
  std::vector<Operation> operations;
  operations.reserve(tasks.size());
  for (auto& task : tasks)
    operations.push_back(asio::co_spawn(executor, std::move(task), asio::deferred));
  auto group = asio::experimental::make_parallel_group(std::move(operations));
  auto [order, exceptions] =
      co_await group.async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
  for (auto& exception : exceptions)
    if (exception) std::rethrow_exception(exception);
}

}  // namespace muster::async
