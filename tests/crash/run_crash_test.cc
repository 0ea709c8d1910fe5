// SPDX-License-Identifier: Apache-2.0
// The process that carries a run out is killed at its writes: the next one goes on by itself,
// nothing is done twice, no order is lost, no yes counts for another plan.
#include "app/site/revoked_tokens.h"
#include "inventory/model/approvals.h"
#include "inventory/model/cluster.h"
#include "inventory/model/limits.h"
#include "inventory/model/monitor.h"
#include "inventory/model/pools.h"
#include "tests/crash/run_rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using lifecycle::Run;
using lifecycle::RunReason;
using lifecycle::RunState;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Nodes in their pool, and a new driver and BIOS that a run is to bring.
class RunTrial : public RackRun {
 public:
  explicit RunTrial(const app::RunRequest& request = {}) : RackRun({"gpu001", "gpu002"}) {
    rack_.declare("1.5.0", "45.0");
    rack_.cluster.limits->max_unavailable.pool = {std::nullopt, 100};
    rack_.startJob("gpu001", 100s);
    ask(request);
  }
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Done)) << run().text;
    expectOnce();
  }

 protected:
  void expectOnce() {
    expectClean();
    for (const auto& [node, machine] : rack_.machines) {
      EXPECT_EQ(rack_.uploads(node.str(), "BIOS"), 1) << node.str();
      const auto installs = machine.driver_installs.find("rdma");
      EXPECT_EQ(installs == machine.driver_installs.end() ? 0 : installs->second, 1) << node.str();
      EXPECT_EQ(machine.image_writes, 0);
      EXPECT_TRUE(rack_.inPool(node.str()));
    }
  }
};

app::RunRequest withPolicy(lifecycle::AfterRestart policy) {
  app::RunRequest request;
  request.after_restart = policy;
  return request;
}
app::RunRequest withQuestion() {
  app::RunRequest request;
  request.apply.confirm = true;
  return request;
}

TEST(RunCrash, goesOnByItselfWhereverItsProcessWasKilled) {
  killAtEveryWrite(trials<RunTrial>(), 60, {.every = 9});
}

TEST(RunCrash, goesOnAfterTwoKillsAtMomentsDrawnByChance) {
  killTwice(trials<RunTrial>(), {.pairs = 6, .seed = 7});
}

/// Its author says yes as soon as he is asked, once to each plan that he sees.
class ConfirmedTrial final : public RunTrial {
 public:
  ConfirmedTrial() : RunTrial(withQuestion()) {
    rack_.on_tick = [this] {
      const auto known = run();
      if (known.state != RunState::NeedsApproval) return;
      EXPECT_TRUE(app::confirmRun(runs_, id_, known.plan_hash, kAnna, rack_.wall.now()));
    };
  }
  void expectTheEnd() override {
    RunTrial::expectTheEnd();
    for (const auto& yes : run().approvals) EXPECT_FALSE(yes.plan_hash.empty());
    EXPECT_EQ(run().agreed_out, "gpu[001-002]");
  }
};

TEST(RunCrash, aYesSurvivesAndCountsForItsPlanOnly) {
  killAtEveryWrite(trials<ConfirmedTrial>(), 60, {.every = 23});
}

/// The inventory asks for an approval, and another person gives one to each plan that they see.
class ApprovedTrial final : public RunTrial {
 public:
  ApprovedTrial() {
    rack_.cluster.approvals = {{inventory::Disturbance::Drain, 1, {"batch"}, 1}};
    rack_.on_tick = [this] {
      const auto known = run();
      for (const auto& [node, machine] : rack_.machines)
        if (machine.drained && approvalsOf(known) == 0)
          ADD_FAILURE() << node.str() << " was drained before anybody agreed";
      approve();
    };
  }
  void expectTheEnd() override {
    RunTrial::expectTheEnd();
    std::set<std::string> hashes;
    for (const auto& yes : run().approvals) EXPECT_TRUE(hashes.insert(yes.plan_hash).second);
    EXPECT_EQ(run().agreed_out, "gpu[001-002]");
  }
};

TEST(RunCrash, waitsForTheApprovalsOfTheInventory) {
  killAtEveryWrite(trials<ApprovedTrial>(), 60, {.every = 23});
}

constexpr auto kUntilTheWindow = 3h, kWindow = 1h;

