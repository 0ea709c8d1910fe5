// SPDX-License-Identifier: Apache-2.0
// Racks that begin together because they were asked to: never beyond their power, at one moment,
// never with a part of those who were named.
#include "validate/synchronized_load.h"

#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "inventory/model/racks.h"
#include "tests/validate/phase_fixture.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SynchronizedLoadTest : public testing::Test {
 protected:
  SynchronizedLoadTest() : power_(cluster_) {
    auto& profile = cluster_.profiles["hgx"];
    profile.name = "hgx", profile.power_watts = 10'000;
    cluster_.racks["A"] = {.name = "A", .power_watts = 40'000, .cooling_watts = 32'000};
    for (int i = 0; i < 8; ++i) {
      inventory::Node node;
      node.name = NodeName("n" + std::to_string(i));
      node.profile = "hgx";
      node.rack = i < 4 ? "A" : i < 6 ? "B" : "";
      cluster_.nodes.push_back(node);
    }
  }
  const inventory::Node& node(int i) { return cluster_.nodes[static_cast<std::size_t>(i)]; }
  std::vector<NodeName> names(std::vector<int> numbers) {
    std::vector<NodeName> out;
    for (const int i : numbers) out.push_back(node(i).name);
    return out;
  }
  std::string refused(std::vector<int> numbers) {
    SynchronizedLoad steps;
    const auto told = steps.request(cluster_, names(std::move(numbers)));
    for (const auto& each : cluster_.nodes)
      EXPECT_FALSE(told ? false : steps.isRequested(each)) << "refused is not asked";
    return told ? "" : told.error().text();
  }
  /// Empty: it begins now.
  std::string ready(int i, const char* gate = "g") {
    const auto wait = steps_.ready(node(i), gate, power_, now_);
    if (!wait) return wait.error().text();
    return *wait ? (*wait)->why : "";
  }

  inventory::Cluster cluster_;
  PowerBudget power_;
  SynchronizedLoad steps_;
  SynchronizedLoad::Time now_{};
};

TEST_F(SynchronizedLoadTest, isRefusedBeyondWhatTheRackBears) {
  EXPECT_EQ(refused({0, 1, 2}), "");
  EXPECT_THAT(refused({0, 1, 2, 3}),
              HasSubstr("rack A has 32.0 kW, 4 nodes together draw 40.0 kW: name fewer of them"));
  EXPECT_THAT(refused({0, 4}), HasSubstr("rack B has no declared power_watts"));
  EXPECT_THAT(refused({0, 6, 7}), HasSubstr("n6, n7: in no rack"));
  EXPECT_THAT(refused({0, 1, 2, 3, 4, 6}),
              AllOf(HasSubstr("rack A"), HasSubstr("rack B"), HasSubstr("n6")))
      << "all of it at once";
}

TEST_F(SynchronizedLoadTest, allBeginAtOneMomentThatEverybodyKnowsBefore) {
  ASSERT_TRUE(steps_.request(cluster_, names({0, 1, 2})));
  EXPECT_THAT(ready(0), HasSubstr("the other nodes of rack A, to start at one moment: n1, n2"));
  now_ += seconds(1);
  EXPECT_THAT(ready(1), HasSubstr("n2"));
  now_ += seconds(400);
  EXPECT_NE(ready(2), "");
  const auto moment = now_ + SynchronizedLoad::kLead;
  for (const int i : {0, 1}) {  // both ask again within kLook
    now_ += milliseconds(900);
    const auto wait = steps_.ready(node(i), "g", power_, now_);
    ASSERT_TRUE(wait && *wait);
    EXPECT_EQ(now_ + (*wait)->after, moment);
  }
  now_ = moment;
  for (const int i : {0, 1, 2}) EXPECT_EQ(ready(i), "");
  EXPECT_TRUE(power_.holds(node(2).name));
}

TEST_F(SynchronizedLoadTest, whoDoesNotComeIsNamedAndNobodyBegins) {
  ASSERT_TRUE(steps_.request(cluster_, names({0, 1, 2})));
  ready(0), ready(1);
  now_ += SynchronizedLoad::kGatherTimeout + seconds(1);
  EXPECT_THAT(ready(0), AllOf(HasSubstr("rack A did not start gate g at one moment"),
                              HasSubstr("n2 were not ready")));
  steps_.leave(node(0));
  EXPECT_THAT(ready(2), HasSubstr("did not start gate g at one moment"))
      << "too late: it would be another step than the one that was asked for";
  EXPECT_FALSE(power_.holds(node(1).name));
}

