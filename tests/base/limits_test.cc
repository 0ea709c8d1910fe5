// SPDX-License-Identifier: Apache-2.0
#include "base/limits.h"

#include "base/io/slow_tools.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/run_async.h"
#include "tests/slowed_clock.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(Limits, areThemselvesWhereNothingIsSlow) {
  FakeClock clock;
  SystemClock real;
  for (const Clock* any : {static_cast<const Clock*>(&clock), static_cast<const Clock*>(&real)}) {
    EXPECT_EQ(slownessOf(*any), 1);
    EXPECT_EQ(limitHere(*any, 600s), 600s);
    EXPECT_EQ(limitHere(*any, 1ms), 1ms);
    EXPECT_EQ(limitHere(*any, 600s, 60s), 600s) << "never shorter";
    EXPECT_EQ(limitText(*any, 600s), "600 s");
  }
  EXPECT_EQ(limitHere(test::SlowedClock(clock, 1), 600s), 600s) << "a lab on an idle machine";
  EXPECT_EQ(limitHere(test::SlowedClock(clock, 0.5), 600s), 600s) << "no limit is shortened";
}

TEST(Limits, followASlowPlaceAndSayWhatTheyAreOtherwise) {
  FakeClock clock;
  test::SlowedClock slow(clock, 2.5);
  EXPECT_EQ(limitHere(slow, 600s), 1500s);
  EXPECT_EQ(limitHere(slow, 45s, 900s), 113s) << "rounded up";
  EXPECT_EQ(limitHere(slow, 45s, 60s), 60s);
  EXPECT_EQ(limitText(slow, 600s),
            "1500 s (600 s on an idle machine; this one is 2.5 times slower)");
  slow.set(5);
  EXPECT_EQ(limitHere(slow, 600s), 3000s) << "asked again while something waits";
  EXPECT_EQ(limitHere(slow, std::chrono::hours(24 * 365)), std::chrono::hours(5 * 24 * 365));
}

TEST(SlowTools, haveAsMuchMoreTimeAsTheMachineIsSlower) {
  FakeClock clock;
  test::SlowedClock place(clock, 5);
  auto programs = std::make_unique<test::FakeProcessRunner>();
  auto* seen = programs.get();
  const auto runner = io::slowTools(std::move(programs), place);
  ASSERT_TRUE(test::runAsync(runner->run({.program = "scontrol", .timeout = 30s})));
  place.set(1);
  ASSERT_TRUE(test::runAsync(runner->run({.program = "scontrol", .timeout = 30s})));
  ASSERT_EQ(seen->commands.size(), 2u);
  EXPECT_EQ(seen->commands[0].timeout, 150s);
  EXPECT_EQ(seen->commands[1].timeout, 30s);
}

}  // namespace
}  // namespace muster