/// The pool may lose nodes from three hours on, for an hour.
void openLater(SimulatedRack& rack) {
  const auto opens = std::chrono::floor<std::chrono::minutes>(rack.wall.now() + kUntilTheWindow);
  const auto minute = opens - std::chrono::floor<std::chrono::days>(opens);
  rack.cluster.pools.at("batch").maintenance = {
      {{}, static_cast<int>(minute.count()), std::chrono::minutes(kWindow).count(), "UTC"}};
}

class WindowTrial final : public RunTrial {
 public:
  WindowTrial() {
    openLater(rack_);
    asked_at_ = rack_.wall.now();
    rack_.on_tick = [this] {
      waited_ = waited_ || run().state == RunState::Waiting;
      for (const auto& [node, machine] : rack_.machines)
        if (machine.drained && !begun_at_) begun_at_ = rack_.wall.now();
    };
  }
  void expectTheEnd() override {
    RunTrial::expectTheEnd();
    EXPECT_TRUE(waited_);
    ASSERT_TRUE(begun_at_);
    EXPECT_GE(*begun_at_ - asked_at_, kUntilTheWindow - 1min);
    EXPECT_LT(*begun_at_ - asked_at_, kUntilTheWindow + kWindow);
  }

 private:
  WallTime asked_at_{};
  bool waited_ = false;
  std::optional<WallTime> begun_at_;
};

TEST(RunCrash, beginsInItsMaintenanceWindowOnly) {
  killAtEveryWrite(trials<WindowTrial>(), 60, {.every = 23});
}

/// The order comes while the first action is under way, and is obeyed whatever dies.
class CancelledTrial final : public RunTrial {
 public:
  CancelledTrial() {
    rack_.on_tick = [this] {
      if (run().state == RunState::Running && run().order == lifecycle::RunOrder::None)
        EXPECT_TRUE(app::cancelRun(runs_, id_, kBen, rack_.wall.now()));
    };
  }
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Cancelled));
    EXPECT_EQ(run().stamps.back().by, "ben");
    EXPECT_THAT(rack_.violations, IsEmpty());
    // What had begun is taken up by whoever comes next, and nothing is done twice then either.
    rack_.on_tick = {};
    const auto end = test::live(rack_, store_);
    EXPECT_TRUE(end.ok) << end.problems;
    expectOnce();
  }
};

TEST(RunCrash, noOrderIsLost) { killAtEveryWrite(trials<CancelledTrial>(), 5, {.every = 3}); }

/// Who asks for a reload and then for a run gets it with the inventory as it is by then, however
/// late the reload is.
TEST(RunCrash, beginsNoneWhileAReloadIsDue) {
  struct Asked final : RunTrial {
    using RunTrial::rack_;
    using RunTrial::rows_;
    using RunTrial::run;
    using RunTrial::store_;
  };
  Asked trial;
  bool is_due = true;
  const auto later = trial.rack_.wall.now() + 10min;
  trial.rack_.is_reload_due = [&is_due] { return is_due; };
  EXPECT_TRUE(serve(trial.rack_, trial.store_, trial.rows_, {}, [&] {
                return trial.rack_.wall.now() > later;
              }).ok);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Queued));
  is_due = false;
  EXPECT_TRUE(trial.live({}).ok);
  trial.expectTheEnd();
}

/// With the other policy a run waits for a person after each death.
TEST(RunCrash, pausesWhereItsPolicySaysSo) {
  struct Paused final : RunTrial {
    Paused() : RunTrial(withPolicy(lifecycle::AfterRestart::Pause)) {}
    bool over() override { return RunTrial::over() || run().state == RunState::Paused; }
    using RunTrial::id_;
    using RunTrial::rack_;
    using RunTrial::run;
    using RunTrial::runs_;
  };
  Paused undisturbed;
  const auto writes = undisturbed.live({}).writes;
  undisturbed.expectTheEnd();
  Paused trial;
  EXPECT_TRUE(trial.live({.crash_at = writes * 2 / 3}).crashed);
  ASSERT_EQ(toString(trial.run().state), toString(RunState::Running));
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(trial.run().state, RunState::Paused);
  EXPECT_EQ(trial.run().reason, RunReason::PausedAfterRestart);
  ASSERT_TRUE(app::resumeRun(trial.runs_, trial.id_, kBen, trial.rack_.wall.now()));
  EXPECT_TRUE(trial.live({}).ok);
  trial.expectTheEnd();
}

