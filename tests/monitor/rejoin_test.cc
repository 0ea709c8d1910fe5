// SPDX-License-Identifier: Apache-2.0
// Nodes that the monitor has drained and that are well again: who comes back by itself, when, and
// who does not. And the monitor beside another process.
#include "inventory/model/cluster.h"
#include "inventory/model/monitor.h"
#include "tests/lifecycle/crash_store.h"
#include "tests/monitor/pool_rig.h"
#include "tests/run_async.h"

namespace muster::monitor::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr const char* kSick = "drain:xid.74@0000:18:00.0";

class RejoinTest : public MonitorTest {
 protected:
  RejoinTest() {
    cluster_.monitor->rejoin_minutes = 30;
    cluster_.monitor->breaker.nodes = 3;
    for (auto& [name, each] : nodes_) each.jobs = false;
  }
  void fallSick(const std::string& name) {
    node(name).health["gpu"] = kSick;
    keepFor(2min);
    ASSERT_TRUE(node(name).drained);
    node(name).health["gpu"] = std::string(kHealthy);
  }
};

TEST_F(RejoinTest, aNodeIsBackWhenItsSymptomHasBeenGoneForLongEnough) {
  fallSick("gpu003");
  keepFor(25min);
  EXPECT_TRUE(node("gpu003").drained) << "the symptom may come back";
  keepFor(40min);
  EXPECT_FALSE(node("gpu003").drained);
  EXPECT_EQ(node("gpu003").joins, 1);
  const auto journal = intents("gpu003");
  ASSERT_EQ(journal.size(), 2u);
  EXPECT_THAT(journal[0].action.reason, HasSubstr("the reason to drain it is over"));
  EXPECT_EQ(journal[0].action.cause, ActionCause::Rejoin);
  EXPECT_EQ(journal[0].state, IntentState::Done);
}

TEST_F(RejoinTest, aSymptomThatComesBackBeginsTheWaitAnew) {
  fallSick("gpu003");
  keepFor(25min);
  fallSick("gpu003");
  keepFor(25min);
  EXPECT_TRUE(node("gpu003").drained);
}

/// As `muster monitor` while another command has its turn again and again.
class RejoinOverRuns : public RejoinTest {
 protected:
  void runFor(std::chrono::seconds duration) {
    auto services = this->services();
    services.retry_state = memory_;
    keepDuring(std::move(services), pause(duration));
  }
  std::shared_ptr<RetryState> memory_ = std::make_shared<RetryState>();
};

TEST_F(RejoinOverRuns, aShiftThatEndsForgetsNobodyWhoIsWell) {
  fallSick("gpu003");
  runFor(20min);
  EXPECT_TRUE(node("gpu003").drained);
  runFor(20min);
  EXPECT_FALSE(node("gpu003").drained);
}

TEST_F(RejoinOverRuns, timeInWhichNobodyLooksDoesNotCount) {
  fallSick("gpu003");
  runFor(10min);
  loop_.clock.advance(5h);
  runFor(10min);
  EXPECT_TRUE(node("gpu003").drained);
  runFor(15min);
  EXPECT_FALSE(node("gpu003").drained);
}

TEST_F(RejoinOverRuns, aSymptomBetweenTwoShiftsBeginsTheWaitAnew) {
  fallSick("gpu003");
  runFor(25min);
  node("gpu003").health["gpu"] = kSick;
  runFor(1min);
  node("gpu003").health["gpu"] = std::string(kHealthy);
  runFor(25min);
  EXPECT_TRUE(node("gpu003").drained);
}

TEST_F(RejoinOverRuns, whatFailsIsTriedLaterAndLaterInTheNextShiftToo) {
  cluster_.monitor->repairs = {inventory::Repair::Reboot};
  auto& unhealthy = node("gpu002");
  unhealthy.health["gpu"] = "reboot:xid.79@0000:18:00.0";
  unhealthy.drained = true;
  unhealthy.reason = "muster: admission: xid.79";
  unhealthy.refuses = 1000;
  for (int i = 0; i < 30; ++i) runFor(2min);
  EXPECT_GE(unhealthy.tries, 5);
  EXPECT_LE(unhealthy.tries, 12);
}

