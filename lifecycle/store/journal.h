// SPDX-License-Identifier: Apache-2.0
// Journal: many coroutines' writes in one commit. docs/adr/0014
//
// A sync to the disk costs the same for one write as for a thousand. A coroutine hands its writes
// over and sleeps; whatever has gathered when the store is free goes to it as one batch
// (Store::together), on a thread of its own, and everybody is woken when the batch is on the disk,
// each with the answer to its own writes. Nobody sees an answer before it is durable, so the order
// of docs/adr/0003 holds for each action as before: a coroutine begins its effect only after the
// write before it was answered. Batches are written one after the other, and within one in the
// order in which writes were handed over.
//
// A store that does not group (memory, tests that count writes) is called at once, on the control
// thread.
#pragma once

#include "base/async/event.h"
#include "lifecycle/store/store.h"

#include <deque>
#include <exception>
#include <functional>

namespace muster::lifecycle {

inline constexpr std::size_t kMaxBatchWrites = 2'000;

class Journal {
 public:
  /// `store` is borrowed. Without a thread batches are written on the control thread, for tests in
  /// virtual time.
  explicit Journal(Store& store, bool with_thread = true);
  Journal(const Journal&) = delete;
  /// Waits for the batch that is being written.
  ~Journal();

  /// Where those who wait run; before the first write. Called again by a loop that comes after.
  void attach(asio::any_io_executor control);

  /// Answers when what `work` wrote is on the disk, or with its error and nothing of that call
  /// written. `work` owns what it uses; it runs on another thread, perhaps more than once, and
  /// touches nothing but the store.
  template <class T>
  Async<T> write(std::function<Result<T>(Store&)> work);

  /// Without waiting for it; `then` runs on the control thread when it is on the disk or was
  /// refused.
  template <class T>
  void post(std::function<Result<T>(Store&)> work, std::function<void(Result<T>)> then);

  /// When everything handed over so far was written, or refused.
  Task<void> settled();

  bool groups() const { return store_.groups(); }

 private:
  struct Core;
  struct Entry {
    std::function<bool(Store&)> run;                 ///< answers whether it succeeded
    std::function<void(std::exception_ptr)> finish;  ///< on the control thread
  };
  void hand(Entry entry);
  void close();

  template <class T>
  struct Answer {
    std::function<Result<T>(Store&)> work;
    std::optional<Result<T>> result;
    std::exception_ptr thrown;
    async::Event ready;
  };
  template <class T>
  static std::function<bool(Store&)> runOf(const std::shared_ptr<Answer<T>>& answer) {
    return [answer](Store& store) {
      answer->result.emplace(answer->work(store));
      return answer->result->has_value();
    };
  }

  Store& store_;
  const bool with_thread_;
  std::shared_ptr<Core> core_;
};

template <class T>
Async<T> Journal::write(std::function<Result<T>(Store&)> work) {
  if (!groups()) co_return work(store_);
  auto answer = std::make_shared<Answer<T>>();
  answer->work = std::move(work);
  auto wake = [answer](std::exception_ptr thrown) {
    answer->thrown = thrown;
    answer->ready.set();
  };
  hand(Entry{runOf(answer), std::move(wake)});
  co_await answer->ready.wait();
  if (answer->thrown) std::rethrow_exception(answer->thrown);
  co_return std::move(*answer->result);
}

template <class T>
void Journal::post(std::function<Result<T>(Store&)> work, std::function<void(Result<T>)> then) {
  if (!groups()) return then(work(store_));
  auto answer = std::make_shared<Answer<T>>();
  answer->work = std::move(work);
  auto tell = [answer, then = std::move(then)](std::exception_ptr thrown) {
    if (!thrown) then(std::move(*answer->result));
  };
  hand(Entry{runOf(answer), std::move(tell)});
}

}  // namespace muster::lifecycle