/// What was agreed to is this plan: when the nodes are others by then, it is not carried out.
TEST(RunAgreement, isVoidWhenTheFactsHaveMoved) {
  struct Moved final : RunTrial {
    Moved() : RunTrial(withQuestion()) {}
    bool over() override { return RunTrial::over() || run().state == RunState::NeedsApproval; }
    using RunTrial::id_;
    using RunTrial::rack_;
    using RunTrial::run;
    using RunTrial::runs_;
    using RunTrial::store_;
  };
  Moved trial;
  EXPECT_TRUE(trial.live({}).ok);
  auto planned = trial.run();
  ASSERT_EQ(planned.state, RunState::NeedsApproval);
  EXPECT_EQ(planned.reason, RunReason::AwaitsConfirmation);
  ASSERT_TRUE(planned.impact);
  EXPECT_EQ(planned.impact->taken_out.size(), 2u);
  const auto by_author = app::approveRun(trial.runs_, trial.id_, planned.plan_hash, kAnna, {});
  EXPECT_EQ(by_author.error().code(), ErrorCode::Denied) << "nobody approves their own";
  const auto by_other = app::confirmRun(trial.runs_, trial.id_, planned.plan_hash, kBen, {});
  EXPECT_EQ(by_other.error().code(), ErrorCode::Denied) << "nobody confirms another's";
  const auto old = app::approveRun(trial.runs_, trial.id_, "0123456789abcdef", kBen, {});
  EXPECT_EQ(old.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(old.error().str(), HasSubstr("the plan of run"));
  auto fact = *trial.store_.facts()->find(lifecycle::Subject(NodeName("gpu002")),
                                          FacetName("firmware.BIOS"));
  fact.value = "0.9";
  ASSERT_TRUE(trial.store_.putFacts({fact}));
  ASSERT_TRUE(
      app::confirmRun(trial.runs_, trial.id_, planned.plan_hash, kAnna, trial.rack_.wall.now()));
  ASSERT_EQ(trial.run().state, RunState::Approved);
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(trial.run().state, RunState::Outdated);
  EXPECT_EQ(trial.run().reason, RunReason::FactsMoved);
  EXPECT_EQ(trial.rack_.uploads("gpu001", "BIOS"), 0) << "nothing was begun";
  const auto late = app::cancelRun(trial.runs_, trial.id_, kAnna, {});
  EXPECT_EQ(late.error().code(), ErrorCode::Conflict) << "it is over";
}

struct WaitingTrial final : RunTrial {
  WaitingTrial() { openLater(rack_); }
  bool over() override { return RunTrial::over() || run().state == RunState::Waiting; }
  using RunTrial::id_;
  using RunTrial::rack_;
  using RunTrial::rows_;
  using RunTrial::run;
  using RunTrial::runs_;
  using RunTrial::store_;
};

/// An admin lets it begin at once, with a reason that everybody sees until somebody knows of it.
TEST(RunWindow, isOverriddenWithAReasonThatStaysLoud) {
  WaitingTrial trial;
  EXPECT_TRUE(trial.live({}).ok);
  const auto waiting = trial.run();
  ASSERT_EQ(toString(waiting.state), toString(RunState::Waiting)) << waiting.text;
  EXPECT_EQ(waiting.reason, RunReason::OutsideWindow);
  EXPECT_GT(waiting.waits_until, trial.rack_.wall.now());
  EXPECT_THAT(waiting.text, HasSubstr("the next maintenance window of batch opens at"));
  const auto now = trial.rack_.wall.now();
  EXPECT_EQ(
      app::overrideRun(trial.runs_, trial.id_, waiting.plan_hash, " ", kBen, now).error().code(),
      ErrorCode::InvalidInput);
  EXPECT_EQ(app::overrideRun(trial.runs_, trial.id_, "0123456789abcdef", "fire", kBen, now)
                .error()
                .code(),
            ErrorCode::Conflict);
  EXPECT_THAT(*app::loudOverrides(trial.runs_), IsEmpty());
  ASSERT_TRUE(app::overrideRun(trial.runs_, trial.id_, waiting.plan_hash, "fire", kBen, now));
  ASSERT_EQ(app::loudOverrides(trial.runs_)->size(), 1u);
  EXPECT_THAT(app::loudOverrides(trial.runs_)->front(), HasSubstr("ben@ctl1"));
  EXPECT_THAT(app::loudOverrides(trial.runs_)->front(), HasSubstr("fire"));
  EXPECT_TRUE(trial.live({}).ok);
  trial.expectTheEnd();
  EXPECT_LT(trial.rack_.wall.now() - now, kUntilTheWindow) << "it did not wait";
  EXPECT_EQ(app::loudOverrides(trial.runs_)->size(), 1u) << "its end silences nothing";
  ASSERT_TRUE(app::acknowledgeRun(trial.runs_, trial.id_, kAnna, now));
  EXPECT_THAT(*app::loudOverrides(trial.runs_), IsEmpty());
  EXPECT_EQ(app::acknowledgeRun(trial.runs_, trial.id_, kAnna, now).error().code(),
            ErrorCode::Conflict);
  EXPECT_THAT(storyOf(trial.store_), HasSubstr("OVERRIDE by ben@ctl1"));
}

/// A plan that waits for people or its time is outdated as soon as the inventory is another one.
TEST(RunWindow, whatWaitsIsOutdatedWhenTheInventoryChanges) {
  WaitingTrial trial;
  EXPECT_TRUE(trial.live({}).ok);
  ASSERT_EQ(toString(trial.run().state), toString(RunState::Waiting));
  trial.rack_.declare("1.6.0", "46.0");
  openLater(trial.rack_);
  serve(trial.rack_, trial.store_, trial.rows_, {}, [&] { return isEnd(trial.run().state); });
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Outdated));
  EXPECT_EQ(trial.run().reason, RunReason::InventoryChanged);
  EXPECT_EQ(trial.rack_.uploads("gpu001", "BIOS"), 0);
}

