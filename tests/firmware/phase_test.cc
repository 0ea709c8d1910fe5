// SPDX-License-Identifier: Apache-2.0
// The firmware phase on a fake BMC: one component at a time.
#include "firmware/activation_policy.h"
#include "firmware/progress.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "tests/firmware/phase_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::firmware {
namespace {

using namespace std::chrono_literals;
using lifecycle::Action;
using lifecycle::FacetRef;
using lifecycle::Outcome;
using lifecycle::Subject;
using test::FakeBmc;

TEST_F(FirmwarePhaseTest, goalsFollowTheBaselinesOrder) {
  auto goals = phase->goals(cluster, Subject(kNode), {});
  ASSERT_EQ(goals.size(), 2u);
  EXPECT_EQ(goals[0].facet.facet.str(), "firmware.BMC");
  EXPECT_EQ(goals[0].want, "2.1.0");
  EXPECT_TRUE(goals[0].needs.empty());
  EXPECT_THAT(goals[0].after, testing::ElementsAre(lifecycle::Stage::Enrollment));
  EXPECT_EQ(goals[1].facet.facet.str(), "firmware.BIOS");
  EXPECT_THAT(goals[1].needs, testing::Contains(goals[0].facet));
  EXPECT_EQ(goals[1].disruption, lifecycle::Disruption::Reset);
  EXPECT_TRUE(phase->goals(cluster, Subject::cluster(), {}).empty());
}

TEST_F(FirmwarePhaseTest, observesDeclaredComponentsOnly) {
  bmc.components["CPLD"] = {.version = "7"};
  auto facts = loop.run(phase->observe(Subject(kNode)));
  ASSERT_TRUE(facts);
  std::map<std::string, std::string> values;
  for (const auto& fact : *facts) values[fact.facet.str()] = fact.value;
  EXPECT_EQ(values, (std::map<std::string, std::string>{{"firmware.BIOS", "1.4.0"},
                                                        {"firmware.BMC", "2.0.0"},
                                                        {"firmware-file.BIOS", "ok"},
                                                        {"firmware-file.BMC", "ok"}}));
}

TEST(PowerSupplies, aReadingOfAnEarlierLookIsNoGoodSupplyAndStillABadOne) {
  const bmc::SensorReading good{"PSU 1", "PowerSupply", "", 0, "OK", {}};
  auto old = good, failed = good;
  old.stale = failed.stale = true;
  failed.health = "Critical";
  EXPECT_EQ(whyNotRedundant({good, good}), "");
  EXPECT_THAT(whyNotRedundant({good, old}), testing::HasSubstr("1 good power supply"));
  EXPECT_THAT(whyNotRedundant({good, good, failed}), testing::HasSubstr("PSU 1 is Critical"));
}

/// DGX H100: HGX_* answers 503 while the host is off.
TEST_F(FirmwarePhaseTest, aHostThatIsOffIsSwitchedOnForItsTray) {
  bmc.info.power = bmc::PowerState::Off;
  bmc.components["BIOS"].needs_host = true;
  const auto first = loop.run(phase->act(action("BIOS", "1.4.2"), journal));
  ASSERT_TRUE(first) << first.error().str();
  ASSERT_TRUE(std::holds_alternative<lifecycle::Again>(*first));
  EXPECT_EQ(bmc.info.power, bmc::PowerState::On);
  EXPECT_EQ(bmc.uploads, 0) << "the tray is given its time";
  ASSERT_TRUE(drive(action("BIOS", "1.4.2")));
  EXPECT_EQ(bmc.components["BIOS"].version, "1.4.2");
  EXPECT_EQ(bmc.components["BIOS"].uploads, 1);
}

TEST_F(FirmwarePhaseTest, whatIsUnreadableOnAHostThatRunsIsNoReasonToSwitchAnything) {
  bmc.info.power = bmc::PowerState::On;
  bmc.components["BIOS"].unreadable_reads = 1;
  const auto outcome = loop.run(phase->act(action("BIOS", "1.4.2"), journal));
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(outcome.error().canRetry());
  EXPECT_EQ(bmc.count("power On"), 0);
}

/// SoftwareInventory.Updateable: false (DSP2046).
TEST_F(FirmwarePhaseTest, whatTheBmcCallsFixedIsBlockedInThePlanAndNeverSent) {
  bmc.components["BIOS"].updateable = false;
  lifecycle::FactSet facts;
  const auto seen = loop.run(phase->observe(Subject(kNode)));
  ASSERT_TRUE(seen);
  for (const auto& fact : *seen) facts.put(fact);
  const auto goals = phase->goals(cluster, Subject(kNode), facts);
  ASSERT_EQ(goals.size(), 2u);
  for (const auto& goal : goals) {
    const bool bios = goal.facet.facet.str() == "firmware.BIOS";
    EXPECT_EQ(goal.blocked.find("Updateable: false") != std::string::npos, bios) << goal.blocked;
  }
  EXPECT_FALSE(drive(action("BIOS", "1.4.2"))) << "an older plan may still order it";
  EXPECT_EQ(bmc.uploads, 0);
  bmc.components["BIOS"].updateable = true;
  const auto again = loop.run(phase->observe(Subject(kNode)));
  for (const auto& fact : *again) facts.put(fact);
  for (const auto& goal : phase->goals(cluster, Subject(kNode), facts))
    EXPECT_TRUE(goal.blocked.empty()) << goal.blocked;
}

TEST_F(FirmwarePhaseTest, theRightVersionIsNotTouched) {
  bmc.components["BMC"].version = "2.1.0";
  ASSERT_TRUE(drive(action("BMC", "2.1.0")));
  EXPECT_EQ(bmc.uploads, 0);
  EXPECT_EQ(bmc.bmc_resets, 0);
}

TEST_F(FirmwarePhaseTest, theBmcActivatesByItsOwnResetTheBiosByPower) {
  ASSERT_TRUE(drive(action("BMC", "2.1.0")));
  EXPECT_EQ(bmc.components["BMC"].version, "2.1.0");
  EXPECT_EQ(bmc.bmc_resets, 1);
  EXPECT_EQ(bmc.power_cycles, 0);

  journal = Journal();
  bmc.info.power = bmc::PowerState::On;
  ASSERT_TRUE(drive(action("BIOS", "1.4.2")));
  EXPECT_EQ(bmc.components["BIOS"].version, "1.4.2");
  EXPECT_EQ(bmc.count("power GracefulShutdown"), 1);
  EXPECT_EQ(bmc.power_cycles, 1);
  EXPECT_EQ(bmc.bmc_resets, 1);
  EXPECT_EQ(bmc.uploads, 2);
  auto facts = loop.run(phase->verify(action("BIOS", "1.4.2")));
  EXPECT_THAT(*facts, testing::Contains(testing::Field(&lifecycle::Fact::value, "1.4.2")));
}

TEST_F(FirmwarePhaseTest, aGuestThatDoesNotShutDownLosesItsPower) {
  bmc.info.power = bmc::PowerState::On;
  bmc.failNext("power", Error(ErrorCode::Timeout, "still on"));
  ASSERT_TRUE(drive(action("BIOS", "1.4.2")));
  EXPECT_EQ(bmc.count("power ForceOff"), 1);
}

struct CrashPoint {
  const char* name;
  const char* after_effect;  ///< the effect happened, its answer is lost
  int after_record;          ///< or: this journal entry was committed, nothing more
};

class FirmwareCrash
    : public FirmwarePhaseTest,
      public testing::WithParamInterface<std::tuple<CrashPoint, const char*, bool>> {};

TEST_P(FirmwareCrash, flashesExactlyOnce) {
  const auto& [point, name, task_ends_meanwhile] = GetParam();
  const bool is_bmc = std::string(name) == "BMC";
  const std::string to = is_bmc ? "2.1.0" : "1.4.2", effect = point.after_effect;
  bmc.info.power = bmc::PowerState::On;
  bmc.components[name].post_reads = 20;  // the new version shows long after the activation began
  bmc.crash_after = effect;
  if (point.after_record > 0) journal.crash_after_record = point.after_record;
  std::optional<Result<void>> first;
  try {
    first = drive(action(name, to));
  } catch (const test::FakeCrash&) {
    ++crashed;
  }
  if (task_ends_meanwhile) bmc.finishTasks();
  restart();
  const auto result = first ? *first : driveThroughCrashes(action(name, to));
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_EQ(bmc.components[name].version, to);
  EXPECT_EQ(bmc.components[name].uploads, 1);
  EXPECT_EQ(bmc.bmc_resets, is_bmc ? 1 : 0);
  EXPECT_EQ(bmc.power_cycles, is_bmc ? 0 : 1);
  EXPECT_EQ(bmc.count("power ForceOff"), 0);
  const bool reached = point.after_record > 0
                           ? point.after_record <= (is_bmc ? 5 : 7)
                           : effect == "startUpdate" || (effect == "resetBmc") == is_bmc;
  EXPECT_EQ(crashed, reached ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(
    EveryStep, FirmwareCrash,
    testing::Combine(
        testing::Values(CrashPoint{"upload", "startUpdate", 0}, CrashPoint{"reset", "resetBmc", 0},
                        CrashPoint{"powerOn", "power On", 0}, CrashPoint{"journalUpload", "", 1},
                        CrashPoint{"journalTask", "", 2}, CrashPoint{"journalNext", "", 3},
                        CrashPoint{"journalActivate", "", 4},
                        CrashPoint{"journalOffOrSettle", "", 5}, CrashPoint{"journalOn", "", 6},
                        CrashPoint{"journalSettle", "", 7}),
        testing::Values("BMC", "BIOS"), testing::Bool()),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).name) + std::get<1>(info.param) +
             (std::get<2>(info.param) ? "TaskEnds" : "TaskRuns");
    });

