// SPDX-License-Identifier: Apache-2.0
// muster monitor over a pool, in virtual time: who is drained, when, and what stops it.
#include "inventory/model/monitor.h"
#include "inventory/model/cluster.h"
#include "lifecycle/model/quarantine.h"
#include "tests/monitor/pool_rig.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace muster::monitor::test {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(MonitorTest, leavesAPoolOfGoodNodesAlone) {
  keepFor(seconds(3600));
  EXPECT_EQ(drainedNodes(), 0);
  EXPECT_THAT(store_.requests(10).value(), IsEmpty());
  EXPECT_TRUE(monitorStatus(store_, loop_.clock.now())->running);
}

TEST_F(MonitorTest, drainsANodeWithoutAValidCertificateWithinAMinuteAndSaysWhy) {
  keepFor(seconds(100));
  expire("gpu003");
  keepFor(seconds(60));
  EXPECT_EQ(drainedNodes(), 1);
  EXPECT_EQ(node("gpu003").reason,
            "muster: admission (certificate): its certificate is void: expired at 2026-11-01");
  const auto open = intents("gpu003");
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].state, IntentState::Open) << "its jobs still run";
  EXPECT_THAT(findings(subjectOf("gpu003")),
              ElementsAre(HasSubstr("certificate: its certificate is void")));
  node("gpu003").jobs = false;
  keepFor(seconds(60));
  EXPECT_EQ(intents("gpu003")[0].state, IntentState::Done);
  EXPECT_EQ(intents("gpu003").size(), 1u) << "a restart takes the same intent up";
  EXPECT_EQ(node("gpu003").orders, 1);
}

TEST_F(MonitorTest, aNodeThatComesBadWhileAnotherIsStillDrainingDoesNotWaitForIt) {
  cluster_.monitor->breaker.nodes = 2;
  expire("gpu001");
  keepFor(seconds(60));
  using namespace asio::experimental::awaitable_operators;
  Monitor monitor(services());
  auto script = [](Monitor& monitor, MonitorTest& test, Clock& clock, Nodes& nodes) -> Task<bool> {
    (void)test;
    auto live = [](Clock& clock, Nodes& nodes) -> Task<void> {
      co_await clock.sleep(std::chrono::hours(3));
      nodes["gpu002"].certificate = "none";
      co_await clock.sleep(seconds(60));
      EXPECT_TRUE(nodes["gpu002"].drained);
      EXPECT_FALSE(nodes["gpu003"].drained);
      nodes["gpu001"].jobs = nodes["gpu002"].jobs = false;
      co_await clock.sleep(seconds(60));
    };
    auto work = monitor.run();
    auto end = live(clock, nodes);
    (void)co_await (std::move(work) || std::move(end));
    co_return true;
  };
  loop_.run(script(monitor, *this, loop_.clock, nodes_));
  for (const char* name : {"gpu001", "gpu002"}) {
    EXPECT_EQ(node(name).orders, 1) << name;
    ASSERT_EQ(intents(name).size(), 1u) << name;
    EXPECT_EQ(intents(name)[0].state, IntentState::Done) << name;
  }
}

/// gpu001 drains behind a job of many hours; all that happens beside it is of the others.
class BesideALongDrain : public MonitorTest {
 protected:
  BesideALongDrain() {
    cluster_.monitor->breaker.nodes = 3;
    expire("gpu001");
  }
  void live(Task<void> life) { keepDuring(services(), std::move(life)); }
  void TearDown() override {
    EXPECT_EQ(node("gpu001").orders, 1);
    ASSERT_EQ(intents("gpu001").size(), 1u);
    EXPECT_EQ(intents("gpu001")[0].state, IntentState::Open) << "its job still runs";
  }
};

