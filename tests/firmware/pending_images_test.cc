// SPDX-License-Identifier: Apache-2.0
// An action is abandoned after its images were taken in: they are activated because they are
// wanted, or taken back; never by accident.
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/firmware/emulated.h"

#include "firmware/files.h"
#include "firmware/pending_images.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/images.h"
#include "lifecycle/model/orphaned_operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::firmware {
namespace {

using namespace std::chrono_literals;

class PendingImagesTest : public testing::Test {
 protected:
  /// Installs the component until the BMC has taken its image in, or has just been sent it; then
  /// the inventory wants something else.
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
    node.kept.push_back(*lifecycle::orphanedOperationOf(intent, node.loop.clock.now()));
    node.restart();  // whoever comes next knows only the facts
  }
  static void wantOnlyWhatRuns(Emulated& node, const std::string& component) {
    auto& baseline = node.cluster.firmware["b"];
    for (auto& each : baseline.components)
      if (each.name == component) each.version = node.state().slots.at(component).version;
  }
};

TEST_F(PendingImagesTest, isActivatedWithoutBeingSentAgainWhenItIsStillWanted) {
  for (const bool sent_only : {false, true}) {
    SCOPED_TRACE(sent_only);
    Emulated node("gb200", {"UEFI"});
    abandon(node, "UEFI", sent_only);
    EXPECT_EQ(node.apply(), "");
    node.expectBaseline();
    EXPECT_EQ(node.state().slots.at("UEFI").uploads, 1u);
    EXPECT_EQ(node.state().slots.at("UEFI").flashes, 1u);
    EXPECT_THAT(node.state().violations, testing::IsEmpty());
    EXPECT_EQ(node.kept.back().value, lifecycle::kNoOrphanedOperation);
  }
}

