// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/plan.h"
#include "tests/lifecycle/rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using test::factOf;
using test::goalOf;
using test::Rack;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> ids(const Plan& plan) {
  std::vector<std::string> out;
  for (const auto& action : plan.actions) out.push_back(action.id);
  return out;
}

const Action& find(const Plan& plan, const std::string& id) {
  for (const auto& action : plan.actions)
    if (action.id == id) return action;
  ADD_FAILURE() << "no action " << id;
  static const Action none;
  return none;
}

Plan planOf(Rack& rack, const FactSet& facts, const Policy& policy = {}) {
  auto plan = makePlan(rack.cluster, facts, policy, rack.phases());
  if (!plan) ADD_FAILURE() << plan.error().str();
  return plan ? *plan : Plan();
}

FactSet freshFacts(const Rack& rack) {
  FactSet facts;
  for (const auto& node : rack.cluster.nodes) facts.put(factOf(node.name.str() + "/pool", "out"));
  return facts;
}

/// One phase with these goals, whoever is asked for.
struct Bare {
  explicit Bare(std::vector<Goal> goals) : cluster(test::clusterOf({"n1", "n2"})) {
    phase.want([goals](const inventory::Cluster&, const Subject& subject, const FactSet&) {
      std::vector<Goal> out;
      for (const auto& goal : goals)
        if (goal.facet.subject == subject) out.push_back(goal);
      return out;
    });
  }
  Result<Plan> plan(const FactSet& facts = {}, const Policy& policy = {}) {
    return makePlan(cluster, facts, policy, {&phase});
  }
  inventory::Cluster cluster;
  test::FakeWorld world;
  test::FakePhase phase{"bare", world};
};

TEST(Planner, takesAFreshNodeThroughEveryStage) {
  Rack rack({"gpu001"});
  auto plan = planOf(rack, freshFacts(rack));
  EXPECT_THAT(ids(plan), ElementsAre("@cluster/fabric.sm", "gpu001/enrolled", "gpu001/firmware.BMC",
                                     "gpu001/firmware.BIOS", "gpu001/inspected", "gpu001/image",
                                     "gpu001/os", "gpu001/driver.nvidia", "gpu001/fabric.ports",
                                     "gpu001/gate.burn-in", "gpu001/certificate", "gpu001/pool"));
  EXPECT_THAT(find(plan, "gpu001/fabric.ports").needs,
              ElementsAre("@cluster/fabric.sm", "gpu001/os"));
  for (const auto& action : plan.actions) EXPECT_EQ(action.blocked, "") << action.id;
}

TEST(Planner, aPersonsDrainBlocksWhatDisturbsAndNothingElse) {
  Rack rack({"gpu001", "gpu002"});
  auto facts = freshFacts(rack);
  facts.put(factOf("gpu001/pool.hold", "'dimm swap', by anna"));
  const auto held = planOf(rack, facts);
  for (const auto& id : {"gpu001/firmware.BMC", "gpu001/image"})
    EXPECT_THAT(find(held, id).blocked,
                testing::AllOf(HasSubstr("'dimm swap', by anna"),
                               HasSubstr("muster pool override gpu001 --reason TEXT")))
        << id;
  EXPECT_EQ(find(held, "gpu001/enrolled").blocked, "") << "it disturbs nobody";
  EXPECT_EQ(find(held, "gpu002/image").blocked, "");

  facts.put(factOf("gpu001/pool.override", "'fan', by anna"));
  EXPECT_NE(find(planOf(rack, facts), "gpu001/image").blocked, "") << "of another drain";
  facts.put(factOf("gpu001/pool.override", "'dimm swap', by anna"));
  EXPECT_EQ(find(planOf(rack, facts), "gpu001/image").blocked, "");
  facts.put(factOf("gpu001/pool.override", "none"));
  facts.put(factOf("gpu001/pool.hold", "none"));
  EXPECT_EQ(find(planOf(rack, facts), "gpu001/image").blocked, "");
}

TEST(Planner, nodesStandInNaturalOrder) {
  Rack rack({"gpu10", "gpu2", "gpu1"});
  auto plan = planOf(rack, freshFacts(rack));
  std::vector<std::string> enrolled;
  for (const auto& id : ids(plan))
    if (id.ends_with("/enrolled")) enrolled.push_back(id);
  EXPECT_THAT(enrolled, ElementsAre("gpu1/enrolled", "gpu2/enrolled", "gpu10/enrolled"));
}

TEST(Planner, hasNothingToDoOnceAllIsMet) {
  Rack rack({"gpu001", "gpu002"});
  EXPECT_THAT(ids(planOf(rack, factsAtTheEnd(rack))), IsEmpty());
}