TEST_F(BesideALongDrain, whoIsPutBackToWorkWithoutACertificateIsDrainedAgain) {
  auto life = [](BesideALongDrain& test, FakeNode& other, auto wait) -> Task<void> {
    (void)test;
    co_await wait(seconds(3600));
    other.certificate = "none";
    other.jobs = false;
    co_await wait(seconds(600));
    EXPECT_TRUE(other.drained);
    other.drained = false;  // scontrol update nodename=gpu002 state=resume
    other.reason.clear();
    co_await wait(seconds(60));
    EXPECT_TRUE(other.drained);
    EXPECT_EQ(other.orders, 2);
    co_await wait(std::chrono::hours(12));
    EXPECT_EQ(other.orders, 2);
  };
  live(life(*this, node("gpu002"), [this](seconds duration) { return pause(duration); }));
  EXPECT_THAT(intents("gpu002"), ::testing::SizeIs(2));
  EXPECT_LE(requests(), 3u) << "a drain that ends well is no reason to plan anew";
}

TEST_F(BesideALongDrain, aDrainThatHasFailedIsTriedAgain) {
  expire("gpu002");
  node("gpu002").jobs = false;
  node("gpu002").refuses = 2;
  keepFor(seconds(180));
  EXPECT_TRUE(node("gpu002").drained);
  EXPECT_EQ(node("gpu002").orders, 1);
}

TEST_F(BesideALongDrain, aRepairThatFailsIsTriedAgainLaterAndLater) {
  cluster_.monitor->repairs = {inventory::Repair::Reboot};
  auto& unhealthy = node("gpu002");
  unhealthy.health["gpu"] = "reboot:xid.79@0000:18:00.0";
  unhealthy.jobs = false;
  unhealthy.drained = true;
  unhealthy.reason = "muster: admission: xid.79";
  unhealthy.refuses = 1000;
  auto life = [](MonitorTest&, Nodes& nodes, auto wait) -> Task<void> {
    co_await wait(seconds(3600));
    EXPECT_GE(nodes["gpu002"].tries, 5);
    EXPECT_LE(nodes["gpu002"].tries, 12);
    const int before = nodes["gpu002"].tries;
    nodes["gpu003"].certificate = "none";  // another plan
    co_await wait(seconds(60));
    EXPECT_TRUE(nodes["gpu003"].drained);
    EXPECT_LE(nodes["gpu002"].tries, before + 1);
    nodes["gpu002"].refuses = 0;
    co_await wait(seconds(700));
    EXPECT_EQ(nodes["gpu002"].reboots, 1);
  };
  live(life(*this, nodes_, [this](seconds duration) { return pause(duration); }));
}

TEST_F(MonitorTest, stopsAndShoutsWhenTooMuchOfAPoolIsBadUntilAPersonHasLooked) {
  for (const char* name : {"gpu001", "gpu002", "gpu003"}) expire(name);
  keepFor(seconds(120));
  EXPECT_EQ(drainedNodes(), 0) << "not even the first of them";
  EXPECT_THAT(findings(Subject::cluster()),
              ElementsAre(HasSubstr("3 of the 10 nodes of pool batch would be drained, the limit "
                                    "without an operator is 1")));
  auto status = monitorStatus(store_, loop_.clock.now());
  EXPECT_TRUE(status->tripped);
  EXPECT_THAT(status->text,
              HasSubstr("CIRCUIT BREAKER OPEN in pool batch: 3 nodes would be drained"));

  node("gpu003").certificate = "valid:2";  // a restart and a better count are no acknowledgement
  node("gpu002").certificate = "valid:2";
  keepFor(seconds(120));
  EXPECT_EQ(drainedNodes(), 0);
  EXPECT_TRUE(monitorStatus(store_, loop_.clock.now())->tripped);

  expire("gpu002");
  const auto said = Breakers(store_).acknowledge("alice@ops", "a power feed", loop_.clock.now());
  ASSERT_TRUE(said && said->contains("batch"));
  keepFor(seconds(60));
  EXPECT_TRUE(node("gpu001").drained);
  EXPECT_TRUE(node("gpu002").drained);
  EXPECT_FALSE(node("gpu003").drained) << "it is well again";
  EXPECT_THAT(findings(Subject::cluster()), IsEmpty());
  EXPECT_FALSE(monitorStatus(store_, loop_.clock.now())->tripped);

  for (const char* name : {"gpu005", "gpu006"})
    expire(name);  // what was acknowledged was those three
  keepFor(seconds(60));
  EXPECT_FALSE(node("gpu005").drained);
  EXPECT_TRUE(monitorStatus(store_, loop_.clock.now())->tripped);
}

