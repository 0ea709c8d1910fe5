// SPDX-License-Identifier: Apache-2.0
// The contract of Store, run against every implementation.
#include "tests/lifecycle/store_contract.h"
#include "lifecycle/audit/audit.h"

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
  EXPECT_THAT(open(Subject(NodeName("n1"))), ElementsAre("i1", "i3"));
  EXPECT_THAT(open(Subject(NodeName("n3"))), IsEmpty());
  ASSERT_TRUE(store_->recordOperation("i1", "/tasks/7"));
  const auto first = store_->openIntents()->front();
  EXPECT_EQ(first.operation, "/tasks/7");
  EXPECT_EQ(first.action, intent("i1", "n1/a").action);
  EXPECT_EQ(first.inventory_digest, "inventory");
  EXPECT_EQ(first.opened_at, kNow);
  ASSERT_TRUE(
      store_->closeIntent("i1", IntentState::Failed, "because", kNow + std::chrono::seconds(1)));
  EXPECT_THAT(open(), ElementsAre("i2", "i3"));
  EXPECT_THAT(open(Subject(NodeName("n1"))), ElementsAre("i3"));
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
  EXPECT_EQ(store_->closeIntent("i1", IntentState::Failed, "", kNow).error().code(),
            ErrorCode::NotFound);
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
  ASSERT_TRUE(store_->grantWipe(NodeName("n1"), "reinstall", kNow));
  ASSERT_TRUE(store_->grantWipe(NodeName("n1"), "again", kNow));
  ASSERT_TRUE(store_->grantWipe(NodeName("n2"), "other", kNow));
  ASSERT_TRUE(store_->openIntent(intent("i0", "n1/firmware")));
  EXPECT_THAT(*store_->wipeGrants(), ElementsAre(NodeName("n1"), NodeName("n2")));
  ASSERT_TRUE(store_->openIntent(wipe));
  EXPECT_THAT(*store_->wipeGrants(), ElementsAre(NodeName("n2")));
  EXPECT_TRUE(store_->openIntents()->at(1).uses_wipe);
  wipe.id = "i2";
  EXPECT_EQ(store_->openIntent(wipe).error().code(), ErrorCode::Denied);
  ASSERT_TRUE(store_->grantWipe(NodeName("n1"), "a second time", kNow));
  EXPECT_TRUE(store_->openIntent(wipe));
}

TEST_P(StoreContract, aWipePermissionIsTakenBackByItsReasonAloneAndOnlyUnused) {
  const NodeName n1("n1"), n2("n2");
  EXPECT_FALSE(*store_->revokeWipe(n1, "reinstall")) << "nobody has given one";
  ASSERT_TRUE(store_->grantWipe(n1, "reinstall", kNow));
  ASSERT_TRUE(store_->grantWipe(n2, "reinstall", kNow));
  EXPECT_FALSE(*store_->revokeWipe(n1, "another reason"));
  EXPECT_THAT(*store_->wipeGrants(), ElementsAre(n1, n2));
  EXPECT_TRUE(*store_->revokeWipe(n1, "reinstall"));
  EXPECT_THAT(*store_->wipeGrants(), ElementsAre(n2));
  auto wipe = intent("i1", "n1/image");
  wipe.uses_wipe = true;
  EXPECT_EQ(store_->openIntent(wipe).error().code(), ErrorCode::Denied);
  ASSERT_TRUE(store_->grantWipe(n1, "reinstall", kNow));
  ASSERT_TRUE(store_->openIntent(wipe));
  EXPECT_FALSE(*store_->revokeWipe(n1, "reinstall")) << "it is used";
}

