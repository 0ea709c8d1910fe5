// SPDX-License-Identifier: Apache-2.0
// Erasures and rollouts as runs: nothing happens to a node before another person has agreed, and
// nothing twice, wherever the process that carries them out is killed.
#include "inventory/model/approvals.h"
#include "inventory/model/cluster.h"
#include "inventory/model/limits.h"
#include "inventory/model/pools.h"
#include "lifecycle/rollout/record.h"
#include "provision/storage/erase.h"
#include "tests/crash/run_rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using lifecycle::Run;
using lifecycle::RunReason;
using lifecycle::RunState;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// One node is out of its pool for good, and somebody asks to have its disks erased.
class ErasureTrial : public RackRun {
 public:
  ErasureTrial() : RackRun({"gpu001", "gpu002"}) {
    auto& leaving = rack_.machines.at(NodeName("gpu001"));
    leaving.drained = true;
    leaving.drain_reason = "muster: leaves the site";
    rack_.cluster.approvals = {{inventory::Disturbance::Wipe, 1, {}, 1}};
    ask({.kind = lifecycle::RunKind::Erase,
         .apply = {"gpu001"},
         .erase = {{}, "leaves the site", ""}});
    rack_.on_tick = [this] { tick(); };
  }
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Done)) << run().text;
    EXPECT_EQ(erasures(), 1);
    expectNothingLeft();
  }

 protected:
  int erasures() {
    EXPECT_EQ(rack_.machines.at(NodeName("gpu002")).erasures, 0);
    return rack_.machines.at(NodeName("gpu001")).erasures;
  }
  /// No wish and no permission that a later plan could use.
  void expectNothingLeft() {
    expectClean();
    EXPECT_THAT(*provision::eraseRequests(store_), IsEmpty());
    EXPECT_THAT(*store_.wipeGrants(), IsEmpty());
  }
  /// Until somebody else has agreed nothing may lie in the store that a plan could take up.
  void expectNothingBeforeTheYes() {
    if (run().begun) return;
    EXPECT_THAT(*provision::eraseRequests(store_), IsEmpty());
    EXPECT_THAT(*store_.wipeGrants(), IsEmpty());
    EXPECT_EQ(rack_.agents.submitted(NodeName("gpu001"), wire::TaskKind::EraseDisks).size(), 0u);
  }
  virtual void tick() {
    expectNothingBeforeTheYes();
    approve();
  }
};

TEST(ErasureRun, erasesOnceWhateverDiesAndOnlyWhenAnotherHasAgreed) {
  killAtEveryWrite(trials<ErasureTrial>(), 20, {.every = 2});
}

TEST(ErasureRun, erasesOnceAfterTwoKills) { killTwice(trials<ErasureTrial>(), {.pairs = 8}); }

/// It is cancelled as soon as it may begin: then no wish and no permission stays behind, unless the
/// node has begun.
class CancelledErasure final : public ErasureTrial {
 public:
  void tick() override {
    ErasureTrial::tick();
    if (run().state == RunState::Running && run().order == lifecycle::RunOrder::None)
      EXPECT_TRUE(app::cancelRun(runs_, id_, kBen, rack_.wall.now()));
  }
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Cancelled));
    EXPECT_THAT(*store_.wipeGrants(), IsEmpty());
    rack_.on_tick = {};
    const int told = toldToErase();
    const auto end = test::live(rack_, store_);  // whoever comes next
    EXPECT_EQ(toldToErase(), told)
        << "a plan of others has taken the cancelled wish up " << end.problems;
    EXPECT_THAT(rack_.violations, IsEmpty());
  }

 private:
  int toldToErase() {
    return static_cast<int>(
        rack_.agents.submitted(NodeName("gpu001"), wire::TaskKind::EraseDisks).size());
  }
};

TEST(ErasureRun, leavesNoWishBehindWhenItIsCancelled) {
  killAtEveryWrite(trials<CancelledErasure>(), 5, {.every = 1});
}

