// SPDX-License-Identifier: Apache-2.0
// Graded recovery: the order of the steps from the journal alone, each with its proof, none twice,
// none on a node that takes jobs.
#include "monitor/recovery.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "firmware/firmware.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/monitor.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/quarantine.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/monitor/pool_rig.h"
#include "tests/run_async.h"

namespace muster::monitor::test {
namespace {

using inventory::Rung;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const WallTime kNow{std::chrono::hours(24 * 365 * 50)};

class NextStep : public ::testing::Test {
 protected:
  NextStep() {
    policy_.recovery = {Rung::Retry,      Rung::NewSession, Rung::BmcReset,
                        Rung::PowerCycle, Rung::AcCycle,    Rung::Quarantine};
  }
  /// One more intent of the node, at the newest end.
  void happened(const std::string& facet, IntentState state, const std::string& outcome = "") {
    Intent intent;
    intent.id = std::to_string(journal_.size());
    intent.action.facet = facetOf("gpu001", facet);
    intent.action.id = intent.action.facet.str();
    intent.action.reason = "wanted";
    intent.state = state;
    intent.outcome = outcome;
    intent.closed_at = state == IntentState::Open ? WallTime{}
                                                  : kNow - std::chrono::minutes(60) +
                                                        std::chrono::seconds(journal_.size());
    journal_.insert(journal_.begin(), intent);
  }
  std::string next() {
    const auto step = nextStep(journal_, policy_, kNow);
    return !step ? "nothing" : step->rung == Rung::Quarantine ? "quarantine" : step->action.id;
  }

