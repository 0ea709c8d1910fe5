// SPDX-License-Identifier: Apache-2.0
// Many looks at once are one question: those that come in the same turn of the loop are asked
// together, and a list of everybody serves those of the next second too. A single look asks for its
// name only. Control thread only.
#pragma once

#include "base/async/event.h"
#include "base/clock.h"

#include <boost/asio/post.hpp>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace muster::pool {

inline constexpr std::chrono::seconds kListAge{
    1};  ///< an answer may be so old, but never older than our own last order

template <class Entry>
class SharedList {
 public:
  using Entries = std::map<std::string, Entry>;
  using Answer = std::shared_ptr<const Entries>;
  using Ask = std::function<Async<Answer>(std::set<std::string> names)>;

  /// `ask`: answers at least for these names. `broken_off`: what those hear whose question was
  /// called off.
  SharedList(Clock& clock, std::string broken_off, Ask ask)
      : clock_(clock), broken_off_(std::move(broken_off)), ask_(std::move(ask)) {}

  /// Entries among which the name is, if there is such a one.
  Async<Answer> look(std::string name) {
    if (list_ && clock_.steady() - listed_at_ < kListAge) co_return list_;
    const bool first = !gathering_;
    if (first) gathering_ = std::make_shared<Round>(broken_off_);
    const auto round = gathering_;
    round->names.insert(std::move(name));
    co_await (first ? lead(round) : round->answered.wait());
    co_return round->answer;
  }

  /// Something was ordered: what was listed before is worth nothing.
  void ordered() {
    ++orders_;
    list_.reset();
  }

  /// The moment in which a list of everybody is asked for.
  struct Moment {
    std::chrono::steady_clock::time_point at;
    std::uint64_t orders = 0;
  };
  Moment now() const { return {clock_.steady(), orders_}; }
  /// Keeps such a list for the looks to come, unless something was ordered meanwhile.
  void keep(const Moment& asked, Answer all) {
    if (asked.orders != orders_) return;
    list_ = std::move(all);
    listed_at_ = asked.at;
  }

 private:
  struct Round {
    explicit Round(const std::string& broken_off)
        : answer(fail(ErrorCode::Unavailable, broken_off)) {}
    std::set<std::string> names;  ///< that are asked for
    Result<Answer> answer;
    async::Event answered;
  };

  /// Asks for everybody who came before the question was put. Whatever ends the one who asks, the
  /// others are not left waiting.
  Task<void> lead(std::shared_ptr<Round> round) {
    std::exception_ptr cancelled;
    try {
      auto executor = co_await asio::this_coro::executor;
      co_await asio::post(executor, asio::use_awaitable);
      if (gathering_ == round) gathering_.reset();
      round->answer = co_await ask_(round->names);
    } catch (...) {
      cancelled = std::current_exception();
    }
    if (gathering_ == round) gathering_.reset();
    round->answered.set();
    if (cancelled) std::rethrow_exception(cancelled);
  }

  Clock& clock_;
  const std::string broken_off_;
  const Ask ask_;
  std::shared_ptr<Round> gathering_;  ///< not asked yet
  Answer list_;                       ///< of everybody
  std::chrono::steady_clock::time_point listed_at_{};
  std::uint64_t orders_ = 0;  ///< of ours
};

}  // namespace muster::pool