TEST_F(MonitorTest, aBreakerThatTripsWhileAnotherControllerWorksOnTheClusterIsHeardAllTheSame) {
  const auto data = std::make_shared<muster::test::MemoryStore::Data>();
  muster::test::MemoryStore own(data), other(data);
  used_ = &own;
  const auto cluster = Subject::cluster();
  ASSERT_TRUE(other.signOn("apply", std::chrono::hours(1)));
  ASSERT_TRUE(other.claim(cluster)->ours);
  for (const char* name : {"gpu001", "gpu002", "gpu003"}) expire(name);
  keepFor(seconds(120));
  EXPECT_EQ(shown("could not finish a poll"), 0);
  const auto events = *own.lastEvents(1000, &cluster);
  EXPECT_EQ(
      std::count_if(events.begin(), events.end(),
                    [](const Event& event) { return event.text.starts_with("CIRCUIT BREAKER"); }),
      1);
  ASSERT_TRUE(other.release(cluster));
  keepFor(seconds(60));
  EXPECT_THAT(*own.findings(&cluster), ::testing::SizeIs(1)) << "said when the other has let go";
  ASSERT_TRUE(other.claim(cluster)->ours);
  EXPECT_TRUE(Breakers(own).acknowledge("alice@ops", "a power feed", loop_.clock.now()));
  ASSERT_TRUE(other.release(cluster));
  keepFor(seconds(60));
  EXPECT_THAT(*own.findings(&cluster), IsEmpty());
  EXPECT_EQ(drainedNodes(), 3);
  used_ = &store_;
}

TEST_F(MonitorTest, aQuarantineWhileAnotherControllerWorksOnTheNodeIsHeardAllTheSame) {
  const auto data = std::make_shared<muster::test::MemoryStore::Data>();
  muster::test::MemoryStore own(data), other(data), persons(data);
  used_ = &own;
  const auto subject = subjectOf("gpu001");
  ASSERT_TRUE(other.signOn("apply", std::chrono::hours(24)));
  ASSERT_TRUE(other.claim(subject)->ours);
  EXPECT_TRUE(
      *Quarantine(persons).add(NodeName("gpu001"), {loop_.clock.now(), "alice@ops", "burns", ""}))
      << "the list has it";
  keepFor(seconds(300));
  const auto said = [&] {
    const auto events = *own.lastEvents(1000, &subject);
    return std::count_if(events.begin(), events.end(), [](const Event& event) {
      return event.text == "quarantined by alice@ops: burns";
    });
  };
  EXPECT_EQ(said(), 1);
  EXPECT_THAT(*own.findings(&subject), IsEmpty());
  ASSERT_TRUE(other.release(subject));
  keepFor(seconds(60));
  const auto open = *own.findings(&subject);
  ASSERT_EQ(open.size(), 1u) << "said when the other has let go";
  EXPECT_EQ(open[0].text, "in quarantine: burns");
  EXPECT_EQ(said(), 1);
  EXPECT_FALSE(
      *Quarantine(own).add(NodeName("gpu001"), {loop_.clock.now(), "bob", "other words", ""}));
  EXPECT_THAT(*own.findings(&subject), ::testing::SizeIs(1));
  used_ = &store_;
}