TEST_F(FirmwarePhaseTest, powerIsNotCutAgainWhenTheAnswerToOnIsLost) {
  bmc.components["BIOS"].post_reads = 20;
  bmc.loseAnswer("power On", Error(ErrorCode::Timeout, "the power state did not become On"));
  ASSERT_TRUE(drive(action("BIOS", "1.4.2")));
  EXPECT_EQ(bmc.power_cycles, 1);
  EXPECT_EQ(bmc.count("power GracefulShutdown") + bmc.count("power ForceOff"), 0)
      << "it was off: nobody had to switch it off, not even later";
}

TEST_F(FirmwarePhaseTest, aNodeThatDidNotSwitchOnIsSwitchedOnAgain) {
  bmc.failNext("power", Error(ErrorCode::Timeout, "the power state did not become On"), 5);
  ASSERT_TRUE(drive(action("BIOS", "1.4.2")));
  EXPECT_EQ(bmc.power_cycles, 1);
  EXPECT_EQ(bmc.count("power On"), 6);
}

TEST_F(FirmwarePhaseTest, aBmcThatForgetsTasksIsNotFlashedTwiceAfterACrash) {
  bmc.forgets_finished_tasks = true;
  bmc.crash_after = "startUpdate";
  EXPECT_THROW((void)drive(action("BMC", "2.1.0")), test::FakeCrash);
  bmc.finishTasks();  // done and forgotten before muster is back
  restart();
  ASSERT_TRUE(drive(action("BMC", "2.1.0")));
  EXPECT_EQ(bmc.uploads, 1);
}

