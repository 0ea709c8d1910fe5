// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/planner/explain.h"

#include "tests/fakes/memory_store.h"
#include "tests/lifecycle/rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using test::factOf;
using test::Rack;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const WallTime kAskedAt = std::chrono::sys_days(std::chrono::year(2026) / 3 / 4);
const Subject kNode{NodeName("gpu001")};

/// Counts what is read of more than one subject.
class CountingStore : public test::MemoryStore {
 public:
  int whole = 0, journals = 0, all_open = 0;
  Result<std::vector<Intent>> openIntents() override {
    ++all_open;
    return MemoryStore::openIntents();
  }
  Result<FactSet> facts() override {
    ++whole;
    return MemoryStore::facts();
  }
  Result<std::vector<Intent>> intentsOf(const Subject& subject, std::size_t limit) override {
    ++journals;
    return MemoryStore::intentsOf(subject, limit);
  }
};

class ExplainTest : public testing::Test {
 protected:
  Explanation why() {
    const Roster roster(rack_.cluster);
    const auto facts = *store_.facts();
    const auto phases = rack_.phases();
    auto input = gatherExplanation(
        {rack_.cluster, roster, phases, store_, facts, durations_, kAskedAt}, kNode);
    if (!input) ADD_FAILURE() << input.error().str();
    return input ? explain(*input) : Explanation();
  }
  void put(const FactSet& facts) {
    std::vector<Fact> all;
    for (const auto& [ref, fact] : facts.all()) {
      all.push_back(fact);
      all.back().observed_at = kAskedAt - std::chrono::minutes(5);
    }
    ASSERT_TRUE(store_.putFacts(all));
  }
  void forget(const std::string& facet) {
    ASSERT_TRUE(store_.forgetFacts(kNode, {FacetName(facet)}));
  }
  void open(const std::string& id, std::chrono::seconds age) {
    Intent intent;
    intent.id = "i";
    intent.operation = "/tasks/9";
    intent.action.id = id;
    intent.action.facet = {kNode, FacetName(id.substr(7, id.find('#') - 7))};
    intent.action.to = "wanted";
    intent.action.expected = std::chrono::seconds(60);
    intent.action.deadline = std::chrono::seconds(600);
    intent.opened_at = kAskedAt - age;
    ASSERT_TRUE(store_.openIntent(intent));
  }
  Rack rack_{{"gpu001"}};
  CountingStore store_;
  KnownDurations durations_{std::chrono::seconds(60)};
};

/// An API that is asked for it a hundred times a second would read nothing else otherwise.
TEST_F(ExplainTest, readsOneNodeOfTheStoreNotTheSite) {
  (void)why();
  EXPECT_EQ(store_.whole, 1) << "by whoever asks, once for all nodes";
  EXPECT_EQ(store_.journals, 0) << "nothing is under way, so nothing can be late";
  open("gpu001/firmware.BMC", std::chrono::seconds(5));
  (void)why();
  const int learned = store_.journals;
  EXPECT_GT(learned, 0);
  (void)why();
  EXPECT_EQ(store_.journals, learned) << "of a profile, once for all of its nodes";
  EXPECT_EQ(store_.all_open, 0) << "of 10,000 nodes, 30,000 may be open";
}

TEST_F(ExplainTest, theStateFollowsTheStages) {
  EXPECT_EQ(why().word, "declared");
  const std::vector<std::pair<std::string, std::string>> stages{
      {"enrolled=yes", "enrolled"},
      {"firmware.BMC=2.1.0", "enrolled"},
      {"firmware.BIOS=1.4.2", "firmware as declared"},
      {"inspected=fits", "inspected"},
      {"image=noble@1", "imaged"},
      {"os=running", "booted"},
      {"driver.nvidia=570", "configured"},
      {"fabric.ports=as-declared", "on fabric"},
      {"gate.burn-in=pass:unknown+noble@1+570+2.1.0", "validated"},
      {"certificate=valid:unknown+noble@1+570+2.1.0", "certified"},
      {"pool=in", "in pool"}};
  for (const auto& [fact, word] : stages) {
    ASSERT_TRUE(store_.putFacts(
        {factOf("gpu001/" + fact.substr(0, fact.find('=')), fact.substr(fact.find('=') + 1))}));
    EXPECT_EQ(why().word, word) << fact;
  }
}

