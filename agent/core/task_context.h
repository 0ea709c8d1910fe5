// SPDX-License-Identifier: Apache-2.0
// What the agent lends a task while it runs, and the shape of a task's handler.
#pragma once

#include "base/async/task.h"
#include "base/utf8.h"
#include "wire/messages.h"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace muster::agent {

/// Shared by the handler, by work that it left on a thread, and by the agent that reports progress.
/// Thread-safe.
class TaskContext {
 public:
  explicit TaskContext(std::string id, std::chrono::seconds deadline)
      : id_(std::move(id)), deadline_(deadline) {}

  const std::string& id() const { return id_; }
  std::chrono::seconds deadline() const { return deadline_; }

  struct Progress {
    double fraction = -1;
    std::string text = {};
    std::vector<wire::TaskReason> reasons = {};
  };
  /// `reasons`: what the controller must know of this step beyond its text.
  void progress(double fraction, std::string text, std::vector<wire::TaskReason> reasons = {}) {
    constexpr std::size_t kMaxProgressBytes =
        wire::kMaxTextBytes / 4;  // what is no UTF-8 grows on the way
    text.resize(cutToBytes(text, kMaxProgressBytes).size());
    std::lock_guard lock(mutex_);
    progress_ = {fraction, std::move(text), std::move(reasons)};
  }
  Progress progressNow() const {
    std::lock_guard lock(mutex_);
    return progress_;
  }
  /// Set when the deadline has passed or the agent ends; blocking work looks at it between its
  /// steps.
  bool cancelled() const { return cancelled_; }
  void cancel() { cancelled_ = true; }

 private:
  std::string id_;
  std::chrono::seconds deadline_;
  mutable std::mutex mutex_;
  Progress progress_;
  std::atomic<bool> cancelled_{false};
};

using TaskContextPtr = std::shared_ptr<TaskContext>;

/// Carries out one kind of task and answers its result, a JSON object.
using TaskHandler =
    std::function<Async<nlohmann::json>(nlohmann::json params, TaskContextPtr context)>;
using TaskHandlers = std::map<wire::TaskKind, TaskHandler>;

/// Blocking work on the pool that the caller can leave behind: when the deadline cancels the
/// caller, the answer is Timeout at once, `context` says so to the work, and the context stays
/// alive until the work has really ended.
template <class T>
Async<T> offloadFor(Workers& workers, TaskContextPtr context, std::function<Result<T>()> work) {
  struct Meeting {
    explicit Meeting(asio::any_io_executor executor)
        : bell(executor, asio::steady_timer::time_point::max()) {}
    asio::steady_timer bell;
    std::optional<Result<T>> answer;
  };
  auto home = co_await asio::this_coro::executor;
  auto meeting = std::make_shared<Meeting>(home);
  asio::post(workers.pool(), [home, meeting, context, work = std::move(work)]() mutable {
    Result<T> answer = work();
    work = nullptr;
    // Moved: the timer must not be left to this thread, which may end after the loop.
    asio::post(home, [meeting = std::move(meeting), context = std::move(context),
                      answer = std::move(answer)]() mutable {
      meeting->answer = std::move(answer);
      meeting->bell.cancel();
    });
  });
  boost::system::error_code ignored;
  co_await meeting->bell.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  if (meeting->answer) co_return std::move(*meeting->answer);
  context->cancel();
  co_return fail(ErrorCode::Timeout, "was cancelled; its last step may still be running");
}

}  // namespace muster::agent