TEST(Planner, aDriverChangeDrainsChangesProvesAndJoins) {
  Rack rack({"gpu001"});
  auto facts = factsAtTheEnd(rack);
  rack.driver = "575";
  auto plan = planOf(rack, facts);
  EXPECT_THAT(ids(plan), ElementsAre("gpu001/pool#drain", "gpu001/driver.nvidia",
                                     "gpu001/gate.burn-in", "gpu001/certificate", "gpu001/pool"));
  const auto& drain = find(plan, "gpu001/pool#drain");
  EXPECT_EQ(drain.from, "in");
  EXPECT_EQ(drain.to, "drained");
  EXPECT_THAT(drain.reason, HasSubstr("driver.nvidia (drain)"));
  EXPECT_THAT(find(plan, "gpu001/driver.nvidia").needs, ElementsAre("gpu001/pool#drain"));
  EXPECT_EQ(find(plan, "gpu001/pool").from, "drained");
  EXPECT_EQ(drain.deadline, kDrainDeadline);
  EXPECT_EQ(find(plan, "gpu001/pool").to, "in");
}

TEST(Planner, aDrainLastsAsLongAsItsPoolsPolicyAndALittleMore) {
  Rack rack({"gpu001"});
  auto facts = factsAtTheEnd(rack);
  rack.driver = "575";
  rack.cluster.profiles["gpu"].pool = "batch";
  rack.cluster.pools["batch"].drain.deadline_minutes = 3 * 24 * 60;
  rack.cluster.nodes[0].profile = "gpu";
  EXPECT_EQ(find(planOf(rack, facts), "gpu001/pool#drain").deadline,
            std::chrono::hours(3 * 24) + kDrainGrace);
}

TEST(Planner, aChangeThatDisturbsNothingLeavesTheNodeInItsPool) {
  Rack rack({"gpu001"});
  auto facts = factsAtTheEnd(rack);
  facts.forget(Subject(NodeName("gpu001")), FacetName("fabric.ports"));
  EXPECT_THAT(ids(planOf(rack, facts)), ElementsAre("gpu001/fabric.ports"));
}

TEST(Planner, aWipeMakesAgainWhatWasOnTheDisk) {
  Rack rack({"gpu001"});
  auto facts = factsAtTheEnd(rack);
  rack.image = "noble@2";
  auto plan = planOf(rack, facts, {{}, {NodeName("gpu001")}});
  EXPECT_THAT(ids(plan), ElementsAre("gpu001/pool#drain", "gpu001/image", "gpu001/os",
                                     "gpu001/driver.nvidia", "gpu001/fabric.ports",
                                     "gpu001/gate.burn-in", "gpu001/certificate", "gpu001/pool"));
  const auto& driver = find(plan, "gpu001/driver.nvidia");
  EXPECT_EQ(driver.from, driver.to);
  EXPECT_THAT(driver.reason, HasSubstr("because gpu001/image wipes the disk"));
}

TEST(Planner, aWipeOfAnInstalledNodeIsBlockedAndTheNodeStaysInItsPool) {
  Rack rack({"gpu001", "gpu002"});
  auto facts = factsAtTheEnd(rack);
  rack.image = "noble@2";
  rack.bmc_firmware = "2.2.0";
  auto plan = planOf(rack, facts, {{}, {NodeName("gpu002")}});
  const auto& image = find(plan, "gpu001/image");
  EXPECT_THAT(image.blocked, HasSubstr("its disk holds 'image' and it is in its pool"));
  EXPECT_THAT(image.blocked, HasSubstr("muster wipe gpu001 --reason"));
  EXPECT_THAT(find(plan, "gpu001/os").blocked, HasSubstr("needs gpu001/image, which is blocked"));
  EXPECT_THAT(find(plan, "gpu001/firmware.BMC").blocked,
              HasSubstr("would leave its pool for a plan that cannot finish"));
  for (const auto& id : ids(plan)) EXPECT_NE(id, "gpu001/pool#drain");
  EXPECT_EQ(find(plan, "gpu002/image").blocked, "");
  EXPECT_EQ(find(plan, "gpu002/pool#drain").blocked, "");
}

TEST(Planner, whatItsPhaseCannotReachIsBlockedBeforeTheNodeIsDrained) {
  Rack rack({"gpu001"});
  rack.bmc_firmware_blocked = "its file is missing";
  EXPECT_TRUE(planOf(rack, factsAtTheEnd(rack)).empty()) << "what is met needs nothing";
  auto facts = factsAtTheEnd(rack);
  rack.bmc_firmware = "2.2.0";
  rack.driver = "580.1";
  auto plan = planOf(rack, facts);
  EXPECT_EQ(find(plan, "gpu001/firmware.BMC").blocked, "its file is missing");
  EXPECT_THAT(find(plan, "gpu001/driver.nvidia").blocked, HasSubstr("gpu001/firmware.BMC"));
  for (const auto& id : ids(plan)) EXPECT_NE(id, "gpu001/pool#drain");
}