/// One run may take out so many nodes, wherever they are.
TEST(RunAgreement, isNotAskedForBeyondTheLimitOfOneRun) {
  struct Limited final : RunTrial {
    Limited() { rack_.cluster.limits->per_run = 1; }
    using RunTrial::rack_;
    using RunTrial::run;
  };
  Limited trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(trial.run().reason, RunReason::LimitsExceeded);
  EXPECT_THAT(trial.run().text,
              HasSubstr("one run: 2 nodes would be taken out of work, at most 1"));
  EXPECT_FALSE(trial.rack_.machines.at(NodeName("gpu001")).drained);
}

/// More than the limit: it ends before anything is begun.
TEST(RunAgreement, isNotAskedForBeyondTheLimits) {
  struct Limited final : RunTrial {
    Limited() { rack_.cluster.limits->max_unavailable.pool = {1, std::nullopt}; }
    using RunTrial::rack_;
    using RunTrial::run;
  };
  Limited trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(trial.run().state, RunState::Failed);
  EXPECT_EQ(trial.run().reason, RunReason::LimitsExceeded);
  EXPECT_THAT(trial.run().text, HasSubstr("2 of 2 nodes would be out of work, at most 1 may"));
  EXPECT_FALSE(trial.rack_.machines.at(NodeName("gpu001")).drained);
}

/// Watching goes on: a node that the run does not touch falls ill and is drained meanwhile.
TEST(RunBesideMonitor, aSickNodeIsDrainedWhileARunWorksElsewhere) {
  app::RunRequest request;
  request.apply.nodes = "gpu001";
  struct Unhealthy final : RunTrial {
    explicit Unhealthy(const app::RunRequest& request) : RunTrial(request) {
      rack_.startJob("gpu001", 3600s);  // the run waits for it
      rack_.cluster.monitor->on_config_change = inventory::OnConfigChange::Ignore;
      rack_.on_tick = [this] {
        if (run().state != RunState::Running) return;
        if (!fell_ill) {
          fell_ill = rack_.clock.steady();
          rack_.injectSymptom("gpu002",
                              {"xid.79", "0000:18:00.0", 1, "GPU has fallen off the bus"});
        }
        if (!drained && rack_.machines.at(NodeName("gpu002")).drained)
          drained = rack_.clock.steady();
      };
    }
    LifeEnd live(Death death) override {
      return serve(
          rack_, store_, rows_, death, [this] { return isEnd(run().state) && drained; },
          Beside::Monitor);
    }
    std::optional<std::chrono::steady_clock::time_point> fell_ill, drained;
    using RunTrial::rack_;
    using RunTrial::run;
  };
  Unhealthy trial(request);
  const auto end = trial.live({});
  EXPECT_TRUE(end.ok) << end.problems << trial.story();
  ASSERT_TRUE(trial.fell_ill && trial.drained) << trial.story();
  EXPECT_LE(*trial.drained - *trial.fell_ill, 60s);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Done)) << trial.story();
  EXPECT_EQ(trial.rack_.uploads("gpu001", "BIOS"), 1);
  EXPECT_EQ(trial.rack_.uploads("gpu002", "BIOS"), 0);
  EXPECT_THAT(trial.rack_.violations, IsEmpty());
}

