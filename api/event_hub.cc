// SPDX-License-Identifier: Apache-2.0
#include "api/event_hub.h"

#include "base/json_output.h"
#include "base/log.h"
#include "lifecycle/model/json.h"

#include <boost/asio/redirect_error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace muster::api {
namespace {

constexpr std::size_t kPollLimit = 2'000;                ///< events of one look
constexpr std::size_t kReadLimit = 200;                  ///< for one client that is behind
constexpr std::chrono::milliseconds kIdlePeriod{1'000};  ///< of a hub that nobody listens to
constexpr std::string_view kHeartbeat = ": heartbeat\n\n";
constexpr std::string_view kGreeting = "retry: 2000\n: muster\n\n";

}  // namespace

Frame frameOf(const lifecycle::Event& event) {
  return {event.sequence, event.subject.str(),
          fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.sequence, toString(event.kind),
                      jsonText(lifecycle::toJson(event)))};
}

/// One client: its place, and the timer that it sleeps on.
class EventSubscription {
 public:
  using Steady = std::chrono::steady_clock;

  EventSubscription(std::shared_ptr<EventHub> hub, std::optional<std::int64_t> after,
                    std::function<bool(const std::string&)> wanted, std::function<bool()> may_go_on)
      : hub_(std::move(hub)),
        timer_(hub_->executor_),
        after_(after),
        wanted_(std::move(wanted)),
        may_go_on_(std::move(may_go_on)) {
    hub_->clients_.push_back(this);
  }
  EventSubscription(const EventSubscription&) = delete;
  ~EventSubscription() { std::erase(hub_->clients_, this); }

  void wake() { timer_.cancel(); }
  /// Its place is one of a log that is gone.
  void beginAnew() {
    begins_anew_ = true;
    began_at_ = -1;
  }

  Task<std::optional<std::string>> next() {
    if (!std::exchange(greeted_, true)) co_return std::string(kGreeting);
    auto heartbeat_at = Steady::now() + kHeartbeatPeriod;
    while (Steady::now() < ends_at_) {
      if (hub_->last_ >= 0) {
        if (std::exchange(begins_anew_, false)) after_.reset();
        if (!after_) after_ = hub_->last_;
        leaveLogThatIsGone();
        if (auto text = co_await missed(); !text.empty()) {
          if (may_go_on_ && !may_go_on_()) co_return std::nullopt;
          co_return text;
        }
      }
      if (Steady::now() >= heartbeat_at) {
        if (may_go_on_ && !may_go_on_()) co_return std::nullopt;
        co_return std::string(kHeartbeat);
      }
      boost::system::error_code woken;
      timer_.expires_at(heartbeat_at);
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      if ((co_await asio::this_coro::cancellation_state).cancelled() !=
          asio::cancellation_type::none)
        throw boost::system::system_error(asio::error::operation_aborted);
    }
    co_return std::nullopt;
  }

 private:
  /// A place that the log has not reached, looked at again since, is one of another log (a restored
  /// store's): waiting until this one gets there would be silence.
  void leaveLogThatIsGone() {
    if (began_at_ < 0) {
      began_at_ = hub_->last_;
      polls_then_ = hub_->polls_;
    }
    if (*after_ > hub_->last_ && hub_->polls_ > polls_then_) after_ = began_at_;
  }

  /// What came behind its place, as much as a piece holds.
  Task<std::string> missed() {
    std::string out;
    if (*after_ >= hub_->last_) co_return out;
    EventHub::Frames behind;
    if (*after_ < hub_->kept_after_) behind = co_await hub_->read(*after_);
    if (*after_ < hub_->kept_after_) {
      take(behind, out);
      if (behind.empty()) after_ = hub_->kept_after_;
      co_return out;
    }
    const auto first = std::ranges::upper_bound(hub_->kept_, *after_, {},
                                                [](const auto& frame) { return frame->sequence; });
    take(std::ranges::subrange(first, hub_->kept_.end()), out);
    co_return out;
  }

