// SPDX-License-Identifier: Apache-2.0
#include "base/async/await_all.h"
#include "base/async/deadline.h"
#include "lifecycle/executor/adaptive_semaphore.h"
#include "tests/lifecycle/cliff_world.h"
#include "tests/lifecycle/virtual_time.h"

#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using test::CliffWorld;
using Time = AdaptiveLimit::Time;

constexpr AdaptiveLimit::Bounds kBounds{1, 4, 1'024};

/// Ends of operations one after the other, `gap` apart.
void end(AdaptiveLimit& limit, Time& now, int count, std::chrono::milliseconds gap, bool good,
         bool wanted) {
  for (int i = 0; i < count; ++i) limit.ended(now += gap, good, wanted);
}

TEST(AdaptiveLimit, comesWithinTenPercentOfTheBestFixedSetting) {
  for (const double knee : {12.0, 80.0, 300.0})
    for (const double slope : {1.0, 5.0})
      for (const unsigned seed : {1u, 2u, 3u}) {
        SCOPED_TRACE(testing::Message()
                     << "knee " << knee << ", slope " << slope << ", seed " << seed);
        CliffWorld world;
        world.knee = knee;
        world.slope = slope;
        const int operations = static_cast<int>(knee * 600);
        const auto [best, semaphore] = test::bestFixed(world, 600, operations / 8, seed);
        const auto tuned = test::runTuned(world, kBounds, operations, seed);
        EXPECT_GE(tuned.good_per_s, 0.9 * best)
            << "best fixed: " << semaphore << ", at the end: " << tuned.last_limit;
        if (slope > 1) {
          EXPECT_LT(
              test::rateOfFixed(world, static_cast<std::size_t>(2 * knee), operations / 8, seed),
              0.5 * best)
              << "this is no cliff";
        }
      }
}

/// More places than the other side can use bring nothing: answers only take longer. The limit does
/// not creep up there.
TEST(AdaptiveLimit, staysSmallWhereMoreBringsNothing) {
  CliffWorld plateau;
  plateau.knee = 40;
  plateau.slope = 1;  // twice as many at once take twice as long
  plateau.fails_beyond = 1e9;
  const auto tuned = test::runTuned(plateau, kBounds, 60'000, 7);
  EXPECT_GE(tuned.good_per_s, 0.9 * 40 / 0.3);
  EXPECT_LE(tuned.last_limit, 80u);
}

TEST(AdaptiveLimit, followsAWorldThatChanges) {
  CliffWorld wide, narrow;
  wide.knee = 200;
  narrow.knee = 50;
  constexpr int kChange = 60'000, kSettle = 30'000, kEnd = 150'000;
  AdaptiveLimit limit(kBounds);
  Time settled{}, ended{};
  int count = 0, good = 0;
  test::runCliff([&](int done) -> const CliffWorld& { return done < kChange ? wide : narrow; },
                 kEnd, 5, [&] { return limit.limit(); },
                 [&](Time now, bool ok) {
                   limit.ended(now, ok, true);
                   if (++count == kChange + kSettle) settled = now;
                   if (count > kChange + kSettle && ok) ++good;
                   ended = now;
                 });
  const double rate = good / std::chrono::duration<double>(ended - settled).count();
  EXPECT_GE(rate, 0.9 * test::bestFixed(narrow, 200, 10'000, 5).first);
}

TEST(AdaptiveLimit, growsOnlyWhileSomebodyWaits) {
  AdaptiveLimit limit(kBounds);
  Time now{std::chrono::seconds(1)};
  end(limit, now, 5'000, std::chrono::milliseconds(1), true, false);
  EXPECT_EQ(limit.limit(), 4u);
}

TEST(AdaptiveLimit, manyFailuresHalveIt) {
  AdaptiveLimit limit({1, 64, 1'024});
  Time now{std::chrono::seconds(1)};
  const auto before = limit.limit();
  end(limit, now, static_cast<int>(2 * before), std::chrono::milliseconds(1), false, false);
  EXPECT_LE(limit.limit(), before / 2);
  end(limit, now, 5'000, std::chrono::milliseconds(1), false, true);
  EXPECT_EQ(limit.limit(), 1u);
}

constexpr AdaptiveLimit::Bounds kOfBoots{
    .floor = 16, .start = 512, .ceiling = 16'384, .doubles_every = std::chrono::seconds(5)};

/// A thousand boots at once, two minutes each, would make ten thousand nodes wait for ten rounds of
/// them.
TEST(AdaptiveLimit, whatTakesMinutesDoublesByTimeWhileNothingFails) {
  AdaptiveLimit limit(kOfBoots);
  limit.resumed(Time{std::chrono::seconds(1)});
  Time now{std::chrono::seconds(26)};  // the quickest of them
  end(limit, now, 440, std::chrono::milliseconds(50), true, true);
  EXPECT_GE(limit.limit(), 10'000u);
}

TEST(AdaptiveLimit, aFailureEndsDoublingByTime) {
  AdaptiveLimit limit(kOfBoots);
  limit.resumed(Time{std::chrono::seconds(1)});
  const auto before = limit.limit();
  Time now{std::chrono::seconds(26)};
  end(limit, now, 1, std::chrono::milliseconds(50), false, true);
  end(limit, now, 440, std::chrono::milliseconds(50), true, true);
  EXPECT_EQ(limit.limit(), before);
}

TEST(AdaptiveLimit, nothingDoublesByTimeWhileTheControllerIsBehind) {
  AdaptiveLimit limit(kOfBoots);
  limit.resumed(Time{std::chrono::seconds(1)});
  Time now{std::chrono::seconds(26)};
  for (int i = 0; i < 440; ++i) limit.ended(now += std::chrono::milliseconds(50), true, true, true);
  EXPECT_EQ(limit.limit(), AdaptiveLimit(kOfBoots).limit());
  end(limit, now, 440, std::chrono::milliseconds(50), true, true);  // it has caught up
  EXPECT_GE(limit.limit(), 5'000u);
}

TEST(AdaptiveLimit, whatTakesSecondsIsMeasured) {
  AdaptiveLimit by_time(kOfBoots), measured({16, 512, 16'384});
  Time now{std::chrono::seconds(1)};
  for (int i = 0; i < 20'000; ++i) {  // 500 a second, whatever the limit is
    now += std::chrono::milliseconds(2);
    by_time.ended(now, true, true);
    measured.ended(now, true, true);
    ASSERT_EQ(by_time.limit(), measured.limit());
  }
}

TEST(AdaptiveLimit, neverLeavesItsBounds) {
  AdaptiveLimit limit({8, 1'000, 100});
  EXPECT_LE(limit.limit(), 100u);
  Time now{std::chrono::seconds(1)};
  for (int round = 0; round < 2'000; ++round) {
    end(limit, now, 50, std::chrono::milliseconds(1 + round % 7), round % 5 != 0, true);
    ASSERT_GE(limit.limit(), 8u);
    ASSERT_LE(limit.limit(), 100u);
  }
}

// ---- in virtual time, with coroutines
// ------------------------------------------------------------------------------------

TEST(AdaptiveLimit, aDeclaredCeilingHoldsForItsStartAndFloorToo) {
  const AdaptiveLimit::Bounds own{16, 64, 1'024};
  EXPECT_EQ(AdaptiveLimit(own.under(std::nullopt)).limit(), AdaptiveLimit(own).limit());
  const auto few = own.under(5);
  EXPECT_EQ(few.ceiling, 5u);
  AdaptiveLimit limit(few);
  EXPECT_EQ(limit.limit(), 5u);
  Time now{};
  end(limit, now, 5'000, std::chrono::milliseconds(1), true, true);  // all is well, and many wait
  EXPECT_LE(limit.limit(), 5u);
  EXPECT_EQ(own.under(4'000).ceiling, 4'000u) << "a person may also allow more";
  EXPECT_EQ(own.under(4'000).start, 64u) << "and it begins where it always does";
}

class AdaptiveSemaphoreTest : public testing::Test {
 protected:
  /// A BMC that gets slow when many are asked.
  Async<void> ask() {
    ++at_once_;
    most_ = std::max(most_, at_once_);
    co_await clock_.sleep(
        std::chrono::milliseconds(static_cast<int>(1e3 * world_.meanSeconds(at_once_))));
    --at_once_;
    ++answered_;
    co_return Result<void>();
  }
  Task<void> askWithPermit(AdaptiveSemaphore& semaphore) {
    (void)co_await withPermit(semaphore, ask());
  }
  Task<int> askAll(AdaptiveSemaphore& semaphore, int count) {
    std::vector<Task<void>> all;
    for (int i = 0; i < count; ++i) all.push_back(askWithPermit(semaphore));
    co_await async::awaitAll(std::move(all));
    co_return answered_;
  }

  FakeClock clock_;
  CliffWorld world_;
  std::size_t at_once_ = 0, most_ = 0;
  int answered_ = 0;
};

TEST_F(AdaptiveSemaphoreTest, asksManyBmcsAboutAsFastAsTheyBear) {
  constexpr int kRequests = 40'000;
  world_.knee = 60;
  AdaptiveSemaphore semaphore(clock_, {1, 4, 1'000});
  const auto begin = clock_.steady();
  EXPECT_EQ(test::runInVirtualTime(clock_, askAll(semaphore, kRequests)), kRequests);
  const double seconds = std::chrono::duration<double>(clock_.steady() - begin).count();
  EXPECT_GE(kRequests / seconds, 0.9 * world_.knee / world_.base_s);
  EXPECT_EQ(semaphore.underWay(), 0u);
  EXPECT_LT(most_, 200u);
}

/// Machines that start in 30 s, of which each asks for a request every second. More of them at once
/// pay as long as the requests keep up.
class MachinesAndRequests : public AdaptiveSemaphoreTest {
 protected:
  Async<void> start(AdaptiveSemaphore& requests) {
    for (int second = 0; second < 30; ++second) {
      co_await clock_.sleep(std::chrono::seconds(1));
      (void)co_await withPermit(requests, ask());
    }
    co_return Result<void>();
  }
  Task<void> startWithPermit(AdaptiveSemaphore& machines, AdaptiveSemaphore& requests) {
    (void)co_await withPermit(machines, start(requests));
  }
  /// Places of machines after 3,000 of them, with so many requests a second.
  std::size_t placesWith(std::size_t requests_per_s) {
    world_.knee = 1e9;
    world_.base_s = 0.1;
    AdaptiveSemaphore machines(
        clock_,
        {.floor = 4, .start = 32, .ceiling = 16'384, .doubles_every = std::chrono::seconds(5)});
    const auto at_once = requests_per_s / 10;
    AdaptiveSemaphore requests(
        clock_, {.floor = at_once, .start = at_once, .ceiling = at_once, .shows_backlog = true});
    std::size_t most = 0;
    const auto all = [&]() -> Task<int> {
      std::vector<Task<void>> tasks;
      for (int i = 0; i < 3'000; ++i) tasks.push_back(startWithPermit(machines, requests));
      auto watching = [&]() -> Task<void> {
        do {
          most = std::max(most, machines.limit());
          co_await clock_.sleep(std::chrono::seconds(1));
        } while (machines.underWay() > 0);
      };
      tasks.push_back(watching());
      co_await async::awaitAll(std::move(tasks));
      co_return 0;
    };
    test::runInVirtualTime(clock_, all());
    return most;
  }
};

TEST_F(MachinesAndRequests, growByTimeOnlyWhileRequestsKeepUp) {
  EXPECT_GE(placesWith(10'000), 900u) << "ten thousand requests a second serve them all";
  EXPECT_LE(placesWith(100), 256u) << "a hundred requests a second serve a hundred machines";
}

TEST_F(AdaptiveSemaphoreTest, neverHasMoreUnderWayThanThePlaces) {
  AdaptiveSemaphore semaphore(clock_, {3, 3, 3});
  EXPECT_EQ(test::runInVirtualTime(clock_, askAll(semaphore, 50)), 50);
  EXPECT_EQ(most_, 3u);
}

TEST_F(AdaptiveSemaphoreTest, theLowestRankGoesFirstAndAmongEqualsWhoCameFirst) {
  AdaptiveSemaphore semaphore(clock_, {1, 1, 1});
  std::string order;
  const auto go = [](AdaptiveSemaphore& p, FakeClock& clock, std::size_t rank, char name,
                     std::string& out) -> Task<void> {
    co_await p.acquire(rank);
    out += name;
    co_await clock.sleep(std::chrono::milliseconds(1));
    p.release(true);
  };
  std::vector<Task<void>> all;
  for (const auto& [rank, name] :
       {std::pair<std::size_t, char>{9, 'a'}, {5, 'b'}, {3, 'c'}, {3, 'd'}, {1, 'e'}})
    all.push_back(go(semaphore, clock_, rank, name, order));
  const auto scene = [](std::vector<Task<void>> tasks) -> Task<int> {
    co_await async::awaitAll(std::move(tasks));
    co_return 0;
  };
  test::runInVirtualTime(clock_, scene(std::move(all)));
  EXPECT_EQ(order, "aecdb") << "the first found the place free";
}

TEST_F(AdaptiveSemaphoreTest, aPlaceOfOneThatWasCalledOffIsGivenOn) {
  AdaptiveSemaphore semaphore(clock_, {1, 1, 1});
  auto scene = [](AdaptiveSemaphore& p, FakeClock& clock) -> Task<int> {
    co_await p.acquire();
    auto queued = [](AdaptiveSemaphore& of) -> Async<void> {
      co_await of.acquire();
      co_return Result<void>();
    };
    const auto outcome =
        co_await withDeadline(clock, std::chrono::milliseconds(10), "a place", queued(p));
    p.release(true);
    co_await p.acquire();
    p.abandon();
    co_return outcome ? 1 : 0;
  };
  EXPECT_EQ(test::runInVirtualTime(clock_, scene(semaphore, clock_)), 0);
  EXPECT_EQ(semaphore.underWay(), 0u);
}

}  // namespace
}  // namespace muster::lifecycle