TEST(Planner, aDiskKnownToBeEmptyMayBeWritten) {
  Rack rack({"gpu001"});
  auto facts = freshFacts(rack);
  facts.put(factOf("gpu001/disk.system", "none"));
  EXPECT_EQ(find(planOf(rack, facts), "gpu001/image").blocked, "");
  facts.put(factOf("gpu001/disk.system", "Debian 11"));
  EXPECT_THAT(find(planOf(rack, facts), "gpu001/image").blocked, HasSubstr("Debian 11"));
}

TEST(Planner, disturbsNothingWhileThePoolIsUnknown) {
  Rack rack({"gpu001"});
  auto facts = factsAtTheEnd(rack);
  facts.forget(Subject(NodeName("gpu001")), FacetName("pool"));
  rack.driver = "575";
  auto plan = planOf(rack, facts);
  EXPECT_THAT(find(plan, "gpu001/driver.nvidia").blocked,
              HasSubstr("it is not known whether gpu001 is in its pool"));
}

TEST(Planner, neverDisturbsANodeInAPoolThatNobodyDeclares) {
  Bare bare({goalOf("n1/firmware", "2", Disruption::Reset, {})});
  FactSet facts;
  facts.put(factOf("n1/pool", "in"));
  auto plan = bare.plan(facts);
  ASSERT_TRUE(plan);
  EXPECT_THAT(find(*plan, "n1/firmware").blocked,
              HasSubstr("a pool that the inventory does not declare"));
}

TEST(Planner, seesThroughGoalsThatAreMet) {
  Bare bare({goalOf("n1/a", "1", Disruption::None, {}),
             goalOf("n1/b", "1", Disruption::None, {"n1/a"}),
             goalOf("n1/c", "1", Disruption::None, {"n1/b"})});
  FactSet facts;
  facts.put(factOf("n1/b", "1"));
  auto plan = bare.plan(facts);
  ASSERT_TRUE(plan);
  EXPECT_THAT(find(*plan, "n1/c").needs, ElementsAre("n1/a"));
}

TEST(Planner, onlyTheChosenSubjectsAndTheClusterAct) {
  Rack rack({"gpu001", "gpu002"});
  Policy policy;
  policy.only = {Subject(NodeName("gpu002"))};
  for (const auto& id : ids(planOf(rack, freshFacts(rack), policy)))
    EXPECT_FALSE(id.starts_with("gpu001")) << id;
  policy.only = {Subject(NodeName("gpu003"))};
  auto plan = makePlan(rack.cluster, {}, policy, rack.phases());
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(plan.error().str(), HasSubstr("gpu003"));
}

/// `apply --nodes login1` started the subnet manager of a fabric that login1 is not on.
TEST(Planner, ofTheClusterOnlyWhatTheChosenNodesRestOnActs) {
  Bare bare({goalOf("@cluster/sm", "1", Disruption::None, {}),
             goalOf("@cluster/links", "1", Disruption::None, {"@cluster/sm"}),
             goalOf("@cluster/other", "1", Disruption::None, {}),
             goalOf("n1/os", "1", Disruption::None, {}),
             goalOf("n2/ports", "1", Disruption::None, {"@cluster/sm"})});
  Policy policy;
  policy.only = {Subject(NodeName("n1"))};
  EXPECT_THAT(ids(*bare.plan({}, policy)), ElementsAre("n1/os"));
  policy.only = {Subject(NodeName("n2"))};
  EXPECT_THAT(ids(*bare.plan({}, policy)), ElementsAre("@cluster/sm", "@cluster/links", "n2/ports"))
      << "what is linked with it too";
  FactSet met;
  met.put(factOf("n2/ports", "1"));
  EXPECT_THAT(ids(*bare.plan(met, policy)), ElementsAre("@cluster/sm", "@cluster/links"))
      << "also for a node that has nothing to do";
  policy.only = {Subject::cluster()};
  EXPECT_EQ(bare.plan({}, policy)->actions.size(), 3u);
  EXPECT_EQ(bare.plan()->actions.size(), 5u);
}

TEST(Planner, whatASubjectLeftOutLacksBlocks) {
  Bare bare(
      {goalOf("n1/a", "1", Disruption::None, {"n2/b"}), goalOf("n2/b", "1", Disruption::None, {})});
  Policy policy;
  policy.only = {Subject(NodeName("n1"))};
  auto plan = bare.plan({}, policy);
  ASSERT_TRUE(plan);
  EXPECT_THAT(ids(*plan), ElementsAre("n1/a"));
  EXPECT_THAT(plan->actions[0].blocked,
              HasSubstr("needs n2/b, which is not met; this plan leaves it out"));
  FactSet facts;
  facts.put(factOf("n2/b", "1"));
  EXPECT_EQ(bare.plan(facts, policy)->actions[0].blocked, "");
}