TEST_F(ExplainTest, theWordFollowsWhatIsUnderWay) {
  put(factsAtTheEnd(rack_));
  open("gpu001/pool#drain", std::chrono::seconds(1));
  EXPECT_EQ(why().word, "draining");
  ASSERT_TRUE(store_.closeIntent("i", IntentState::Done, "", kAskedAt));
  ASSERT_TRUE(store_.putFacts({factOf("gpu001/pool", "drained")}));
  EXPECT_EQ(why().word, "maintenance");
  ASSERT_TRUE(store_.addFinding({test::FakeWorld::ref("gpu001/gate.burn-in"), Severity::Error,
                                 "GEMM is wrong", "", "", kAskedAt}));
  EXPECT_EQ(why().word, "failed") << "nobody holds it";
  ASSERT_TRUE(store_.addFinding({test::FakeWorld::ref("gpu001/health.gpu"), Severity::Error,
                                 "GPU 1 fell off the bus", "", "", kAskedAt}));
  EXPECT_EQ(why().word, "unhealthy");
  ASSERT_TRUE(store_.putFacts({factOf("gpu001/quarantine", "held")}));
  EXPECT_EQ(why().word, "quarantined");
  ASSERT_TRUE(store_.putFacts({factOf("gpu001/quarantine", "none")}));
  EXPECT_EQ(why().word, "unhealthy");
  ASSERT_TRUE(store_.addFinding({test::FakeWorld::ref("gpu001/quarantine"), Severity::Error,
                                 "in quarantine: burns", "", "", kAskedAt, kQuarantineSource}));
  EXPECT_EQ(why().word, "quarantined") << "held a moment ago, and not observed since";
}

TEST_F(ExplainTest, saysThatEverythingIsAsDeclared) {
  put(factsAtTheEnd(rack_));
  auto explanation = why();
  EXPECT_TRUE(explanation.asDeclared());
  EXPECT_EQ(explanation.state, "in pool: everything is as declared");
  EXPECT_THAT(explanation.unmet, IsEmpty());
}

TEST_F(ExplainTest, saysExpectedObservedAndTheNextStepOfTheFirstUnmetGoal) {
  put(factsAtTheEnd(rack_));
  rack_.driver = "575";
  auto text = why().text();
  EXPECT_THAT(text, HasSubstr("driver.nvidia is not as declared"));
  EXPECT_THAT(text, HasSubstr("expected       575\n"));
  EXPECT_THAT(text, HasSubstr("observed       '570' (5 min ago, from test)"));
  EXPECT_THAT(text, HasSubstr("next step      `muster apply`"));
  EXPECT_THAT(text, HasSubstr("gate.burn-in: want"));
}

TEST_F(ExplainTest, theNextStepOfABlockedActionIsWhatWouldAllowIt) {
  put(factsAtTheEnd(rack_));
  rack_.image = "noble@2";
  EXPECT_THAT(why().next_step, HasSubstr("muster wipe gpu001 --reason"));
}

TEST_F(ExplainTest, ofAFailedAttemptThePlanSaysWhatAllowsTheNext) {
  put(factsAtTheEnd(rack_));
  ASSERT_TRUE(store_.putFacts({factOf("gpu001/firmware.BMC", "2.0.0")}));
  rack_.bmc_firmware_blocked = "it has failed. Once that is understood: muster firmware retry gpu1";
  const auto add = [&](std::string what_to_do, std::string source) {
    ASSERT_TRUE(store_.addFinding({test::FakeWorld::ref("gpu001/firmware.BMC"), Severity::Error,
                                   "the BMC did not install it", "", std::move(what_to_do),
                                   kAskedAt, std::move(source)}));
  };
  add("remove the cause, then `muster apply` again", engineSource("firmware"));
  EXPECT_THAT(why().next_step, HasSubstr("muster firmware retry gpu1"));
  rack_.bmc_firmware_blocked.clear();
  EXPECT_THAT(why().next_step, HasSubstr("`muster apply` again")) << "nothing blocks it";
  rack_.bmc_firmware_blocked = "it has failed";
  ASSERT_TRUE(store_.clearFindings(test::FakeWorld::ref("gpu001/firmware.BMC")));
  add("replace the BMC's flash", "monitor");
  EXPECT_EQ(why().next_step, "replace the BMC's flash") << "who else found it knows what to do";
}

TEST_F(ExplainTest, looksAtWhatTheOthersWaitFor) {
  rack_.bmc_firmware_blocked = "firmware/bmc.fw has the SHA-256 0000";
  ASSERT_TRUE(store_.putFacts({factOf("gpu001/enrolled", "yes")}));
  const auto answer = why();
  EXPECT_EQ(answer.facet, "firmware.BMC") << "firmware.BIOS comes first by name, but waits for it";
  EXPECT_THAT(answer.next_step, HasSubstr("SHA-256"));
}

