// SPDX-License-Identifier: Apache-2.0
// The engine beside other controllers: what it leaves alone, what it takes over, and how it stops
// when it was taken over.
#include "lifecycle/model/unread.h"
#include "tests/fakes/memory_store.h"
#include "tests/lifecycle/crash_store.h"
#include "tests/lifecycle/observe_plan_apply.h"
#include "tests/lifecycle/rack.h"
#include "tests/lifecycle/virtual_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace muster::lifecycle {
namespace {

using test::CrashStore;
using test::MemoryStore;
using test::Rack;
using testing::Contains;
using testing::HasSubstr;

constexpr std::chrono::milliseconds kRealLease{
    30};  ///< the database's clock is real, the engine's is virtual

class ClaimsTest : public testing::Test {
 protected:
  std::optional<Result<ApplyReport>> live(Store& store, const std::string& holder,
                                          EventSink sink = nullptr, const bool* stop = nullptr) {
    FakeClock clock;
    Engine engine(rack_.cluster, rack_.phases(), store, clock, std::move(sink));
    engine.actFor({holder, kRealLease, "anna", "desk", "muster apply"});
    return test::runInVirtualTime(clock, observePlanApply(engine, store, rack_), stop);
  }
  static Subject node(const char* name) { return Subject(NodeName(name)); }