TEST(Planner, namesTheCircle) {
  Bare bare({goalOf("n1/a", "1", Disruption::None, {"n1/c"}),
             goalOf("n1/b", "1", Disruption::None, {"n1/a"}),
             goalOf("n1/c", "1", Disruption::None, {"n1/b"}),
             goalOf("n1/d", "1", Disruption::None, {"n1/c"}),
             goalOf("n2/x", "1", Disruption::None, {})});
  auto plan = bare.plan();
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), ErrorCode::Internal);
  EXPECT_THAT(plan.error().str(), HasSubstr("n1/a needs n1/c needs n1/b needs n1/a"));
  EXPECT_THAT(plan.error().str(), testing::Not(HasSubstr("n1/d")));
}

TEST(Planner, whatADrivingPhaseHasBegunComesBeforeItsOtherGoalsOfTheNode) {
  Bare bare({goalOf("n1/bmc", "2", Disruption::Reset, {}),
             goalOf("n1/bios", "2", Disruption::Reset, {"n1/bmc"}),
             goalOf("n1/nic", "2", Disruption::Reset, {"n1/bios"}),
             goalOf("n2/bmc", "2", Disruption::Reset, {})});
  Policy policy;
  policy.interrupted = {FacetRef{Subject(NodeName("n1")), FacetName("nic")}};
  EXPECT_THAT(ids(*bare.plan({}, policy)), ElementsAre("n1/bmc", "n1/bios", "n1/nic", "n2/bmc"));
  bare.phase.drives_on = true;
  EXPECT_THAT(ids(*bare.plan({}, policy)), ElementsAre("n1/nic", "n1/bmc", "n1/bios", "n2/bmc"));
  EXPECT_THAT(bare.plan({}, policy)->actions[1].needs, ElementsAre("n1/nic"));
}

TEST(Planner, nothingWaitsForWhatWasBegunAndCannotGoOn) {
  auto stuck = goalOf("n1/nic", "2", Disruption::Reset, {"n1/bmc"});
  stuck.blocked = "its file is missing";
  Bare bare({goalOf("n1/bmc", "2", Disruption::Reset, {}), stuck});
  bare.phase.drives_on = true;
  Policy policy;
  policy.interrupted = {stuck.facet};
  const auto plan = bare.plan({}, policy);
  ASSERT_TRUE(plan);
  EXPECT_EQ(find(*plan, "n1/bmc").blocked, "");
  EXPECT_EQ(find(*plan, "n1/nic").blocked, "its file is missing");
}

/// What was begun needs a system, and the system the component: the old order stays.
TEST(Planner, theOrderOfWhatWasBegunYieldsToWhatItNeedsElsewhere) {
  Bare bare({goalOf("n1/bmc", "2", Disruption::Reset, {}),
             goalOf("n1/nic", "2", Disruption::Reset, {"n1/bmc", "n1/os"})});
  bare.phase.drives_on = true;
  test::FakePhase system{"system", bare.world};
  system.want([](const inventory::Cluster&, const Subject& subject, const FactSet&) {
    return subject == Subject(NodeName("n1"))
               ? std::vector{goalOf("n1/os", "x", Disruption::None, {"n1/bmc"})}
               : std::vector<Goal>();
  });
  Policy policy;
  policy.interrupted = {FacetRef{Subject(NodeName("n1")), FacetName("nic")}};
  const auto plan = makePlan(bare.cluster, {}, policy, {&bare.phase, &system});
  ASSERT_TRUE(plan) << plan.error().str();
  EXPECT_THAT(ids(*plan), ElementsAre("n1/bmc", "n1/os", "n1/nic"));
}

TEST(Planner, namesAGoalThatNobodyHas) {
  Bare bare({goalOf("n1/a", "1", Disruption::None, {"n1/ghost"})});
  auto plan = bare.plan();
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), ErrorCode::Internal);
  EXPECT_THAT(plan.error().str(), HasSubstr("n1/a needs n1/ghost"));
}

TEST(Planner, namesTwoPhasesThatClaimOneFacet) {
  Bare one({goalOf("n1/a", "1", Disruption::None, {})}),
      two({goalOf("n1/a", "2", Disruption::None, {})});
  auto plan = makePlan(one.cluster, {}, {}, {&one.phase, &two.phase});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().str(), HasSubstr("n1/a is claimed by the phases bare and bare"));
}

TEST(Planner, aGoalWithoutADeadlineGetsOne) {
  auto goal = goalOf("n1/a", "1", Disruption::None, {});
  goal.deadline = std::chrono::seconds(0);
  Bare bare({goal});
  EXPECT_EQ(bare.plan()->actions[0].deadline, kDefaultDeadline);
}

}  // namespace
}  // namespace muster::lifecycle
