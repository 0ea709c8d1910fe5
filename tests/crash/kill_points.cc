// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/kill_points.h"

#include "tests/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace muster::test {
namespace {

constexpr int kPairsOfAll = 50;           ///< times as many as CI takes
constexpr int kMaxLivesAfterTrouble = 3;  ///< what was given up is tried again, as by a person

constexpr std::size_t kStory = 60;  ///< events

std::string words(const Death& death) {
  return fmt::format("write {} {}", death.crash_at, death.lost ? "lost" : "kept");
}

void tellIfItFailed(Trial& trial) {
  if (::testing::Test::HasFailure()) ADD_FAILURE() << trial.story();
}

void goToTheEnd(Trial& trial) {
  const auto end = trial.live({});
  ASSERT_FALSE(end.crashed);
  EXPECT_TRUE(end.ok) << end.problems;
  trial.expectTheEnd();
  tellIfItFailed(trial);
}

}  // namespace

std::string storyOf(lifecycle::Store& store) {
  std::string out;
  if (const auto events = store.lastEvents(kStory, nullptr))
    for (const auto& event : *events)
      out += fmt::format("{} {} {}: {}\n", toString(event.at), event.subject.str(), event.action_id,
                         event.text);
  return out;
}

int writesOf(const MakeTrial& make) {
  const auto trial = make();
  const auto end = trial->live({});
  EXPECT_TRUE(end.ok) << end.problems;
  trial->expectTheEnd();
  tellIfItFailed(*trial);
  return end.writes;
}

void killAtEveryWrite(const MakeTrial& make, int at_least, Sample sample) {
  const int writes = writesOf(make);
  if (::testing::Test::HasFailure()) return;
  ASSERT_GE(writes, at_least);
  const int apart = pointsApart(sample.every);
  for (int at = 0; at < writes; at += apart)
    for (const bool lost : {true, false}) {
      if (!sample.both && !suffers(at, apart, lost ? 0 : 1, 2)) continue;
      const Death death{.crash_at = at, .lost = lost};
      SCOPED_TRACE(fmt::format("{} of {}", words(death), writes));
      const auto trial = make();
      EXPECT_TRUE(trial->live(death).crashed);
      goToTheEnd(*trial);
      if (::testing::Test::HasFailure()) return;
    }
}

void killTwice(const MakeTrial& make, Sample sample) {
  const int writes = writesOf(make);
  if (::testing::Test::HasFailure()) return;
  std::mt19937 random(sample.seed);
  for (int pair = 0; pair < (takesEveryPoint() ? sample.pairs * kPairsOfAll : sample.pairs / 2);
       ++pair) {
    const auto drawn = [&random](int below) {
      return Death{.crash_at = static_cast<int>(random() % static_cast<unsigned>(below)),
                   .lost = random() % 2 == 0};
    };
    const auto first = drawn(writes), second = drawn(writes - first.crash_at + writes / 4 +
                                                     1);  // what went before is done over in part
    SCOPED_TRACE(fmt::format("seed {}, pair {}: {} of {}, then {}", sample.seed, pair, words(first),
                             writes, words(second)));
    const auto trial = make();
    EXPECT_TRUE(trial->live(first).crashed);
    (void)trial->live(second);
    goToTheEnd(*trial);
    if (::testing::Test::HasFailure()) return;
  }
}

void troubleAtEveryWrite(const MakeTrial& make, Death trouble, Sample sample) {
  const int writes = writesOf(make);
  if (::testing::Test::HasFailure()) return;
  for (int at = 0; at < writes; at += pointsApart(sample.every)) {
    trouble.trouble_from = at;
    SCOPED_TRACE(fmt::format("'{}'{} at write {} of {}, {} writes, {} s",
                             trouble.trouble.error.str(), trouble.trouble.made ? " (made)" : "", at,
                             writes, trouble.trouble_writes, trouble.trouble_lasts.count()));
    const auto trial = make();
    const auto end = trial->live(trouble);
    EXPECT_GT(end.refused, 0);
    if (!end.ok) {
      EXPECT_THAT(end.problems, ::testing::HasSubstr(trouble.trouble.error.text()))
          << "it does not say why";
    }
    LifeEnd last = end;
    for (int lives = 0; lives < kMaxLivesAfterTrouble && (lives == 0 || !last.ok); ++lives)
      last = trial->live({});
    EXPECT_TRUE(last.ok) << last.problems;
    trial->expectTheEnd();
    tellIfItFailed(*trial);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace muster::test