/// As the API writes its tokens down; that it does is tests/api/tokens_test.cc's.
std::string tokensOf(bool revoked) {
  return fmt::format(R"([{{"id": "t1", "name": "phone", "revoked": {}}}])", revoked);
}

/// It waits for its window, approved with a token that is revoked meanwhile: nothing begins before
/// somebody agrees again, whatever dies.
class RevokedTrial final : public RunTrial {
 public:
  RevokedTrial() {
    rack_.cluster.approvals = {{inventory::Disturbance::Drain, 1, {"batch"}, 1}};
    openLater(rack_);
    EXPECT_TRUE(store_.putValue(app::kTokensKey, tokensOf(false)));
    rack_.on_tick = [this] { tick(); };
  }
  void tick() {
    const auto known = run();
    const bool again = known.reason == RunReason::ApprovalVoid;
    for (const auto& [node, machine] : rack_.machines)
      if (machine.drained && !agreed_again_)
        ADD_FAILURE() << node.str() << " was drained by an approval that counts no more";
    if (known.state == RunState::Waiting && !is_revoked_) {
      is_revoked_ = true;
      EXPECT_TRUE(store_.putValue(app::kTokensKey, tokensOf(true)));
    }
    if (known.state != RunState::NeedsApproval) return;
    if (again) {
      EXPECT_THAT(known.text, HasSubstr("the approval of token:phone counts no more: token:phone "
                                        "of ben was revoked"));
      EXPECT_FALSE(known.approvals[0].void_because.empty());
      EXPECT_EQ(approvalsOf(known), 0u);
      agreed_again_ = true;
    }
    const lifecycle::RunActor phone{.principal = "token:phone",
                                    .way = "token",
                                    .address = "10.0.0.9",
                                    .person = "ben",
                                    .token = "t1"};
    EXPECT_TRUE(
        app::approveRun(runs_, id_, known.plan_hash, again ? kBen : phone, rack_.wall.now()));
  }
  void expectTheEnd() override {
    RunTrial::expectTheEnd();
    EXPECT_TRUE(agreed_again_);
    EXPECT_EQ(run().approvals.size(), 2u) << "the same person, with another proof";
  }

 private:
  bool is_revoked_ = false, agreed_again_ = false;
};

TEST(RunAgreement, isVoidWhenTheTokenOfTheApprovalWasRevoked) {
  killAtEveryWrite(trials<RevokedTrial>(), 60, {.every = 13});
}

/// Whose token was revoked before the run has begun asks for nothing any more: somebody else looks
/// at it, whatever dies.
class RevokedAuthorTrial final : public RunTrial {
 public:
  RevokedAuthorTrial() {
    const lifecycle::RunActor robot{.principal = "token:phone",
                                    .way = "token",
                                    .address = "10.0.0.9",
                                    .person = "ben",
                                    .token = "t1"};
    EXPECT_TRUE(app::cancelRun(runs_, id_, kAnna, rack_.wall.now()));
    const auto run = app::submitRun(runs_, {}, robot, rack_.wall.now());
    EXPECT_TRUE(run) << run.error().str();
    id_ = run->id;
    EXPECT_TRUE(store_.putValue(app::kTokensKey, tokensOf(true)));
    rack_.on_tick = [this] { tick(); };
  }
  void tick() {
    for (const auto& [node, machine] : rack_.machines)
      if (machine.drained && !agreed_) ADD_FAILURE() << node.str() << " was drained for nobody";
    const auto known = run();
    if (known.state != RunState::NeedsApproval) return;
    EXPECT_EQ(toString(known.reason), toString(RunReason::ApprovalVoid));
    EXPECT_THAT(known.text, HasSubstr("token:phone of ben was revoked"));
    EXPECT_THAT(known.text, HasSubstr("muster run approve " + id_));
    EXPECT_FALSE(app::approveRun(runs_, id_, known.plan_hash, kBen, rack_.wall.now()))
        << "the token's owner is its author";
    EXPECT_FALSE(
        app::overrideRun(runs_, id_, known.plan_hash, "it hurries", kBen, rack_.wall.now()))
        << "also where they are an admin";
    agreed_ = true;
    EXPECT_TRUE(app::approveRun(runs_, id_, known.plan_hash, kAnna, rack_.wall.now()));
  }
  void expectTheEnd() override {
    RunTrial::expectTheEnd();
    EXPECT_TRUE(agreed_);
  }

