// SPDX-License-Identifier: Apache-2.0
// The use cases of runs, over the store of a state folder.
#include "app/runs/runs.h"

#include "app/runs/run_erasure.h"
#include "app/runs/run_kind.h"
#include "lifecycle/runs/run_words.h"
#include "provision/storage/erase.h"
#include "tests/app/site_folder.h"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <atomic>
#include <thread>

namespace muster::app {
namespace {

using namespace lifecycle;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const RunActor kAnna{"anna", "local", "ctl1"}, kBen{"ben", "token", "10.0.0.9"};
const WallTime kNow = std::chrono::sys_days(std::chrono::year(2026) / 3 / 4);

class RunsTest : public testing::Test {
 protected:
  void SetUp() override {
    store_ = site_.store();
    auto opened = openRunStore(site_.options());
    ASSERT_TRUE(opened) << opened.error().str();
    runs_ = std::move(*opened);
  }
  lifecycle::Run submit(const std::string& nodes = "gpu001", bool confirm = false) {
    auto run = submitRun(*runs_, {.apply = {nodes, confirm, "muster apply"}}, kAnna, kNow);
    EXPECT_TRUE(run) << run.error().str();
    return *run;
  }
  /// As an executor does.
  lifecycle::Run move(const std::string& id, std::vector<RunState> states) {
    auto run = *readRun(*runs_, id);
    for (const auto state : states) {
      auto next = changed(run, state, RunReason::None, RunMover::Executor, "ctl1", kNow);
      EXPECT_TRUE(next) << next.error().str();
      if (state == RunState::Planned) next->plan_hash = "hash";
      run = **runs_->exchange(*next, std::string("to ") + std::string(toString(state)));
    }
    return run;
  }
  void execute(const std::string& statement) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((site_.options().state / "muster.db").c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, statement.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  Error errorOf(const Result<lifecycle::Run>& result) {
    EXPECT_FALSE(result);
    return result ? Error(ErrorCode::Internal, "none") : result.error();
  }

  SiteFolder site_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<RunStore> runs_;
};

TEST_F(RunsTest, aRunIsAskedForOnceByItsKey) {
  const RunRequest request{.apply = {"gpu[002,001]"}, .idempotency_key = "k1"};
  const auto first = submitRun(*runs_, request, kAnna, kNow);
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_EQ(first->apply.nodes, "gpu[001-002]");
  EXPECT_EQ(first->state, RunState::Queued);
  EXPECT_EQ(submitRun(*runs_, request, kAnna, kNow)->id, first->id);
  EXPECT_NE(submitRun(*runs_, request, kBen, kNow)->id, first->id);
  auto other = request;
  other.apply.nodes = "gpu001";
  EXPECT_EQ(errorOf(submitRun(*runs_, other, kAnna, kNow)).code(), ErrorCode::Conflict);
  EXPECT_EQ(listRuns(*runs_, {})->size(), 2u);
}

TEST_F(RunsTest, whatMakesNoSenseIsRefusedAndNothingIsWritten) {
  EXPECT_EQ(errorOf(submitRun(*runs_, {.apply = {"gpu[1-"}}, kAnna, kNow)).code(),
            ErrorCode::InvalidInput);
  EXPECT_EQ(
      errorOf(submitRun(*runs_, {.idempotency_key = std::string(300, 'x')}, kAnna, kNow)).code(),
      ErrorCode::InvalidInput);
  EXPECT_EQ(errorOf(submitRun(*runs_, {}, {}, kNow)).code(), ErrorCode::Denied);
  EXPECT_THAT(*listRuns(*runs_, {}), IsEmpty());
  for (const auto& id : {std::string("r-none"), std::string(), std::string(100'000, 'x')}) {
    EXPECT_EQ(errorOf(readRun(*runs_, id)).code(), ErrorCode::NotFound);
    EXPECT_EQ(errorOf(cancelRun(*runs_, id, kAnna, kNow)).code(), ErrorCode::NotFound);
    EXPECT_LT(errorOf(readRun(*runs_, id)).str().size(), 200u);
  }
}

TEST_F(RunsTest, anOrderToWhatNobodyWorksOnIsDoneAtOnce) {
  const auto id = submit().id;
  auto paused = pauseRun(*runs_, id, kBen, kNow);
  ASSERT_TRUE(paused);
  EXPECT_EQ(paused->state, RunState::Paused);
  EXPECT_EQ(pauseRun(*runs_, id, kBen, kNow)->state, RunState::Paused) << "twice is once";
  EXPECT_EQ(resumeRun(*runs_, id, kAnna, kNow)->state, RunState::Queued);
  const auto cancelled = cancelRun(*runs_, id, kBen, kNow);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->state, RunState::Cancelled);
  EXPECT_EQ(cancelled->reason, RunReason::CancelledByPerson);
  for (const auto& late : {cancelRun(*runs_, id, kAnna, kNow), pauseRun(*runs_, id, kAnna, kNow),
                           resumeRun(*runs_, id, kAnna, kNow)}) {
    EXPECT_EQ(errorOf(late).code(), ErrorCode::Conflict);
    EXPECT_THAT(errorOf(late).str(), HasSubstr("is cancelled already"));
  }
}

TEST_F(RunsTest, whoWorksOnItIsOrderedAndCancelOutranksPause) {
  const auto id = submit().id;
  move(id, {RunState::Planning});
  EXPECT_EQ(pauseRun(*runs_, id, kBen, kNow)->order, RunOrder::Pause);
  EXPECT_EQ(resumeRun(*runs_, id, kBen, kNow)->order, RunOrder::None) << "it was not obeyed yet";
  EXPECT_EQ(cancelRun(*runs_, id, kBen, kNow)->order, RunOrder::Cancel);
  const auto run = pauseRun(*runs_, id, kAnna, kNow);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->order, RunOrder::Cancel);
  EXPECT_EQ(run->ordered_by, "ben");
  EXPECT_EQ(run->state, RunState::Planning) << "its executor ends it";
}

TEST_F(RunsTest, aPlanIsConfirmedByItsAuthorAndApprovedByOthers) {
  auto run = submit("gpu001", true);
  move(run.id, {RunState::Planning, RunState::Planned, RunState::NeedsApproval});
  run = *readRun(*runs_, run.id);
  run.approvals_needed = 1;
  ASSERT_TRUE(runs_->exchange(run, "")->has_value());
  EXPECT_EQ(errorOf(approveRun(*runs_, run.id, "hash", kAnna, kNow)).code(), ErrorCode::Denied);
  EXPECT_EQ(errorOf(confirmRun(*runs_, run.id, "hash", kBen, kNow)).code(), ErrorCode::Denied);
  EXPECT_EQ(errorOf(approveRun(*runs_, run.id, "0123456789", kBen, kNow)).code(),
            ErrorCode::Conflict);
  auto confirmed = confirmRun(*runs_, run.id, "hash", kAnna, kNow);
  ASSERT_TRUE(confirmed) << confirmed.error().str();
  EXPECT_EQ(confirmed->state, RunState::NeedsApproval);
  EXPECT_EQ(confirmed->reason, RunReason::AwaitsApproval);
  ASSERT_TRUE(confirmRun(*runs_, run.id, "hash", kAnna, kNow));
  EXPECT_EQ(readRun(*runs_, run.id)->approvals.size(), 1u) << "twice is once";
  const auto approved = approveRun(*runs_, run.id, "hash", kBen, kNow);
  ASSERT_TRUE(approved) << approved.error().str();
  EXPECT_EQ(approved->state, RunState::Approved);
  EXPECT_EQ(errorOf(approveRun(*runs_, run.id, "hash", kBen, kNow)).code(), ErrorCode::Conflict);
}

/// What was asked of a run that grew must not begin by pausing and resuming it.
TEST_F(RunsTest, resumingIsNoWayRoundAnApproval) {
  auto run = submit("gpu001", true);
  move(run.id, {RunState::Planning, RunState::Planned, RunState::NeedsApproval});
  ASSERT_TRUE(confirmRun(*runs_, run.id, "hash", kAnna, kNow));
  run = move(run.id, {RunState::Running});
  run.plan_hash = "grown";
  run = *changed(run, RunState::NeedsApproval, RunReason::PlanGrew, RunMover::Executor, "", kNow);
  ASSERT_TRUE(runs_->exchange(run, "grew")->has_value());
  ASSERT_TRUE(pauseRun(*runs_, run.id, kAnna, kNow));
  EXPECT_EQ(resumeRun(*runs_, run.id, kAnna, kNow)->state, RunState::Queued);
}

/// Two people at the same moment: the row holds what one of them did, and the other is told.
TEST_F(RunsTest, ofManyWhoCancelAndResumeAllAreAnsweredByTheRow) {
  const auto id = submit().id;
  std::vector<std::thread> people;
  std::atomic<int> troubles = 0;
  for (int i = 0; i < 4; ++i)
    people.emplace_back([&, i] {
      auto own = openRunStore(site_.options());
      for (int k = 0; own && k < 10; ++k) {
        const auto answer =
            i % 2 == 0 ? pauseRun(**own, id, kAnna, kNow) : resumeRun(**own, id, kBen, kNow);
        if (!answer) ++troubles;
      }
    });
  for (auto& person : people) person.join();
  EXPECT_EQ(troubles, 0);
  const auto run = *readRun(*runs_, id);
  EXPECT_EQ(run.stamps.back().state, run.state);
  for (std::size_t i = 1; i < run.stamps.size(); ++i)
    EXPECT_NE(run.stamps[i].state, run.stamps[i - 1].state)
        << "each change followed the one before";
}

TEST_F(RunsTest, followingShowsWhatBelongsToTheRunAndNothingElse) {
  ASSERT_TRUE(store_->addEvent({0, kNow, EventKind::Note, {}, "", "before"}));
  auto run = submit("gpu001");
  run = *readRun(*runs_, run.id);
  run.subjects = "gpu001";
  ASSERT_TRUE(runs_->exchange(run, "")->has_value());
  const auto add = [&](EventKind kind, const std::string& node, const std::string& text) {
    ASSERT_TRUE(store_->addEvent({0, kNow, kind, Subject(NodeName(node)), node + "/image", text}));
  };
  add(EventKind::ActionStarted, "gpu001", "mine");
  add(EventKind::ActionStarted, "gpu002", "another's");
  add(EventKind::Observed, "gpu001", "the monitor's");
  auto part = followRun(*runs_, *store_, run.id, 0, 100);
  ASSERT_TRUE(part) << part.error().str();
  const auto texts = [](const RunEvents& events) {
    std::vector<std::string> out;
    for (const auto& event : events.events) out.push_back(event.text);
    return out;
  };
  EXPECT_THAT(texts(*part), ElementsAre(HasSubstr("asked for by anna"), "mine"));
  EXPECT_FALSE(part->ended);
  add(EventKind::ActionDone, "gpu001", "done");
  ASSERT_TRUE(cancelRun(*runs_, run.id, kBen, kNow));
  add(EventKind::ActionStarted, "gpu001", "a later run's");
  part = followRun(*runs_, *store_, run.id, part->next, 100);
  ASSERT_TRUE(part);
  EXPECT_THAT(texts(*part), ElementsAre("done", HasSubstr("cancelled by ben")));
  EXPECT_TRUE(part->ended);
  std::vector<std::string> by_one;
  for (std::int64_t after = 0;;) {
    const auto one = followRun(*runs_, *store_, run.id, after, 1);
    ASSERT_TRUE(one);
    for (const auto& text : texts(*one)) by_one.push_back(text);
    after = one->next;
    if (one->ended) break;
    ASSERT_LT(by_one.size(), 10u);
  }
  EXPECT_EQ(by_one.size(), 4u) << "by the smallest pages the same";
}

TEST_F(RunsTest, aRowThatCannotBeReadIsShownAndLeftAlone) {
  const auto broken = submit().id, newer = submit().id, odd = submit().id, good = submit().id;
  execute("UPDATE runs SET record = '{\"format\": 1, \"run\": {\"apply\": 7}}' WHERE id = '" +
          broken + "'");
  execute("UPDATE runs SET record = '{\"format\": 99, \"run\": {}}' WHERE id = '" + newer + "'");
  execute("UPDATE runs SET state = 'levitating' WHERE id = '" + odd + "'");
  const auto listed = listRuns(*runs_, {});
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 4u);
  EXPECT_EQ(listed->at(0).unreadable, "");
  EXPECT_THAT(listed->at(1).unreadable, HasSubstr("a newer muster"));
  EXPECT_THAT(listed->at(2).unreadable, HasSubstr("a newer muster"));
  EXPECT_THAT(listed->at(3).unreadable, HasSubstr("run.run.apply"));
  for (const auto& id : {broken, newer, odd})
    EXPECT_EQ(errorOf(cancelRun(*runs_, id, kAnna, kNow)).code(), ErrorCode::Conflict) << id;
  EXPECT_TRUE(cancelRun(*runs_, good, kAnna, kNow));
}

TEST_F(RunsTest, thereIsABoundToWhatIsOpen) {
  for (std::size_t i = 0; i < kMaxOpenRuns; ++i) {
    auto run = submitRun(*runs_, {}, kAnna, kNow);
    ASSERT_TRUE(run) << run.error().str();
  }
  const auto refused = submitRun(*runs_, {}, kAnna, kNow);
  EXPECT_EQ(errorOf(refused).code(), ErrorCode::Unavailable);
  EXPECT_THAT(errorOf(refused).str(), HasSubstr("muster run list"));
}

/// Killed between the wish and its beginning, with nobody who serves the site: another plan, of
/// somebody who knows nothing of the run, must not carry it out.
TEST_F(RunsTest, anErasureWhoseProcessWasKilledIsNobodyElsesToCarryOut) {
  const NodeName node("gpu001");
  auto made = submitRun(*runs_,
                        {.kind = RunKind::Erase,
                         .apply = {"gpu001", false, "muster erase"},
                         .erase = {{}, "leaves the site", ""}},
                        kAnna, kNow);
  ASSERT_TRUE(made) << made.error().str();
  auto run = move(made->id,
                  {RunState::Planning, RunState::Planned, RunState::Approved, RunState::Running});
  run.erase.request = "e-1";
  ASSERT_TRUE(runs_->exchange(run, "asks"));
  lifecycle::Plan plan;
  plan.actions.emplace_back().facet = {Subject(node), FacetName(std::string(provision::kErased))};
  ASSERT_TRUE(
      provision::beginErasure(*store_, plan, node, {"e-1", "S1", {}, "anna", "leaves"}, kNow));
  ASSERT_EQ(provision::eraseRequests(*store_)->size(), 1u);
  ASSERT_THAT(*store_->wipeGrants(), ElementsAre(node));
  std::vector<std::string> forgotten;
  const auto rested = restErasures(*runs_, *store_, kNow,
                                   [&](const NodeName& each) { forgotten.push_back(each.str()); });
  ASSERT_TRUE(rested) << rested.error().str();
  EXPECT_THAT(forgotten, ElementsAre("gpu001"));
  EXPECT_THAT(*provision::eraseRequests(*store_), IsEmpty());
  EXPECT_THAT(*store_->wipeGrants(), IsEmpty());
  EXPECT_EQ(readRun(*runs_, run.id)->state, RunState::Running) << "it goes on where one serves";
}

TEST_F(RunsTest, aPlanIsNamedByItsHashOrByEnoughOfIt) {
  const std::string hash = "0123456789abcdef0123456789abcdef";
  auto run = submit("gpu001", true);
  move(run.id, {RunState::Planning, RunState::Planned, RunState::NeedsApproval});
  run = *readRun(*runs_, run.id);
  run.plan_hash = hash;
  run.approvals_needed = 2;
  ASSERT_TRUE(runs_->exchange(run, "")->has_value());
  for (const auto* wrong : {"123456789abcdef", "ffffffffffff"})
    EXPECT_EQ(errorOf(approveRun(*runs_, run.id, wrong, kBen, kNow)).code(), ErrorCode::Conflict)
        << wrong;
  for (const auto* none : {"", "0", "0123456", "0123456X", "the newest one"}) {
    const auto refused = errorOf(approveRun(*runs_, run.id, none, kBen, kNow));
    EXPECT_EQ(refused.code(), ErrorCode::InvalidInput) << none;
    EXPECT_THAT(refused.str(), HasSubstr("is no hash of a plan")) << none;
    EXPECT_THAT(refused.str(), HasSubstr("the first 8 digits")) << none;
    EXPECT_THAT(whatToDo(refused, run.id), HasSubstr("muster run show")) << none;
  }
  EXPECT_EQ(errorOf(approveRun(*runs_, run.id, hash + "0", kBen, kNow)).code(),
            ErrorCode::Conflict);
  const auto approved = approveRun(*runs_, run.id, hash.substr(0, 8), kBen, kNow);
  ASSERT_TRUE(approved) << approved.error().str();
  ASSERT_EQ(approved->approvals.size(), 1u);
  EXPECT_EQ(approved->approvals[0].plan_hash, hash) << "what is kept is the whole of it";
  const auto confirmed = confirmRun(*runs_, run.id, hash.substr(0, 20), kAnna, kNow);
  ASSERT_TRUE(confirmed) << confirmed.error().str();
  const auto overridden = overrideRun(*runs_, run.id, hash.substr(0, 12), "fire", kBen, kNow);
  ASSERT_TRUE(overridden) << overridden.error().str();
  EXPECT_EQ(overridden->overrides[0].plan_hash, hash);
}

/// A run that has no plan is meant by nobody.
TEST_F(RunsTest, noPlanIsNamedByNothing) {
  auto run = submit("gpu001", true);
  move(run.id, {RunState::Planning, RunState::Planned, RunState::NeedsApproval});
  run = *readRun(*runs_, run.id);
  run.plan_hash.clear();
  ASSERT_TRUE(runs_->exchange(run, "")->has_value());
  EXPECT_EQ(errorOf(approveRun(*runs_, run.id, "", kBen, kNow)).code(), ErrorCode::Conflict);
}

/// Whoever overrides is not who says that it is known, with whatever token they come.
TEST_F(RunsTest, anOverrideIsAcknowledgedBySomebodyElse) {
  const auto cleo = RunActor{"cleo", "local", "ctl1"};
  const RunActor bens_token{.principal = "token:phone",
                            .way = "token",
                            .address = "10.0.0.9",
                            .person = "ben",
                            .issuers = {"cleo"},
                            .token = "t1"};
  auto run = submit("gpu001", true);
  move(run.id, {RunState::Planning, RunState::Planned, RunState::NeedsApproval});
  ASSERT_TRUE(overrideRun(*runs_, run.id, "hash", "fire", kBen, kNow));
  for (const auto& same : {kBen, bens_token, RunActor{"Ben", "unix", "ctl1"}}) {
    const auto refused = errorOf(acknowledgeRun(*runs_, run.id, same, kNow));
    EXPECT_EQ(refused.code(), ErrorCode::Denied) << same.principal;
    EXPECT_THAT(refused.str(), HasSubstr("nobody acknowledges their own override"));
    EXPECT_EQ(whatToDo(refused, run.id),
              "somebody else has to: `muster run acknowledge " + run.id + "`");
    EXPECT_TRUE(refused.text().ends_with(whatToDo(refused, run.id)));
  }
  EXPECT_EQ(loudOverrides(*runs_)->size(), 1u);
  const auto known = acknowledgeRun(*runs_, run.id, cleo, kNow);
  ASSERT_TRUE(known) << known.error().str();
  EXPECT_EQ(known->overrides[0].acknowledged_by, "cleo");
  EXPECT_THAT(*loudOverrides(*runs_), IsEmpty());
}

/// Two have overridden: each knows of the other's, and neither of their own.
TEST_F(RunsTest, ofTwoOverridesEachNeedsAnotherPerson) {
  const auto cleo = RunActor{"cleo", "local", "ctl1"};
  auto run = submit("gpu001", true);
  move(run.id, {RunState::Planning, RunState::Planned, RunState::NeedsApproval});
  ASSERT_TRUE(overrideRun(*runs_, run.id, "hash", "fire", kBen, kNow));
  run = *readRun(*runs_, run.id);
  run.overrides.push_back({cleo, kNow, "hash", RunReason::OutsideWindow, "flood", "", {}});
  ASSERT_TRUE(runs_->exchange(run, "")->has_value());
  const auto by_cleo = acknowledgeRun(*runs_, run.id, cleo, kNow);
  ASSERT_TRUE(by_cleo);
  EXPECT_EQ(by_cleo->overrides[0].acknowledged_by, "cleo");
  EXPECT_EQ(by_cleo->overrides[1].acknowledged_by, "");
  EXPECT_EQ(errorOf(acknowledgeRun(*runs_, run.id, cleo, kNow)).code(), ErrorCode::Denied);
  EXPECT_EQ(acknowledgeRun(*runs_, run.id, kBen, kNow)->overrides[1].acknowledged_by, "ben");
}

TEST_F(RunsTest, whatIsRefusedSaysWhatToDo) {
  auto run = submit("gpu001", true);
  move(run.id, {RunState::Planning, RunState::Planned, RunState::NeedsApproval});
  const auto own = errorOf(approveRun(*runs_, run.id, "hash", kAnna, kNow));
  EXPECT_THAT(whatToDo(own, run.id), HasSubstr("muster run approve " + run.id));
  const auto others = errorOf(confirmRun(*runs_, run.id, "hash", kBen, kNow));
  EXPECT_THAT(whatToDo(others, run.id), HasSubstr("muster run approve " + run.id));
  const auto old = errorOf(approveRun(*runs_, run.id, "another", kBen, kNow));
  EXPECT_THAT(whatToDo(old, run.id), HasSubstr("muster run show " + run.id));
  EXPECT_EQ(whatToDo(errorOf(readRun(*runs_, "r-none")), "r-none"), "");
}

TEST_F(RunsTest, aValidationNamesItsNodesAndEachGateOnce) {
  const auto asked = [&](const std::string& nodes, std::vector<std::string> gates,
                         const std::string& key = {}) {
    return submitRun(*runs_,
                     {.kind = RunKind::Validate,
                      .apply = {nodes},
                      .validate = {std::move(gates), false},
                      .idempotency_key = key},
                     kAnna, kNow);
  };
  EXPECT_EQ(errorOf(asked("", {})).code(), ErrorCode::InvalidInput);
  EXPECT_EQ(errorOf(asked("gpu001", {"a", "a"})).code(), ErrorCode::InvalidInput);
  EXPECT_EQ(errorOf(asked("gpu001", {""})).code(), ErrorCode::InvalidInput);
  std::vector<std::string> many;
  for (std::size_t i = 0; i <= kMaxValidatedGates; ++i) many.push_back(std::to_string(i));
  EXPECT_EQ(errorOf(asked("gpu001", many)).code(), ErrorCode::InvalidInput);
  EXPECT_THAT(*listRuns(*runs_, {}), IsEmpty());
  const auto made = asked("gpu001", {"burn-in"}, "k1");
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(asked("gpu001", {"burn-in"}, "k1")->id, made->id);
  EXPECT_EQ(errorOf(asked("gpu001", {"soak"}, "k1")).code(), ErrorCode::Conflict);
  const auto kept = readRun(*runs_, made->id);
  EXPECT_EQ(kept->kind, RunKind::Validate);
  EXPECT_THAT(kept->validate.gates, ElementsAre("burn-in"));
  submit();
  EXPECT_EQ(listRuns(*runs_, {})->size(), 2u);
  EXPECT_EQ(listRuns(*runs_, {.kind = RunKind::Validate})->size(), 1u);
  EXPECT_THAT(*listRuns(*runs_, {.kind = RunKind::Erase}), IsEmpty());
}

TEST_F(RunsTest, eachKindHasRulesOfItsOwn) {
  std::set<const RunKindRules*> known;
  for (const auto& [kind, word] : kRunKinds)
    EXPECT_TRUE(known.insert(&rulesOf(kind)).second) << word << " has those of another kind";
}

/// What planning or the run itself has written into the row since is nothing that was asked for.
TEST_F(RunsTest, aKeyKnowsItsRequestWhateverTheRowHasGotSince) {
  const std::vector<RunRequest> requests{
      {.kind = RunKind::Erase, .apply = {"gpu001"}, .erase = {{}, "leaves", ""}},
      {.kind = RunKind::FirmwareRetry, .apply = {"gpu001"}, .firmware_retry = {"swapped", {}}},
      {.kind = RunKind::BmcCertificate, .apply = {"gpu[001-002]"}},
      {.kind = RunKind::Rollout, .apply = {"gpu001"}, .rollout = {.driver = "nvidia-570"}}};
  for (auto request : requests) {
    const auto kind = std::string(toString(request.kind));
    request.idempotency_key = "key-" + kind;
    const auto made = submitRun(*runs_, request, kAnna, kNow);
    ASSERT_TRUE(made) << kind << ": " << made.error().str();
    EXPECT_EQ(made->rollout.id.empty(), request.kind != RunKind::Rollout) << kind;
    auto row = *made;
    if (request.kind == RunKind::Erase) row.erase.request = "e-1";
    if (request.kind == RunKind::FirmwareRetry)
      row.firmware_retry.lifted = {{"gpu001", "firmware-failed.BIOS", "2.1", kNow, "bmc"}};
    if (request.kind == RunKind::BmcCertificate) row.bmc_change.done = "gpu001";
    ASSERT_TRUE(runs_->exchange(row, "")) << kind;
    const auto again = submitRun(*runs_, request, kAnna, kNow);
    ASSERT_TRUE(again) << kind << ": " << again.error().str();
    EXPECT_EQ(again->id, made->id) << kind;
    EXPECT_EQ(again->rollout.id, made->rollout.id) << kind;
    request.erase.reason = "is sold";
    request.firmware_retry.reason = "looked at";
    request.rollout.driver = "nvidia-580";
    EXPECT_EQ(errorOf(submitRun(*runs_, request, kAnna, kNow)).code(), ErrorCode::Conflict) << kind;
  }
}

TEST_F(RunsTest, aChangeOfBmcsNamesItsNodes) {
  for (const auto kind : {RunKind::BmcPassword, RunKind::BmcCertificate}) {
    const auto refused = submitRun(*runs_, {.kind = kind, .apply = {}}, kAnna, kNow);
    EXPECT_EQ(errorOf(refused).code(), ErrorCode::InvalidInput) << toString(kind);
    EXPECT_TRUE(submitRun(*runs_, {.kind = kind, .apply = {"gpu001"}}, kAnna, kNow));
  }
}

}  // namespace
}  // namespace muster::app