TEST_F(FirmwarePhaseTest, aTaskThatIsGoneIsNoFailure) {
  bmc.forgets_finished_tasks = true;
  ASSERT_TRUE(drive(action("BMC", "2.1.0")));
  EXPECT_EQ(bmc.uploads, 1);
}

TEST_F(FirmwarePhaseTest, aFileThatIsNotTheDeclaredOneBlocksBeforeTheNodeIsDrained) {
  auto& component = cluster.firmware["rack-1"].components[1];
  const auto good = component;
  const auto blocked = [this] {
    lifecycle::FactSet facts;
    auto seen = loop.run(phase->observe(Subject(kNode)));
    for (auto& fact : *seen) facts.put(std::move(fact));
    return phase->goals(cluster, Subject(kNode), facts)[0].blocked;
  };
  EXPECT_EQ(blocked(), "");
  component.sha256 = std::string(64, '0');
  EXPECT_THAT(blocked(), testing::HasSubstr("has the SHA-256"));
  auto result = drive(action("BMC", "2.1.0"));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().str(),
              testing::AllOf(testing::HasSubstr("blocked"), testing::HasSubstr("has the SHA-256")));
  component.file = folder / "missing.fw";
  EXPECT_THAT(blocked(), testing::HasSubstr("missing.fw"));
  EXPECT_FALSE(drive(action("BMC", "2.1.0")));
  component = good;
  EXPECT_TRUE(io::writeFileAtomic(good.file, "cut off"));
  EXPECT_THAT(blocked(), testing::HasSubstr("has the SHA-256"))
      << "a file that changed is read again";
  EXPECT_EQ(bmc.uploads, 0);
  EXPECT_EQ(bmc.count("startUpdate") + bmc.count("tasks") + bmc.count("power") + bmc.bmc_resets, 0);
}

