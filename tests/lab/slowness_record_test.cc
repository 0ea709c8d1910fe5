// SPDX-License-Identifier: Apache-2.0
#include "lab/slowness_record.h"

#include "base/io/files.h"
#include "base/limits.h"
#include "lab/twin_clock.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

namespace muster::lab {
namespace {

using namespace std::chrono_literals;

const WallTime kBegin = std::chrono::sys_days(std::chrono::year(2026) / 3 / 4);

SlownessRecord recordOf(const std::vector<double>& measured) {
  SlownessRecord out;
  auto at = kBegin;
  for (const double each : measured) out.add(at += 15s, each);
  return out;
}

TEST(SlownessRecord, roundsUpToAStepAndAnIdleMachineIsNotSlow) {
  EXPECT_EQ(SlownessRecord().factor(kBegin), 1);
  EXPECT_EQ(recordOf({1.06}).factor(kBegin), 1);
  EXPECT_EQ(recordOf({1.3}).factor(kBegin), 1.5);
  EXPECT_EQ(recordOf({4.2}).factor(kBegin), 5) << "eight programs beside it on two processors";
  EXPECT_EQ(recordOf({50}).factor(kBegin), 20) << "the bound";
}

TEST(SlownessRecord, aSingleBurstIsNoBusyMachine) {
  EXPECT_EQ(recordOf({1, 1, 9, 1, 1}).factor(kBegin + 2min), 1);
  EXPECT_EQ(recordOf({1, 1, 4.8, 4.9}).factor(kBegin + 2min), 5) << "two of three are";
}

TEST(SlownessRecord, whatWasSeenCountsForAnHourSoThatNoLimitShrinksUnderAWait) {
  const auto record = recordOf({5, 5, 5, 1, 1, 1, 1});
  EXPECT_EQ(record.factor(kBegin + 10min), 5);
  EXPECT_EQ(record.factor(kBegin + 2h), 1);
}

TEST(SlownessRecord, isKeptAndWhatOthersSawCountsToo) {
  const auto read = SlownessRecord::fromJson(recordOf({5, 5, 5}).toJson());
  EXPECT_EQ(read.factor(kBegin + 1min), 5);
  EXPECT_EQ(read.factor(kBegin + 2h), 1);
  auto own = recordOf({1.4});
  own.merge(read);
  EXPECT_EQ(own.factor(kBegin + 1min), 5);
  for (const char* odd : {"", "{}", "[1]", "[{}]", R"([{"times_slower":"5","last_seen":5}])",
                          R"([{"times_slower":1000,"last_seen":"2026-03-04T00:00:00Z"}])"})
    EXPECT_EQ(SlownessRecord::fromJson(odd).factor(kBegin), 1) << odd;
}

TEST(TwinClock, keepsWhatItMeasuresInTheLabsFolderAndBelievesWhatOthersHaveKept) {
  test::TempFolder folder;
  SlownessRecord busy;
  busy.add(SystemClock().now() - 1min, 8);
  ASSERT_TRUE(io::writeFileAtomic(folder / "slowness.json", busy.toJson()));
  {
    const TwinClock clock(folder.path());
    EXPECT_GE(clock.slowness(), 8);
    EXPECT_GE(limitHere(clock, 600s), 4800s);
  }
  EXPECT_GE(measureInto(folder.path()), 8);
  EXPECT_GE(
      SlownessRecord::fromJson(*io::readFile(folder / "slowness.json")).factor(SystemClock().now()),
      8);
}

TEST(TwinClock, doesNotMakeTheFolderOfARackThatIsGone) {
  test::TempFolder folder;
  const auto gone = folder / "demo";
  const TwinClock clock(gone);
  EXPECT_GE(clock.slowness(), 1);
  EXPECT_LE(clock.slowness(), kSlownessSteps.back());
  EXPECT_FALSE(std::filesystem::exists(gone));
}

}  // namespace
}  // namespace muster::lab