  Rack rack_{{"gpu001", "gpu002"}};
  std::shared_ptr<MemoryStore::Data> data_ = std::make_shared<MemoryStore::Data>();
  MemoryStore store_{data_}, other_{data_};
};

TEST_F(ClaimsTest, whatAnotherControllerHoldsIsLeftAloneAndItIsSaidWho) {
  ASSERT_TRUE(other_.signOn("ctl2", std::chrono::hours(1)));
  ASSERT_TRUE(other_.claim(node("gpu001"))->ours);
  auto report = live(store_, "ctl1");
  ASSERT_TRUE(report && *report) << (*report).error().str();
  EXPECT_TRUE((*report)->ok());
  EXPECT_GT((*report)->held, 0);
  EXPECT_THAT((*report)->problems, Contains(HasSubstr("ctl2 works on gpu001")));
  EXPECT_EQ(rack_.world.value("gpu002/pool"), "in");
  EXPECT_EQ(rack_.world.effects("gpu001/image"), 0);
  ASSERT_TRUE(other_.release(node("gpu001")));
  ASSERT_TRUE((*live(store_, "ctl1"))->ok());
  EXPECT_EQ(rack_.world.value("gpu001/pool"), "in");
  EXPECT_TRUE(store_.claims()->empty());
}

TEST_F(ClaimsTest, whatADeadControllerLeftOpenIsFinishedByAnotherAndNothingIsDoneTwice) {
  for (int at = 10; at < 160; at += 7) {
    SCOPED_TRACE("death at write " + std::to_string(at));
    Rack rack({"gpu001", "gpu002"});
    auto data = std::make_shared<MemoryStore::Data>();
    MemoryStore first(data), second(data);
    CrashStore dying(first, at, at % 2 == 0);
    auto run = [&rack](Store& store, const std::string& holder, const bool* stop) {
      FakeClock clock;
      Engine engine(rack.cluster, rack.phases(), store, clock, nullptr);
      engine.actFor({holder, kRealLease, "", "", ""});
      return test::runInVirtualTime(clock, observePlanApply(engine, store, rack), stop);
    };
    (void)run(dying, "ctl1", &dying.crashed);
    ASSERT_TRUE(dying.crashed);
    std::this_thread::sleep_for(kRealLease + std::chrono::milliseconds(5));
    auto report = run(second, "ctl2", nullptr);
    ASSERT_TRUE(report && *report);
    EXPECT_TRUE((*report)->ok()) << (*report)->problems.front();
    for (const auto& [facet, count] : rack.world.effect_counts) EXPECT_EQ(count, 1) << facet.str();
    for (const char* name : {"gpu001/pool", "gpu002/pool"}) EXPECT_EQ(rack.world.value(name), "in");
    EXPECT_TRUE(second.openIntents()->empty());
    if (HasFailure()) return;
  }
}

/// A process that was killed a moment ago still has its lease: the next one of the same holder must
/// not wait for it.
TEST_F(ClaimsTest, whatItsOwnEarlierLifeHeldIsFreeOnceItSignsOn) {
  ASSERT_TRUE(other_.signOn("ctl1", std::chrono::hours(1)));
  ASSERT_TRUE(other_.claim(node("gpu001"))->ours);
  FakeClock clock;
  Engine engine(rack_.cluster, rack_.phases(), store_, clock, nullptr);
  engine.actFor({"ctl1", kRealLease, "anna", "desk", "muster server"});
  ASSERT_TRUE(engine.signOn());
  EXPECT_FALSE(other_.checkClaim(node("gpu001"))) << "the earlier life has nothing any more";
  EXPECT_TRUE(store_.claim(node("gpu001"))->ours);
}

TEST_F(ClaimsTest, aControllerThatWasTakenOverStopsAndLeavesTheJournalToItsSuccessor) {
  auto take_over = [this](const Event& event) {
    if (event.kind != EventKind::ActionStarted || event.action_id != "gpu001/image") return;
    auto& claim = data_->claims[node("gpu001")];
    claim = {"ctl2", "its session", claim.token + 1};
    data_->sessions["its session"] = SystemClock().now() + std::chrono::hours(1);
  };
  auto report = live(store_, "ctl1", take_over);
  ASSERT_TRUE(report && *report);
  EXPECT_THAT((*report)->problems, Contains(HasSubstr("taken over by ctl2")));
  EXPECT_EQ(rack_.world.effects("gpu001/os"), 0);
  EXPECT_EQ(rack_.world.value("gpu002/pool"), "in");
  auto open = store_.openIntents();
  ASSERT_EQ(open->size(), 1u);
  EXPECT_EQ(open->front().action.id, "gpu001/image");
  EXPECT_TRUE(store_.findings(nullptr)->empty());
}

/// That an earlier holder has worked since then is not known: its claim may have ended long before.
TEST_F(ClaimsTest, ofANodeThatHasMovedItIsSaidWhatMovedAndNotWhoHasWorked) {
  ASSERT_TRUE(store_.signOn("bmc power of gpu001", std::chrono::minutes(1)));
  ASSERT_TRUE(store_.claim(node("gpu001"))->ours);
  ASSERT_TRUE(store_.release(node("gpu001")));  // ended before the plan is made
  auto report = live(store_, "ctl1", [this](const Event& event) {
    if (event.kind != EventKind::PlanStarted) return;
    const auto facts = *store_.factsOf(node("gpu001"));
    ASSERT_FALSE(facts.empty());
    auto moved = facts.front();
    moved.value = "moved";
    ASSERT_TRUE(store_.putFacts({moved}));
  });
  ASSERT_TRUE(report && *report);
  EXPECT_THAT((*report)->problems,
              Contains(testing::AllOf(HasSubstr("gpu001 is not as the plan has it any more"),
                                      HasSubstr("before this run bmc power of gpu001 held it last"),
                                      HasSubstr("plan again"))));
  EXPECT_EQ(rack_.world.value("gpu002/pool"), "in") << "the others go on";
}

/// What could not be read for a while, and can again, is in no plan; that it is known now moves no
/// node.
TEST_F(ClaimsTest, aNodeThatCouldNotBeReadMeanwhileHasNotMoved) {
  for (const auto& unread :
       {readAgainFact(node("gpu001"), "enrolled", SystemClock().now()),
        unreadFact(node("gpu001"), "firmware", Error(ErrorCode::Timeout, "no answer"),
                   SystemClock().now())}) {
    ASSERT_TRUE(store_.signOn("run before", std::chrono::minutes(1)));
    ASSERT_TRUE(store_.claim(node("gpu001"))->ours);
    ASSERT_TRUE(store_.release(node("gpu001")));
    rack_.driver = rack_.driver == "575" ? "580" : "575";
    auto report = live(store_, "ctl1", [this, &unread](const Event& event) {
      if (event.kind == EventKind::PlanStarted) ASSERT_TRUE(store_.putFacts({unread}));
    });
    ASSERT_TRUE(report && *report);
    EXPECT_THAT((*report)->problems, testing::IsEmpty());
    EXPECT_EQ((*report)->held, 0);
    EXPECT_EQ(rack_.world.value("gpu001/driver.nvidia"), rack_.driver);
  }
}

TEST_F(ClaimsTest, theJournalSaysWhoAskedAndUnderWhichToken) {
  ASSERT_TRUE((*live(store_, "ctl1"))->ok());
  auto requests = store_.requests(10);
  ASSERT_EQ(requests->size(), 1u);
  EXPECT_EQ(requests->front().user, "anna");
  EXPECT_EQ(requests->front().command, "muster apply");
  EXPECT_THAT(requests->front().outcome, HasSubstr("0 failed"));
  const auto intents = store_.intentsOf(node("gpu001"), 100);
  ASSERT_TRUE(intents);
  for (const auto& intent : *intents) {
    EXPECT_EQ(intent.request, requests->front().id);
    EXPECT_GT(intent.fence, 0);
  }
  EXPECT_TRUE(verifyAudit(store_, "")->ok());
}

}  // namespace
}  // namespace muster::lifecycle
