// SPDX-License-Identifier: Apache-2.0
// The contract of RunStore: in memory, and in the database of every store that has one.
#include "lifecycle/audit/audit.h"
#include "lifecycle/store/runs.h"
#include "tests/fakes/memory_runs.h"
#include "tests/lifecycle/store_contract.h"

#include <atomic>
#include <set>

namespace muster::lifecycle {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Stores of runs on the same data: each is one process.
class Runs {
 public:
  Runs(StoreMaker& maker, Store& journal) : url_(maker.url()), journal_(journal) {}
  std::unique_ptr<RunStore> open() {
    if (url_.empty()) return std::make_unique<test::MemoryRuns>(journal_, memory_);
    auto opened = openRuns(url_);
    if (!opened) ADD_FAILURE() << opened.error().str();
    return opened ? std::move(*opened) : nullptr;
  }

 private:
  std::string url_;
  Store& journal_;
  std::shared_ptr<test::MemoryRuns::Data> memory_ = std::make_shared<test::MemoryRuns::Data>();
};

Run newRun(const std::string& id, const std::string& key = "") {
  Run run;
  run.id = id;
  run.apply = {"gpu[001-004]", true, "muster apply --nodes 'gpu[001-004]' \u00fc"};
  run.asked_by = {"anna", "local", "ctl1"};
  run.asked_at = kNow;
  run.idempotency_key = key;
  run.stamps.push_back({RunState::Queued, RunReason::None, kNow, "anna"});
  return run;
}

Run fullRun(Run run) {
  run.state = RunState::NeedsApproval;
  run.reason = RunReason::AwaitsApproval;
  run.text = "two 'quoted' words";
  run.order = RunOrder::Pause;
  run.ordered_by = "ben";
  run.worked_on_by = "ctl1-abc";
  run.begun = true;
  run.after_restart = AfterRestart::Pause;
  run.inventory_digest = "digest";
  run.plan_hash = "hash";
  run.planned_at = kNow + std::chrono::milliseconds(7);
  run.subjects = "gpu[001-004]";
  PlanImpact impact;
  impact.actions = 12;
  impact.blocked = 1;
  impact.subjects = 4;
  impact.taken_out = {NodeName("gpu002"), NodeName("gpu003")};
  impact.wiped = {NodeName("gpu003")};
  impact.domains = {{{DomainKind::Leaf, "leaf 1"}, 1, 2, 32, 4}};
  impact.unread["firmware (denied)"] = {NodeName("gpu004")};
  impact.at_least = std::chrono::seconds(900);
  run.impact = impact;
  run.approvals_needed = 2;
  run.approvals = {{{"ben", "token", "10.0.0.9"}, kNow, "hash", false},
                   {{"anna", "local", "ctl1"}, kNow, "hash", true}};
  run.overrides = {{{"root", "local", "ctl1"},
                    kNow,
                    "hash",
                    RunReason::OutsideWindow,
                    "a \"fire\"",
                    "anna",
                    kNow}};
  run.waits_until = kNow + std::chrono::hours(5);
  run.agreed_out = "gpu[002-003]";
  run.agreed_wipes = "gpu003";
  run.progress = {2, 12, 5, 1, 1, 3, 2};
  run.problems = {"gpu004/image: no"};
  run.stamps.push_back({RunState::NeedsApproval, RunReason::AwaitsApproval, kNow, "ctl1"});
  return run;
}

TEST_P(StoreContract, runsComeBackAsTheyWereWritten) {
  Runs stores(*maker_, *store_);
  const auto runs = stores.open();
  ASSERT_TRUE(runs);
  EXPECT_THAT(*runs->list({}), IsEmpty());
  EXPECT_EQ(runs->read("r-1")->has_value(), false);
  auto added = runs->add(newRun("r-1"), "asked for");
  ASSERT_TRUE(added) << added.error().str();
  EXPECT_EQ(added->revision, 1);
  auto written = runs->exchange(fullRun(*added), "planned");
  ASSERT_TRUE(written && *written) << written.error().str();
  const auto read = stores.open()->read("r-1");
  ASSERT_TRUE(read && *read);
  const auto& run = **read;
  EXPECT_EQ(run.unreadable, "");
  EXPECT_EQ(recordOf(run), recordOf(**written));
  EXPECT_EQ(run.state, RunState::NeedsApproval);
  EXPECT_EQ(run.revision, 2);
  EXPECT_EQ(run.asked_at, kNow);
  EXPECT_EQ(run.planned_at, kNow + std::chrono::milliseconds(7));
  EXPECT_EQ(run.apply, newRun("").apply);
  EXPECT_EQ(run.approvals, fullRun(newRun("")).approvals);
  EXPECT_EQ(run.overrides, fullRun(newRun("")).overrides);
  EXPECT_EQ(run.waits_until, fullRun(newRun("")).waits_until);
  EXPECT_EQ(run.progress, fullRun(newRun("")).progress);
  ASSERT_TRUE(run.impact);
  EXPECT_EQ(run.impact->taken_out, fullRun(newRun("")).impact->taken_out);
  EXPECT_EQ(run.impact->domains.at(0).domain.str(), "leaf leaf 1");
  EXPECT_EQ(run.impact->unread.at("firmware (denied)").at(0), NodeName("gpu004"));
}

TEST_P(StoreContract, runsWithLoudOverridesAreFoundUntilTheyAreAcknowledged) {
  Runs stores(*maker_, *store_);
  const auto runs = stores.open();
  auto plain = newRun("r-1");
  plain.text = R"(says "overrides":[{ itself)";
  ASSERT_TRUE(runs->add(plain, "one"));
  auto loud = *runs->add(newRun("r-2"), "two");
  EXPECT_THAT(*runs->list({.loud_only = true}), IsEmpty());
  loud.overrides = {{{"root", "", ""}, kNow, "h", RunReason::AwaitsApproval, "why", "", {}}};
  loud = **runs->exchange(loud, "overridden");
  ASSERT_THAT(*runs->list({.loud_only = true}), SizeIs(1));
  EXPECT_EQ(runs->list({.loud_only = true})->front().id, "r-2");
  EXPECT_THAT(*runs->list({}), SizeIs(2));
  loud.overrides[0].acknowledged_by = "anna";
  ASSERT_TRUE(runs->exchange(loud, "acknowledged"));
  EXPECT_THAT(*runs->list({.loud_only = true}), IsEmpty());
}

TEST_P(StoreContract, everyChangeOfARunIsInTheChainedJournal) {
  Runs stores(*maker_, *store_);
  const auto runs = stores.open();
  ASSERT_TRUE(store_->addEvent({0, kNow, EventKind::Note, {}, "", "before"}));
  auto run = *runs->add(newRun("r-1"), "asked for");
  run = **runs->exchange(run, "first");
  run = **runs->exchange(run, "");  // progress: the row alone
  ASSERT_TRUE(store_->addEvent({0, kNow, EventKind::Note, {}, "", "between"}));
  run = **runs->exchange(run, "second");
  const auto events = store_->events(0, 100, nullptr);
  ASSERT_TRUE(events);
  std::vector<std::string> texts;
  for (const auto& event : *events) texts.push_back(event.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"before", "asked for", "first", "between", "second"}));
  EXPECT_EQ(events->at(1).action_id, "run/r-1");
  EXPECT_EQ(run.first_event, events->at(1).sequence);
  EXPECT_EQ(run.last_event, events->at(4).sequence);
  const auto report = verifyAudit(*store_, "");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->entries, 5);
}