  inventory::MonitorPolicy policy_;
  std::vector<Intent> journal_;
};

TEST_F(NextStep, climbsOneStepAtATimeAndTriesTheFailedActionAfterEach) {
  const std::string failed = "firmware.BMC";
  happened(failed, IntentState::Failed, "the BMC does not answer");
  EXPECT_EQ(next(), "gpu001/firmware.BMC") << "retry";
  happened(failed, IntentState::Failed, "the BMC does not answer");
  for (const char* step : {"new-session", "bmc-reset", "power-cycle", "ac-cycle"}) {
    const auto facet = std::string("recovery.") + step;
    EXPECT_EQ(next(), "gpu001/" + facet);
    happened(facet, IntentState::Done);
    EXPECT_EQ(next(), "gpu001/firmware.BMC") << "after " << step;
    happened(failed, IntentState::Failed, "the BMC does not answer");
  }
  EXPECT_EQ(next(), "quarantine");
  happened(failed, IntentState::Done);
  EXPECT_EQ(next(), "nothing");
}

TEST_F(NextStep, aStepThatDidNotWorkLeadsToTheNextOneAtOnce) {
  policy_.recovery = {Rung::BmcReset, Rung::PowerCycle};
  happened("firmware.BMC", IntentState::Failed, "x");
  EXPECT_EQ(next(), "gpu001/recovery.bmc-reset");
  happened("recovery.bmc-reset", IntentState::Failed, "it did not come back");
  EXPECT_EQ(next(), "gpu001/recovery.power-cycle");
  happened("recovery.power-cycle", IntentState::Failed, "it did not come back");
  EXPECT_EQ(next(), "nothing") << "what is left is a person's";
}

TEST_F(NextStep, doesNothingWithoutAPolicyWhileSomethingIsUnderWayOrWhenItWasNoFailureOfTheNode) {
  happened("firmware.BMC", IntentState::Failed, "x");
  happened("os", IntentState::Open);
  EXPECT_EQ(next(), "nothing");
  journal_.erase(journal_.begin());
  policy_.recovery.clear();
  EXPECT_EQ(next(), "nothing");
  policy_.recovery = {Rung::Retry};
  journal_.clear();
  happened("gate.burn-in", IntentState::Failed, "gpu.ecc failed");
  EXPECT_EQ(next(), "nothing") << "a verdict is no trouble to be recovered from";
  happened("firmware.BMC", IntentState::Blocked, "the file is missing");
  EXPECT_EQ(next(), "nothing");
}

TEST_F(NextStep, aStepThatMusterWasKilledBeforeIsTaken) {
  happened("firmware.BMC", IntentState::Failed, "x");
  happened("firmware.BMC", IntentState::Abandoned);
  EXPECT_EQ(next(), "gpu001/firmware.BMC") << "retry";
  happened("firmware.BMC", IntentState::Failed, "x");
  happened("recovery.new-session", IntentState::Abandoned);
  EXPECT_EQ(next(), "gpu001/recovery.new-session");
}

TEST_F(NextStep, aNewTroubleBeginsAtTheFirstStepAgainAndAnOldOneIsAPersons) {
  happened("firmware.BMC", IntentState::Failed, "x");
  happened("recovery.bmc-reset", IntentState::Done);
  happened("firmware.BMC", IntentState::Done);
  happened("firmware.BMC", IntentState::Failed, "y");
  EXPECT_EQ(next(), "gpu001/firmware.BMC") << "retry";
  for (auto& intent : journal_) intent.closed_at -= kTroubleCounts;
  EXPECT_EQ(next(), "nothing");
}

/// Firmware of gpu001 that works only after its BMC was reset.
class StubbornFirmware final : public Phase {
 public:
  explicit StubbornFirmware(muster::test::FakeBmc& bmc) : bmc_(bmc) {}
  std::string_view name() const override { return "firmware"; }
  std::vector<Goal> goals(const inventory::Cluster&, const Subject& subject,
                          const FactSet&) const override {
    if (subject != subjectOf("gpu001")) return {};
    Goal goal;
    goal.facet = facetOf("gpu001", "firmware.BMC");
    goal.want = "2.1";
    goal.disruption = Disruption::Reset;
    goal.deadline = seconds(600);
    return {goal};
  }
  Async<std::vector<Fact>> observe(Subject) override { co_return std::vector<Fact>(); }
  Async<Outcome> act(Action, ActContext&) override {
    ++tries;
    if (bmc_.bmc_resets < helps_after)
      co_return fail(Error(ErrorCode::Unavailable, "503").retryable(false));
    co_return Done{};
  }
  Async<std::vector<Fact>> verify(Action action) override {
    std::vector<Fact> out;
    if (bmc_.bmc_resets >= helps_after && tries >= shows_after)
      out.push_back({action.facet.subject, action.facet.facet, "2.1", {}, "test", ""});
    co_return out;
  }
  int tries = 0;
  int helps_after = 1;  ///< resets of the BMC
  int shows_after = 0;  ///< tries

 private:
  muster::test::FakeBmc& bmc_;
};

class RecoveryTest : public MonitorTest {
 public:
  RecoveryTest() {
    fails("first");
    node("gpu001").jobs = false;
    node("gpu001").drained = true;
    node("gpu001").reason = "muster: firmware of gpu001";
  }
  /// An apply of a person's has failed at the firmware.
  void fails(const std::string& id) {
    Intent intent;
    intent.id = id;
    intent.action.facet = facetOf("gpu001", "firmware.BMC");
    intent.action.id = intent.action.facet.str();
    intent.action.phase = "firmware";
    intent.action.to = "2.1";
    intent.action.disruption = Disruption::Reset;
    intent.action.deadline = seconds(600);
    intent.opened_at = loop_.clock.now();
    EXPECT_TRUE(store_.openIntent(intent));
    EXPECT_TRUE(store_.closeIntent(id, IntentState::Failed, "503", loop_.clock.now()));
    EXPECT_TRUE(store_.addFinding(
        {intent.action.facet, Severity::Error, "503", "", "", loop_.clock.now()}));
  }
  void recoverFor(seconds duration) { recoverDuring(pause(duration)); }
  void recoverDuring(Task<void> life) {
    auto services = this->services();
    auto steps = makeRecoverySteps(bmcs_, loop_.clock);
    services.all = {&senses_, flashes_, steps.get(), &pool_};
    services.recovery = steps.get();
    keepDuring(services, std::move(life));
  }
  std::vector<std::string> steps() {
    std::vector<std::string> out;
    auto journal = intents("gpu001");
    for (auto it = journal.rbegin(); it != journal.rend(); ++it)
      out.push_back(it->action.facet.facet.str() + " " +
                    std::string(lifecycle::toString(it->state)));
    return out;
  }