TEST_F(FirmwarePhaseTest, aComponentWithoutAFileIsOnlyCompared) {
  auto& component = cluster.firmware["rack-1"].components[1];
  component.file.clear();
  component.sha256.clear();
  const auto goal = phase->goals(cluster, Subject(kNode), {})[0];
  EXPECT_EQ(goal.disruption, lifecycle::Disruption::None);
  EXPECT_THAT(goal.blocked, testing::HasSubstr("without a file, so it is only compared"));
  auto result = drive(action("BMC", "2.1.0"));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().str(), testing::HasSubstr("without a file"));
  EXPECT_EQ(bmc.uploads, 0);
  bmc.components["BMC"].version = "2.1.0";
  EXPECT_TRUE(drive(action("BMC", "2.1.0")));
}

TEST_F(FirmwarePhaseTest, anOldVersionAfterCompletionIsAFailureAndNotASecondFlash) {
  bmc.components["BMC"].update_gives = "2.0.0";  // says Completed, installs nothing new
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto result = drive(action("BMC", "2.1.0"));
    ASSERT_FALSE(result);
    EXPECT_FALSE(result.error().canRetry());
    EXPECT_THAT(result.error().str(),
                testing::HasSubstr(
                    "BMC 2.1.0 is not active, 15 min after its activation: BMC shows 2.0.0"));
  }
  EXPECT_EQ(bmc.uploads, 1);
  ASSERT_FALSE(journal.findings.empty());
}

TEST_F(FirmwarePhaseTest, aFailedTaskIsAFindingWithTheBmcsWords) {
  bmc.next_update_fails = true;
  for (int attempt = 0; attempt < 2; ++attempt) EXPECT_FALSE(drive(action("BMC", "2.1.0")));
  EXPECT_EQ(bmc.uploads, 1);
  ASSERT_FALSE(journal.findings.empty());
  EXPECT_EQ(journal.findings[0].evidence, "image verification failed");
  EXPECT_EQ(bmc.bmc_resets, 0);
}

TEST_F(FirmwarePhaseTest, waitsForWorkThatIsNotItsOwn) {
  bmc.task_by_uri["/redfish/v1/TaskService/Tasks/other"] = FakeBmc::FakeTask{"BIOS", "1.4.9", 3};
  auto outcome = loop.run(phase->act(action("BMC", "2.1.0"), journal));
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(std::holds_alternative<lifecycle::Again>(*outcome));
  EXPECT_EQ(bmc.uploads, 0);
  bmc.finishTasks();
  ASSERT_TRUE(drive(action("BMC", "2.1.0")));
  EXPECT_EQ(bmc.uploads, 1);
}

/// It begins while second slots are filled, or while no muster runs.
TEST_F(FirmwarePhaseTest, powerStaysUnderAnUpdateThatBeginsAfterTheActivation) {
  bmc.components["CPLD"] = {.version = "0x12", .activates = test::FakeBmc::Activates::AcCycle};
  bmc.offers_ac_cycle = true;
  cluster.firmware["rack-1"].components = {component("BIOS", "1.4.2"), component("CPLD", "0x14")};
  for (const auto& [name, version, power] : {std::tuple("BIOS", "1.4.2", bmc::PowerState::On),
                                             std::tuple("CPLD", "0x14", bmc::PowerState::Off)}) {
    SCOPED_TRACE(name);
    cluster.firmware["rack-1"].order = {name};
    journal = Journal();
    journal.id = name;
    bmc.info.power = power;
    bmc.calls.clear();
    bmc.copies_for = 2;
    while (journal.operation_id.find("activate copy") == std::string::npos) {
      auto outcome = loop.run(phase->act(action(name, version), journal));
      ASSERT_TRUE(outcome) << outcome.error().str();
      loop.clock.advance(std::get<lifecycle::Again>(*outcome).after);
    }
    restart();
    bmc.task_by_uri["/redfish/v1/TaskService/Tasks/other"] =
        test::FakeBmc::FakeTask{"NIC", "22.5", 1 << 20};
    for (int call = 0; call < 20; ++call) {
      auto outcome = loop.run(phase->act(action(name, version), journal));
      ASSERT_TRUE(outcome && std::holds_alternative<lifecycle::Again>(*outcome));
      loop.clock.advance(std::get<lifecycle::Again>(*outcome).after);
    }
    EXPECT_EQ(bmc.count("power") + bmc.count("acCycle"), 0);
    bmc.finishTasks();
    ASSERT_TRUE(drive(action(name, version)));
    EXPECT_EQ(bmc.components[name].uploads, 1);
  }
}

