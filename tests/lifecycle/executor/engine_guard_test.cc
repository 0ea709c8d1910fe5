// SPDX-License-Identifier: Apache-2.0
// What the engine refuses in the last moment: to disturb a node that may take jobs, to wipe what
// nobody allowed it to wipe.
#include "inventory/model/cluster.h"
#include "tests/lifecycle/engine_fixture.h"

namespace muster::lifecycle {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

TEST_F(EngineTest, aWipeUsesItsPermissionUpAndNothingElseDoes) {
  arrive({"gpu001"});
  rack_->image = "noble@2";
  rack_->bmc_firmware = "2.2.0";
  EXPECT_EQ(apply().done, 0) << "nothing happens without permission";
  EXPECT_THAT(world().log, IsEmpty());
  ASSERT_TRUE(store_.grantWipe(NodeName("gpu001"), "new image", clock_.now()));
  EXPECT_TRUE(apply().ok());
  EXPECT_THAT(*store_.wipeGrants(), IsEmpty());
  for (const auto& intent : history("gpu001"))
    EXPECT_EQ(intent.uses_wipe, intent.action.id == "gpu001/image" && intent.action.to == "noble@2")
        << intent.id;
  EXPECT_EQ(world().effects("gpu001/image"), 1);
  EXPECT_EQ(world().effects("gpu001/os"), 1) << "what was on the disk is made again";
  rack_->image = "noble@3";
  EXPECT_GT(apply().blocked, 0) << "the permission was for one wipe";
}

TEST_F(EngineTest, factsAboutADiskAreForgottenBeforeItIsWritten) {
  arrive({"gpu001"});
  rack_->image = "noble@2";
  ASSERT_TRUE(store_.grantWipe(NodeName("gpu001"), "new image", clock_.now()));
  auto& behaviour = world().behave("gpu001/image");
  behaviour.polls = 1'000'000;  // the agent died while it wrote
  behaviour.poll_every = 60s;
  behaviour.verify_errors = 1;  // and cannot be asked
  EXPECT_EQ(apply().failed, 1);
  auto facts = store_.facts();
  const Subject subject{NodeName("gpu001")};
  for (const std::string facet : {"image", "os", "driver.nvidia", "fabric.ports", "gate.burn-in",
                                  "certificate", "disk.system"})
    EXPECT_FALSE(facts->value(subject, FacetName(facet))) << facet;
  for (const std::string facet : {"enrolled", "firmware.BMC", "inspected", "hw.serial"})
    EXPECT_TRUE(facts->value(subject, FacetName(facet))) << facet;
  EXPECT_EQ(facts->value(subject, FacetName("pool")), "drained");
}

TEST_F(EngineTest, whatWasNeverBegunLeavesTheDiskKnown) {
  build({"gpu001"});
  world().set("gpu001/disk.system", "none");
  world().behave("gpu001/image").blocked = "image noble is not built";
  EXPECT_EQ(apply().blocked, 1);
  EXPECT_EQ(store_.facts()->value(Subject(NodeName("gpu001")), FacetName("disk.system")), "none");
  world().behave("gpu001/disk.system").unreadable =
      true;  // a controller that has just started has not heard the agent yet
  world().behave("gpu001/image").blocked.clear();
  EXPECT_TRUE(apply().ok());
}

TEST_F(EngineTest, aNodeThatCameBackIntoItsPoolIsNotDisturbed) {
  arrive({"gpu001"});
  rack_->driver = "575";
  auto made = plan();
  std::erase_if(made.actions, [](const Action& action) { return action.id.ends_with("#drain"); });
  for (auto& action : made.actions) std::erase(action.needs, "gpu001/pool#drain");
  auto report = apply(made);
  EXPECT_THAT(
      report.problems,
      Contains(HasSubstr("gpu001/driver.nvidia: gpu001 may take jobs and was not drained")));
  EXPECT_EQ(world().effects("gpu001/driver.nvidia"), 0);
}

TEST_F(EngineTest, aNodeThatIsResumedBehindMustersBackIsNotDisturbed) {
  arrive({"gpu001"});
  rack_->driver = "575";
  world().set("gpu001/pool", "out");
  auto made = plan();  // nothing to drain, says the pool
  for (const char* comes_back : {"in", "silent"}) {
    world().set("gpu001/pool", comes_back);
    auto report = apply(made);
    EXPECT_THAT(
        report.problems,
        Contains(HasSubstr("gpu001/driver.nvidia: gpu001 may take jobs and was not drained")))
        << comes_back;
  }
  EXPECT_EQ(world().effects("gpu001/driver.nvidia"), 0);
}

TEST_F(EngineTest, aPlanInWhichStepsStandInFrontOfWhatTheyNeedEndsAndSaysSo) {
  arrive({"gpu001"});
  rack_->driver = "575";
  auto made = plan();
  ASSERT_GT(made.actions.size(), 1u);
  std::reverse(made.actions.begin(), made.actions.end());
  const auto report = apply(made);
  EXPECT_THAT(report.problems, Contains(HasSubstr("which it needs, behind it; plan again")));
  EXPECT_EQ(world().effects("gpu001/driver.nvidia"), 0);
}

TEST_F(EngineTest, whatWasOpenedAndNeverBegunAsksThePoolAgain) {
  arrive({"gpu001"});
  rack_->driver = "575";
  world().set("gpu001/pool", "out");
  const auto made = plan();
  const auto found =
      std::find_if(made.actions.begin(), made.actions.end(),
                   [](const Action& action) { return action.id == "gpu001/driver.nvidia"; });
  ASSERT_NE(found, made.actions.end());
  Intent intent;  // muster died right after it had opened it
  intent.id = "died";
  intent.action = *found;
  intent.inventory_digest = rack_->cluster.digest;
  intent.opened_at = clock_.now();
  ASSERT_TRUE(store_.openIntent(intent));
  world().set("gpu001/pool", "in");
  const auto report = apply(made);
  EXPECT_THAT(
      report.problems,
      Contains(HasSubstr("gpu001/driver.nvidia: gpu001 may take jobs and was not drained")));
  EXPECT_EQ(world().effects("gpu001/driver.nvidia"), 0);
  EXPECT_THAT(*store_.openIntents(), IsEmpty());
}

/// The person was faster than the plan: asked again before the first disturbance.
TEST_F(EngineTest, aPersonsDrainAfterThePlanStopsTheDisturbance) {
  arrive({"gpu001"});
  rack_->driver = "575";
  const auto made = plan();
  rack_->pool.reads({"pool.hold"});
  world().set("gpu001/pool.hold", "'dimm swap', by anna");
  const auto report = apply(made);
  EXPECT_THAT(report.problems, Contains(AllOf(HasSubstr("gpu001/driver.nvidia"),
                                              HasSubstr("'dimm swap', by anna"))));
  EXPECT_EQ(world().effects("gpu001/driver.nvidia"), 0);
  world().set("gpu001/pool.hold", "none");
  observe();
  EXPECT_TRUE(apply(plan()).ok());
  EXPECT_EQ(world().effects("gpu001/driver.nvidia"), 1);
}

TEST_F(EngineTest, aPoolThatDoesNotAnswerIsNoPermissionToDisturb) {
  arrive({"gpu001"});
  world().set("gpu001/pool", "out");
  observe();
  rack_->driver = "575";
  rack_->pool.observe_error = Error(ErrorCode::Unavailable, "slurmctld does not answer");
  const auto made = plan();
  EXPECT_THAT(made.toJson(), HasSubstr("it is not known whether gpu001 is in its pool"));
  EXPECT_EQ(apply(made).done, 0);
  EXPECT_EQ(world().effects("gpu001/driver.nvidia"), 0);
}

}  // namespace
}  // namespace muster::lifecycle
