// SPDX-License-Identifier: Apache-2.0
// Validations as runs: a working node is drained only when another person has agreed, each gate
// runs once, and the node is given back, wherever the process that carries the run out is killed.
#include "inventory/model/approvals.h"
#include "inventory/model/cluster.h"
#include "inventory/model/limits.h"
#include "inventory/model/pools.h"
#include "lifecycle/model/facet.h"
#include "tests/crash/run_rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using lifecycle::RunReason;
using lifecycle::RunState;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

app::RunRequest gatesOf(const std::string& nodes) {
  return {.kind = lifecycle::RunKind::Validate, .apply = {nodes}};
}

/// Gates of both nodes have passed long ago; one is to pass them again.
class ValidationTrial : public RackRun {
 public:
  explicit ValidationTrial(const app::RunRequest& request = gatesOf("gpu001"))
      : RackRun({"gpu001", "gpu002"}) {
    rack_.cluster.limits->max_unavailable.pool = {std::nullopt, 100};
    rack_.cluster.approvals = {{inventory::Disturbance::Drain, 1, {"batch"}, 1}};
    rack_.startJob("gpu001", 100s);
    before_ = checksOf("gpu001");
    others_ = checksOf("gpu002");
    rack_.wall.offset += 1h;
    ask(request);
    rack_.on_tick = [this] { tick(); };
  }
  virtual void tick() {
    if (rack_.machines.at(NodeName("gpu001")).drained && !run().begun)
      ADD_FAILURE() << "it was drained before anybody agreed";
    approve();
  }
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Done)) << run().text;
    expectTestedOnce();
    EXPECT_EQ(run().approvals.size(), 1u) << "nobody is asked twice";
  }

 protected:
  /// Tasks of its agent, each of which runs once however often it is told.
  std::set<std::string> checksOf(const std::string& node) {
    std::set<std::string> out;
    for (const auto& task : rack_.agents.submitted(NodeName(node), wire::TaskKind::RunChecks))
      out.insert(task.id);
    return out;
  }
  void expectTestedOnce() {
    expectClean();
    EXPECT_EQ(checksOf("gpu001").size(), before_.size() + 1) << "one gate, once more";
    EXPECT_EQ(checksOf("gpu002"), others_);
    EXPECT_EQ(rack_.machines.at(NodeName("gpu002")).drains, 0);
    for (const auto* node : {"gpu001", "gpu002"}) {
      EXPECT_TRUE(rack_.inPool(node)) << node;
      EXPECT_EQ(rack_.machines.at(NodeName(node)).image_writes, 0);
      EXPECT_TRUE(rack_.machines.at(NodeName(node)).driver_installs.empty());
    }
  }
  std::set<std::string> before_, others_;
};

TEST(ValidationRun, testsOnceWhateverDiesAndOnlyWhenAnotherHasAgreed) {
  killAtEveryWrite(trials<ValidationTrial>(), 15, {.every = 2});
}

TEST(ValidationRun, testsOnceAfterTwoKills) { killTwice(trials<ValidationTrial>(), {.pairs = 8}); }

/// The monitor lives beside it, and sees gates that are forgotten: it leaves them to the run.
TEST(ValidationRun, isNotDisturbedByTheMonitor) {
  struct Monitored final : ValidationTrial {
    LifeEnd live(Death death) override {
      return serve(rack_, store_, rows_, death, [this] { return over(); }, Beside::Monitor);
    }
    using ValidationTrial::rack_;
  };
  killAtEveryWrite(trials<Monitored>(), 15, {.every = 5});
}

/// Cancelled while the gate is under way: nothing new begins. What had begun is taken up by whoever
/// comes next, once.
class CancelledValidation final : public ValidationTrial {
 public:
  void tick() override {
    ValidationTrial::tick();
    if (run().state == RunState::Running && run().order == lifecycle::RunOrder::None)
      EXPECT_TRUE(app::cancelRun(runs_, id_, kBen, rack_.wall.now()));
  }
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Cancelled));
    rack_.on_tick = {};
    const auto end = test::live(rack_, store_);
    EXPECT_TRUE(end.ok) << end.problems;
    expectClean();
    EXPECT_LE(checksOf("gpu001").size(), before_.size() + 1);
    EXPECT_TRUE(rack_.inPool("gpu001"));
  }
};

TEST(ValidationRun, isCancelledAndLeavesNothingHalfDone) {
  killAtEveryWrite(trials<CancelledValidation>(), 5, {.every = 1});
}

/// Paused by a person, and gone on with: the approval counts still.
TEST(ValidationRun, isPausedAndGoesOn) {
  struct Paused final : ValidationTrial {
    void tick() override {
      ValidationTrial::tick();
      if (is_ordered || run().state != RunState::Running) return;
      is_ordered = true;
      EXPECT_TRUE(app::pauseRun(runs_, id_, kBen, rack_.wall.now()));
    }
    bool over() override { return ValidationTrial::over() || run().state == RunState::Paused; }
    bool is_ordered = false;
    using ValidationTrial::id_;
    using ValidationTrial::rack_;
    using ValidationTrial::run;
    using ValidationTrial::runs_;
  };
  Paused trial;
  EXPECT_TRUE(trial.live({}).ok) << trial.story();
  ASSERT_EQ(toString(trial.run().state), toString(RunState::Paused)) << trial.run().text;
  ASSERT_TRUE(app::resumeRun(trial.runs_, trial.id_, kAnna, trial.rack_.wall.now()));
  EXPECT_TRUE(trial.live({}).ok) << trial.story();
  trial.expectTheEnd();
}

