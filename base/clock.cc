// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <fmt/chrono.h>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

#include <charconv>

namespace muster {

std::string toString(WallTime time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

namespace {

/// Takes exactly `digits` digits and the literal `after` (0: nothing) from the front of `rest`.
bool take(std::string_view& rest, std::size_t digits, char after, int& value) {
  if (rest.size() < digits) return false;
  for (std::size_t i = 0; i < digits; ++i) {
    if (rest[i] < '0' || rest[i] > '9') return false;
  }
  std::from_chars(rest.data(), rest.data() + digits, value);
  rest.remove_prefix(digits);
  if (after == 0) return true;
  if (rest.empty() || rest.front() != after) return false;
  rest.remove_prefix(1);
  return true;
}

/// ".123" of any length; keeps milliseconds.
bool takeFraction(std::string_view& rest, int& milliseconds) {
  if (rest.empty() || rest.front() != '.') return true;
  rest.remove_prefix(1);
  int scale = 100;
  std::size_t digits = 0;
  while (digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9') {
    milliseconds += (rest[digits] - '0') * scale;
    scale /= 10;
    ++digits;
  }
  rest.remove_prefix(digits);
  return digits > 0;
}

/// "Z", "+02:00": minutes east of UTC.
bool takeOffset(std::string_view& rest, int& minutes_east) {
  if (rest.empty()) return false;
  const char sign = rest.front();
  rest.remove_prefix(1);
  if (sign == 'Z' || sign == 'z') return rest.empty();
  int hours = 0;
  int minutes = 0;
  if ((sign != '+' && sign != '-') || !take(rest, 2, ':', hours) || !take(rest, 2, 0, minutes) ||
      hours > 23 || minutes > 59)
    return false;
  minutes_east = (hours * 60 + minutes) * (sign == '-' ? -1 : 1);
  return rest.empty();
}

}  // namespace

Result<WallTime> parseWallTime(std::string_view text) {
  using namespace std::chrono;
  std::string_view rest = text;
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0, ms = 0, east = 0;
  const bool shape = take(rest, 4, '-', y) && take(rest, 2, '-', mo) && take(rest, 2, 'T', d) &&
                     take(rest, 2, ':', h) && take(rest, 2, ':', mi) && take(rest, 2, 0, s) &&
                     takeFraction(rest, ms) && takeOffset(rest, east);
  const year_month_day date{year(y), month(static_cast<unsigned>(mo)),
                            day(static_cast<unsigned>(d))};
  if (!shape || !date.ok() || h > 23 || mi > 59 || s > 59) {
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is not a time; write it as 2026-01-31T12:00:00.000Z", text));
  }
  return WallTime(sys_days(date)) + hours(h) + minutes(mi - east) + seconds(s) + milliseconds(ms);
}

WallTime SystemClock::now() const {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::chrono::steady_clock::time_point SystemClock::steady() const {
  return std::chrono::steady_clock::now();
}

Task<void> Clock::sleep(std::chrono::milliseconds duration) {
  if (!co_await waitFor(duration))
    throw boost::system::system_error(asio::error::operation_aborted);
}

Task<bool> SystemClock::waitFor(std::chrono::milliseconds duration, WakeToken* token) {
  asio::steady_timer timer(co_await asio::this_coro::executor, duration);
  const WakeToken::Armed armed(token, timer);
  boost::system::error_code error;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  co_return !error;
}

// A sleeper is a timer that never expires; waking it is cancelling it. The flag tells that from a
// real cancellation.
struct FakeClock::State {
  struct Sleeper {
    asio::steady_timer timer;
    bool woken = false;
  };
  WallTime now = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
  std::chrono::milliseconds elapsed{0};
  std::multimap<std::chrono::milliseconds, std::shared_ptr<Sleeper>> sleepers;

  void moveTo(std::chrono::milliseconds target) {
    now += target - elapsed;
    elapsed = target;
    while (!sleepers.empty() && sleepers.begin()->first <= elapsed) {
      auto sleeper = sleepers.begin()->second;
      sleepers.erase(sleepers.begin());
      sleeper->woken = true;
      sleeper->timer.cancel();
    }
  }
};

FakeClock::FakeClock() : state_(std::make_shared<State>()) {}
FakeClock::~FakeClock() = default;

WallTime FakeClock::now() const { return state_->now; }
std::chrono::steady_clock::time_point FakeClock::steady() const {
  return std::chrono::steady_clock::time_point(state_->elapsed);
}

Task<bool> FakeClock::waitFor(std::chrono::milliseconds duration, WakeToken* token) {
  auto state = state_;
  auto executor = co_await asio::this_coro::executor;
  auto sleeper = std::make_shared<State::Sleeper>(State::Sleeper{asio::steady_timer(executor)});
  sleeper->timer.expires_at(asio::steady_timer::time_point::max());
  // Removes the entry also when the coroutine is destroyed while it sleeps.
  struct Entry {
    std::shared_ptr<State> state;
    std::shared_ptr<State::Sleeper> sleeper;
    std::multimap<std::chrono::milliseconds, std::shared_ptr<State::Sleeper>>::iterator place;
    ~Entry() {
      if (!sleeper->woken) state->sleepers.erase(place);
    }
  };
  Entry entry{state, sleeper,
              state->sleepers.emplace(
                  state->elapsed + std::max(duration, std::chrono::milliseconds(0)), sleeper)};
  const WakeToken::Armed armed(token, sleeper->timer);
  boost::system::error_code error;
  co_await sleeper->timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  co_return sleeper->woken;
}

void FakeClock::advance(std::chrono::milliseconds duration) {
  state_->moveTo(state_->elapsed + duration);
}

bool FakeClock::advanceToNext() {
  if (state_->sleepers.empty()) return false;
  state_->moveTo(std::max(state_->elapsed, state_->sleepers.begin()->first));
  return true;
}

}  // namespace muster