TEST_F(RejoinTest, withoutThePolicyAPersonSeesToIt) {
  cluster_.monitor->rejoin_minutes.reset();
  fallSick("gpu003");
  keepFor(5h);
  EXPECT_TRUE(node("gpu003").drained);
}

TEST_F(RejoinTest, aCertificateThatWasTheReasonHasToBeValidAgain) {
  expire("gpu004");
  keepFor(2min);
  ASSERT_TRUE(node("gpu004").drained);
  keepFor(2h);
  EXPECT_TRUE(node("gpu004").drained) << "nobody has renewed it";
  node("gpu004").certificate = "valid:2";
  keepFor(40min);
  EXPECT_FALSE(node("gpu004").drained);
}

TEST_F(RejoinTest, whomAPersonHasDrainedIsTheirs) {
  node("gpu005").drained = true;
  node("gpu005").reason = "bob: fan swap";
  keepFor(2h);
  EXPECT_TRUE(node("gpu005").drained);
  EXPECT_EQ(node("gpu005").joins, 0);
}

TEST_F(RejoinTest, whoComesAndGoesIsAPersons) {
  for (int time = 1; time <= 3; ++time) {
    fallSick("gpu003");
    keepFor(40min);
    EXPECT_EQ(node("gpu003").joins, std::min(time, 2));
  }
  EXPECT_TRUE(node("gpu003").drained);
  const auto subject = subjectOf("gpu003");
  const auto events = *store_.lastEvents(100, &subject);
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const Event& e) {
    return e.text.find("rejoined 2 times within a day") != std::string::npos;
  }));
  keepFor(25h);
  EXPECT_FALSE(node("gpu003").drained) << "the next day it may try again";
}

TEST_F(RejoinTest, aNodeThatNeedsMoreThanItsGatesWaitsForApply) {
  fallSick("gpu003");
  senses_.outdated.insert("gpu003");
  keepFor(2h);
  EXPECT_TRUE(node("gpu003").drained);
  const auto subject = subjectOf("gpu003");
  const auto events = *store_.lastEvents(100, &subject);
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const Event& e) {
                            return e.text.find("its plan holds gpu003/driver.nvidia") !=
                                   std::string::npos;
                          }),
            1);
}

TEST_F(RejoinTest, whoFailsItsGatesAgainAndAgainIsAPersons) {
  fallSick("gpu003");
  senses_.gated.insert("gpu003");
  keepFor(12h);
  EXPECT_TRUE(node("gpu003").drained);
  const auto failures = [this] {
    const auto journal = intents("gpu003");
    return std::count_if(journal.begin(), journal.end(),
                         [](const Intent& intent) { return intent.state == IntentState::Failed; });
  };
  EXPECT_EQ(failures(), 3);
  const auto subject = subjectOf("gpu003");
  const auto events = *store_.lastEvents(100, &subject);
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const Event& e) {
                            return e.text.find("its gates have failed 3 times within a day") !=
                                   std::string::npos;
                          }),
            1);
  senses_.gated.clear();
  keepFor(14h);
  EXPECT_FALSE(node("gpu003").drained) << "the next day it may try again";
}

/// An inspection that takes its time, as of a BMC that hangs.
class SlowInspection final : public Phase {
 public:
  explicit SlowInspection(Clock& clock) : clock_(clock) {}
  std::string_view name() const override { return "inspection"; }
  std::vector<Goal> goals(const inventory::Cluster&, const Subject&,
                          const FactSet&) const override {
    return {};
  }
  Async<std::vector<Fact>> observe(Subject) override {
    ++looks;
    co_await clock_.sleep(110s);
    co_return std::vector<Fact>();
  }
  Async<Outcome> act(Action, ActContext&) override { co_return Done{}; }
  Async<std::vector<Fact>> verify(Action action) override { return observe(action.facet.subject); }
  int looks = 0;

 private:
  Clock& clock_;
};