/// Lifted while another controller works on the node, whose findings nobody else may end; with
/// keep, and without.
TEST_F(MonitorTest, aQuarantineThatIsLiftedWhileAnotherControllerWorksOnTheNodeLeavesNoFinding) {
  for (const bool has_keep : {true, false}) {
    const auto data = std::make_shared<muster::test::MemoryStore::Data>();
    muster::test::MemoryStore own(data), other(data), persons(data);
    used_ = &own;
    const NodeName node("gpu001");
    const auto subject = subjectOf("gpu001");
    ASSERT_TRUE(*Quarantine(persons).add(node, {loop_.clock.now(), "alice@ops", "burns", ""}));
    ASSERT_TRUE(other.signOn("apply", std::chrono::hours(24)));
    ASSERT_TRUE(other.claim(subject)->ours);
    ASSERT_FALSE(persons.clearFindings({subject, FacetName("quarantine")}))
        << "the other controller has the node";
    EXPECT_TRUE(Quarantine(persons).remove(node, "alice@ops", "new PDU", loop_.clock.now()));
    EXPECT_TRUE(Quarantine(persons).entries()->empty()) << "her word holds at once";
    const auto look = [&] {
      has_keep ? keepFor(seconds(60)) : static_cast<void>(Quarantine(own).reconcileFindings());
    };
    look();
    EXPECT_THAT(*own.findings(&subject), ::testing::SizeIs(1));
    ASSERT_TRUE(other.release(subject));
    look();
    EXPECT_THAT(*own.findings(&subject), IsEmpty()) << has_keep;
    EXPECT_TRUE(Quarantine(own).entries()->empty()) << "nobody puts it back";
    used_ = &store_;
  }
}

TEST_F(MonitorTest, badNodesOneAfterAnotherTripTheBreakerTooThoughEachIsOnlyOne) {
  expire("gpu001");
  keepFor(seconds(60));
  EXPECT_EQ(drainedNodes(), 1);
  node("gpu001").jobs = false;
  keepFor(seconds(60));
  expire("gpu002");
  keepFor(seconds(60));
  EXPECT_FALSE(node("gpu002").drained);
  EXPECT_TRUE(monitorStatus(store_, loop_.clock.now())->tripped);
}

TEST_F(MonitorTest, concludesNothingWhileThePoolDoesNotAnswerAndSaysSoOnce) {
  keepFor(seconds(60));
  pool_.unreachable = true;
  expire("gpu004");
  keepFor(seconds(3600));
  EXPECT_EQ(drainedNodes(), 0);
  EXPECT_EQ(shown("slurmctld does not answer"), 1);
  EXPECT_THAT(monitorStatus(store_, loop_.clock.now())->text,
              HasSubstr("cannot read: pool: slurmctld does not answer"));
  EXPECT_THAT(intents("gpu004"), IsEmpty())
      << "an hour without slurmctld is no hundred failed intents";
  pool_.unreachable = false;
  keepFor(seconds(60));
  EXPECT_TRUE(node("gpu004").drained);
}

TEST_F(MonitorTest, endsItsIntentWhenTheNodeIsWellAgainAndTouchesNobodyElses) {
  Intent other;
  other.id = "firmware-1";
  other.action.id = "gpu001/firmware.BMC";
  other.action.facet = facetOf("gpu001", "firmware.BMC");
  other.action.phase = "firmware";
  ASSERT_TRUE(store_.openIntent(other));
  expire("gpu001");
  keepFor(seconds(60));
  node("gpu001").certificate = "valid:2";
  keepFor(seconds(60));
  for (const auto& intent : intents("gpu001"))
    EXPECT_EQ(intent.state, intent.id == "firmware-1" ? IntentState::Open : IntentState::Abandoned)
        << intent.id;
  EXPECT_EQ(intents("gpu001").size(), 2u);
}

TEST_F(MonitorTest, leavesNodesInWhoseDeclarationAloneHasChangedWhereThePolicySaysSo) {
  expire("gpu001");
  node("gpu001").void_by = "declaration";
  cluster_.monitor->on_config_change = inventory::OnConfigChange::Ignore;
  keepFor(seconds(120));
  EXPECT_EQ(drainedNodes(), 0);
  cluster_.monitor->on_config_change = inventory::OnConfigChange::Drain;
  keepFor(seconds(60));
  EXPECT_EQ(drainedNodes(), 1);
}