/// Beside it another run works on the same node, while the erasure waits for its yes: the wish of
/// the one is no wish of the other, whatever permission lies there.
TEST(ErasureRun, isNoWishOfOtherPlansWhileItWaits) {
  struct Waits final : ErasureTrial {
    void tick() override { expectNothingBeforeTheYes(); }
    bool over() override { return run().state == RunState::NeedsApproval; }
    using ErasureTrial::approve;
    using ErasureTrial::id_;
    using ErasureTrial::rack_;
    using ErasureTrial::run;
    using ErasureTrial::runs_;
    using ErasureTrial::store_;
  };
  Waits trial;
  EXPECT_TRUE(trial.live({}).ok);
  ASSERT_EQ(toString(trial.run().state), toString(RunState::NeedsApproval)) << trial.run().text;
  ASSERT_TRUE(trial.run().impact);
  EXPECT_EQ(trial.run().impact->wiped.size(), 1u);
  trial.rack_.on_tick = {};
  ASSERT_TRUE(trial.store_.grantWipe(NodeName("gpu001"), "new image", {}));
  (void)test::live(trial.rack_, trial.store_);
  EXPECT_EQ(trial.rack_.machines.at(NodeName("gpu001")).erasures, 0);
  EXPECT_EQ(trial.rack_.agents.submitted(NodeName("gpu001"), wire::TaskKind::EraseDisks).size(),
            0u);
}

/// What must not be erased is said before anybody is asked.
TEST(ErasureRun, isRefusedForANodeThatMayHoldJobs) {
  struct InPool final : ErasureTrial {
    InPool() { rack_.machines.at(NodeName("gpu001")).drained = false; }
    using ErasureTrial::erasures;
    using ErasureTrial::expectNothingLeft;
    using ErasureTrial::run;
  };
  InPool trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(trial.run().state, RunState::Failed);
  EXPECT_THAT(trial.run().text, HasSubstr("may hold jobs"));
  EXPECT_EQ(trial.erasures(), 0);
  trial.expectNothingLeft();
}

/// It comes back into its pool between the yes and the beginning.
TEST(ErasureRun, isVoidWhenItsNodeWorksAgain) {
  struct Returned final : ErasureTrial {
    void tick() override {
      if (run().state == RunState::NeedsApproval)
        rack_.machines.at(NodeName("gpu001")).drained = false;
      if (run().state == RunState::NeedsApproval) rack_.wall.offset += 1h;
      approve();
    }
    using ErasureTrial::erasures;
    using ErasureTrial::expectNothingLeft;
    using ErasureTrial::run;
  };
  Returned trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Failed)) << trial.run().text;
  EXPECT_EQ(trial.erasures(), 0);
  trial.expectNothingLeft();
}

/// A disk that refuses is no success, and nothing goes on by itself.
TEST(ErasureRun, isLeftWithWorkWhenADiskRefuses) {
  struct Broken final : ErasureTrial {
    Broken() { rack_.machines.at(NodeName("gpu001")).erase_fails = true; }
    using ErasureTrial::erasures;
    using ErasureTrial::rack_;
    using ErasureTrial::run;
    using ErasureTrial::store_;
  };
  Broken trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::WorkLeft));
  EXPECT_EQ(trial.run().reason, RunReason::Blocked);
  EXPECT_THAT(trial.run().text, HasSubstr("1 of 1 disks of gpu001 are not erased"));
  EXPECT_EQ(trial.erasures(), 1);
  EXPECT_THAT(*trial.store_.wipeGrants(), IsEmpty());
}

app::RunRequest rolloutTo45() {
  app::RunRequest request{.kind = lifecycle::RunKind::Rollout, .apply = {"gpu[001-003]"}};
  request.rollout.change =
      "drivers: {rdma-45: {packages: [rdma-core=45.0], verify: {package.rdma-core: \"45.0\"}}}\n"
      "profiles: {gpu-node: {drivers: [rdma-45]}}\n"
      "rollout: {canary: {nodes: 1}, waves: [100], max_unavailable: {pool: {nodes: 1}}, "
      "regression: {on_inconclusive: continue}}\n";
  return request;
}