TEST_P(StoreContract, eventsAreNumberedAndFilteredBySubject) {
  const Subject n1(NodeName("n1")), n2(NodeName("n2"));
  std::int64_t before = 0;
  for (int i = 0; i < 6; ++i) {
    auto sequence = store_->addEvent(Event{0, kNow, EventKind::ActionProgress, i % 2 ? n2 : n1, "a",
                                           "text " + std::to_string(i), 0.25});
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

TEST_P(StoreContract, findingsSayWhoRaisedThemAndEndBySource) {
  const auto a = test::FakeWorld::ref("n1/a"), b = test::FakeWorld::ref("n2/b");
  ASSERT_TRUE(store_->addFinding(
      {a, Severity::Error, "of an action", "", "", kNow, engineSource("provision")}));
  ASSERT_TRUE(
      store_->addFinding({a, Severity::Error, "of the monitor", "", "", kNow, kMonitorSource}));
  ASSERT_TRUE(store_->addFinding({a, Severity::Error, "of nobody", "", "", kNow}));
  ASSERT_TRUE(store_->addFinding({b, Severity::Error, "elsewhere", "", "", kNow, kMonitorSource}));
  const auto left = [this] {
    std::vector<std::string> out;
    const auto open = *store_->findings(nullptr);
    for (const auto& finding : open) out.push_back(finding.source + ": " + finding.text);
    return out;
  };
  using testing::ElementsAre;
  EXPECT_THAT(left(), ElementsAre("monitor: elsewhere", ": of nobody", "monitor: of the monitor",
                                  "engine/provision: of an action"));
  ASSERT_TRUE(store_->clearFindingsOf(a, kMonitorSource));
  EXPECT_THAT(left(),
              ElementsAre("monitor: elsewhere", ": of nobody", "engine/provision: of an action"));
  ASSERT_TRUE(store_->clearFindingsOf(a, ""));
  EXPECT_THAT(left(), ElementsAre("monitor: elsewhere", "engine/provision: of an action"));
  ASSERT_TRUE(store_->clearFindings(a));
  EXPECT_THAT(left(), ElementsAre("monitor: elsewhere"));
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

// ---- claims
// ------------------------------------------------------------------------------------------------------------

constexpr std::chrono::milliseconds kShortLease{300};
constexpr std::chrono::milliseconds kLongLease{60'000};
const Subject kN1{NodeName("n1")}, kN2{NodeName("n2")};

TEST_P(StoreContract, aSubjectIsHeldByOneControllerAndItsTokenOnlyGrows) {
  auto other = maker_->open();
  ASSERT_TRUE(store_->signOn("ctl1", kLongLease));
  ASSERT_TRUE(other->signOn("ctl2", kLongLease));
  auto mine = store_->claim(kN1);
  ASSERT_TRUE(mine) << mine.error().str();
  EXPECT_TRUE(mine->ours);
  EXPECT_EQ(mine->taken_from, "");
  EXPECT_EQ(store_->fenceOf(kN1), mine->token);
  auto refused = other->claim(kN1);
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->ours);
  EXPECT_EQ(refused->holder, "ctl1");
  EXPECT_EQ(other->fenceOf(kN1), 0);
  EXPECT_TRUE(other->claim(kN2)->ours);
  EXPECT_EQ(store_->claims()->size(), 2u);
  ASSERT_TRUE(store_->release(kN1));
  auto theirs = other->claim(kN1);
  ASSERT_TRUE(theirs);
  EXPECT_TRUE(theirs->ours);
  EXPECT_EQ(theirs->taken_from, "ctl1");
  EXPECT_GT(theirs->token, mine->token);
  EXPECT_TRUE(other->checkClaim(kN1));
}

TEST_P(StoreContract, aControllerThatWasAwayTooLongCannotWriteAnyMore) {
  auto other = maker_->open();
  ASSERT_TRUE(store_->signOn("ctl1", kShortLease));
  ASSERT_TRUE(store_->claim(kN1)->ours);
  ASSERT_TRUE(store_->openIntent(intent("i1", "n1/a")));
  EXPECT_GT(store_->openIntents()->front().fence, 0);
  ASSERT_TRUE(store_->putFacts({factOf("n1/a", "1")}));
  std::this_thread::sleep_for(kShortLease +
                              std::chrono::milliseconds(50));  // the database's clock is real
  ASSERT_TRUE(other->signOn("ctl2", kLongLease));
  auto taken = other->claim(kN1);
  ASSERT_TRUE(taken);
  ASSERT_TRUE(taken->ours);
  EXPECT_EQ(taken->taken_from, "ctl1");
  const auto refused = store_->recordOperation("i1", "late");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(refused.error().str(), testing::HasSubstr("ctl2"));
  EXPECT_EQ(store_->closeIntent("i1", IntentState::Failed, "late", kNow).error().code(),
            ErrorCode::Conflict);
  EXPECT_EQ(store_->openIntent(intent("i2", "n1/b")).error().code(), ErrorCode::Conflict);
  EXPECT_EQ(store_->putFacts({factOf("n1/a", "late")}).error().code(), ErrorCode::Conflict);
  EXPECT_EQ(store_->forgetFacts(kN1, {FacetName("a")}).error().code(), ErrorCode::Conflict);
  EXPECT_EQ(
      store_->addFinding({test::FakeWorld::ref("n1/a"), Severity::Error, "late", "", "", kNow})
          .error()
          .code(),
      ErrorCode::Conflict);
  EXPECT_EQ(store_->clearFindings(test::FakeWorld::ref("n1/a")).error().code(),
            ErrorCode::Conflict);
  EXPECT_EQ(store_->clearFindingsOf(test::FakeWorld::ref("n1/a"), "").error().code(),
            ErrorCode::Conflict);
  EXPECT_EQ(store_->checkClaim(kN1).error().code(), ErrorCode::Conflict);
  EXPECT_FALSE(store_->claim(kN1)->ours);
  EXPECT_EQ(store_->openIntents()->front().operation, "");
  EXPECT_EQ(store_->facts()->value(kN1, FacetName("a")), "1");
  EXPECT_TRUE(other->recordOperation("i1", "/tasks/1"));
  EXPECT_TRUE(other->closeIntent("i1", IntentState::Done, "", kNow));
}

TEST_P(StoreContract, aRenewedLeaseLasts) {
  auto other = maker_->open();
  constexpr auto kLease = 5 * kShortLease;  // a slow disk comes between a renewal and the look
  ASSERT_TRUE(store_->signOn("ctl1", kLease));
  ASSERT_TRUE(other->signOn("ctl2", kLease));
  ASSERT_TRUE(store_->claim(kN1)->ours);
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(kLease * 2 / 5);
    ASSERT_TRUE(store_->renewLease());
    EXPECT_FALSE(other->claim(kN1)->ours);
  }
}

TEST_P(StoreContract, aRestartedControllerHasItsSubjectsBackAtOnceAndItsFormerLifeIsFenced) {
  auto next_life = maker_->open();
  ASSERT_TRUE(store_->signOn("ctl1", kLongLease));
  const auto before = store_->claim(kN1)->token;
  ASSERT_TRUE(next_life->signOn("ctl1", kLongLease));
  EXPECT_EQ(store_->putFacts({factOf("n1/a", "late")}).error().code(), ErrorCode::Conflict);
  auto again = next_life->claim(kN1);
  ASSERT_TRUE(again->ours);
  EXPECT_EQ(again->taken_from, "");
  EXPECT_GT(again->token, before);
  EXPECT_EQ(store_->renewLease().error().code(), ErrorCode::Conflict);
}

TEST_P(StoreContract, whoHoldsNothingCannotDisturbTheHolder) {
  auto onlooker = maker_->open();
  ASSERT_TRUE(store_->signOn("ctl1", kLongLease));
  ASSERT_TRUE(store_->claim(kN1)->ours);
  ASSERT_TRUE(store_->putFacts({factOf("n1/a", "new")}));
  ASSERT_TRUE(onlooker->putFacts({factOf("n1/a", "old"), factOf("n2/a", "seen")}));
  EXPECT_EQ(store_->facts()->value(kN1, FacetName("a")), "new");
  EXPECT_EQ(store_->facts()->value(kN2, FacetName("a")), "seen");
  EXPECT_EQ(onlooker->openIntent(intent("i1", "n1/a")).error().code(), ErrorCode::Conflict);
  EXPECT_TRUE(onlooker->openIntent(intent("i2", "n2/a")));
  ASSERT_TRUE(store_->release(kN1));
  EXPECT_TRUE(onlooker->openIntent(intent("i1", "n1/a")));
}

// ---- history and the chained log
// ---------------------------------------------------------------------------------------

TEST_P(StoreContract, requestsAndPlansAreRemembered) {
  ASSERT_TRUE(
      store_->openRequest({"r1", kNow, "anna", "ctl1", "muster apply", "abcdef123", "", {}}));
  ASSERT_TRUE(
      store_->openRequest({"r2", kNow, "ben", "ctl2", "muster apply --nodes n1", "0123", "", {}}));
  ASSERT_TRUE(store_->closeRequest("r1", "1 done", kNow + std::chrono::seconds(5)));
  EXPECT_EQ(store_->closeRequest("r9", "", kNow).error().code(), ErrorCode::NotFound);
  auto all = store_->requests(10);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->at(0).id, "r2");
  EXPECT_EQ(all->at(1).user, "anna");
  EXPECT_EQ(all->at(1).outcome, "1 done");
  EXPECT_EQ(all->at(1).ended_at, kNow + std::chrono::seconds(5));
  EXPECT_EQ(store_->requests(1)->size(), 1u);
  auto first = intent("i1", "n1/a");
  first.plan_hash = "abcdef123";
  first.request = "r1";
  ASSERT_TRUE(store_->openIntent(first));
  ASSERT_TRUE(store_->openIntent(intent("i2", "n1/b")));
  auto of_plan = store_->intentsOfPlan("abcdef", 10);
  ASSERT_TRUE(of_plan);
  ASSERT_EQ(of_plan->size(), 1u);
  EXPECT_EQ(of_plan->at(0).request, "r1");
  EXPECT_EQ(store_->factsOf(kN1)->size(), 0u);
}

TEST_P(StoreContract, archivedEventsAreLetGoOnlyWithTheHashOfTheLast) {
  for (int i = 1; i <= 5; ++i)
    ASSERT_TRUE(
        store_->addEvent({0, kNow, EventKind::Note, {}, "", fmt::format("entry {}", i), -1}));
  const auto trail = *store_->auditTrail(0, 10);
  ASSERT_EQ(trail.size(), 5u);
  const AuditMark third{trail[2].link, trail[2].hash};
  EXPECT_EQ(store_->dropArchived(trail[2].event.sequence, {3, "another"}).error().code(),
            ErrorCode::Conflict);
  EXPECT_EQ(store_->dropArchived(trail[3].event.sequence, third).error().code(),
            ErrorCode::Conflict);
  EXPECT_EQ(store_->auditTrail(0, 10)->size(), 5u);
  ASSERT_TRUE(store_->dropArchived(trail[2].event.sequence, third));
  EXPECT_EQ(store_->auditTrail(0, 10)->size(), 2u);
  EXPECT_EQ(store_->auditEnds()->archived, third);
  EXPECT_EQ(store_->auditEnds()->begins_after, trail[2].event.sequence);
  ASSERT_TRUE(store_->addEvent({0, kNow, EventKind::Note, {}, "", "entry 6", -1}));
  EXPECT_TRUE(verifyAudit(*store_, third.hash)->ok());
  EXPECT_EQ(store_->auditEnds()->link, 6);
}

TEST_P(StoreContract, theLogIsOneChainWhoeverWrites) {
  auto other = maker_->open();
  for (int i = 0; i < 10; ++i) {
    auto& writer = i % 2 ? *store_ : *other;
    ASSERT_TRUE(writer.addEvent(
        Event{0, kNow, EventKind::Note, kN1, "n1/a", "ünï " + std::to_string(i), -1}));
    ASSERT_TRUE(
        writer.addEvent(Event{0, kNow, EventKind::ActionProgress, kN1, "n1/a", "half", 0.5}));
  }
  auto report = verifyAudit(*store_, "");
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(report->ok()) << report->problems.front();
  EXPECT_EQ(report->entries, 10);
  const auto noted = report->ends.hash;
  ASSERT_TRUE(store_->addEvent(Event{0, kNow, EventKind::Note, kN1, "", "one more", -1}));
  EXPECT_TRUE(verifyAudit(*store_, noted)->ok());
  EXPECT_FALSE(verifyAudit(*store_, std::string(64, '0'))->ok());
}

}  // namespace
}  // namespace muster::lifecycle