TEST_F(PendingImagesTest, isTakenBackFromAnIdracWhenItIsNotWantedAnyMore) {
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

TEST_F(PendingImagesTest, isTakenBackFromAnOpenBmc) {
  Emulated node("openbmc", {"BMC"});
  abandon(node, "BMC");
  wantOnlyWhatRuns(node, "BMC");
  EXPECT_EQ(node.apply(), "");
  EXPECT_EQ(node.state().slots.at("BMC").staged_version, "");
}

TEST_F(PendingImagesTest, isToldWhereTheBmcHasNoWayBackAndNothingIsRestarted) {
  Emulated node("gb200", {"NIC_0", "UEFI"});
  abandon(node, "NIC_0");
  wantOnlyWhatRuns(node, "NIC_0");
  EXPECT_THAT(node.apply(),
              testing::AllOf(testing::HasSubstr(
                                 "blocked: NIC_0 99.1 was sent by an action that was abandoned"),
                             testing::HasSubstr("muster firmware retry gpu001")));
  EXPECT_EQ(node.state().slots.at("UEFI").uploads, 0u);
  EXPECT_EQ(node.state().starts, 0u);
  lifecycle::FactSet facts;
  facts.put(node.kept.back());
  EXPECT_THAT(failedFacets(facts, lifecycle::Subject(kNode)),
              testing::ElementsAre(FacetName("left.firmware.NIC_0")))
      << "a person may let go of it";
}

/// Somebody else's job waits there too, and a job does not say whose it is.
TEST_F(PendingImagesTest, isNotTakenBackAtTheCostOfAnothersJob) {
  Emulated node("idrac", {"BIOS.Setup.1-1", "NIC.Slot.5"});
  const auto nic = node.cluster.firmware["b"].components[1];
  abandon(node, "BIOS.Setup.1-1");
  auto other = node.rig.bmc();
  const auto task = node.loop.run(other->startUpdate({nic.name, nic.file, nic.sha256}));
  ASSERT_TRUE(task);
  node.pass(1s);
  const auto moved = node.loop.run(other->task(*task));
  ASSERT_TRUE(moved &&
              node.loop.run(other->task(moved->moved_to)));  // its job is listed from then on
  node.pass(60s);
  ASSERT_EQ(node.state().slots.at("NIC.Slot.5").staged_version, "99.1");
  wantOnlyWhatRuns(node, "BIOS.Setup.1-1");
  EXPECT_THAT(node.apply(), testing::HasSubstr("does not say which"));
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").staged_version, "99.1");
}

TEST_F(PendingImagesTest, isSeenToBeforeAnythingThatWasPlannedWithoutKnowingOfIt) {
  Emulated node("idrac", {"BIOS.Setup.1-1", "NIC.Slot.5"});
  abandon(node, "BIOS.Setup.1-1");
  wantOnlyWhatRuns(node, "BIOS.Setup.1-1");
  for (const auto& fact : node.kept)
    node.journal.known.put(fact);  // the engine has abandoned it just now
  lifecycle::Action action;
  action.facet = {lifecycle::Subject(kNode), facetOf("NIC.Slot.5")};
  action.to = "99.1";
  node.journal.operation_id.clear();
  EXPECT_EQ(node.drive(action), "");
  EXPECT_EQ(node.state().slots.at("NIC.Slot.5").version, "99.1");
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").version, "1.4.0");
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").staged_version, "");
}

TEST_F(PendingImagesTest, isNothingOnceItRunsOrHadEndedBadly) {
  const lifecycle::Subject subject(kNode);
  lifecycle::FactSet facts;
  facts.put({subject, FacetName("left.firmware.BIOS"), "2|+A=1 +B=1 next", {}, "", {}});
  facts.put(
      {subject, FacetName("left.firmware.CPLD"), "2|+C=1 failed:C=1 because:it over", {}, "", {}});
  facts.put({subject, FacetName("left.firmware.NIC"), "22.5|upload 1 -", {}, "", {}});
  facts.put({subject, FacetName("left.firmware.PSU"), lifecycle::kNoOrphanedOperation, {}, "", {}});
  facts.put({subject, facetOf("A"), "1", {}, "", {}});
  const auto pending = pendingImagesOf(facts, subject);
  EXPECT_THAT(pending.images, testing::ElementsAre(Target{"B", "1"}, Target{"NIC", "22.5"}));
  EXPECT_EQ(pending.facets.size(), 3u);
}

/// Stores of before 2026-11 hold the facet under its former name.
TEST(StagedFacet, isReadUnderItsFormerNameToo) {
  const lifecycle::Subject subject(kNode);
  const WallTime at = WallTime(5min);
  lifecycle::FactSet facts;
  facts.put({subject, FacetName("left.firmware.BIOS"), "2|+BIOS=2 next", at, "", {}});
  ASSERT_EQ(pendingImagesOf(facts, subject).images.size(), 1u);
  const auto goals = cancelStagedGoals(pendingImagesOf(facts, subject), subject, {});
  ASSERT_EQ(goals.size(), 1u);
  EXPECT_EQ(goals[0].facet.facet, FacetName("firmware-staged.BIOS"));
  for (const char* name : {"firmware-left.BIOS", "firmware-staged.BIOS"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(stagedComponentOf(FacetName(name)), "BIOS");
    auto known = facts;
    known.put({subject, FacetName(name), goals[0].want, at, "", {}});
    EXPECT_THAT(pendingImagesOf(known, subject).images, testing::IsEmpty());
  }
  EXPECT_EQ(stagedComponentOf(FacetName("firmware.BIOS")), "");
}

class ResumeFromPending : public testing::Test {
 protected:
  void leave(const std::string& facet, const std::string& value, std::chrono::minutes at = 0min) {
    facts.put({subject, FacetName("left.firmware." + facet), value, WallTime(at), "", {}});
  }

  const lifecycle::Subject subject{kNode};
  lifecycle::FactSet facts;
};

TEST_F(ResumeFromPending, goesOnWithTheImageThatIsBeingWritten) {
  leave("BIOS", "1|+BIOS=1 next");
  leave("NIC", "22.5|upload 1 -");
  const auto progress = resumeFrom(pendingImagesOf(facts, subject));
  EXPECT_EQ(progress.step, InstallStep::Upload);
  EXPECT_EQ(progress.current, (Target{"NIC", "22.5"}));
  EXPECT_THAT(progress.staged, testing::ElementsAre(Target{"BIOS", "1"}));
}

TEST_F(ResumeFromPending, ofWhatWasTakenOverOnceStillWaitsForAFlashThatNobodySees) {
  leave("NIC", "22.5|lost 2026-11-20T14:03:11.000Z", 1min);
  leave("BIOS", "1|for:NIC=22.5 lost 2026-11-20T14:03:11.000Z", 2min);
  const auto progress = resumeFrom(pendingImagesOf(facts, subject));
  EXPECT_EQ(progress.str(), "for:NIC=22.5 lost 2026-11-20T14:03:11.000Z");
}

TEST_F(ResumeFromPending, isOfTheNewestThatTellsOfAll) {
  leave("NIC", "22.5|+NIC=22.5 activate on 2026-11-20T14:03:11.000Z", 2min);
  leave("PSU", "1|+NIC=22.5 waits:/t/1 next", 1min);
  const auto progress = resumeFrom(pendingImagesOf(facts, subject));
  EXPECT_EQ(progress.step, InstallStep::PowerOn)
      << "its power is not cut under what is flashed in POST";
}

TEST_F(ResumeFromPending, leavesOutWhatWasTakenBackJustNow) {
  leave("A", "1|+A=1 +B=1 next");
  auto pending = pendingImagesOf(facts, subject);
  std::erase(pending.images, Target{"A", "1"});
  EXPECT_EQ(resumeFrom(pending).str(), "+B=1 next");
}

TEST_F(PendingImagesTest, isRememberedWhereItHadFailed) {
  for (const std::string step : {"activate 2026-11-20T14:03:11.000Z", "over"}) {
    SCOPED_TRACE(step);
    Emulated node("gb200", {"UEFI", "NIC_0"});
    node.kept.push_back({lifecycle::Subject(kNode),
                         FacetName("left.firmware.UEFI"),
                         "98|+UEFI=98 failed:NIC_0=99.1 because:it%20broke " + step,
                         node.loop.clock.now(),
                         "",
                         {}});
    for (const auto& fact : node.kept) node.journal.known.put(fact);
    node.journal.known.put({lifecycle::Subject(kNode), facetOf("UEFI"), "98", {}, "", {}});
    const auto& nic = *node.cluster.firmware["b"].find("NIC_0");
    EXPECT_THAT(whyNotAgain(nic, lifecycle::Subject(kNode), node.journal.known),
                testing::HasSubstr("NIC_0 99.1 has failed: it broke"));
    lifecycle::Action action;
    action.facet = {lifecycle::Subject(kNode), facetOf("UEFI")};
    action.to = "99.1";
    EXPECT_EQ(node.drive(action), "");
    EXPECT_EQ(node.state().slots.at("NIC_0").uploads, 0u);
    const auto seen = node.loop.run(node.phase->verify(action));
    ASSERT_TRUE(seen);
    EXPECT_THAT(*seen,
                testing::Contains(testing::Field(&lifecycle::Fact::facet, failedFacet("NIC_0"))));
  }
}

TEST_F(PendingImagesTest, isJournaledByWhoeverTakesItOverAndLetGoOfByALaterProcess) {
  Emulated node("gb200", {"UEFI"});
  abandon(node, "UEFI", true);
  for (const auto& fact : node.kept) node.journal.known.put(fact);
  lifecycle::Action action;
  action.facet = {lifecycle::Subject(kNode), facetOf("UEFI")};
  action.to = "99.1";
  node.journal.operation_id.clear();
  ASSERT_TRUE(node.loop.run(node.phase->act(action, node.journal)));
  EXPECT_THAT(node.journal.operation_id, testing::HasSubstr("task "))
      << "before anything else is known of it";
  node.pass(1s);
  node.restart();
  EXPECT_EQ(node.drive(action), "");
  const auto seen = node.loop.run(node.phase->verify(action));
  ASSERT_TRUE(seen);
  EXPECT_THAT(*seen,
              testing::Contains(testing::AllOf(
                  testing::Field(&lifecycle::Fact::facet, FacetName("left.firmware.UEFI")),
                  testing::Field(&lifecycle::Fact::value, lifecycle::kNoOrphanedOperation))));
}

TEST_F(PendingImagesTest, isTakenOverOnceHoweverManyWavesFollow) {
  Emulated node("gb200", {"UEFI"});
  abandon(node, "UEFI");
  for (const auto& fact : node.kept) node.journal.known.put(fact);
  lifecycle::Action action;
  action.facet = {lifecycle::Subject(kNode), facetOf("UEFI")};
  action.to = "99.1";
  node.journal.operation_id.clear();
  EXPECT_EQ(node.drive(action), "");
  const auto starts = node.state().starts;
  node.journal.operation_id.clear();  // as after a wave; the facts are those from before it
  EXPECT_EQ(node.drive(action), "");
  EXPECT_EQ(node.state().starts, starts);
}

TEST_F(PendingImagesTest, afterThisOneHadBegunIsNotLetGoOfByIt) {
  Emulated node("gb200", {"UEFI"});
  lifecycle::Action action;
  action.facet = {lifecycle::Subject(kNode), facetOf("UEFI")};
  action.to = "99.1";
  node.journal.crash_at = " next";
  EXPECT_THROW(node.drive(action), test::FakeCrash);
  node.journal.crash_at.clear();
  node.restart();
  node.pass(1s);
  node.journal.known.put({lifecycle::Subject(kNode),
                          FacetName("left.firmware.NIC_0"),
                          "2|+NIC_0=2 next",
                          node.loop.clock.now(),
                          "",
                          {}});
  EXPECT_EQ(node.drive(action), "");
  const auto seen = node.loop.run(node.phase->verify(action));
  ASSERT_TRUE(seen);
  EXPECT_THAT(*seen, testing::Not(testing::Contains(testing::Field(
                         &lifecycle::Fact::facet, FacetName("left.firmware.NIC_0")))));
}

/// The second has an action of its own in the same plan.
TEST_F(PendingImagesTest, isLetGoOfWhenTheLastOfItIsTakenBack) {
  Emulated node("idrac", {"BIOS.Setup.1-1", "NIC.Slot.5"});
  node.journal.known.put({lifecycle::Subject(kNode),
                          FacetName("left.firmware.BIOS.Setup.1-1"),
                          "98|+BIOS.Setup.1-1=98 +NIC.Slot.5=98 next",
                          {},
                          "",
                          {}});
  for (const std::string component : {"BIOS.Setup.1-1", "NIC.Slot.5"}) {
    SCOPED_TRACE(component);
    lifecycle::Action action;
    for (const auto& goal :
         node.phase->goals(node.cluster, lifecycle::Subject(kNode), node.journal.known))
      if (goal.facet.facet == stagedFacet(component))
        action.facet = goal.facet, action.to = goal.want;
    ASSERT_NE(action.to, "");
    EXPECT_EQ(node.drive(action), "");
    const auto seen = node.loop.run(node.phase->verify(action));
    for (const auto& fact : *seen) node.journal.known.put(fact);
    EXPECT_EQ(node.journal.known.value(lifecycle::Subject(kNode), stagedFacet(component)),
              action.to);
  }
  EXPECT_TRUE(pendingImagesOf(node.journal.known, lifecycle::Subject(kNode)).facets.empty());
}

/// It may have been cut off; the one job that waits is an administrator's.
TEST_F(PendingImagesTest, thatMayNeverHaveArrivedIsNotTakenBackAtTheCostOfAnothersJob) {
  Emulated node("idrac", {"BIOS.Setup.1-1"});
  abandon(node, "BIOS.Setup.1-1");
  wantOnlyWhatRuns(node, "BIOS.Setup.1-1");
  node.kept.back().value = "99.2|upload 1 -";
  EXPECT_THAT(node.apply(), testing::HasSubstr("does not say which"));
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").staged_version, "99.1");
}

TEST_F(PendingImagesTest, withTheAgentIsNotTakenBackByTheBmc) {
  Emulated node("idrac", {"BIOS.Setup.1-1"});
  auto& baseline = node.cluster.firmware["b"];
  auto nic = baseline.components.front();
  nic.name = "ConnectX 7";
  nic.device = "nic:MT_0000000838";
  baseline.components.push_back(nic);
  test::FakeAgentGateway agents;
  agents.boot(kNode, wire::Mode::Disk);
  agents.hold(wire::TaskKind::InstallFirmware);
  ASSERT_TRUE(agents.submit(kNode, {"old", wire::TaskKind::InstallFirmware, "{}", 1h}));
  node.phase = makeFirmwarePhase(node.cluster, *node.fleet, node.loop.clock, node.loop.workers,
                                 "http://10.20.0.1:8080", &agents);
  node.journal.known.put({lifecycle::Subject(kNode),
                          FacetName("left.firmware.ConnectX 7"),
                          "22|task agent:old",
                          {},
                          "",
                          {}});
  lifecycle::Action action;
  action.facet = {lifecycle::Subject(kNode), facetOf("BIOS.Setup.1-1")};
  action.to = "99.1";
  const auto busy = node.loop.run(node.phase->act(action, node.journal));
  ASSERT_TRUE(busy && std::holds_alternative<lifecycle::Again>(*busy));
  EXPECT_THAT(std::get<lifecycle::Again>(*busy).waiting_for,
              testing::HasSubstr("agent to end writing ConnectX 7 22"));
  agents.finish("old", "{}");
  EXPECT_THAT(node.drive(action),
              testing::AllOf(testing::HasSubstr("blocked: ConnectX 7 22 was sent"),
                             testing::HasSubstr("muster firmware retry gpu001")));
  EXPECT_EQ(node.state().starts, 0u);
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").uploads, 0u);
}

TEST_F(PendingImagesTest, ofAComponentThatTheBmcDoesNotListIsNotTakenBackByIt) {
  Emulated node("idrac", {"BIOS.Setup.1-1"});
  const auto why =
      node.loop.run(cancelStaged(node.fleet->at(kNode), {{{"ConnectX 7", "22"}, true}}, "gpu001"));
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, testing::HasSubstr("the BMC does not list ConnectX 7"));
}

}  // namespace
}  // namespace muster::firmware