TEST_F(MonitorTest, repairsOnlyWhatTheInventoryAllowsAndOnlyWhenNoJobRuns) {
  node("gpu001").health["gpu"] = "reboot:xid.79@0000:18:00.0";
  keepFor(seconds(120));
  EXPECT_TRUE(node("gpu001").drained);
  node("gpu001").jobs = false;
  keepFor(seconds(300));
  EXPECT_EQ(node("gpu001").reboots, 0) << "monitor.repairs does not list it";
  cluster_.monitor->repairs = {inventory::Repair::Reset};
  keepFor(seconds(300));
  EXPECT_EQ(node("gpu001").reboots, 0) << "a reset is no reboot";
  cluster_.monitor->repairs = {inventory::Repair::Reboot};
  keepFor(seconds(300));
  EXPECT_EQ(node("gpu001").reboots, 1);
  EXPECT_TRUE(node("gpu001").drained) << "back in the pool it comes through the gates";
  EXPECT_THAT(findings(subjectOf("gpu001")), Not(::testing::Contains(HasSubstr("health.gpu"))));
}

TEST_F(MonitorTest, neverRepairsUnderTheHandsOfAPersonAndSaysOnceThatItWaits) {
  cluster_.monitor->repairs = {inventory::Repair::Reset, inventory::Repair::Reboot};
  node("gpu001").drained = true;
  node("gpu001").jobs = false;
  node("gpu001").reason = "alice: re-seating GPU 3";
  node("gpu001").health["gpu"] = "reboot:xid.79@0000:18:00.0";
  keepFor(seconds(3600));
  EXPECT_EQ(node("gpu001").tries, 0);
  EXPECT_THAT(intents("gpu001"), IsEmpty());
  EXPECT_EQ(shown("the monitor does not touch gpu001/health.gpu: a person has drained it "
                  "('alice: re-seating GPU 3')"),
            1);
  node("gpu001").reason = "muster: admission: xid.79";  // given back, and drained by the monitor
  keepFor(seconds(300));
  EXPECT_EQ(node("gpu001").reboots, 1);
}

TEST_F(MonitorTest, anAgentThatFallsSilentIsSaidOnceAndOverWhenItCallsAgain) {
  const nlohmann::json rows = {{"symptoms",
                                {{{"symptom", "system.agent-silent"},
                                  {"action", "watch"},
                                  {"text", "no report since noon"}}}}};
  node("gpu001").health["system"] = "ok";
  node("gpu001").evidence = rows;
  keepFor(seconds(600));
  EXPECT_THAT(findings(subjectOf("gpu001")),
              ElementsAre(HasSubstr("agent-silent: its agent does not report, so its health is not "
                                    "known: no report")));
  keepFor(seconds(600));
  EXPECT_EQ(shown("its agent does not report"), 1);
  EXPECT_EQ(drainedNodes(), 0);
  node("gpu001").evidence = nlohmann::json::object();
  keepFor(seconds(600));
  EXPECT_THAT(findings(subjectOf("gpu001")), IsEmpty());
  EXPECT_EQ(shown("its agent reports again"), 1);
}