TEST_P(StoreContract, ofTwoProcessesThatChangeARunOneIsRefused) {
  Runs stores(*maker_, *store_);
  const auto first = stores.open(), second = stores.open();
  const auto mine = *first->add(newRun("r-1"), "asked for");
  auto theirs = **second->read("r-1");
  theirs.text = "theirs";
  ASSERT_TRUE(second->exchange(theirs, "theirs")->has_value());
  auto late = mine;
  late.text = "mine";
  EXPECT_FALSE(first->exchange(late, "mine")->has_value());
  EXPECT_EQ((*first->read("r-1"))->text, "theirs");
  for (const auto& event : *store_->events(0, 100, nullptr)) EXPECT_NE(event.text, "mine");
  EXPECT_EQ(first->exchange(newRun("r-9"), "x").error().code(), ErrorCode::NotFound);
}

/// Threads with a connection each stand for processes: every one of their changes is in the row.
TEST_P(StoreContract, noChangeOfARunIsLostAmongManyProcesses) {
  if (maker_->url().empty()) GTEST_SKIP() << "memory is one process's";
  constexpr int kProcesses = 4, kChanges = 25;
  Runs stores(*maker_, *store_);
  ASSERT_TRUE(stores.open()->add(newRun("r-1"), "asked for"));
  std::atomic<int> refused = 0;
  std::vector<std::thread> processes;
  for (int i = 0; i < kProcesses; ++i)
    processes.emplace_back([&, own = stores.open()] {
      for (int change = 0; change < kChanges;) {
        auto run = own->read("r-1");
        if (!run || !*run) return;
        ++(*run)->progress.done;
        const auto written = own->exchange(**run, "one more");
        if (!written) return;
        if (*written) ++change;
        if (!*written) ++refused;
      }
    });
  for (auto& process : processes) process.join();
  const auto run = **stores.open()->read("r-1");
  EXPECT_EQ(run.progress.done, std::size_t{kProcesses * kChanges});
  EXPECT_EQ(run.revision, 1 + kProcesses * kChanges);
  EXPECT_TRUE(verifyAudit(*store_, "")->ok()) << "all have appended to one chain";
}