/// Three nodes in their pool, and somebody asks for a rollout, which another person must agree to.
class RolloutTrial : public RackRun {
 public:
  RolloutTrial() : RackRun({"gpu001", "gpu002", "gpu003"}) {
    rack_.cluster.approvals = {{inventory::Disturbance::Drain, 3, {"batch"}, 1}};
    auto request = rolloutTo45();
    request.rollout.change_file = (rack_.folder / "change.yaml").string();
    ask(request);
    rack_.on_tick = [this] { tick(); };
  }
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Done)) << run().text;
    expectChanged(3, 1);
    EXPECT_EQ(run().progress.done, 3u);
  }

 protected:
  lifecycle::RolloutRecord record() {
    return *lifecycle::RolloutRecord::open(store_, run().rollout.id);
  }
  /// So many nodes have the new driver, and each node's was installed at most so often.
  void expectChanged(int nodes, int at_most) {
    int changed = 0;
    for (const auto& [node, machine] : rack_.machines) {
      if (machine.software.at("package.rdma-core") == "45.0") ++changed;
      int installs = 0;
      for (const auto& [driver, times] : machine.driver_installs) installs += times;
      EXPECT_LE(installs, at_most) << node.str();
      EXPECT_EQ(machine.image_writes, 0);
      EXPECT_TRUE(rack_.inPool(node.str())) << node.str();
    }
    EXPECT_EQ(changed, nodes);
    expectClean();
  }
  virtual void tick() {
    int out = 0;
    for (const auto& [node, machine] : rack_.machines) {
      if (machine.drained) ++out;
      if (machine.drained && !run().begun)
        ADD_FAILURE() << node.str() << " was drained before anybody agreed";
    }
    EXPECT_LE(out, 1) << "the waves have a limit";
    approve();
  }
  void approve() {
    const auto known = run();
    if (!RackRun::approve()) return;
    EXPECT_EQ(known.impact->taken_out.size(), 3u);
    ++approvals_;
  }

  int approvals_ = 0;
};

TEST(RolloutRun, goesOnByItselfWhereverItsProcessWasKilled) {
  killAtEveryWrite(trials<RolloutTrial>(), 60, {.every = 9});
}

TEST(RolloutRun, goesOnAfterTwoKills) { killTwice(trials<RolloutTrial>(), {.pairs = 6}); }

/// One approval is of one run: nothing is asked again, whatever dies.
TEST(RolloutRun, isAgreedToOnce) {
  struct Counted final : RolloutTrial {
    using RolloutTrial::approvals_;
    using RolloutTrial::run;
  };
  Counted trial;
  EXPECT_TRUE(trial.live({}).ok);
  trial.expectTheEnd();
  EXPECT_EQ(trial.approvals_, 1);
  EXPECT_EQ(trial.run().approvals.size(), 1u);
}

/// Paused in the first wave: what is under way is finished, no other node begins, and a person lets
/// it go on.
TEST(RolloutRun, isPausedBetweenNodesAndGoesOn) {
  struct Paused final : RolloutTrial {
    void tick() override {
      RolloutTrial::tick();
      if (is_ordered || run().state != RunState::Running) return;
      for (const auto& [node, machine] : rack_.machines) is_ordered |= machine.drained;
      if (is_ordered) EXPECT_TRUE(app::pauseRun(runs_, id_, kBen, rack_.wall.now()));
    }
    bool over() override { return RolloutTrial::over() || run().state == RunState::Paused; }
    bool is_ordered = false;
    using RolloutTrial::expectChanged;
    using RolloutTrial::id_;
    using RolloutTrial::rack_;
    using RolloutTrial::record;
    using RolloutTrial::run;
    using RolloutTrial::runs_;
  };
  Paused trial;
  EXPECT_TRUE(trial.live({}).ok) << trial.story();
  ASSERT_EQ(toString(trial.run().state), toString(RunState::Paused)) << trial.run().text;
  EXPECT_EQ(trial.run().reason, RunReason::PausedByPerson);
  trial.expectChanged(1, 1);
  EXPECT_EQ(trial.record().rollout().state, lifecycle::RolloutState::Paused);
  ASSERT_TRUE(app::resumeRun(trial.runs_, trial.id_, kAnna, trial.rack_.wall.now()));
  EXPECT_TRUE(trial.live({}).ok);
  trial.expectTheEnd();
}