/// One monitor all the while, and each time the same words.
TEST_F(MonitorTest, whatComesBackAfterItsRepairIsAFindingAgain) {
  cluster_.monitor->repairs = {inventory::Repair::Reboot};
  auto life = [](FakeNode& node, Store& store, auto wait, auto findings) -> Task<void> {
    for (int times = 1; times <= 2; ++times) {
      node.health["gpu"] = "reboot:xid.79@0000:18:00.0";
      co_await wait(seconds(60));
      EXPECT_THAT(findings(), ElementsAre(HasSubstr("health.gpu: xid.79"))) << times;
      node.jobs = false;
      co_await wait(seconds(300));
      EXPECT_EQ(node.reboots, times);
      EXPECT_THAT(findings(), IsEmpty()) << times;
      node.drained = false;  // a person gives it back
      node.jobs = true;
      co_await wait(seconds(60));
    }
    for (int times = 1; times <= 2; ++times) {
      node.certificate = "void:1";
      co_await wait(seconds(60));
      EXPECT_THAT(findings(), ElementsAre(HasSubstr("certificate: it has no certificate")))
          << times;
      node.certificate = "valid:2";
      EXPECT_TRUE(store.clearFindings(facetOf("gpu001", "certificate")))
          << "as the engine does when the gates are passed";
      node.drained = false;
      co_await wait(seconds(60));
    }
  };
  const auto now = [this] { return findings(subjectOf("gpu001")); };
  keepDuring(
      services(),
      life(node("gpu001"), store_, [this](seconds duration) { return pause(duration); }, now));
}

TEST_F(MonitorTest, quarantinesWhatRebootsDidNotHelp) {
  node("gpu001").drained = true;
  node("gpu001").jobs = false;
  node("gpu001").health = {{"gpu", "reboot:xid.79@0000:18:00.0"}, {"reboots", "1"}};
  keepFor(seconds(60));
  EXPECT_TRUE(Quarantine(store_).entries()->empty());
  node("gpu001").health["reboots"] = "2";
  keepFor(seconds(60));
  const auto entries = *Quarantine(store_).entries();
  ASSERT_TRUE(entries.contains(NodeName("gpu001")));
  EXPECT_EQ(entries.at(NodeName("gpu001")).reason, "xid.79@0000:18:00.0 (reboot, after 2 reboots)");
}

TEST_F(MonitorTest, quarantinesWhatMustGoBackAndOnlyAPersonEndsThat) {
  node("gpu001").health["gpu"] = "rma:gpu.remap-failure@0000:18:00.0";
  keepFor(seconds(60));
  EXPECT_TRUE(node("gpu001").drained);
  Quarantine quarantine(store_);
  ASSERT_TRUE(quarantine.entries()->contains(NodeName("gpu001")));
  node("gpu001").health["gpu"] = "ok";
  keepFor(seconds(600));
  EXPECT_TRUE(quarantine.entries()->contains(NodeName("gpu001")));
  EXPECT_FALSE(quarantine.remove(NodeName("gpu001"), "alice", "", loop_.clock.now()));
  ASSERT_TRUE(quarantine.remove(NodeName("gpu001"), "alice", "GPU 3 replaced", loop_.clock.now()));
  EXPECT_TRUE(quarantine.entries()->empty());
  EXPECT_EQ(
      quarantine.remove(NodeName("gpu001"), "alice", "again", loop_.clock.now()).error().code(),
      ErrorCode::NotFound);
}

/// Said is what is so: a host that stands by watches nothing, and a monitor that has fallen silent
/// neither.
TEST(WatchDuringRollout, namesWhoeverGoesOnAndNobodyElse) {
  MonitorStatus kept;
  kept.running = true;
  kept.holder = "b:/srv/muster";
  const std::string nobody = "nobody watches";
  EXPECT_THAT(watchDuringRollout({true, false, "a:/srv/muster"}, kept),
              ::testing::AllOf(HasSubstr(nobody), HasSubstr("stand by do not")));
  EXPECT_THAT(watchDuringRollout({false, false, "a:/srv/muster"}, kept),
              ::testing::AllOf(HasSubstr("b:/srv/muster"), ::testing::Not(HasSubstr(nobody))));
  EXPECT_THAT(watchDuringRollout({false, false, "b:/srv/muster"}, kept), HasSubstr(nobody))
      << "it is this one's, which stands aside";
  EXPECT_THAT(watchDuringRollout({false, true, "a:/srv/muster"}, kept), HasSubstr(nobody));
  kept.running = false;
  EXPECT_THAT(watchDuringRollout({false, false, "a:/srv/muster"}, kept), HasSubstr(nobody));
}

}  // namespace
}  // namespace muster::monitor::test
