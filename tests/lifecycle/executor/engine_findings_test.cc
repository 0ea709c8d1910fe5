// SPDX-License-Identifier: Apache-2.0
// Findings: who raised them, when they are over; and waits for what is away.
#include "lifecycle/model/json.h"
#include "lifecycle/model/quarantine.h"
#include "tests/lifecycle/engine_fixture.h"

namespace muster::lifecycle {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

/// A driver that the profile does not name any more, a node that has left the inventory: nobody
/// would ever see those facets met.
TEST_F(EngineTest, whatTheEngineFoundAndNothingWantsAnyMoreIsOver) {
  arrive({"gpu001"});
  const auto add = [this](const std::string& facet, const std::string& source) {
    ASSERT_TRUE(store_.addFinding({test::FakeWorld::ref(facet), Severity::Error,
                                   "raised by " + source, "", "", clock_.now(), source}));
  };
  add("gpu001/driver.gdrcopy", engineSource("provision"));
  add("gpu001/driver.gdrcopy", kMonitorSource);
  add("gpu001/driver.gdrcopy", "");
  add("gpu001/gate.burn-in", engineSource("validate"));
  add("gpu001/health.fan", kMonitorSource);
  add("gpu001/erased", engineSource("a phase that is not here"));
  add("gone/image", engineSource("provision"));
  add("gone/agent-silent", kMonitorSource);
  clock_.advance(std::chrono::minutes(1));
  world().behave("gpu001/gate.burn-in").unreadable = true;
  observe();
  EXPECT_EQ(store_.findings(nullptr)->size(), 8u)
      << "it may be of a controller that knows a newer inventory";
  clock_.advance(std::chrono::minutes(1));
  observe();
  EXPECT_THAT(
      findings("gpu001"),
      ElementsAre("erased: raised by engine/a phase that is not here",
                  "health.fan: raised by monitor", "gate.burn-in: raised by engine/validate",
                  "driver.gdrcopy: raised by ", "driver.gdrcopy: raised by monitor"));
  EXPECT_THAT(findings("gone"), ElementsAre("agent-silent: raised by monitor"));
  EXPECT_THAT(
      shown(EventKind::Note),
      testing::IsSupersetOf({" no goal wants driver.gdrcopy any more: its findings are cleared",
                             " no goal wants image any more: its findings are cleared"}));
}

/// A look at a few nodes evaluates no others: a rollout looks at each of thousands.
TEST_F(EngineTest, onlyFindingsOfWhatIsLookedAtAreEndedAsUnwanted) {
  arrive({"gpu001", "gpu002"});
  for (const auto* facet : {"gpu001/driver.gdrcopy", "gpu002/driver.gdrcopy"})
    ASSERT_TRUE(store_.addFinding({test::FakeWorld::ref(facet), Severity::Error, "failed", "", "",
                                   clock_.now(), engineSource("provision")}));
  clock_.advance(5min);
  auto looking = engine();
  ASSERT_TRUE(test::runInVirtualTime(clock_, looking.observeNodes({Subject(NodeName("gpu001"))})));
  EXPECT_THAT(findings("gpu001"), IsEmpty());
  EXPECT_THAT(findings("gpu002"), ElementsAre("driver.gdrcopy: failed"));
}

TEST_F(EngineTest, findingsOfWhatWasAskedForStayWhenNobodyAsksAnyMore) {
  arrive({"gpu001"});
  ASSERT_TRUE(
      store_.addFinding({test::FakeWorld::ref("gpu001/erased"), Severity::Error,
                         "nvme1 is NOT erased", "", "", clock_.now(), engineSource("provision")}));
  clock_.advance(std::chrono::minutes(5));
  rack_->provision.is_on_demand = true;
  observe();
  EXPECT_THAT(findings("gpu001"), ElementsAre("erased: nvme1 is NOT erased"));
  rack_->provision.is_on_demand = false;
  observe();
  EXPECT_THAT(findings("gpu001"), IsEmpty());
}

/// Findings of an older muster: what names its intent is the engine's.
TEST_F(EngineTest, findingsThatDoNotSayWhoRaisedThemAreTheEnginesWhenTheJournalSaysSo) {
  arrive({"gpu001"});
  for (const auto* id : {"closed", "open"}) {
    Intent intent;
    intent.id = id;
    intent.action.id = std::string("gpu001/driver.") + id;
    intent.action.facet = test::FakeWorld::ref(intent.action.id);
    intent.action.phase = "provision";
    ASSERT_TRUE(store_.openIntent(intent));
    ASSERT_TRUE(store_.addFinding({intent.action.facet, Severity::Error, "failed",
                                   "{\"intent\":\"" + intent.id + "\"}", "", clock_.now()}));
  }
  ASSERT_TRUE(store_.closeIntent("closed", IntentState::Failed, "", clock_.now()));
  ASSERT_TRUE(store_.addFinding({test::FakeWorld::ref("gpu001/driver.closed"), Severity::Error,
                                 "somebody's", "{}", "", clock_.now()}));
  clock_.advance(std::chrono::minutes(5));
  observe();
  EXPECT_THAT(findings("gpu001"), ElementsAre("driver.closed: somebody's", "driver.open: failed",
                                              "driver.closed: failed"))
      << "one is not known to be the engine's";
  ASSERT_TRUE(store_.clearFindings(test::FakeWorld::ref("gpu001/driver.closed")));
  ASSERT_TRUE(store_.addFinding({test::FakeWorld::ref("gpu001/driver.closed"), Severity::Error,
                                 "failed", R"({"intent":"closed"})", "", clock_.now()}));
  clock_.advance(std::chrono::minutes(5));
  observe();
  EXPECT_THAT(findings("gpu001"), ElementsAre("driver.open: failed"))
      << "its action is not over yet";
}

/// A process that died between the list of quarantined nodes and the findings.
TEST_F(EngineTest, findingsOfQuarantineAreWhatTheListSays) {
  arrive({"gpu001", "gpu002"});
  const NodeName node("gpu001");
  ASSERT_TRUE(*Quarantine(store_).add(node, {clock_.now(), "alice@ops", "burns", ""}));
  ASSERT_TRUE(store_.clearFindings(test::FakeWorld::ref("gpu001/quarantine")));
  ASSERT_TRUE(store_.addFinding({test::FakeWorld::ref("gpu002/quarantine"), Severity::Error,
                                 "in quarantine: was", "", "", clock_.now(), kQuarantineSource}));
  observe();
  EXPECT_THAT(findings("gpu001"), ElementsAre("quarantine: in quarantine: burns"));
  EXPECT_THAT(findings("gpu002"), IsEmpty());
}

/// A join has ten minutes of its own; an outage of its pool takes none of them.
TEST_F(EngineTest, anActionWaitsForWhatIsAwayAndItsDeadlineWithIt) {
  build({"gpu001"});
  world().behave("gpu001/pool").away = 3 * 60 * 4;
  const auto began = clock_.now();
  EXPECT_TRUE(apply().ok());
  EXPECT_GE(clock_.now() - began, 3h);
  EXPECT_EQ(world().value("gpu001/pool"), "in");
  EXPECT_THAT(findings("gpu001"), IsEmpty());
  EXPECT_THAT(shown(EventKind::ActionWaiting), Contains("gpu001/pool the other side is away"))
      << "said once, with the reason";
}

TEST_F(EngineTest, whatStaysAwayIsGivenUpInTheEnd) {
  build({"gpu001"});
  world().behave("gpu001/pool").away = 1'000'000;
  const auto began = clock_.now();
  EXPECT_FALSE(apply().ok());
  EXPECT_GE(clock_.now() - began, 24h);
  EXPECT_LE(clock_.now() - began, 26h);
  EXPECT_THAT(findings("gpu001"),
              ElementsAre(HasSubstr("the last evidence was 'the other side is away'")));
}

TEST_F(EngineTest, whatIsRaisedByAnActionSaysSo) {
  build({"gpu001"});
  world().behave("gpu001/enrolled").fail_first = kMaxActionRetries + 1;
  EXPECT_FALSE(apply().ok());
  const auto open = *store_.findings(nullptr);
  ASSERT_FALSE(open.empty());
  for (const auto& finding : open)
    EXPECT_TRUE(finding.source.starts_with(kEngineSource)) << finding.source;
  EXPECT_EQ(toJson(open.front()).at("source"), open.front().source);
}

}  // namespace
}  // namespace muster::lifecycle