TEST_P(StoreContract, aKeyThatItsAuthorHasUsedAnswersTheRunOfThen) {
  Runs stores(*maker_, *store_);
  const auto runs = stores.open();
  ASSERT_TRUE(runs->add(newRun("r-1", "key"), "asked for"));
  EXPECT_EQ(runs->add(newRun("r-2", "key"), "again")->id, "r-1");
  auto other = newRun("r-3", "key");
  other.asked_by.principal = "ben";
  EXPECT_EQ(runs->add(other, "another person's")->id, "r-3");
  EXPECT_EQ(runs->add(newRun("r-4"), "without")->id, "r-4");
  EXPECT_EQ(runs->add(newRun("r-5"), "without")->id, "r-5");
  EXPECT_THAT(*runs->list({}), SizeIs(4));
  EXPECT_EQ(runs->add(newRun("r-5"), "the same id").error().code(), ErrorCode::Conflict);
  EXPECT_EQ((*runs->read("r-1"))->idempotency_key, "key");
}

/// Half a second of retries by a program that got no answer: one run comes of it.
TEST_P(StoreContract, ofManyWhoUseOneKeyAtOnceAllAreAnsweredTheSameRun) {
  if (maker_->url().empty()) GTEST_SKIP() << "memory is one process's";
  constexpr int kProcesses = 4;
  Runs stores(*maker_, *store_);
  std::vector<std::unique_ptr<RunStore>> own;
  for (int i = 0; i < kProcesses; ++i) own.push_back(stores.open());
  std::vector<std::set<std::string>> answers(kProcesses);
  std::vector<std::thread> processes;
  for (int i = 0; i < kProcesses; ++i)
    processes.emplace_back([&, i] {
      for (int k = 0; k < 10; ++k) {
        const auto key = "key-" + std::to_string(k);
        const auto id = fmt::format("r-{}-{}", i, k);
        const auto added = own[static_cast<std::size_t>(i)]->add(newRun(id, key), "asked for");
        answers[static_cast<std::size_t>(i)].insert(added ? added->id : added.error().str());
      }
    });
  for (auto& process : processes) process.join();
  for (const auto& answer : answers) EXPECT_EQ(answer, answers.front());
  EXPECT_THAT(*own.front()->list({}), SizeIs(10));
  EXPECT_EQ(store_->events(0, 100, nullptr)->size(), 10u) << "what was not stored left no note";
  EXPECT_TRUE(verifyAudit(*store_, "")->ok());
}

/// A row that nobody could read again would be a run that nobody can cancel.
TEST_P(StoreContract, whatCouldNotBeReadAgainIsNotWritten) {
  Runs stores(*maker_, *store_);
  const auto runs = stores.open();
  auto big = newRun("r-1");
  big.asked_by.principal = std::string(10'000, 'x');
  EXPECT_EQ(runs->add(big, "asked for").error().code(), ErrorCode::InvalidInput);
  auto run = *runs->add(newRun("r-2"), "asked for");
  for (int i = 0; i < 100; ++i) run.approvals.push_back({{"ben", "", ""}, kNow, "hash", false});
  EXPECT_EQ(runs->exchange(run, "x").error().code(), ErrorCode::InvalidInput);
  run = **runs->read("r-2");
  EXPECT_TRUE(run.approvals.empty());
  run.text = std::string("\xff\xfe broken", 9);
  ASSERT_TRUE(runs->exchange(run, "\xff note"));
  EXPECT_EQ((*runs->read("r-2"))->unreadable, "");
}

TEST_P(StoreContract, runsAreListedNewestFirstByPages) {
  Runs stores(*maker_, *store_);
  const auto runs = stores.open();
  for (int i = 0; i < 5; ++i) {
    auto run = *runs->add(newRun("r-" + std::to_string(i)), "asked for");
    if (i == 2) run.state = RunState::Done;
    if (i == 2) ASSERT_TRUE(runs->exchange(run, "done"));
  }
  const auto ids = [&](const RunFilter& filter) {
    std::vector<std::string> out;
    for (const auto& run : *runs->list(filter)) out.push_back(run.id);
    return out;
  };
  EXPECT_EQ(ids({}), (std::vector<std::string>{"r-4", "r-3", "r-2", "r-1", "r-0"}));
  EXPECT_EQ(ids({.open_only = true}), (std::vector<std::string>{"r-4", "r-3", "r-1", "r-0"}));
  EXPECT_EQ(ids({.limit = 2}), (std::vector<std::string>{"r-4", "r-3"}));
  EXPECT_EQ(ids({.limit = 2, .before = (*runs->read("r-3"))->first_event}),
            (std::vector<std::string>{"r-2", "r-1"}));
}

TEST_P(StoreContract, theNewestPlanOfARunIsKept) {
  Runs stores(*maker_, *store_);
  const auto runs = stores.open();
  EXPECT_FALSE(runs->plan("r-1")->has_value());
  ASSERT_TRUE(runs->putPlan("r-1", {"h1", "{}"}));
  ASSERT_TRUE(runs->putPlan("r-1", {"h2", "{\"a\": 'x'}"}));
  EXPECT_EQ((*stores.open()->plan("r-1"))->hash, "h2");
  EXPECT_EQ((*stores.open()->plan("r-1"))->json, "{\"a\": 'x'}");
}

}  // namespace
}  // namespace muster::lifecycle