TEST_F(ExplainTest, showsTheConsoleOfAFindingAsLines) {
  put(factsAtTheEnd(rack_));
  forget("gate.burn-in");
  ASSERT_TRUE(store_.addFinding(
      {test::FakeWorld::ref("gpu001/gate.burn-in"), Severity::Error, "it did not call",
       R"({"console":["GRUB","Kernel panic - not syncing"],"rows":7})", "look at it", kAskedAt}));
  const auto explanation = why();
  EXPECT_THAT(explanation.console, testing::ElementsAre("GRUB", "Kernel panic - not syncing"));
  EXPECT_THAT(explanation.last_evidence,
              testing::AllOf(HasSubstr("{\"rows\":7}"), testing::Not(HasSubstr("panic"))));
  EXPECT_THAT(explanation.text(), HasSubstr("console        Kernel panic - not syncing\n"));
}

TEST_F(ExplainTest, showsTheEvidenceOfAFinding) {
  put(factsAtTheEnd(rack_));
  forget("gate.burn-in");
  ASSERT_TRUE(store_.putFacts({factOf("gpu001/pool", "out")}));
  ASSERT_TRUE(
      store_.addFinding({test::FakeWorld::ref("gpu001/gate.burn-in"), Severity::Error,
                         "GPU 1 has remapped rows", "{\"rows\":7}", "replace GPU 1", kAskedAt}));
  auto explanation = why();
  EXPECT_EQ(explanation.state, "failed: GPU 1 has remapped rows");
  EXPECT_THAT(explanation.last_evidence, HasSubstr("{\"rows\":7}"));
  EXPECT_EQ(explanation.next_step, "replace GPU 1");
  EXPECT_EQ(explanation.observed, "never seen");
}

TEST_F(ExplainTest, whatNobodyReadsWasObservedByTheFinding) {
  put(factsAtTheEnd(rack_));
  ASSERT_TRUE(store_.addFinding({test::FakeWorld::ref("gpu001/health.gpu"), Severity::Error,
                                 "GPU 5 has fallen off the bus (Xid 79)", R"({"xid":79})",
                                 "replace GPU 5", kAskedAt, "monitor"}));
  const auto explanation = why();
  EXPECT_EQ(explanation.expected, "no finding");
  EXPECT_THAT(explanation.observed, HasSubstr("GPU 5 has fallen off the bus (Xid 79) ("));
  EXPECT_THAT(explanation.observed, HasSubstr("from monitor"));
}

TEST_F(ExplainTest, saysHowLongAnActionTakesAndWhenThatIsTooLong) {
  open("gpu001/image", std::chrono::seconds(30));
  ASSERT_TRUE(
      store_.addEvent(Event{0, kAskedAt - std::chrono::seconds(4), EventKind::ActionProgress, kNode,
                            "gpu001/image", "chunk 40 of 90", 0.4}));
  auto explanation = why();
  EXPECT_EQ(explanation.word, "imaging");
  EXPECT_EQ(explanation.state, "imaging: image is on its way to 'wanted', begun 30 s ago");
  EXPECT_THAT(explanation.last_evidence,
              HasSubstr("chunk 40 of 90 (action-progress, 4 s ago); outside operation /tasks/9"));
  ASSERT_TRUE(store_.closeIntent("i", IntentState::Abandoned, "", kAskedAt));
}

TEST_F(ExplainTest, anActionPastItsDeadlineSaysSo) {
  open("gpu001/image", std::chrono::seconds(120));
  EXPECT_THAT(why().state, HasSubstr("longer than it should take: usually 60 s"));
  EXPECT_THAT(why().next_step, HasSubstr("watch the node's console and its link"));
  CountingStore other;
  std::swap(store_, other);
  open("gpu001/image", std::chrono::seconds(3600));
  auto explanation = why();
  EXPECT_THAT(explanation.state, HasSubstr("past its deadline of 600 s"));
  EXPECT_THAT(explanation.next_step, HasSubstr("`muster apply` verifies it and resumes"));
}

TEST_F(ExplainTest, theJsonFormHoldsTheSame) {
  put(factsAtTheEnd(rack_));
  rack_.driver = "575";
  const auto json = nlohmann::json::parse(why().toJson());
  EXPECT_EQ(json["subject"], "gpu001");
  EXPECT_EQ(json["facet"], "driver.nvidia");
  EXPECT_EQ(json["expected"], "575");
  EXPECT_EQ(json["as_declared"], false);
  EXPECT_EQ(json["unmet"].size(), 3u);
}

}  // namespace
}  // namespace muster::lifecycle
