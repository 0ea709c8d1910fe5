// The contract of Store, run against every implementation.
#include "tests/lifecycle/store_contract.h"

namespace muster::lifecycle {
namespace {

using test::factOf;
using testing::ElementsAre;
using testing::IsEmpty;

TEST_P(StoreContract, factsAreReplacedAndForgotten) {
  Fact fact = factOf("n1/image", "1");
  fact.observed_at = kNow;
  fact.source = "agent";
  fact.evidence = "{\"a\":1}";
  ASSERT_TRUE(store_->putFacts({fact, factOf("n1/os", "running"), factOf("n2/image", "1")}));
  fact.value = "2";
  ASSERT_TRUE(store_->putFacts({fact}));
  auto facts = store_->facts();
  ASSERT_TRUE(facts);
  const Fact* kept = facts->find(fact.subject, fact.facet);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->value, "2");
  EXPECT_EQ(kept->observed_at, kNow);
  EXPECT_EQ(kept->source, "agent");
  EXPECT_EQ(kept->evidence, "{\"a\":1}");
  ASSERT_TRUE(store_->forgetFacts(fact.subject, {FacetName("image"), FacetName("never-there")}));
  EXPECT_EQ(store_->facts()->all().size(), 2u);
  EXPECT_TRUE(store_->facts()->value(Subject(NodeName("n2")), FacetName("image")));
}

TEST_P(StoreContract, aFactWithoutAValueIsRefusedAndNothingOfItsBatchIsKept) {
  auto put = store_->putFacts({factOf("n1/a", "1"), factOf("n1/b", "")});
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(store_->facts()->all(), IsEmpty());
}

TEST_P(StoreContract, anIntentIsOpenUntilItIsClosed) {
  ASSERT_TRUE(store_->openIntent(intent("i1", "n1/a")));
  ASSERT_TRUE(store_->openIntent(intent("i2", "n2/a")));
  ASSERT_TRUE(store_->openIntent(intent("i3", "n1/b")));
  EXPECT_THAT(open(), ElementsAre("i1", "i2", "i3"));
  ASSERT_TRUE(store_->recordOperation("i1", "/tasks/7"));
  const auto first = store_->openIntents()->front();
  EXPECT_EQ(first.operation, "/tasks/7");
  EXPECT_EQ(first.action, intent("i1", "n1/a").action);
  EXPECT_EQ(first.inventory_digest, "inventory");
  EXPECT_EQ(first.opened_at, kNow);
  ASSERT_TRUE(store_->closeIntent("i1", IntentState::Failed, "because", kNow + std::chrono::seconds(1)));
  EXPECT_THAT(open(), ElementsAre("i2", "i3"));
  auto history = store_->intentsOf(Subject(NodeName("n1")), 10);
  ASSERT_TRUE(history);
  ASSERT_EQ(history->size(), 2u);
  EXPECT_EQ(history->at(0).id, "i3");
  EXPECT_EQ(history->at(1).state, IntentState::Failed);
  EXPECT_EQ(history->at(1).outcome, "because");
  EXPECT_EQ(history->at(1).closed_at, kNow + std::chrono::seconds(1));
  EXPECT_EQ(store_->intentsOf(Subject(NodeName("n1")), 1)->size(), 1u);
}

TEST_P(StoreContract, onlyAnOpenIntentCanChange) {
  ASSERT_TRUE(store_->openIntent(intent("i1", "n1/a")));
  EXPECT_EQ(store_->openIntent(intent("i1", "n1/a")).error().code(), ErrorCode::Conflict);
  ASSERT_TRUE(store_->closeIntent("i1", IntentState::Done, "", kNow));
  EXPECT_EQ(store_->closeIntent("i1", IntentState::Failed, "", kNow).error().code(), ErrorCode::NotFound);
  EXPECT_EQ(store_->recordOperation("i1", "x").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(store_->recordOperation("never", "x").error().code(), ErrorCode::NotFound);
}

TEST_P(StoreContract, aWipePermissionIsUsedUpByTheIntentThatTakesIt) {
  auto wipe = intent("i1", "n1/image");
  wipe.uses_wipe = true;
  auto refused = store_->openIntent(wipe);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  EXPECT_THAT(open(), IsEmpty());
  ASSERT_TRUE(store_->allowWipe(NodeName("n1"), "reinstall", kNow));
  ASSERT_TRUE(store_->allowWipe(NodeName("n1"), "again", kNow));
  ASSERT_TRUE(store_->allowWipe(NodeName("n2"), "other", kNow));
  ASSERT_TRUE(store_->openIntent(intent("i0", "n1/firmware")));
  EXPECT_THAT(*store_->wipesAllowed(), ElementsAre(NodeName("n1"), NodeName("n2")));
  ASSERT_TRUE(store_->openIntent(wipe));
  EXPECT_THAT(*store_->wipesAllowed(), ElementsAre(NodeName("n2")));
  EXPECT_TRUE(store_->openIntents()->at(1).uses_wipe);
  wipe.id = "i2";
  EXPECT_EQ(store_->openIntent(wipe).error().code(), ErrorCode::Denied);
  ASSERT_TRUE(store_->allowWipe(NodeName("n1"), "a second time", kNow));
  EXPECT_TRUE(store_->openIntent(wipe));
}

TEST_P(StoreContract, eventsAreNumberedAndFilteredBySubject) {
  const Subject n1(NodeName("n1")), n2(NodeName("n2"));
  std::int64_t before = 0;
  for (int i = 0; i < 6; ++i) {
    auto sequence = store_->addEvent(Event{0, kNow, EventKind::ActionProgress, i % 2 ? n2 : n1, "a", "text " + std::to_string(i), 0.25});
    ASSERT_TRUE(sequence);
    EXPECT_GT(*sequence, before);
    before = *sequence;
  }
  auto all = store_->events(0, 100, nullptr);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 6u);
  EXPECT_EQ(all->at(1).text, "text 1");
  EXPECT_EQ(all->at(1).kind, EventKind::ActionProgress);
  EXPECT_EQ(all->at(1).subject, n2);
  EXPECT_EQ(all->at(1).fraction, 0.25);
  EXPECT_EQ(all->at(1).at, kNow);
  auto page = store_->events(all->at(1).sequence, 2, &n1);
  ASSERT_EQ(page->size(), 2u);
  EXPECT_EQ(page->at(0).text, "text 2");
  auto last = store_->lastEvents(2, &n2);
  ASSERT_EQ(last->size(), 2u);
  EXPECT_EQ(last->at(0).text, "text 3");
  EXPECT_EQ(last->at(1).text, "text 5");
  EXPECT_EQ(store_->lastEvents(100, nullptr)->size(), 6u);
}

TEST_P(StoreContract, findingsAreNewestFirstUntilTheirFacetIsMet) {
  const auto a = test::FakeWorld::ref("n1/a"), b = test::FakeWorld::ref("n2/b");
  ASSERT_TRUE(store_->addFinding({a, Severity::Error, "first", "42 °C", "cool it", kNow}));
  ASSERT_TRUE(store_->addFinding({b, Severity::Warning, "second", "", "", kNow}));
  ASSERT_TRUE(store_->addFinding({a, Severity::Info, "third", "", "", kNow}));
  auto all = store_->findings(nullptr);
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ(all->at(0).text, "third");
  EXPECT_EQ(all->at(0).severity, Severity::Info);
  EXPECT_EQ(all->at(2).evidence, "42 °C");
  EXPECT_EQ(all->at(2).what_to_do, "cool it");
  EXPECT_EQ(all->at(2).at, kNow);
  EXPECT_EQ(store_->findings(&b.subject)->size(), 1u);
  ASSERT_TRUE(store_->clearFindings(a));
  EXPECT_EQ(store_->findings(nullptr)->size(), 1u);
}

TEST_P(StoreContract, valuesAreExchangedOnlyWhenTheyAreWhatWasExpected) {
  EXPECT_EQ(*store_->getValue("k"), std::nullopt);
  EXPECT_FALSE(*store_->exchangeValue("k", "x", "y"));
  EXPECT_TRUE(*store_->exchangeValue("k", std::nullopt, "1"));
  EXPECT_FALSE(*store_->exchangeValue("k", std::nullopt, "2"));
  EXPECT_FALSE(*store_->exchangeValue("k", "2", "3"));
  EXPECT_TRUE(*store_->exchangeValue("k", "1", "2"));
  EXPECT_TRUE(*store_->exchangeValue("k", "2", "2"));
  EXPECT_EQ(*store_->getValue("k"), "2");
  ASSERT_TRUE(store_->putValue("k", ""));
  EXPECT_EQ(*store_->getValue("k"), "");
  EXPECT_TRUE(*store_->exchangeValue("k", "", "set"));
}

TEST_P(StoreContract, bytesThatAreNoTextAreKeptAsReplacementCharacters) {
  if (GetParam().name == "memory") GTEST_SKIP() << "memory keeps every byte";
  ASSERT_TRUE(store_->putFacts({factOf("n1/image", std::string("a\xff\0b", 4))}));
  EXPECT_EQ(store_->facts()->value(Subject(NodeName("n1")), FacetName("image")), "a\uFFFD\uFFFDb");
  ASSERT_TRUE(store_->putValue("k", "grüße"));
  EXPECT_EQ(*store_->getValue("k"), "grüße");
}

TEST_P(StoreContract, twoProcessesWriteTheSameStore) {
  auto other = maker_->open();
  ASSERT_TRUE(store_->putValue("k", "1"));
  EXPECT_EQ(*other->getValue("k"), "1");
  EXPECT_TRUE(*other->exchangeValue("k", "1", "2"));
  EXPECT_FALSE(*store_->exchangeValue("k", "1", "3"));
  ASSERT_TRUE(other->openIntent(intent("i1", "n1/a")));
  EXPECT_EQ(store_->openIntent(intent("i1", "n1/a")).error().code(), ErrorCode::Conflict);
  ASSERT_TRUE(store_->closeIntent("i1", IntentState::Done, "", kNow));
  EXPECT_THAT(open(), IsEmpty());
}

}  // namespace
}  // namespace muster::lifecycle