  void take(const auto& frames, std::string& out) {
    for (const auto& frame : frames) {
      if (out.size() >= kPieceBytes) return;
      after_ = frame->sequence;
      if (!wanted_ || wanted_(frame->subject)) out += frame->text;
    }
  }

  std::shared_ptr<EventHub> hub_;
  asio::steady_timer timer_;
  std::optional<std::int64_t> after_;
  std::function<bool(const std::string&)> wanted_;
  std::function<bool()> may_go_on_;
  bool greeted_ = false, begins_anew_ = false;
  std::int64_t began_at_ = -1;  ///< the log's newest as this began; -1: it has not
  std::uint64_t polls_then_ = 0;
  Steady::time_point ends_at_ = Steady::now() + kStreamLife;
};

Task<void> EventHub::run() {
  const auto self = shared_from_this();
  asio::steady_timer timer(executor_);
  auto idle_until = std::chrono::steady_clock::time_point{};
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    if (!clients_.empty() || now >= idle_until) {
      co_await poll();
      idle_until = now + kIdlePeriod;
    }
    timer.expires_after(kEventPollPeriod);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

Task<void> EventHub::poll() {
  auto found = std::make_shared<Result<std::vector<lifecycle::Event>>>();
  const auto after = last_;
  auto store = std::make_shared<std::uint64_t>(store_number_);
  std::function<void(SiteReader&)> look = [found, after, store](SiteReader& reader) {
    *store = reader.storeNumber();
    *found = after < 0 ? reader.store().lastEvents(1, nullptr)
                       : reader.store().events(after, kPollLimit, nullptr);
  };
  co_await on_reader_(std::move(look));
  if (std::exchange(store_number_, *store) != *store) {
    beginAnew();
    co_return;
  }
  if (!*found) {
    if (!std::exchange(failing_, true))  // said once for each time that it is so
      logWarning("api", "the log could not be read: {}", found->error().str());
    co_return;
  }
  failing_ = false;
  ++polls_;
  Frames frames;
  for (const auto& event : **found) frames.push_back(std::make_shared<const Frame>(frameOf(event)));
  if (after < 0) {  // what was there before is in the store
    last_ = kept_after_ = frames.empty() ? 0 : frames.back()->sequence;
    frames.clear();
  }
  publish(std::move(frames));
}

void EventHub::beginAnew() {
  kept_.clear();
  last_ = -1;
  kept_after_ = 0;
  for (auto* client : clients_) client->beginAnew();
}

Task<EventHub::Frames> EventHub::read(std::int64_t after) {
  auto frames = std::make_shared<Frames>();
  std::function<void(SiteReader&)> look = [frames, after](SiteReader& reader) {
    const auto found = reader.store().events(after, kReadLimit, nullptr);
    if (!found) return;
    for (const auto& event : *found)
      frames->push_back(std::make_shared<const Frame>(frameOf(event)));
  };
  co_await on_reader_(std::move(look));
  co_return std::move(*frames);
}

void EventHub::publish(Frames frames) {
  if (frames.empty()) return;
  last_ = frames.back()->sequence;
  for (auto& frame : frames) kept_.push_back(std::move(frame));
  while (kept_.size() > kKeptFrames) {
    kept_after_ = kept_.front()->sequence;
    kept_.pop_front();
  }
  for (auto* client : clients_) client->wake();
}

std::function<Task<std::optional<std::string>>()> EventHub::subscribe(
    std::optional<std::int64_t> after, std::function<bool(const std::string&)> wanted,
    std::function<bool()> may_go_on) {
  auto client = std::make_shared<EventSubscription>(shared_from_this(), after, std::move(wanted),
                                                    std::move(may_go_on));
  return [client]() -> Task<std::optional<std::string>> { return client->next(); };
}

}  // namespace muster::api