TEST_F(SynchronizedLoadTest, whoFailsOneGateIsNotWaitedForInTheNext) {
  ASSERT_TRUE(steps_.request(cluster_, names({0, 1})));
  ready(0, "one"), ready(1, "one");
  now_ += SynchronizedLoad::kLead;
  ASSERT_EQ(ready(0, "one"), "");
  ASSERT_EQ(ready(1, "one"), "");
  power_.giveBack(node(0).name);
  EXPECT_THAT(ready(0, "two"), HasSubstr("n1"));
  now_ += std::chrono::hours(2);
  EXPECT_THAT(ready(0, "two"), HasSubstr("the other nodes of rack A"))
      << "the other is under load in the first gate still";
  power_.giveBack(node(1).name);
  steps_.leave(node(1));
  ready(0, "two");
  now_ += SynchronizedLoad::kLead;
  EXPECT_EQ(ready(0, "two"), "");
}

TEST_F(SynchronizedLoadTest, othersLoadInTheRackIsWaitedFor) {
  ASSERT_TRUE(steps_.request(cluster_, names({0, 1, 2})));
  power_.takeRunning(node(3));
  ready(0), ready(1);
  EXPECT_THAT(ready(2),
              HasSubstr("power of rack A: 10.0 of 32.0 kW are in use, 3 nodes together take 30.0"));
  power_.giveBack(node(3).name);
  EXPECT_THAT(ready(2), HasSubstr("the start of the synchronized load of rack A"));
}

TEST_F(SynchronizedLoadTest, whatRunsFromBeforeARestartIsNotWaitedFor) {
  ASSERT_TRUE(steps_.request(cluster_, names({0, 1})));
  power_.takeRunning(node(0));
  steps_.started(node(0), "g");
  EXPECT_THAT(ready(1), HasSubstr("the start of the synchronized load of rack A"));
}

/// The phase does as it is asked: two nodes that would take turns two seconds apart begin at once,
/// and only when both are there.
TEST_F(ValidatePhaseTest, aRackThatIsAskedToBeginsTogether) {
  for (auto& node : cluster_.nodes) node.rack = "A";
  cluster_.profiles["p"].power_watts = 10'000;
  cluster_.racks["A"] = {.name = "A", .power_watts = 20'000};
  SynchronizedLoad steps;
  ASSERT_TRUE(steps.request(cluster_, {NodeName("n1"), NodeName("n2")}));
  phase_ =
      makeValidatePhase(cluster_, agents_, *certificates_, *store_, clock_, {}, {}, {}, &steps);
  agents_.boot(NodeName("n2"), wire::Mode::Disk);
  answerChecks("pass", "pass");
  FakeContext second;
  second.id = "intent-2";
  const Action other{.id = "n2/gate.burn-in",
                     .facet = {Subject(NodeName("n2")), FacetName("gate.burn-in")},
                     .phase = "validate"};
  const auto submitted = [this](const char* node) {
    return agents_.submitted(NodeName(node), TaskKind::RunChecks).size();
  };
  const auto waits = [](const Result<Outcome>& outcome) {
    return outcome && std::holds_alternative<Again>(*outcome);
  };
  EXPECT_TRUE(waits(act("gate.burn-in")));
  EXPECT_TRUE(waits(wait(phase_->act(other, second))));
  EXPECT_TRUE(waits(act("gate.burn-in")));
  EXPECT_EQ(submitted("n1") + submitted("n2"), 0u);
  clock_.advance(SynchronizedLoad::kLead);
  EXPECT_TRUE(std::holds_alternative<Done>(*act("gate.burn-in")));
  EXPECT_TRUE(std::holds_alternative<Done>(*wait(phase_->act(other, second)))) << "no stagger";
  EXPECT_EQ(submitted("n1") + submitted("n2"), 2u);
}

}  // namespace
}  // namespace muster::validate