  muster::test::FakeBmcFleet bmcs_;
  StubbornFirmware firmware_{bmcs_.fake("gpu001")};
  Phase* flashes_ = &firmware_;
};

TEST_F(RecoveryTest, aBmcThatHangsIsResetAndTheFailedActionDoneAndNothingStronger) {
  cluster_.monitor->recovery = {Rung::Retry, Rung::NewSession, Rung::BmcReset, Rung::PowerCycle,
                                Rung::Quarantine};
  recoverFor(std::chrono::hours(2));
  EXPECT_THAT(steps(),
              ElementsAre("firmware.BMC failed", "firmware.BMC failed", "recovery.new-session done",
                          "firmware.BMC failed", "recovery.bmc-reset done", "firmware.BMC done"));
  EXPECT_EQ(bmcs_.fake("gpu001").bmc_resets, 1);
  EXPECT_EQ(bmcs_.fake("gpu001").power_cycles, 0);
}

TEST_F(RecoveryTest, whileAnotherNodeDrainsTheLadderIsClimbedAllTheSame) {
  cluster_.monitor->recovery = {Rung::Retry, Rung::NewSession, Rung::BmcReset, Rung::PowerCycle,
                                Rung::Quarantine};
  expire("gpu002");
  recoverFor(std::chrono::hours(2));
  EXPECT_EQ(intents("gpu002")[0].state, IntentState::Open) << "its job still runs";
  EXPECT_THAT(steps(),
              ElementsAre("firmware.BMC failed", "firmware.BMC failed", "recovery.new-session done",
                          "firmware.BMC failed", "recovery.bmc-reset done", "firmware.BMC done"));
}

TEST_F(RecoveryTest, aStepThatHasWorkedOnceIsTakenAgainInTheNextTrouble) {
  cluster_.monitor->recovery = {Rung::NewSession, Rung::BmcReset, Rung::Quarantine};
  auto life = [](RecoveryTest& test, StubbornFirmware& firmware, auto wait) -> Task<void> {
    co_await wait(std::chrono::hours(2));
    firmware.helps_after = 2;
    test.fails("second");
    co_await wait(std::chrono::hours(2));
  };
  recoverDuring(life(*this, firmware_, [this](seconds duration) { return pause(duration); }));
  EXPECT_THAT(steps(),
              ElementsAre("firmware.BMC failed", "recovery.new-session done", "firmware.BMC failed",
                          "recovery.bmc-reset done", "firmware.BMC done", "firmware.BMC failed",
                          "recovery.new-session done", "firmware.BMC failed",
                          "recovery.bmc-reset done", "firmware.BMC done"));
  EXPECT_EQ(bmcs_.fake("gpu001").bmc_resets, 2);
  EXPECT_LE(requests(), 12u) << "one for each step";
}

TEST_F(RecoveryTest, firmwareThatLandedAfterItsDeadlineEndsItsFinding) {
  cluster_.monitor->recovery = {Rung::Retry, Rung::Quarantine};
  firmware_.helps_after = 0;
  ASSERT_TRUE(store_.putFacts(
      {{subjectOf("gpu001"), FacetName("firmware.BMC"), "2.1", loop_.clock.now(), "test", ""}}));
  recoverFor(std::chrono::hours(2));
  EXPECT_THAT(steps(), ElementsAre("firmware.BMC failed", "firmware.BMC done"));
  EXPECT_THAT(findings(subjectOf("gpu001")), ::testing::IsEmpty());
  EXPECT_LE(requests(), 2u);
}

TEST_F(RecoveryTest, withoutAPolicyNothingIsTried) {
  recoverFor(std::chrono::hours(2));
  EXPECT_EQ(firmware_.tries, 0);
  EXPECT_EQ(bmcs_.fake("gpu001").bmc_resets, 0);
}

TEST_F(RecoveryTest, neverOnANodeThatTakesJobs) {
  cluster_.monitor->recovery = {Rung::BmcReset, Rung::PowerCycle};
  node("gpu001").drained = false;
  recoverFor(std::chrono::hours(2));
  EXPECT_THAT(steps(), ElementsAre("firmware.BMC failed"));
  pool_.unreachable = true;
  recoverFor(std::chrono::hours(2));
  EXPECT_THAT(steps(), ElementsAre("firmware.BMC failed")) << "whether it takes jobs is not known";
}

TEST_F(RecoveryTest, neverOnANodeThatAPersonHasTakenOut) {
  cluster_.monitor->recovery = {Rung::Retry, Rung::BmcReset, Rung::PowerCycle, Rung::Quarantine};
  node("gpu001").reason = "bob: re-seating GPU 3";
  recoverFor(std::chrono::hours(2));
  EXPECT_THAT(steps(), ElementsAre("firmware.BMC failed"));
  EXPECT_EQ(shown("the monitor does not touch recovery (retry): a person has drained it "
                  "('bob: re-seating GPU 3')"),
            1);
  node("gpu001").reason = "muster: firmware of gpu001";
  recoverFor(std::chrono::hours(2));
  EXPECT_THAT(steps().back(), "firmware.BMC done");
}

TEST_F(RecoveryTest, aPowerCycleThatWasCutInTheMiddleIsBroughtToItsEndNotDoneAgain) {
  cluster_.monitor->recovery = {Rung::PowerCycle};
  auto& bmc = bmcs_.fake("gpu001");
  Intent begun;
  begun.id = "cut";
  begun.action = nextStep(intents("gpu001"), cluster_.monitor, loop_.clock.now())->action;
  begun.operation = "power-cycle";
  begun.opened_at = loop_.clock.now();
  begun.inventory_digest = cluster_.digest;
  ASSERT_TRUE(store_.openIntent(begun));
  auto steps = makeRecoverySteps(bmcs_, loop_.clock);
  muster::test::FakeActContext context;
  context.recorded = "power-cycle";
  bmc.failNext("system", Error(ErrorCode::Unavailable, "starting"));
  EXPECT_TRUE(std::holds_alternative<Again>(*loop_.run(steps->act(begun.action, context))));
  EXPECT_TRUE(std::holds_alternative<Done>(*loop_.run(steps->act(begun.action, context))));
  EXPECT_EQ(bmc.info.power, bmc::PowerState::On);
  EXPECT_EQ(bmc.count("power ForceOff"), 0);
  EXPECT_EQ(bmc.power_cycles, 1) << "it was off, now it is on";
}

TEST_F(RecoveryTest, aStandbyCutThatWasInterruptedIsGivenBack) {
  cluster_.monitor->recovery = {Rung::AcCycle};
  auto& bmc = bmcs_.fake("gpu001");
  auto steps = makeRecoverySteps(bmcs_, loop_.clock);
  steps->ask(subjectOf("gpu001"), Rung::AcCycle);
  const auto action = nextStep(intents("gpu001"), cluster_.monitor, loop_.clock.now())->action;
  muster::test::FakeActContext context;
  bmc.offers_ac_cycle = bmc.dies_dark = true;
  bmc.crash_after = "acCycle";
  EXPECT_THROW((void)loop_.run(steps->act(action, context)), muster::test::FakeCrash);
  ASSERT_TRUE(bmc.dark);
  auto next = makeRecoverySteps(bmcs_, loop_.clock);
  for (int call = 0; call < 3; ++call) (void)loop_.run(next->act(action, context));
  EXPECT_EQ(bmc.count("restorePower"), 1);
  EXPECT_EQ(bmc.info.power, bmc::PowerState::On);
  EXPECT_EQ(bmc.ac_cycles, 1);
}

TEST_F(RecoveryTest, whatMustNotBeFlashedAgainIsNotFlashedByARetryEither) {
  cluster_.monitor->recovery = {Rung::Retry, Rung::NewSession, Rung::BmcReset};
  const muster::test::TempFolder folder;
  const std::string content = R"({"component":"BMC","version":"2.1"})";
  ASSERT_TRUE(io::writeFileAtomic(folder / "bmc.fw", content));
  cluster_.firmware["rack"] = {
      "rack", {{"BMC", "2.1", folder / "bmc.fw", io::sha256Hex(content)}}, {"BMC"}};
  auto& profile = cluster_.profiles["flashed"] = cluster_.profiles["gpu-node"];
  profile.firmware = "rack";
  cluster_.nodes[0].profile = "flashed";
  auto& bmc = bmcs_.fake("gpu001");
  bmc.components["BMC"] = {.version = "2.0",
                           .activates = muster::test::FakeBmc::Activates::BmcReset};
  const std::vector<Fact> failed = {{subjectOf("gpu001"), FacetName("firmware-failed.BMC"),
                                     "2.1 BMC 2.1 is not active", loop_.clock.now(), "muster", ""}};
  ASSERT_TRUE(store_.putFacts(failed));
  auto firmware = firmware::makeFirmwarePhase(cluster_, bmcs_, loop_.clock, loop_.workers);
  flashes_ = firmware.get();
  recoverFor(std::chrono::hours(2));
  EXPECT_THAT(steps(), ElementsAre("firmware.BMC failed", "firmware.BMC blocked"));
  EXPECT_THAT(intents("gpu001").front().outcome, HasSubstr("muster firmware retry gpu001"));
  EXPECT_EQ(bmc.uploads, 0);
  EXPECT_EQ(bmc.bmc_resets, 0);
}

TEST_F(RecoveryTest, nothingIsSwitchedWhileAnImageIsWrittenOrCopied) {
  auto& bmc = bmcs_.fake("gpu001");
  bmc.info.power = bmc::PowerState::On;
  bmc.copies_for = 1 << 20;
  cluster_.monitor->recovery = {Rung::BmcReset, Rung::PowerCycle, Rung::AcCycle};
  recoverFor(std::chrono::hours(2));
  EXPECT_THAT(steps(), ElementsAre("firmware.BMC failed", "recovery.bmc-reset blocked",
                                   "recovery.power-cycle blocked", "recovery.ac-cycle blocked"));
  EXPECT_THAT(intents("gpu001").front().outcome, HasSubstr("background copy of HGX_ERoT_FPGA_0"));
  EXPECT_EQ(bmc.count("power") + bmc.count("resetBmc") + bmc.count("acCycle"), 0);
}

TEST_F(RecoveryTest, aBmcThatAnswersNothingIsResetUnlessItMayBeWritingFirmware) {
  auto& bmc = bmcs_.fake("gpu001");
  bmc.failNext("tasks", Error(ErrorCode::Unavailable, "no answer"), 1'000);
  auto steps = makeRecoverySteps(bmcs_, loop_.clock);
  auto take = [&](Rung rung, const std::string& facet) {
    steps->ask(subjectOf("gpu001"), rung);
    Action action;
    action.facet = facetOf("gpu001", "recovery.x");
    action.reason = facet + " has failed: no answer";
    action.cause = ActionCause::Recovery;
    action.about = FacetName(facet);
    muster::test::FakeActContext context;
    const auto outcome = loop_.run(steps->act(action, context));
    return outcome && std::holds_alternative<Done>(*outcome);
  };
  EXPECT_FALSE(take(Rung::BmcReset, "firmware.BMC"));
  EXPECT_FALSE(take(Rung::PowerCycle, "os"));
  EXPECT_EQ(bmc.bmc_resets + bmc.power_cycles, 0);
  EXPECT_TRUE(take(Rung::BmcReset, "os"));
  EXPECT_EQ(bmc.bmc_resets, 1);
  bmc.clearFailures("tasks");
  bmc.task_by_uri["/t/1"] = muster::test::FakeBmc::FakeTask{"BIOS", "2", 1 << 20};
  EXPECT_FALSE(take(Rung::PowerCycle, "os")) << "an update runs";
  bmc.failNext("tasks", Error(ErrorCode::NotFound, "it knows no tasks"));
  EXPECT_TRUE(take(Rung::PowerCycle, "os"));
}

/// As a monitor leaves it that stands aside for another command, or dies.
TEST_F(RecoveryTest, aStepThatAnEarlierKeepHasBegunIsBroughtToItsEnd) {
  cluster_.monitor->recovery = {Rung::AcCycle, Rung::Quarantine};
  auto& bmc = bmcs_.fake("gpu001");
  Intent begun;
  begun.id = "cut";
  begun.action = nextStep(intents("gpu001"), cluster_.monitor, loop_.clock.now())->action;
  begun.operation = "ac-cycle " + muster::toString(loop_.clock.now());
  begun.opened_at = loop_.clock.now();
  begun.inventory_digest = cluster_.digest;
  ASSERT_TRUE(store_.openIntent(begun));
  ASSERT_TRUE(store_.recordOperation("cut", begun.operation));
  bmc.dark = true;
  firmware_.helps_after = 0;
  cluster_.monitor->recovery.clear();
  recoverFor(seconds(600));
  EXPECT_FALSE(bmc.dark);
  EXPECT_EQ(bmc.count("restorePower"), 1);
  EXPECT_EQ(bmc.ac_cycles, 0) << "it was cut before";
  EXPECT_THAT(steps(), ElementsAre("firmware.BMC failed", "recovery.ac-cycle done"));
}

TEST_F(RecoveryTest, aRetryThatAnEarlierKeepHasBegunGoesOn) {
  cluster_.monitor->recovery = {Rung::Retry};
  firmware_.helps_after = 0;
  firmware_.shows_after = 1;
  Intent begun;
  begun.id = "again";
  begun.action = nextStep(intents("gpu001"), cluster_.monitor, loop_.clock.now())->action;
  begun.opened_at = loop_.clock.now();
  begun.inventory_digest = cluster_.digest;
  ASSERT_TRUE(store_.openIntent(begun));
  ASSERT_TRUE(store_.recordOperation("again", "task 7"));
  recoverFor(seconds(600));
  EXPECT_THAT(steps(), ElementsAre("firmware.BMC failed", "firmware.BMC done"));
  EXPECT_EQ(firmware_.tries, 1);
}

TEST_F(RecoveryTest, whatNothingHelpsGoesIntoQuarantineWithItsReason) {
  cluster_.monitor->recovery = {Rung::NewSession, Rung::AcCycle, Rung::Quarantine};
  recoverFor(std::chrono::hours(2));
  const auto entries = *Quarantine(store_).entries();
  ASSERT_TRUE(entries.contains(NodeName("gpu001")));
  EXPECT_THAT(entries.at(NodeName("gpu001")).reason,
              HasSubstr("firmware.BMC fails after every recovery step"));
  EXPECT_THAT(steps(), ElementsAre("firmware.BMC failed", "recovery.new-session done",
                                   "firmware.BMC failed", "recovery.ac-cycle failed"))
      << "this BMC offers no full power cycle";
}

}  // namespace
}  // namespace muster::monitor::test
