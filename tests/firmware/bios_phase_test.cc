// SPDX-License-Identifier: Apache-2.0
// BIOS settings on the emulator, by Redfish, in virtual time.
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "tests/firmware/one_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::firmware {
namespace {

class BiosSettings : public testing::TestWithParam<const char*> {
 protected:
  BiosSettings() {
    emulator.machine.on = true;
    inventory::Profile profile;
    profile.name = "p";
    profile.bios = {{"SriovGlobalEnable", "Enabled"}, {"WorkloadProfile", "HPC"}};
    cluster.profiles["p"] = profile;
    inventory::Node node;
    node.name = kNode;
    node.profile = "p";
    cluster.nodes.push_back(node);
  }
  std::string seen() { return loop.run(phase->observe(lifecycle::Subject(kNode)))->at(0).value; }
  Result<lifecycle::Outcome> act() {
    lifecycle::Action action;
    action.facet = {lifecycle::Subject(kNode), FacetName("bios")};
    action.to = "SriovGlobalEnable=Enabled,WorkloadProfile=HPC";
    return loop.run(phase->act(action, journal));
  }

  test::VirtualLoop loop;
  test::VirtualBmc emulator{loop, GetParam()};
  test::RedfishRig rig{loop, emulator.net};
  inventory::Cluster cluster;
  OneBmc fleet{bmc::arbitrate(rig.bmc(), loop.clock)};
  std::unique_ptr<lifecycle::Phase> phase = makeBiosPhase(cluster, fleet, loop.clock);
  Journal journal;
};

TEST_P(BiosSettings, driftIsShownStagedAppliedByOneRestartAndReadAgain) {
  EXPECT_EQ(seen(), "SriovGlobalEnable=Disabled,WorkloadProfile=Balanced");
  lifecycle::FactSet facts;
  facts.put({lifecycle::Subject(kNode), FacetName("bios"), seen(), {}, "", {}});
  const auto goals = phase->goals(cluster, lifecycle::Subject(kNode), facts);
  ASSERT_EQ(goals.size(), 1u);
  EXPECT_EQ(goals[0].want, "SriovGlobalEnable=Enabled,WorkloadProfile=HPC");
  EXPECT_EQ(goals[0].blocked, "");
  for (int call = 0; call < 20; ++call) {
    auto outcome = act();
    ASSERT_TRUE(outcome) << outcome.error().str();
    if (std::holds_alternative<lifecycle::Done>(*outcome)) break;
    ASSERT_TRUE(std::holds_alternative<lifecycle::Again>(*outcome));
  }
  EXPECT_EQ(seen(), "SriovGlobalEnable=Enabled,WorkloadProfile=HPC");
  EXPECT_EQ(emulator.machine.starts.size(), 1u);
  EXPECT_TRUE(emulator.machine.on);
}

TEST_P(BiosSettings, anAttributeThatTheBiosHasNotIsNamedAndNothingIsRestarted) {
  cluster.profiles["p"].bios = {{"NoSuchThing", "1"}};
  lifecycle::FactSet facts;
  facts.put({lifecycle::Subject(kNode), FacetName("bios"), seen(), {}, "", {}});
  EXPECT_THAT(phase->goals(cluster, lifecycle::Subject(kNode), facts)[0].blocked,
              testing::HasSubstr("NoSuchThing"));
  EXPECT_TRUE(emulator.machine.starts.empty());
}

TEST_P(BiosSettings, aProcessThatDiedBehindTheStagingIsContinued) {
  ASSERT_TRUE(loop.run(
      fleet.at(kNode).stageBios({{"SriovGlobalEnable", "Enabled"}, {"WorkloadProfile", "HPC"}})));
  auto outcome = act();
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_EQ(emulator.machine.starts.size(), 1u);
  EXPECT_EQ(seen(), "SriovGlobalEnable=Enabled,WorkloadProfile=HPC");
}

TEST(BiosSettingsOfDell, whatSomebodyElseHasCommittedIsWaitedForAndNothingIsRestarted) {
  test::VirtualLoop loop;
  test::VirtualBmc emulator{loop, "idrac"};
  test::RedfishRig rig{loop, emulator.net};
  emulator.machine.on = true;
  auto bmc = rig.bmc();
  ASSERT_TRUE(loop.run(bmc->stageBios({{"LogicalProc", "Disabled"}})));
  const auto refused = loop.run(bmc->stageBios({{"WorkloadProfile", "HPC"}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict) << refused.error().str();
  EXPECT_THAT(refused.error().str(), testing::HasSubstr("needs a restart first"));
  EXPECT_TRUE(emulator.machine.starts.empty());
}

INSTANTIATE_TEST_SUITE_P(All, BiosSettings, testing::Values("muster", "idrac", "ilo", "dgx-h100"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace muster::firmware
