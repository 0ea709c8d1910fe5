// SPDX-License-Identifier: Apache-2.0
// What `muster audit verify` finds, and what `muster history` tells.
#include "lifecycle/audit/audit.h"

#include "lifecycle/audit/history.h"
#include "tests/fakes/memory_store.h"
#include "tests/lifecycle/rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class AuditTest : public testing::Test {
 protected:
  AuditTest() {
    for (int i = 1; i <= 6; ++i)
      (void)store_.addEvent(
          Event{0, WallTime{}, EventKind::Note, {}, "", "entry " + std::to_string(i), -1});
  }
  std::vector<std::string> problems() { return verifyAudit(store_, "")->problems; }
  std::vector<AuditEntry>& log() { return data_->log; }

  std::shared_ptr<test::MemoryStore::Data> data_ = std::make_shared<test::MemoryStore::Data>();
  test::MemoryStore store_{data_};
};

TEST_F(AuditTest, aWholeChainHasNoProblem) {
  EXPECT_THAT(problems(), testing::IsEmpty());
  EXPECT_EQ(verifyAudit(store_, "")->entries, 6);
}

TEST_F(AuditTest, aChangedEntryIsNamed) {
  log()[2].event.text = "entry three";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("entry #3 (link 3")));
  EXPECT_THAT(problems().front(), HasSubstr("was changed"));
}

TEST_F(AuditTest, anEntryChangedWithItsHashIsFound) {
  log()[2].event.text = "entry three";
  log()[2].hash = chainHash(log()[1].hash, log()[2]);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("(or #3 together with its hash)")));
}

TEST_F(AuditTest, aRemovedEntryIsNamed) {
  log().erase(log().begin() + 2);
  EXPECT_THAT(problems(),
              ElementsAre(HasSubstr("1 entry between #2 and #4 (links 3 to 3) was removed")));
}

TEST_F(AuditTest, removingTheLastEntriesIsFound) {
  log().resize(4);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("the last 2 entries, after #4, were removed")));
}

TEST_F(AuditTest, anInsertedEntryIsNamed) {
  AuditEntry unchained{Event{7, WallTime{}, EventKind::ActionDone, {}, "", "never happened", -1}, 0,
                       ""};
  log().push_back(unchained);
  EXPECT_THAT(problems(),
              ElementsAre(testing::AllOf(HasSubstr("entry #7"), HasSubstr("was inserted"))));
  log().back().link = 3;
  log().back().hash = log()[2].hash;
  EXPECT_THAT(problems(),
              ElementsAre(testing::AllOf(HasSubstr("entry #7"),
                                         HasSubstr("was inserted: its link is taken"))));
  log().back().link = 7;
  log().back().hash = chainHash(log()[5].hash, log().back());
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("1 entries were appended past the head")));
}

/// Another process writes whenever this one has read something.
class BusyStore : public test::MemoryStore {
 public:
  explicit BusyStore(std::shared_ptr<Data> data) : MemoryStore(data), other_(std::move(data)) {}
  Result<AuditEnds> auditEnds() override {
    auto ends = MemoryStore::auditEnds();
    write();
    return ends;
  }
  Result<std::vector<AuditEntry>> auditTrail(std::int64_t after, std::size_t limit) override {
    auto page = MemoryStore::auditTrail(after, limit);
    write();
    return page;
  }

 private:
  void write() {
    ASSERT_TRUE(other_.addEvent(Event{0, WallTime{}, EventKind::Note, {}, "", "meanwhile", -1}));
  }
  test::MemoryStore other_;
};

TEST_F(AuditTest, entriesOfOthersMeanwhileAreNoSignOfAnything) {
  BusyStore busy(data_);
  const auto report = verifyAudit(busy, "");
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_THAT(report->problems, testing::IsEmpty());
  EXPECT_EQ(report->entries, 7);
  log()[2].event.text = "entry three";
  EXPECT_THAT(verifyAudit(busy, "")->problems, ElementsAre(HasSubstr("was changed")));
}

TEST_F(AuditTest, entriesPastTheHeadAreFound) {
  auto forged = log().back();
  forged.event.sequence = 7;
  forged.link = 7;
  forged.hash = chainHash(log().back().hash, forged);
  log().push_back(forged);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("1 entries were appended past the head")));
}

TEST_F(AuditTest, aMovedEntryIsNamed) {
  std::swap(log()[2], log()[3]);
  std::swap(log()[2].event.sequence, log()[3].event.sequence);
  EXPECT_THAT(problems(), testing::Contains(testing::AllOf(HasSubstr("entry #4 (link 3"),
                                                           HasSubstr("was moved"))));
}

TEST_F(AuditTest, aChainWrittenAnewDoesNotHoldTheHashThatWasNoted) {
  const auto noted = log()[3].hash;
  EXPECT_TRUE(verifyAudit(store_, noted)->ok());
  std::string previous;
  log()[1].event.text = "rewritten";
  for (auto& entry : log()) previous = entry.hash = chainHash(previous, entry);
  data_->ends.hash = previous;
  EXPECT_TRUE(verifyAudit(store_, "")->ok());
  EXPECT_FALSE(verifyAudit(store_, noted)->ok());
}

TEST(History, tellsOfANodeWhoAskedAndWhatBecameOfIt) {
  test::MemoryStore store;
  const WallTime at = std::chrono::sys_days(std::chrono::year(2026) / 3 / 4);
  ASSERT_TRUE(
      store.openRequest({"r1", at, "anna", "ctl1", "muster apply", std::string(64, 'a'), "", {}}));
  ASSERT_TRUE(
      store.openRequest({"r2", at, "ben", "ctl1", "muster apply", std::string(64, 'b'), "", {}}));
  Intent intent;
  intent.id = "i1";
  intent.action.id = "n1/image";
  intent.action.facet = test::FakeWorld::ref("n1/image");
  intent.plan_hash = std::string(64, 'a');
  intent.request = "r1";
  intent.opened_at = at;
  ASSERT_TRUE(store.openIntent(intent));
  ASSERT_TRUE(store.closeIntent("i1", IntentState::Done, "written", at + std::chrono::seconds(42)));
  auto of_node = historyOf(store, "n1", 10);
  ASSERT_TRUE(of_node);
  ASSERT_EQ(of_node->requests.size(), 1u);
  EXPECT_THAT(of_node->text(), HasSubstr("anna@ctl1"));
  EXPECT_THAT(of_node->text(), HasSubstr("42.0 s"));
  EXPECT_THAT(of_node->toJson(), HasSubstr("\"duration_ms\": 42000"));
  auto of_plan = historyOf(store, "aaaaaaaa", 10);
  ASSERT_TRUE(of_plan);
  EXPECT_EQ(of_plan->intents.size(), 1u);
  EXPECT_EQ(historyOf(store, "", 10)->requests.size(), 2u);
  EXPECT_EQ(historyOf(store, "nowhere", 10).error().code(), ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::lifecycle