/// Paused once and let go on once, whatever dies: neither word is lost, and neither is heard twice.
class PausedRollout final : public RolloutTrial {
 public:
  void tick() override {
    RolloutTrial::tick();
    const auto state = run().state;
    if (!is_paused_ && state == RunState::Running)
      for (const auto& [node, machine] : rack_.machines)
        if (machine.drained && !is_paused_)
          is_paused_ = app::pauseRun(runs_, id_, kBen, rack_.wall.now()).has_value();
    if (is_paused_ && !is_resumed_ && state == RunState::Paused)
      is_resumed_ = app::resumeRun(runs_, id_, kAnna, rack_.wall.now()).has_value();
  }
  bool over() override {
    return RolloutTrial::over() || (is_resumed_ && run().state == RunState::Paused);
  }
  void expectTheEnd() override {
    RolloutTrial::expectTheEnd();
    EXPECT_TRUE(is_resumed_);
  }

 private:
  bool is_paused_ = false, is_resumed_ = false;
};

TEST(RolloutRun, hearsEachWordOnceWhateverDies) {
  killAtEveryWrite(trials<PausedRollout>(), 150, {.every = 1, .both = true});
}

/// Cancelled while it is under way, whatever dies: the waves end too, so that others may begin.
class CancelledRollout : public RolloutTrial {
 public:
  void tick() override {
    RolloutTrial::tick();
    const auto known = run();
    if (known.state != RunState::Running || known.order != lifecycle::RunOrder::None) return;
    for (const auto& [node, machine] : rack_.machines)
      if (machine.drained) EXPECT_TRUE(app::cancelRun(runs_, id_, kBen, rack_.wall.now()));
  }
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Cancelled)) << run().text;
    EXPECT_TRUE(lifecycle::RolloutRecord::noneIsOpen(store_));
    EXPECT_THAT(rack_.violations, IsEmpty());
    for (const auto& [node, machine] : rack_.machines) {
      const auto installs = machine.driver_installs.find("rdma-45");
      EXPECT_LE(installs == machine.driver_installs.end() ? 0 : installs->second, 1);
    }
  }
};

TEST(RolloutRun, isCancelledWithItsWaves) {
  killAtEveryWrite(trials<CancelledRollout>(), 20, {.every = 7});
}

/// Paused, then cancelled by a person: nobody works on it, and its waves end as well.
TEST(RolloutRun, thatRestsIsCancelledWithItsWaves) {
  struct Halted final : RolloutTrial {
    Halted() { rack_.broken_bios = "1.4.2"; }
    bool over() override { return RolloutTrial::over() || run().state == RunState::Paused; }
    using RolloutTrial::id_;
    using RolloutTrial::rack_;
    using RolloutTrial::record;
    using RolloutTrial::rows_;
    using RolloutTrial::run;
    using RolloutTrial::runs_;
    using RolloutTrial::store_;
  };
  Halted trial;
  EXPECT_TRUE(trial.live({}).ok) << trial.story();
  ASSERT_EQ(toString(trial.run().state), toString(RunState::Paused)) << trial.run().text;
  EXPECT_EQ(trial.run().reason, RunReason::RolloutHalted);
  EXPECT_EQ(trial.record().rollout().state, lifecycle::RolloutState::Halted);
  ASSERT_TRUE(app::cancelRun(trial.runs_, trial.id_, kBen, trial.rack_.wall.now()));
  serve(trial.rack_, trial.store_, trial.rows_, {}, [&] { return isEnd(trial.run().state); });
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Cancelled));
  EXPECT_EQ(trial.record().rollout().state, lifecycle::RolloutState::Aborted);
}