TEST_F(FirmwarePhaseTest, uploadsThatNeverArriveAreGivenUp) {
  bmc.failNext("startUpdate", Error(ErrorCode::Unavailable, "connection reset"), 10);
  auto result = drive(action("BMC", "2.1.0"));
  ASSERT_FALSE(result);
  EXPECT_EQ(bmc.count("startUpdate"), 8);
  EXPECT_EQ(journal.findings.size(), 1u);
}

TEST_F(FirmwarePhaseTest, aBmcThatIsAwayWhileItInstallsIsWaitedFor) {
  auto outcome = loop.run(phase->act(action("BMC", "2.1.0"), journal));
  ASSERT_TRUE(outcome);
  bmc.failNext("firmware", Error(ErrorCode::Unavailable, "refused"), 20);
  ASSERT_TRUE(drive(action("BMC", "2.1.0")));
  EXPECT_EQ(bmc.uploads, 1);
}

TEST_F(FirmwarePhaseTest, anUploadThatIsStillTakenInIsNotSentTwice) {
  bmc.tasks_late_by = 5;  // the BMC lists it some lists later
  bmc.crash_after = "startUpdate";
  EXPECT_THROW((void)drive(action("BMC", "2.1.0")), test::FakeCrash);
  restart();
  ASSERT_TRUE(drive(action("BMC", "2.1.0")));
  EXPECT_EQ(bmc.uploads, 1);
}

TEST_F(FirmwarePhaseTest, anUploadThatIsStillTakenInIsNotCutOff) {
  bmc.forgets_finished_tasks = true;
  bmc.components["BIOS"].post_reads = 5;
  bmc.info.power = bmc::PowerState::On;
  bmc.tasks_late_by = 5;
  bmc.crash_after = "startUpdate";
  EXPECT_THROW((void)drive(action("BIOS", "1.4.2")), test::FakeCrash);
  restart();
  ASSERT_TRUE(drive(action("BIOS", "1.4.2")));
  EXPECT_EQ(bmc.uploads, 1);
  EXPECT_EQ(bmc.power_cycles, 1);
}

TEST_F(FirmwarePhaseTest, aSecondUploadComesOnlyAfterManyLooks) {
  bmc.failNext("startUpdate", Error(ErrorCode::Unavailable, "connection reset"));
  ASSERT_TRUE(drive(action("BMC", "2.1.0")));
  const auto second = std::find(bmc.calls.rbegin(), bmc.calls.rend(), "startUpdate BMC").base();
  EXPECT_GE(std::count(bmc.calls.begin(), second, "tasks"), 10);
  EXPECT_EQ(bmc.uploads, 1);
}

TEST_F(FirmwarePhaseTest, aSecondUploadThatTheBmcRefusesFindsTheFirst) {
  bmc.tasks_late_by = 14;  // longer than muster looks
  bmc.loseAnswer("startUpdate", Error(ErrorCode::Unavailable, "connection reset"));
  bmc.refuses_while_taking_in = true;
  ASSERT_TRUE(drive(action("BMC", "2.1.0")));
  EXPECT_EQ(bmc.uploads, 1);
}

TEST_F(FirmwarePhaseTest, tasksThatCannotBeListedAfterACrashAreWaitedFor) {
  bmc.crash_after = "startUpdate";
  EXPECT_THROW((void)drive(action("BMC", "2.1.0")), test::FakeCrash);
  restart();
  bmc.failNext("tasks", Error(ErrorCode::Unavailable, "503"), 20);
  ASSERT_TRUE(drive(action("BMC", "2.1.0")));
  EXPECT_EQ(bmc.uploads, 1);
}

TEST_F(FirmwarePhaseTest, aComponentThatIsUnlistedWhileItInstallsIsWaitedFor) {
  for (const char* name : {"BMC", "BIOS"}) {
    for (int FakeBmc::Component::* reads :
         {&FakeBmc::Component::unlisted_reads, &FakeBmc::Component::unreadable_reads}) {
      journal = Journal();
      bmc.components[name].version = "1.0.0";
      const int uploads = bmc.components[name].uploads;
      ASSERT_TRUE(loop.run(
          phase->act(action(name, std::string(name) == "BMC" ? "2.1.0" : "1.4.2"), journal)));
      bmc.components[name].*reads = 30;
      const auto result = drive(action(name, std::string(name) == "BMC" ? "2.1.0" : "1.4.2"));
      ASSERT_TRUE(result) << result.error().str();
      EXPECT_EQ(bmc.components[name].uploads, uploads + 1);
      EXPECT_TRUE(journal.findings.empty());
    }
  }
}