 private:
  bool agreed_ = false;
};

TEST(RunAgreement, aRunWhoseAuthorsTokenWasRevokedNeedsSomebodyElse) {
  killAtEveryWrite(trials<RevokedAuthorTrial>(), 60, {.every = 13});
}

/// One of two approvals goes, and one was enough; a token that the store does not know any more
/// does not count either.
TEST(RunAgreement, needsNobodyElseWhereEnoughAgree) {
  struct Enough final : RunTrial {
    Enough() { rack_.cluster.approvals = {{inventory::Disturbance::Drain, 1, {"batch"}, 1}}; }
    bool over() override { return RunTrial::over() || run().state == RunState::NeedsApproval; }
    using RunTrial::id_;
    using RunTrial::rack_;
    using RunTrial::run;
    using RunTrial::runs_;
    using RunTrial::store_;
  };
  Enough trial;
  EXPECT_TRUE(trial.live({}).ok);
  auto planned = trial.run();
  ASSERT_EQ(toString(planned.state), toString(RunState::NeedsApproval));
  const auto now = trial.rack_.wall.now();
  planned.approvals.push_back({{.principal = "token:gone",
                                .way = "token",
                                .address = "10.0.0.9",
                                .person = "cleo",
                                .token = "t9"},
                               now,
                               planned.plan_hash,
                               false});
  ASSERT_TRUE(trial.runs_.exchange(planned, "")->has_value());
  EXPECT_TRUE(app::approveRun(trial.runs_, trial.id_, planned.plan_hash, kBen, now));
  EXPECT_TRUE(trial.live({}).ok);
  trial.expectTheEnd();
  EXPECT_THAT(trial.run().approvals[0].void_because, HasSubstr("is known no more"));
  EXPECT_THAT(trial.run().approvals[1].void_because, IsEmpty());
  EXPECT_THAT(storyOf(trial.store_), HasSubstr("enough others agree"));
}

/// An override with a token that was revoked lets nothing begin.
TEST(RunAgreement, isVoidWhenTheTokenOfTheOverrideWasRevoked) {
  struct Overridden final : RunTrial {
    Overridden() { rack_.cluster.approvals = {{inventory::Disturbance::Drain, 1, {"batch"}, 1}}; }
    bool over() override { return RunTrial::over() || run().state == RunState::NeedsApproval; }
    using RunTrial::id_;
    using RunTrial::rack_;
    using RunTrial::run;
    using RunTrial::runs_;
    using RunTrial::store_;
  };
  Overridden trial;
  EXPECT_TRUE(trial.live({}).ok);
  const lifecycle::RunActor phone{.principal = "token:phone",
                                  .way = "token",
                                  .address = "10.0.0.9",
                                  .person = "ben",
                                  .token = "t1"};
  ASSERT_TRUE(app::overrideRun(trial.runs_, trial.id_, trial.run().plan_hash, "fire", phone,
                               trial.rack_.wall.now()));
  ASSERT_TRUE(trial.store_.putValue(app::kTokensKey, tokensOf(true)));
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::NeedsApproval));
  EXPECT_EQ(trial.run().reason, RunReason::ApprovalVoid);
  EXPECT_EQ(app::loudOverrides(trial.runs_)->size(), 1u) << "it stays loud";
  for (const auto& [node, machine] : trial.rack_.machines) EXPECT_EQ(machine.drains, 0);
}

}  // namespace
}  // namespace muster::test