/// A gate that fails is no success; the node stays out of its pool.
TEST(ValidationRun, failsWithItsGate) {
  struct Broken final : ValidationTrial {
    Broken() { rack_.broken_bios = "1.4.2"; }
    using ValidationTrial::rack_;
    using ValidationTrial::run;
  };
  Broken trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Failed)) << trial.run().text;
  EXPECT_EQ(trial.run().reason, RunReason::ActionFailed);
  EXPECT_THAT(trial.run().text, HasSubstr("gate burn-in failed"));
  EXPECT_FALSE(trial.rack_.inPool("gpu001"));
  EXPECT_TRUE(trial.rack_.inPool("gpu002"));
  EXPECT_THAT(trial.rack_.violations, IsEmpty());
}

/// What has been tested since the run was asked for is not tested again, and a second run of the
/// same gates is: each has a moment of its own.
TEST(ValidationRun, asksAgainEachTimeItIsAskedFor) {
  struct Twice final : ValidationTrial {
    using ValidationTrial::ask;
    using ValidationTrial::before_;
    using ValidationTrial::checksOf;
    using ValidationTrial::rack_;
    using ValidationTrial::run;
  };
  Twice trial;
  EXPECT_TRUE(trial.live({}).ok);
  trial.expectTheEnd();
  trial.rack_.wall.offset += 1h;
  trial.ask(gatesOf("gpu001"));
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Done)) << trial.run().text;
  EXPECT_EQ(trial.run().reason, RunReason::None);
  EXPECT_EQ(trial.checksOf("gpu001").size(), trial.before_.size() + 2);
}

/// Nodes that are not as declared are apply's, and are left alone; so is a gate that no profile
/// has.
TEST(ValidationRun, isRefusedForNodesThatNeedSomethingElse) {
  struct Stale final : ValidationTrial {
    Stale() { rack_.declare("1.5.0", "45.0"); }
    using ValidationTrial::rack_;
    using ValidationTrial::run;
  };
  Stale trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Failed));
  EXPECT_THAT(trial.run().text, HasSubstr("`muster apply` does that"));
  EXPECT_EQ(trial.rack_.machines.at(NodeName("gpu001")).drains, 0);

  struct NoGate final : ValidationTrial {
    NoGate()
        : ValidationTrial({.kind = lifecycle::RunKind::Validate,
                           .apply = {"gpu001"},
                           .validate = {{"soak"}, false}}) {}
    using ValidationTrial::run;
  };
  NoGate unknown;
  EXPECT_TRUE(unknown.live({}).ok);
  EXPECT_EQ(toString(unknown.run().state), toString(RunState::Failed));
  EXPECT_THAT(unknown.run().text, HasSubstr("no profile of these nodes has a gate soak"));
}

/// More nodes than may leave their pool at once.
TEST(ValidationRun, isNotAskedForBeyondTheLimits) {
  struct Limited final : ValidationTrial {
    Limited() : ValidationTrial(gatesOf("gpu[001-002]")) {
      rack_.cluster.limits->max_unavailable.pool = {1, std::nullopt};
    }
    using ValidationTrial::rack_;
    using ValidationTrial::run;
  };
  Limited trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(trial.run().reason, RunReason::LimitsExceeded);
  EXPECT_EQ(trial.rack_.machines.at(NodeName("gpu001")).drains, 0);
}

/// It waits for the window of its pool, and begins in it.
TEST(ValidationRun, beginsInItsMaintenanceWindowOnly) {
  struct Windowed final : ValidationTrial {
    Windowed() {
      rack_.cluster.approvals.clear();
      opens_ = std::chrono::floor<std::chrono::minutes>(rack_.wall.now()) + 180min;
      const auto minute = opens_ - std::chrono::floor<std::chrono::days>(opens_);
      rack_.cluster.pools.at("batch").maintenance = {
          {{},
           static_cast<int>(std::chrono::duration_cast<std::chrono::minutes>(minute).count()),
           60,
           "UTC"}};
    }
    void tick() override {
      waited_ = waited_ || run().state == RunState::Waiting;
      if (rack_.machines.at(NodeName("gpu001")).drained) EXPECT_GE(rack_.wall.now(), opens_);
    }
    void expectTheEnd() override {
      EXPECT_TRUE(waited_);
      EXPECT_EQ(toString(run().state), toString(RunState::Done)) << run().text;
      expectTestedOnce();
    }
    WallTime opens_{};
    bool waited_ = false;
  };
  killAtEveryWrite(trials<Windowed>(), 15, {.every = 7});
}

/// Both gates at one moment are refused where the rack's power is not known, before anybody is
/// asked.
TEST(ValidationRun, synchronizedLoadNeedsTheRacksPower) {
  struct Together final : ValidationTrial {
    Together()
        : ValidationTrial({.kind = lifecycle::RunKind::Validate,
                           .apply = {"gpu[001-002]"},
                           .validate = {{}, true}}) {}
    using ValidationTrial::rack_;
    using ValidationTrial::run;
  };
  Together trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Failed));
  EXPECT_THAT(trial.run().text, HasSubstr("no declared power_watts"));
  EXPECT_EQ(trial.rack_.machines.at(NodeName("gpu001")).drains, 0);
}

}  // namespace
}  // namespace muster::test
