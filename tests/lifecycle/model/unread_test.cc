// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/model/unread.h"

#include "tests/lifecycle/engine_fixture.h"

#include "lifecycle/planner/explain.h"

namespace muster::lifecycle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const Subject kGpu001(NodeName("gpu001"));

class UnreadTest : public EngineTest {
 protected:
  void refuse() {
    rack_->firmware.observe_error = Error(ErrorCode::Denied, "the BMC refuses the password");
    observe();
  }
  std::vector<Unread> unread() { return unreadOf(*store_.facts(), kGpu001); }
  Explanation why() {
    const Roster roster(rack_->cluster);
    const auto facts = *store_.facts();
    const auto phases = rack_->phases();
    KnownDurations durations{std::chrono::seconds(0)};
    auto input = gatherExplanation(
        {rack_->cluster, roster, phases, store_, facts, durations, clock_.now()}, kGpu001);
    EXPECT_TRUE(input);
    return explain(*input);
  }
};

/// A refused BMC password on a working node was hidden: "everything is as declared".
TEST_F(UnreadTest, whatCannotBeReadIsStaleAndSaidWithItsAge) {
  arrive({"gpu001"});
  observe();
  EXPECT_THAT(unread(), IsEmpty());
  EXPECT_TRUE(why().asDeclared());
  clock_.advance(std::chrono::hours(1));
  refuse();
  clock_.advance(std::chrono::hours(3));
  observe();
  ASSERT_THAT(unread(), SizeIs(1));
  EXPECT_EQ(unread()[0].what, "firmware");
  EXPECT_EQ(unread()[0].code, "denied");
  EXPECT_GE(clock_.now() - unread()[0].since, std::chrono::hours(3)) << "of the first that failed";
  const auto said = why();
  EXPECT_FALSE(said.asDeclared());
  EXPECT_THAT(said.state, AllOf(HasSubstr("what was seen last is as declared, but firmware could "
                                          "not be read since 3 h"),
                                HasSubstr("the BMC refuses the password")));
  EXPECT_THAT(said.text(), AllOf(HasSubstr("stale "), HasSubstr("muster bmc auth reset gpu001")));
  rack_->firmware.observe_error.reset();
  observe();
  EXPECT_THAT(unread(), IsEmpty());
  EXPECT_TRUE(why().asDeclared());
}

TEST_F(UnreadTest, aPlanIsNotOutdatedByAReadThatFails) {
  arrive({"gpu001"});
  rack_->driver = "575";
  const auto made = plan();
  refuse();
  EXPECT_THAT(staleReasons(made, rack_->cluster, *store_.facts()), IsEmpty());
}

TEST(Unread, whatWasReadAfterwardsIsFresh) {
  FactSet facts;
  const WallTime then{std::chrono::hours(10)};
  facts.put(unreadFact(kGpu001, "enrolled", Error(ErrorCode::Timeout, "x"), then));
  EXPECT_THAT(unreadOf(facts, kGpu001), SizeIs(1));
  facts.put({kGpu001, FacetName("enrolled"), "yes", then + std::chrono::seconds(1), "", ""});
  EXPECT_THAT(unreadOf(facts, kGpu001), IsEmpty());
  EXPECT_EQ(ageText(then + std::chrono::seconds(90), then), "90 s");
  EXPECT_EQ(ageText(then + std::chrono::hours(50), then), "2 days");
  EXPECT_EQ(ageText(then - std::chrono::hours(50), then), "0 s");
}

}  // namespace
}  // namespace muster::lifecycle