/// The window closes in the middle: nodes under way are finished, the rest waits for the next one.
TEST(RolloutRun, takesNodesOutInTheWindowOnly) {
  struct Windowed final : RolloutTrial {
    Windowed() {
      rack_.cluster.approvals.clear();
      begins_ = std::chrono::floor<std::chrono::minutes>(rack_.wall.now()) + 60min;
      for (const auto& [node, machine] : rack_.machines)  // the first one waits for it
        rack_.startJob(node.str(),
                       std::chrono::ceil<std::chrono::seconds>(begins_ - rack_.wall.now() + 100s));
      auto& windows = rack_.cluster.pools.at("batch").maintenance;
      for (auto opens = begins_; windows.size() < 6; opens += 60min) {
        const auto minute = std::chrono::floor<std::chrono::minutes>(
            opens - std::chrono::floor<std::chrono::days>(opens));
        windows.push_back({{}, static_cast<int>(minute.count()), 1, "UTC"});
      }
    }
    void tick() override {
      for (const auto& [node, machine] : rack_.machines)
        if (machine.drained && out_.insert(node).second) {
          const auto since = (rack_.wall.now() - begins_) % 60min;
          EXPECT_TRUE(since >= 0s && since < 75s) << node.str() << " was drained outside";
          windows_.insert((rack_.wall.now() - begins_) / 60min);
        }
    }
    WallTime begins_{};
    std::set<NodeName> out_;
    std::set<long> windows_;
  };
  Windowed trial;
  const auto end = trial.live({});
  EXPECT_TRUE(end.ok) << end.problems << trial.story();
  trial.expectTheEnd();
  EXPECT_EQ(trial.out_.size(), 3u);
  EXPECT_GT(trial.windows_.size(), 1u) << "a minute is too short for three nodes";
}

/// Undone by a run of its own, which is agreed to, too.
TEST(RolloutRun, isUndoneByARunOfItsOwn) {
  struct Undone final : RolloutTrial {
    void undo() {
      app::RunRequest request{.kind = lifecycle::RunKind::Rollout};
      request.rollout.id = run().rollout.id;
      request.rollout.back = true;
      ask(request);
    }
    using RolloutTrial::approvals_;
    using RolloutTrial::expectChanged;
    using RolloutTrial::record;
    using RolloutTrial::run;
  };
  Undone trial;
  EXPECT_TRUE(trial.live({}).ok);
  trial.expectTheEnd();
  trial.undo();
  const auto end = trial.live({});
  EXPECT_TRUE(end.ok) << end.problems << trial.story();
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Done)) << trial.run().text;
  trial.expectChanged(0, 2);
  EXPECT_EQ(trial.approvals_, 2);
  EXPECT_EQ(trial.record().rollout().state, lifecycle::RolloutState::RolledBack);
}

/// A change that does not fit the inventory is told before anybody is asked.
TEST(RolloutRun, thatDoesNotFitIsRefusedWithItsDiagnostics) {
  struct Wrong final : RolloutTrial {
    Wrong() {
      EXPECT_TRUE(app::cancelRun(runs_, id_, kAnna, rack_.wall.now()));
      auto request = rolloutTo45();
      request.rollout.change = "profilez: {}\n";
      ask(request);
    }
    using RolloutTrial::run;
  };
  Wrong trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(trial.run().state, RunState::Failed);
  EXPECT_THAT(trial.run().text, HasSubstr("this is no change"));
}

/// Waves are within the limits of their domains, and a rollout is one run: it may take out no more
/// nodes altogether than one run may.
TEST(RolloutRun, isNotAskedForBeyondTheLimitOfOneRun) {
  struct Limited final : RolloutTrial {
    Limited() { rack_.cluster.limits->per_run = 2; }
    using RolloutTrial::rack_;
    using RolloutTrial::run;
  };
  Limited trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Failed));
  EXPECT_EQ(trial.run().reason, RunReason::LimitsExceeded);
  EXPECT_THAT(trial.run().text,
              HasSubstr("one run: 3 nodes would be taken out of work, at most 2 may"));
  for (const auto& [node, machine] : trial.rack_.machines) EXPECT_EQ(machine.drains, 0);
}

TEST(RolloutRun, withinTheLimitOfOneRunIsDone) {
  struct Within final : RolloutTrial {
    Within() { rack_.cluster.limits->per_run = 3; }
  };
  Within trial;
  EXPECT_TRUE(trial.live({}).ok);
  trial.expectTheEnd();
}

}  // namespace
}  // namespace muster::test