TEST_F(RejoinTest, waysBackThatTakeTheirTimeKeepNobodyInThePool) {
  cluster_.monitor->breaker.nodes = 5;
  for (const char* name : {"gpu002", "gpu003", "gpu004"}) node(name).health["gpu"] = kSick;
  keepFor(2min);
  for (const char* name : {"gpu002", "gpu003", "gpu004"})
    node(name).health["gpu"] = std::string(kHealthy);
  SlowInspection slow(loop_.clock);
  auto services = this->services();
  services.all.push_back(&slow);
  auto life = [](Nodes& nodes, SlowInspection& slow, auto wait) -> Task<void> {
    co_await wait(std::chrono::seconds(31min));
    EXPECT_GE(slow.looks, 1);
    EXPECT_LT(nodes["gpu002"].joins + nodes["gpu003"].joins + nodes["gpu004"].joins, 3);
    nodes["gpu005"].certificate = "none";
    co_await wait(std::chrono::seconds(60));
    EXPECT_TRUE(nodes["gpu005"].drained);
    co_await wait(std::chrono::seconds(30min));
    for (const char* name : {"gpu002", "gpu003", "gpu004"}) EXPECT_EQ(nodes[name].joins, 1) << name;
  };
  keepDuring(services,
             life(nodes_, slow, [this](std::chrono::seconds duration) { return pause(duration); }));
}

/// Another process – apply or a rollout on another host – works on the same store. What it holds is
/// its own, and the monitor sees to the rest.
TEST_F(RejoinTest, keepDrainsBesideAnApplyOfAnotherProcess) {
  muster::test::TempFolder folder;
  auto other = *openSqliteStore(folder / "muster.db"), own = *openSqliteStore(folder / "muster.db");
  muster::test::CrashStore plain(
      *own, muster::test::CrashStore::kNever,
      false);  // without a writing thread: virtual time would not wait for it
  used_ = &plain;
  ASSERT_TRUE(other->signOn("apply", 1h));
  ASSERT_TRUE(other->claim(subjectOf("gpu001"))->ours);
  for (const char* name : {"gpu001", "gpu002"}) node(name).health["gpu"] = kSick;
  keepFor(2min);
  EXPECT_TRUE(node("gpu002").drained) << "its watch goes on";
  EXPECT_FALSE(node("gpu001").drained) << "apply works on it";
  EXPECT_EQ(shown("could not finish a poll"), 0)
      << "one node that is held keeps none of the others waiting";
  EXPECT_TRUE(monitorStatus(*other, loop_.clock.now())->running);
  ASSERT_TRUE(other->checkClaim(subjectOf("gpu001"))) << "and has not lost it";
  ASSERT_TRUE(other->release(subjectOf("gpu001")));
  keepFor(2min);
  EXPECT_TRUE(node("gpu001").drained) << "within a minute after apply has let it go";
  EXPECT_EQ(node("gpu001").orders, 1);
  EXPECT_EQ(node("gpu002").orders, 1);
  used_ = &store_;
}

TEST_F(RejoinTest, aNodeThatAnApplyHeldIsDrainedWithinAMinuteThoughAnotherStillDrains) {
  muster::test::TempFolder folder;
  auto other = *openSqliteStore(folder / "muster.db"), own = *openSqliteStore(folder / "muster.db");
  muster::test::CrashStore plain(*own, muster::test::CrashStore::kNever, false);
  used_ = &plain;
  ASSERT_TRUE(other->signOn("apply", 1h));
  ASSERT_TRUE(other->claim(subjectOf("gpu001"))->ours);
  for (const char* name : {"gpu001", "gpu002"}) node(name).health["gpu"] = kSick;
  node("gpu002").jobs = true;
  auto life = [](RejoinTest&, Nodes& nodes, Store& other, auto wait) -> Task<void> {
    co_await wait(std::chrono::seconds(3h));
    EXPECT_TRUE(nodes["gpu002"].drained);
    EXPECT_FALSE(nodes["gpu001"].drained) << "apply works on it";
    EXPECT_LE(other.requests(100)->size(), 2u) << "nobody asks again and again";
    EXPECT_TRUE(other.release(subjectOf("gpu001")));
    co_await wait(std::chrono::seconds(60));
    EXPECT_TRUE(nodes["gpu001"].drained);
  };
  keepDuring(services(), life(*this, nodes_, *other,
                              [this](std::chrono::seconds duration) { return pause(duration); }));
  EXPECT_EQ(node("gpu001").orders, 1);
  EXPECT_EQ(node("gpu002").orders, 1);
  used_ = &store_;
}

}  // namespace
}  // namespace muster::monitor::test
