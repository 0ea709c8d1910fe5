// SPDX-License-Identifier: Apache-2.0
// A thread beside the control thread, for what is long, needs nothing of it and is too short for
// the pool of blocking work: key exchanges and signatures.
#pragma once

#include "base/async/task.h"

#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>

#include <optional>

namespace muster::io {

/// Belongs to an io_context. Whoever destroys the context with jobs under way waits for the one
/// that runs, and drops the others together with those who wait for them: a job's answer never
/// meets a context that is gone.
class SideThread final : public asio::execution_context::service {
 public:
  static inline asio::execution_context::id id;

  explicit SideThread(asio::execution_context& owner) : service(owner), pool_(1) {}

  /// From now on the context's key exchanges and signatures are done on a thread of their own.
  static void startFor(asio::execution_context& context) { asio::use_service<SideThread>(context); }
  /// Null: none was started for the context, and its jobs are done where they come up.
  static SideThread* of(const asio::any_io_executor& executor) {
    auto& context = asio::query(executor, asio::execution::context);
    return asio::has_service<SideThread>(context) ? &asio::use_service<SideThread>(context)
                                                  : nullptr;
  }

  /// Runs job() there, then resume(answer) on `home`. Both must own what they use; job must not
  /// throw.
  template <class Job, class Resume>
  void run(asio::any_io_executor home, Job job, Resume resume) {
    asio::post(*pool_, [job = std::move(job), busy = asio::make_work_guard(home), home,
                        resume = std::move(resume)]() mutable {
      auto answer = job();
      asio::post(home,
                 [busy = std::move(busy), resume = std::move(resume),
                  answer = std::move(answer)]() mutable { std::move(resume)(std::move(answer)); });
    });
  }

 private:
  /// Called twice by io_context of Boost 1.83 and later, whose destructor shuts down by itself.
  void shutdown() override {
    if (!pool_) return;
    pool_->stop();
    pool_->join();
    pool_.reset();
  }

  std::optional<asio::thread_pool> pool_;
};

/// Answers work(), done on the side thread where the caller's context has one. `work` must own what
/// it uses and not throw.
template <class T>
Task<T> aside(std::function<T()> work) {
  auto home = co_await asio::this_coro::executor;
  auto* side = SideThread::of(home);
  if (!side) co_return work();
  auto begin = [side, &work, &home](auto resume) {
    side->run(home, std::move(work), std::move(resume));
  };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(T)>(
      std::move(begin), asio::use_awaitable);
}

}  // namespace muster::io