TEST_F(FirmwarePhaseTest, aComponentThatStaysUnlistedAfterItsActivationIsAFailure) {
  ASSERT_TRUE(loop.run(phase->act(action("BMC", "2.1.0"), journal)));
  bmc.components["BMC"].unlisted_reads = 100000;
  const auto result = drive(action("BMC", "2.1.0"));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().str(), testing::HasSubstr("lists no firmware component BMC"));
  EXPECT_EQ(journal.findings.size(), 1u);
}

TEST_F(FirmwarePhaseTest, anUnlistedComponentIsAWrongNameAndAnUnreadableOneIsNot) {
  bmc.components["BMC"].unlisted_reads = 1;
  auto outcome = loop.run(phase->act(action("BMC", "2.1.0"), journal));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), ErrorCode::NotFound);
  bmc.info.power = bmc::PowerState::On;
  bmc.components["BMC"].unreadable_reads = 1;
  outcome = loop.run(phase->act(action("BMC", "2.1.0"), journal));
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(outcome.error().canRetry());
  EXPECT_THAT(outcome.error().str(), testing::HasSubstr("503 of the baseboard"));
  EXPECT_EQ(bmc.uploads, 0);
  bmc.components["BMC"].unreadable_reads = 1;
  auto facts = loop.run(phase->observe(Subject(kNode)));
  ASSERT_TRUE(facts);
  for (const auto& fact : *facts)
    EXPECT_NE(fact.facet.str(), "firmware.BMC") << "no fact of what could not be read";
}

TEST_F(FirmwarePhaseTest, aBmcThatStillRestartsAfterACrashIsWaitedFor) {
  bmc.crash_after = "resetBmc";
  EXPECT_THROW((void)drive(action("BMC", "2.1.0")), test::FakeCrash);
  restart();
  bmc.failNext("firmware", Error(ErrorCode::Unavailable, "refused"), 20);
  ASSERT_TRUE(drive(action("BMC", "2.1.0")));
  EXPECT_EQ(bmc.uploads, 1);
  EXPECT_EQ(bmc.bmc_resets, 1);
}

TEST_F(FirmwarePhaseTest, anUndeclaredVersionIsNotInstalled) {
  auto result = drive(action("BMC", "3.0.0"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::InvalidInput);
  EXPECT_TRUE(bmc.calls.empty());
}

TEST(FirmwareProgress, survivesTheJournal) {
  Progress upload;
  upload.step = InstallStep::Upload;
  upload.uploads_tried = 2;
  upload.tasks_before = {"/a", "/b"};
  auto back = Progress::parse(upload.str());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->str(), upload.str());
  EXPECT_EQ(back->tasks_before, upload.tasks_before);
  for (InstallStep step : {InstallStep::Upload, InstallStep::Activate, InstallStep::PowerOff,
                           InstallStep::PowerOn, InstallStep::Stabilize}) {
    Progress timed;
    timed.step = step;
    timed.since = WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 20)) + 1500ms;
    auto read = Progress::parse(timed.str());
    ASSERT_TRUE(read) << timed.str();
    EXPECT_EQ(read->step, step);
    EXPECT_EQ(read->since, timed.since);
  }
  EXPECT_EQ(Progress::parse("")->step, InstallStep::Look);
  for (const char* odd : {"flash", "upload", "upload x", "upload 1", "task", "activate",
                          "activate up", "activate off", "settle yesterday"})
    EXPECT_EQ(Progress::parse(odd).error().code(), ErrorCode::Corrupt) << odd;
}

TEST(FirmwareActivation, isDataByComponentName) {
  EXPECT_EQ(rowOf("BMC").activation, Activation::BmcReset);
  EXPECT_EQ(rowOf("HostBMC_0").activation, Activation::BmcReset);
  EXPECT_EQ(rowOf("BIOS").activation, Activation::PowerCycle);
  EXPECT_EQ(rowOf("HGX_FW_BMC_0").activation, Activation::PowerCycle);
  EXPECT_EQ(rowOf("iDRAC.Embedded.1-1").activation, Activation::None);
  EXPECT_EQ(rowOf("PSU_3").activation, Activation::None);
  for (const auto& row : activationRows()) EXPECT_FALSE(row.source.empty());
}

}  // namespace
}  // namespace muster::firmware
