// SPDX-License-Identifier: Apache-2.0
// How long things usually take, and who is told when one takes longer.
#include "lifecycle/executor/duration_estimate.h"

#include "lifecycle/executor/stall_watch.h"
#include "lifecycle/model/plan.h"
#include "tests/fakes/memory_store.h"
#include "tests/lifecycle/rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const WallTime kActionBegins{std::chrono::hours(24 * 365 * 50)};

Action actionOf(const std::string& facet, seconds expected) {
  Action action;
  action.facet = test::FakeWorld::ref(facet);
  action.id = facet;
  action.phase = "firmware";
  action.expected = expected;
  action.deadline = seconds(3600);
  return action;
}

Intent doneIn(const std::string& facet, milliseconds taken, IntentState state = IntentState::Done) {
  Intent intent;
  intent.action = actionOf(facet, seconds(60));
  intent.state = state;
  intent.opened_at = kActionBegins;
  intent.closed_at = kActionBegins + taken;
  return intent;
}

TEST(DurationEstimate, isThePhasesOwnEstimateUntilTheJournalKnowsBetter) {
  DurationEstimates estimates;
  const auto action = actionOf("gpu001/firmware.BMC", seconds(60));
  EXPECT_EQ(estimates.of(action).expected, seconds(60));
  EXPECT_EQ(estimates.of(action).samples, 0u);
  for (int i = 0; i < 2; ++i) estimates.add(doneIn("gpu001/firmware.BMC", seconds(5)));
  EXPECT_EQ(estimates.of(action).expected, seconds(60)) << "two lucky runs are no rule";
  for (int i = 0; i < 60; ++i) estimates.add(doneIn("gpu002/firmware.BMC", seconds(5)));
  EXPECT_EQ(estimates.of(action).expected, seconds(5));
}

TEST(DurationEstimate, aFewHoursOfOneBadNodeDoNotMoveItNorDoFailuresOrJumpsOfTheClock) {
  DurationEstimates estimates;
  for (int i = 0; i < 95; ++i) estimates.add(doneIn("gpu001/firmware.BMC", seconds(100)));
  for (int i = 0; i < 5; ++i) estimates.add(doneIn("gpu001/firmware.BMC", std::chrono::hours(5)));
  estimates.add(doneIn("gpu001/firmware.BMC", seconds(-50)));
  estimates.add(doneIn("gpu001/firmware.BMC", std::chrono::hours(24 * 400)));
  estimates.add(doneIn("gpu001/firmware.BMC", seconds(1), IntentState::Failed));
  const auto estimate = estimates.of(actionOf("gpu009/firmware.BMC", seconds(60)));
  EXPECT_EQ(estimate.expected, seconds(100));
  EXPECT_EQ(estimate.samples, 100u);
}

TEST(DurationEstimate, kindsAreApart) {
  DurationEstimates estimates;
  for (int i = 0; i < 60; ++i) estimates.add(doneIn("gpu001/pool", seconds(5)));
  auto drain = actionOf("gpu001/pool", seconds(600));
  drain.id += kDrainSuffix;
  EXPECT_EQ(estimates.of(drain).expected, seconds(600)) << "joining says nothing about draining";
}

TEST(DurationEstimate, isLateOnlyWellBeyondWhatIsUsual) {
  const DurationEstimate estimate{seconds(60), 10};
  EXPECT_FALSE(estimate.isLate(seconds(100)));
  EXPECT_TRUE(estimate.isLate(seconds(101)));
  EXPECT_FALSE((DurationEstimate{seconds(0), 0}.isLate(seconds(1000))))
      << "who has no estimate is never late";
}

class StallWatchTest : public ::testing::Test {
 protected:
  void begin(const std::string& facet, bool drain = false) {
    Intent intent;
    intent.id = "intent-" + facet;
    intent.action = actionOf(facet, seconds(60));
    if (drain) intent.action.id += kDrainSuffix;
    intent.opened_at = clock_.now();
    ASSERT_TRUE(store_.openIntent(intent));
  }
  std::size_t findings() { return store_.findings(nullptr)->size(); }

  test::Rack rack_{{"gpu001", "gpu002"}};
  test::MemoryStore store_;
  FakeClock clock_;
  std::vector<Event> shown_;
  StallWatch watch_{rack_.cluster, store_, clock_,
                    [this](const Event& event) { shown_.push_back(event); },
                    [](const Subject& subject) {
                      return std::vector<std::string>{"GRUB loading on " + subject.str()};
                    }};
};

