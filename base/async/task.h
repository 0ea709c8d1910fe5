// SPDX-License-Identifier: Apache-2.0
// Coroutine vocabulary: one control thread (an io_context) runs every coroutine; blocking work goes
// to Workers.
#pragma once

#include "base/result.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace muster {

namespace asio = boost::asio;

template <class T>
using Task = asio::awaitable<T>;

/// A coroutine that answers with a Result.
template <class T = void>
using Async = asio::awaitable<Result<T>>;

/// The bounded pool for libvirt, SQL, hashing and disk.
class Workers {
 public:
  explicit Workers(std::size_t threads) : pool_(threads) {}
  ~Workers() { pool_.join(); }
  asio::thread_pool& pool() { return pool_; }

 private:
  asio::thread_pool pool_;
};

namespace async {

/// Runs `work` on the pool, forgets it there, and resumes the caller on its own executor.
Task<void> runOnPool(Workers& workers, std::function<void()> work);

}  // namespace async

/// Runs a blocking function on the pool and resumes the caller on its own executor.
/// `work` must own what it uses; it must not throw. The caller may end its loop as soon as it is
/// resumed: whatever the pool still holds then knows nothing of the loop (its work guard travels
/// home with the answer).
template <class T>
Task<T> offload(Workers& workers, std::function<T()> work) {
  auto value = std::make_shared<std::optional<T>>();  // the caller may be gone before the work ends
  co_await async::runOnPool(workers, [value, work = std::move(work)] { value->emplace(work()); });
  co_return std::move(**value);
}

}  // namespace muster
