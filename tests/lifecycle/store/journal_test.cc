// SPDX-License-Identifier: Apache-2.0
// Journal: many writes, one commit; an answer only when it is durable; a write that fails harms
// nobody else.
#include "lifecycle/store/journal.h"
#include "base/async/await_all.h"
#include "tests/fakes/memory_store.h"
#include "tests/lifecycle/virtual_time.h"
#include "tests/run_async.h"

#include <boost/asio/post.hpp>

#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

Intent intentOf(const std::string& id, const std::string& node) {
  Intent intent;
  intent.id = id;
  intent.action.id = node + "/image";
  intent.action.facet = {Subject(NodeName(node)), FacetName("image")};
  return intent;
}

/// Opens an intent and remembers what became of it.
Task<void> open(Journal& journal, Intent intent, std::vector<std::string>& log) {
  const auto id = intent.id;
  auto opened =
      co_await journal.write<void>([intent](Store& store) { return store.openIntent(intent); });
  log.push_back(id + (opened ? " opened" : " refused"));
}

template <class T>
Task<void> attached(Journal& journal, std::vector<Task<T>> all) {
  journal.attach(co_await asio::this_coro::executor);
  co_await async::awaitAll(std::move(all));
}

/// A store that counts commits and can be asked what is committed.
class Grouping final : public test::MemoryStore {
 public:
  bool groups() const override { return true; }
  void together(const std::vector<std::function<bool()>>& works) override {
    batches.push_back(works.size());
    if (before_commit) before_commit();
    for (const auto& work : works) work();
  }
  std::vector<std::size_t> batches;
  std::function<void()> before_commit;
};

Task<int> many(Journal& journal, int count, std::vector<std::string>& log) {
  std::vector<Task<void>> all;
  for (int i = 0; i < count; ++i)
    all.push_back(open(journal, intentOf("i" + std::to_string(i), "gpu001"), log));
  co_await attached(journal, std::move(all));
  co_return count;
}

TEST(Journal, whatIsHandedOverAtOnceIsOneCommit) {
  Grouping store;
  FakeClock clock;
  Journal journal(store, false);
  std::vector<std::string> log;
  store.before_commit = [&] {
    EXPECT_TRUE(log.empty()) << "somebody was answered before the commit";
  };
  test::runInVirtualTime(clock, many(journal, 100, log));
  EXPECT_EQ(store.batches, std::vector<std::size_t>{100});
  EXPECT_EQ(log.size(), 100u);
  EXPECT_EQ(store.openIntents()->size(), 100u);
}

TEST(Journal, aBatchIsBounded) {
  Grouping store;
  FakeClock clock;
  Journal journal(store, false);
  std::vector<std::string> log;
  test::runInVirtualTime(clock, many(journal, static_cast<int>(kMaxBatchWrites) + 1, log));
  EXPECT_EQ(store.batches, (std::vector<std::size_t>{kMaxBatchWrites, 1}));
}

TEST(Journal, aStoreThatDoesNotGroupIsCalledAtOnce) {
  test::MemoryStore store;
  Journal journal(store);
  int told = 0;
  journal.post<void>([](Store& to) { return to.openIntent(intentOf("a", "gpu001")); },
                     [&](Result<void> done) { told += done ? 1 : 0; });
  EXPECT_EQ(told, 1);
  EXPECT_EQ(store.openIntents()->size(), 1u);
}

class JournalOnSqlite : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = openSqliteStore(folder_ / "muster.db");
    ASSERT_TRUE(opened) << opened.error().str();
    store_ = std::move(*opened);
  }
  std::vector<std::string> ids() {
    std::vector<std::string> out;
    const auto open = *store_->openIntents();
    for (const auto& intent : open) out.push_back(intent.id);
    return out;
  }
  Async<void> allOf(Journal& journal, std::vector<Intent> intents) {
    std::vector<Task<void>> all;
    for (auto& intent : intents) all.push_back(open(journal, std::move(intent), log_));
    co_await attached(journal, std::move(all));
    co_return Result<void>();
  }

  test::TempFolder folder_;
  std::unique_ptr<Store> store_;
  std::vector<std::string> log_;
};

