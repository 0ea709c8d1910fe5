// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/async/deadline.h"
#include "tests/run_async.h"

#include <boost/asio/co_spawn.hpp>

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(WallTime, roundTrips) {
  const auto time = parseWallTime("2026-03-01T23:59:58.007Z");
  ASSERT_TRUE(time);
  EXPECT_EQ(toString(*time), "2026-03-01T23:59:58.007Z");
  EXPECT_EQ(toString(*parseWallTime("2026-03-02T01:59:58+02:00")), "2026-03-01T23:59:58.000Z");
  EXPECT_EQ(toString(*parseWallTime("2024-02-29T00:00:00.1234567Z")), "2024-02-29T00:00:00.123Z");
  for (const auto* bad : {"", "2026-02-30T00:00:00Z", "2026-01-01 00:00:00Z",
                          "2026-01-01T24:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00Zx",
                          "2026-1-1T00:00:00Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+2"}) {
    EXPECT_FALSE(parseWallTime(bad)) << bad;
  }
}

Task<void> sleepAndNote(FakeClock& clock, std::chrono::milliseconds duration, std::string word,
                        std::vector<std::string>* said) {
  co_await clock.sleep(duration);
  said->push_back(std::move(word));
}

TEST(FakeClock, sleepersWakeInOrder) {
  asio::io_context io;
  FakeClock clock;
  std::vector<std::string> said;
  const auto ignore = [](std::exception_ptr) {};
  asio::co_spawn(io, sleepAndNote(clock, 30s, "thirty", &said), ignore);
  asio::co_spawn(io, sleepAndNote(clock, 10s, "ten", &said), ignore);
  asio::co_spawn(io, sleepAndNote(clock, 20s, "twenty", &said), ignore);
  io.poll();
  const auto start = clock.now();
  ASSERT_TRUE(clock.advanceToNext());
  io.poll();
  EXPECT_EQ(said, (std::vector<std::string>{"ten"}));
  EXPECT_EQ(clock.now() - start, 10s);
  clock.advance(20s);
  io.poll();
  EXPECT_EQ(said, (std::vector<std::string>{"ten", "twenty", "thirty"}));
  EXPECT_FALSE(clock.advanceToNext());
}

Async<int> slow(FakeClock& clock, std::chrono::milliseconds duration) {
  co_await clock.sleep(duration);
  co_return 7;
}

TEST(Deadline, whoeverIsFirst) {
  asio::io_context io;
  FakeClock clock;
  std::optional<Result<int>> late, early;
  asio::co_spawn(io, withDeadline(clock, 5s, "the slow one", slow(clock, 60s)),
                 [&](std::exception_ptr, Result<int> r) { late = r; });
  asio::co_spawn(io, withDeadline(clock, 5s, "the quick one", slow(clock, 1s)),
                 [&](std::exception_ptr, Result<int> r) { early = r; });
  io.poll();
  while (clock.advanceToNext()) io.poll();
  ASSERT_TRUE(late && early);
  EXPECT_EQ(late->error().code(), ErrorCode::Timeout);
  EXPECT_EQ(late->error().text(), "the slow one did not finish within 5 s");
  EXPECT_EQ(**early, 7);
}

}  // namespace
}  // namespace muster
