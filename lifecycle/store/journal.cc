// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/journal.h"

#include <boost/asio/post.hpp>

#include <deque>
#include <mutex>
#include <thread>

namespace muster::lifecycle {

namespace {

/// While many write, the next commit waits for more of them: a sync costs as much for one as for a
/// hundred.
constexpr std::chrono::milliseconds kGather{2};
/// So many are worth a commit of their own: the store does not wait for what those of the last
/// batch have to write.
constexpr std::size_t kCrowd = 256;

}  // namespace

/// Outlives the Journal only as long as a handler of a stopped loop holds it.
struct Journal::Core : std::enable_shared_from_this<Journal::Core> {
  Core(Store& borrowed, bool with_thread) : store(borrowed) {
    if (with_thread) worker = std::make_unique<Workers>(1);
  }

  /// After what is ready now has run: it may have more to write.
  void gather() {
    busy = true;
    asio::post(control, [self = shared_from_this()] { self->send(); });
  }

  void send() {
    if (closed) return;
    busy = true;
    auto batch = std::make_shared<std::vector<Entry>>();
    const auto count = std::min(waiting.size(), kMaxBatchWrites);
    batch->assign(std::make_move_iterator(waiting.begin()),
                  std::make_move_iterator(waiting.begin() + static_cast<std::ptrdiff_t>(count)));
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
    if (!worker) return finish(*batch, commit(*batch));
    // The loop has work as long as a batch is under way. Its count is given back by the loop's own
    // thread: when the last batch is answered the loop may end, and its context with it, while the
    // worker has not yet returned from handing the answer over.
    auto keep = asio::prefer(control, asio::execution::outstanding_work.tracked);
    asio::post(worker->pool(), [self = shared_from_this(), to = control, batch = std::move(batch),
                                keep = std::move(keep)]() mutable {
      auto thrown = self->commit(*batch);
      const bool crowd = batch->size() > 1;
      std::unique_lock handing(self->handing_over);
      asio::post(
          to, [self, batch = std::move(batch), keep = std::move(keep), thrown = std::move(thrown)] {
            {
              const std::lock_guard handed(self->handing_over);
            }
            self->finish(*batch, thrown);
          });
      handing.unlock();
      if (crowd) std::this_thread::sleep_for(kGather);
    });
  }

  std::exception_ptr commit(const std::vector<Entry>& batch) {
    std::vector<std::function<bool()>> works;
    works.reserve(batch.size());
    for (const auto& entry : batch) works.push_back([this, &entry] { return entry.run(store); });
    try {
      store.together(works);
      return nullptr;
    } catch (...) {  // a test's death of the process; it goes on in everybody who waits
      return std::current_exception();
    }
  }

  void finish(const std::vector<Entry>& batch, const std::exception_ptr& thrown) {
    if (closed) return;
    busy = false;
    if (worker && !thrown && waiting.size() >= kCrowd)
      send();  // the store works while those of this batch go on
    for (const auto& entry : batch) entry.finish(thrown);
    if (!busy && !waiting.empty()) gather();
  }

  Store& store;
  asio::any_io_executor control;
  std::deque<Entry> waiting;
  bool busy = false;
  bool closed = false;
  std::mutex handing_over;  ///< held by the worker until it has let go of the loop
  std::unique_ptr<Workers> worker;
};

Journal::Journal(Store& store, bool with_thread)
    : store_(store),
      with_thread_(with_thread && store.groups()),
      core_(std::make_shared<Core>(store, with_thread_)) {}

Journal::~Journal() { close(); }

void Journal::close() {
  core_->closed = true;
  core_->worker.reset();
}

void Journal::attach(asio::any_io_executor control) {
  if (core_->control == control) return;  // several runs in one loop
  if (core_->busy) {  // the loop before was left in the middle; nobody waits any more
    close();
    core_ = std::make_shared<Core>(store_, with_thread_);
  }
  core_->control = std::move(control);
}

Task<void> Journal::settled() {
  (void)co_await write<void>([](Store&) -> Result<void> { return {}; });
}

void Journal::hand(Entry entry) {
  core_->waiting.push_back(std::move(entry));
  if (!core_->busy) core_->gather();
}

}  // namespace muster::lifecycle