TEST_F(JournalOnSqlite, oneThatFailsHarmsNobodyElse) {
  Journal journal(*store_);
  ASSERT_TRUE(test::runAsync(
      allOf(journal, {intentOf("a", "n1"), intentOf("b", "n2"), intentOf("a", "n3"),
                      intentOf("c", "n4"), intentOf("b", "n5"), intentOf("d", "n6")})));
  EXPECT_EQ(ids(), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(log_, (std::vector<std::string>{"a opened", "b opened", "a refused", "c opened",
                                            "b refused", "d opened"}));
}

/// A permission to wipe is worth one wipe, also among many writes of which some are done again.
TEST_F(JournalOnSqlite, aWipePermissionIsUsedOnce) {
  ASSERT_TRUE(store_->grantWipe(NodeName("n1"), "new image", {}));
  auto first = intentOf("first", "n1"), second = intentOf("second", "n1"),
       twin = intentOf("first", "n1");
  first.uses_wipe = second.uses_wipe = twin.uses_wipe = true;
  Journal journal(*store_);
  ASSERT_TRUE(test::runAsync(allOf(journal, {first, twin, second, intentOf("other", "n2")})));
  EXPECT_EQ(ids(), (std::vector<std::string>{"first", "other"}));
  EXPECT_TRUE(store_->wipeGrants()->empty());
}

/// Claims of one batch are claims of later ones; those of a batch that was rolled back are not.
TEST_F(JournalOnSqlite, claimsAndTheChainOutliveABatchThatIsDoneInParts) {
  ASSERT_TRUE(store_->signOn("a", std::chrono::seconds(30)));
  const Subject n1(NodeName("n1")), n2(NodeName("n2"));
  int ok = 0;
  store_->together(
      {[&] {
         auto claim = store_->claim(n1);
         return claim && claim->ours;
       },
       [&] { return store_->addEvent(Event{0, {}, EventKind::Note, n1, "", "first"}).has_value(); },
       [&] { return store_->recordOperation("nobody has this", "x").has_value(); },
       [&] {
         auto claim = store_->claim(n2);
         ok += store_->addEvent(Event{0, {}, EventKind::Note, n2, "", "second"}) ? 1 : 0;
         return claim && claim->ours;
       }});
  EXPECT_EQ(ok, 1);
  EXPECT_NE(store_->fenceOf(n1), 0);
  EXPECT_NE(store_->fenceOf(n2), 0);
  EXPECT_TRUE(store_->checkClaim(n1));
  ASSERT_TRUE(store_->release(n1));
  EXPECT_EQ(store_->fenceOf(n1), 0);
  ASSERT_TRUE(store_->addEvent(Event{0, {}, EventKind::Note, n1, "", "third"}));
  std::vector<std::int64_t> links;
  const auto trail = *store_->auditTrail(0, 10);
  for (const auto& entry : trail) links.push_back(entry.link);
  EXPECT_EQ(links, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(store_->auditEnds()->link, 3);
}

/// The control thread may use the store while a batch is written.
TEST_F(JournalOnSqlite, othersMayCallTheStoreMeanwhile) {
  Journal journal(*store_);
  std::vector<Intent> intents;
  for (int i = 0; i < 500; ++i) intents.push_back(intentOf(std::to_string(i), "n1"));
  auto beside = [](Store& store) -> Task<void> {
    for (int i = 0; i < 200; ++i) {
      (void)store.putValue("counter", std::to_string(i));
      co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    }
  };
  auto both = [&](std::vector<Intent> mine) -> Async<void> {
    std::vector<Task<void>> all;
    for (auto& intent : mine) all.push_back(open(journal, std::move(intent), log_));
    all.push_back(beside(*store_));
    co_await attached(journal, std::move(all));
    co_return Result<void>();
  };
  ASSERT_TRUE(test::runAsync(both(std::move(intents))));
  EXPECT_EQ(ids().size(), 500u);
  EXPECT_EQ(*store_->getValue("counter"), "199");
}

}  // namespace
}  // namespace muster::lifecycle
