// An action is abandoned after its images were taken in: they are activated because they are wanted, or taken back; never by accident.
#include "tests/firmware/emulated.h"

#include "firmware/files.h"
#include "firmware/left.h"
#include "lifecycle/left.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::firmware {
namespace {

using namespace std::chrono_literals;

class WhatAnActionLeft : public testing::Test {
 protected:
  /// Installs the component until the BMC has taken its image in, or has just been sent it; then the inventory wants something else.
  void abandon(Emulated& node, const std::string& component, bool sent_only = false) {
    lifecycle::Action action;
    action.facet = {lifecycle::Subject(kNode), facetOf(component)};
    action.to = "99.1";
    node.journal.operation_id.clear();
    node.journal.crash_at = sent_only ? "task " : " next";
    EXPECT_THROW(node.drive(action), test::FakeCrash);
    node.journal.crash_at.clear();
    lifecycle::Intent intent;
    intent.action = action;
    intent.operation = node.journal.operation_id;
    node.kept.push_back(*lifecycle::leftBy(intent, node.loop.clock.now()));
    node.restart();  // whoever comes next knows only the facts
  }
  static void wantOnlyWhatRuns(Emulated& node, const std::string& component) {
    auto& baseline = node.cluster.firmware["b"];
    for (auto& each : baseline.components)
      if (each.name == component) each.version = node.state().slots.at(component).version;
  }
};

TEST_F(WhatAnActionLeft, isActivatedWithoutBeingSentAgainWhenItIsStillWanted) {
  for (const bool sent_only : {false, true}) {
    SCOPED_TRACE(sent_only);
    Emulated node("gb200", {"HostBIOS_0"});
    abandon(node, "HostBIOS_0", sent_only);
    EXPECT_EQ(node.apply(), "");
    node.expectBaseline();
    EXPECT_EQ(node.state().slots.at("HostBIOS_0").uploads, 1u);
    EXPECT_EQ(node.state().slots.at("HostBIOS_0").flashes, 1u);
    EXPECT_THAT(node.state().violations, testing::IsEmpty());
    EXPECT_EQ(node.kept.back().value, lifecycle::kNothingLeft);
  }
}

TEST_F(WhatAnActionLeft, isTakenBackFromAnIdracWhenItIsNotWantedAnyMore) {
  Emulated node("idrac", {"BIOS.Setup.1-1"});
  abandon(node, "BIOS.Setup.1-1");
  wantOnlyWhatRuns(node, "BIOS.Setup.1-1");
  EXPECT_EQ(node.apply(), "");
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").staged_version, "");
  auto bmc = node.rig.bmc();
  ASSERT_TRUE(node.loop.run(bmc->power(bmc::PowerAction::ForceRestart)));
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").version, "1.4.0");
  EXPECT_EQ(node.apply(), "") << "nothing is left to do";
  EXPECT_EQ(node.state().starts, 1u);
}

TEST_F(WhatAnActionLeft, isTakenBackFromAnOpenBmc) {
  Emulated node("openbmc", {"BMC"});
  abandon(node, "BMC");
  wantOnlyWhatRuns(node, "BMC");
  EXPECT_EQ(node.apply(), "");
  EXPECT_EQ(node.state().slots.at("BMC").staged_version, "");
}

TEST_F(WhatAnActionLeft, isToldWhereTheBmcHasNoWayBackAndNothingIsRestarted) {
  Emulated node("gb200", {"HostBIOS_0", "NIC_0"});
  abandon(node, "HostBIOS_0");
  wantOnlyWhatRuns(node, "HostBIOS_0");
  EXPECT_THAT(node.apply(), testing::AllOf(testing::HasSubstr("blocked: HostBIOS_0 99.1 was sent by an action that was abandoned"), testing::HasSubstr("muster firmware retry gpu001")));
  EXPECT_EQ(node.state().slots.at("NIC_0").uploads, 0u);
  EXPECT_EQ(node.state().starts, 0u);
  lifecycle::FactSet facts;
  facts.put(node.kept.back());
  EXPECT_THAT(failedFacets(facts, lifecycle::Subject(kNode)), testing::ElementsAre(FacetName("left.firmware.HostBIOS_0"))) << "a person may let go of it";
}

/// Somebody else's job waits there too, and a job does not say whose it is.
TEST_F(WhatAnActionLeft, isNotTakenBackAtTheCostOfAnothersJob) {
  Emulated node("idrac", {"BIOS.Setup.1-1", "NIC.Slot.5"});
  const auto nic = node.cluster.firmware["b"].components[1];
  abandon(node, "BIOS.Setup.1-1");
  auto other = node.rig.bmc();
  const auto task = node.loop.run(other->startUpdate({nic.name, nic.file, nic.sha256}));
  ASSERT_TRUE(task);
  node.pass(1s);
  const auto moved = node.loop.run(other->task(*task));
  ASSERT_TRUE(moved && node.loop.run(other->task(moved->moved_to)));  // its job is listed from then on
  node.pass(60s);
  ASSERT_EQ(node.state().slots.at("NIC.Slot.5").staged_version, "99.1");
  wantOnlyWhatRuns(node, "BIOS.Setup.1-1");
  EXPECT_THAT(node.apply(), testing::HasSubstr("does not say which"));
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").staged_version, "99.1");
}

TEST_F(WhatAnActionLeft, isSeenToBeforeAnythingThatWasPlannedWithoutKnowingOfIt) {
  Emulated node("idrac", {"BIOS.Setup.1-1", "NIC.Slot.5"});
  abandon(node, "BIOS.Setup.1-1");
  wantOnlyWhatRuns(node, "BIOS.Setup.1-1");
  for (const auto& fact : node.kept) node.journal.known.put(fact);  // the engine has abandoned it just now
  lifecycle::Action action;
  action.facet = {lifecycle::Subject(kNode), facetOf("NIC.Slot.5")};
  action.to = "99.1";
  node.journal.operation_id.clear();
  EXPECT_EQ(node.drive(action), "");
  EXPECT_EQ(node.state().slots.at("NIC.Slot.5").version, "99.1");
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").version, "1.4.0");
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").staged_version, "");
}

TEST_F(WhatAnActionLeft, isNothingOnceItRunsOrHadEndedBadly) {
  const lifecycle::Subject subject(kNode);
  lifecycle::FactSet facts;
  facts.put({subject, FacetName("left.firmware.BIOS"), "2|+A=1 +B=1 next", {}, "", {}});
  facts.put({subject, FacetName("left.firmware.CPLD"), "2|+C=1 failed:C=1 because:it over", {}, "", {}});
  facts.put({subject, FacetName("left.firmware.NIC"), "22.5|upload 1 -", {}, "", {}});
  facts.put({subject, FacetName("left.firmware.PSU"), lifecycle::kNothingLeft, {}, "", {}});
  facts.put({subject, facetOf("A"), "1", {}, "", {}});
  const auto left = leftOn(facts, subject);
  EXPECT_THAT(left.images, testing::ElementsAre(Target{"B", "1"}, Target{"NIC", "22.5"}));
  EXPECT_EQ(left.facets.size(), 3u);
  EXPECT_EQ(takeOver(left).step, Step::Next);
}

}  // namespace
}  // namespace muster::firmware