TEST_F(StallWatchTest, saysOnceWhatWasExpectedAndWhatWasLastHeard) {
  begin("gpu001/firmware.BMC");
  ASSERT_TRUE(
      store_.addEvent({0, clock_.now(), EventKind::ActionProgress, Subject(NodeName("gpu001")),
                       "gpu001/firmware.BMC", "task 40 %", 0.4}));
  clock_.advance(seconds(100));
  ASSERT_TRUE(watch_.check());
  EXPECT_THAT(shown_, SizeIs(0));
  clock_.advance(seconds(1));
  ASSERT_TRUE(watch_.check());
  ASSERT_TRUE(watch_.check());
  ASSERT_THAT(shown_, SizeIs(1));
  EXPECT_THAT(shown_[0].text,
              HasSubstr("under way for 101 s; it takes usually 60 s; last: task 40 %"));
  EXPECT_THAT(shown_[0].text, HasSubstr("look at the update's task on the BMC"));
  ASSERT_EQ(findings(), 1u);
  const auto open = *store_.findings(nullptr);
  EXPECT_EQ(open[0].severity, Severity::Warning);
  EXPECT_EQ(nlohmann::json::parse(open[0].evidence)["observed_seconds"], 101.0);
  EXPECT_EQ(nlohmann::json::parse(open[0].evidence)["console"],
            nlohmann::json{"GRUB loading on gpu001"});
  clock_.advance(seconds(100));
  StallWatch restarted(
      rack_.cluster, store_, clock_, [this](const Event& event) { shown_.push_back(event); },
      [](const Subject&) { return std::vector<std::string>(); });
  ASSERT_TRUE(restarted.check());
  ASSERT_THAT(shown_, SizeIs(2));
  EXPECT_THAT(shown_[1].text, HasSubstr("; last: task 40 %")) << "not its own words of before";
}

TEST_F(StallWatchTest, learnsFromTheNodesOwnPast) {
  for (int i = 0; i < 60; ++i) {
    Intent intent = doneIn("gpu001/firmware.BMC", seconds(600));
    intent.id = std::to_string(i);
    ASSERT_TRUE(store_.openIntent(intent));
    ASSERT_TRUE(store_.closeIntent(intent.id, IntentState::Done, "", intent.closed_at));
  }
  begin("gpu001/firmware.BMC");
  clock_.advance(seconds(900));
  ASSERT_TRUE(watch_.check());
  EXPECT_THAT(shown_, SizeIs(0)) << "this one always takes ten minutes";
  clock_.advance(seconds(100));
  ASSERT_TRUE(watch_.check());
  EXPECT_THAT(shown_, SizeIs(1));
}

TEST_F(StallWatchTest, anActionOfAnotherControllerIsToldOnceAndKeepsNoneBehindItWaiting) {
  const auto data = std::make_shared<test::MemoryStore::Data>();
  test::MemoryStore own(data), other(data);
  StallWatch watch(rack_.cluster, own, clock_,
                   [this](const Event& event) { shown_.push_back(event); });
  ASSERT_TRUE(other.signOn("apply", std::chrono::hours(1)));
  ASSERT_TRUE(other.claim(Subject(NodeName("gpu001")))->ours);
  for (const auto* facet : {"gpu001/firmware.BMC", "gpu002/firmware.BMC"}) {
    Intent intent;
    intent.id = facet;
    intent.action = actionOf(facet, seconds(60));
    intent.opened_at = clock_.now();
    ASSERT_TRUE(other.openIntent(intent));
  }
  clock_.advance(seconds(101));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(watch.check());
  ASSERT_THAT(shown_, SizeIs(2)) << "each once";
  const auto open = *own.findings(nullptr);
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].facet.subject, Subject(NodeName("gpu002")));
}

TEST_F(StallWatchTest, aDrainThatWaitsForJobsIsToldButIsNoFaultOfTheNode) {
  begin("gpu001/pool", true);
  clock_.advance(seconds(3000));
  ASSERT_TRUE(watch_.check());
  EXPECT_THAT(shown_, SizeIs(1));
  EXPECT_EQ(findings(), 0u);
}

}  // namespace
}  // namespace muster::lifecycle
