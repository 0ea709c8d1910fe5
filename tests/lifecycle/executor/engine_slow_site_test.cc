// SPDX-License-Identifier: Apache-2.0
// Deadlines of actions where the place itself is slow (base/limits.h): what holds, what the phase
// is told, and what a person reads.
#include "lifecycle/executor/stall_watch.h"
#include "lifecycle/planner/explain.h"
#include "tests/lifecycle/engine_fixture.h"

namespace muster::lifecycle {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::SizeIs;

class SlowPlaceTest : public EngineTest {
 protected:
  void SetUp() override {
    build({"gpu001"});
    world().set("gpu001/firmware.BMC", "1.0.0");
    place_.set(3);
  }
  Explanation why() {
    const Roster roster(rack_->cluster);
    const auto facts = *store_.facts();
    const auto phases = rack_->phases();
    KnownDurations durations{0s};
    const auto input = gatherExplanation({rack_->cluster, roster, phases, store_, facts, durations,
                                          clock_.now(), clock_.steady(), slownessOf(place_)},
                                         Subject(NodeName("gpu001")));
    if (!input) ADD_FAILURE() << input.error().str();
    return input ? explain(*input) : Explanation();
  }
  void beginFirmware() {
    Intent intent;
    intent.id = "i";
    intent.action.id = "gpu001/firmware.BMC";
    intent.action.facet = test::FakeWorld::ref("gpu001/firmware.BMC");
    intent.action.phase = "firmware";
    intent.action.to = "2.1.0";
    intent.action.expected = 60s;
    intent.action.deadline = 600s;
    intent.opened_at = clock_.now();
    ASSERT_TRUE(store_.openIntent(intent));
  }
};

TEST_F(SlowPlaceTest, anActionHasAsMuchMoreTimeAndThePhaseKnowsIt) {
  world().behave("gpu001/firmware.BMC").polls = 1'500;  // a second each, of 600
  EXPECT_TRUE(apply().ok());
  EXPECT_EQ(world().value("gpu001/firmware.BMC"), "2.1.0");
  EXPECT_EQ(world().deadlines["gpu001/firmware.BMC"], 1800s);
  for (const auto& intent : history("gpu001"))
    EXPECT_EQ(intent.action.deadline, 600s) << "the journal has the plan's: " << intent.action.id;
}

TEST_F(SlowPlaceTest, pastItsDeadlineAnActionHasFailedAndBothLimitsAreSaid) {
  world().behave("gpu001/firmware.BMC").polls = 1'000'000;
  const auto before = clock_.steady();
  EXPECT_EQ(apply().failed, 1);
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(clock_.steady() - before), 1800s);
  EXPECT_THAT(findings("gpu001").front(),
              HasSubstr("did not become '2.1.0' within 1800 s (600 s on an idle machine; this one "
                        "is 3 times slower); the last evidence was"));
}

TEST_F(SlowPlaceTest, thePlanIsTheSameAsAnywhere) {
  const auto here = plan();
  place_.set(1);
  EXPECT_EQ(plan().hash(), here.hash());
}

TEST_F(SlowPlaceTest, whySaysTheDeadlineThatHolds) {
  beginFirmware();
  clock_.advance(100s);
  EXPECT_THAT(why().next_step, HasSubstr("wait until its deadline (1800 s (600 s on an idle "
                                         "machine; this one is 3 times slower))"));
  clock_.advance(1600s);
  EXPECT_THAT(why().state, HasSubstr("longer than it should take"));
  clock_.advance(101s);
  EXPECT_THAT(why().state, HasSubstr("past its deadline of 1800 s (600 s on an idle machine"));
  place_.set(1);
  EXPECT_THAT(why().state, HasSubstr("past its deadline of 600 s;"));
}

TEST_F(SlowPlaceTest, whatIsAsMuchSlowerIsNotLate) {
  beginFirmware();
  std::vector<Event> shown;
  StallWatch watch(rack_->cluster, store_, place_,
                   [&shown](const Event& event) { shown.push_back(event); });
  clock_.advance(299s);
  ASSERT_TRUE(watch.check());
  EXPECT_THAT(shown, SizeIs(0))
      << "100 s is late where it usually takes 60, 300 s in a place that is three times slower";
  clock_.advance(2s);
  ASSERT_TRUE(watch.check());
  EXPECT_THAT(shown, SizeIs(1));
}

}  // namespace
}  // namespace muster::lifecycle
