// SPDX-License-Identifier: Apache-2.0
// Firmware that has failed for good is installed again by a run: only when another person has
// agreed, once, wherever the process that carries the run out is killed; and what the run has not
// begun stays blocked.
#include "firmware/files.h"
#include "inventory/model/approvals.h"
#include "inventory/model/cluster.h"
#include "inventory/model/limits.h"
#include "lifecycle/model/unread.h"
#include "tests/crash/run_rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using lifecycle::RunReason;
using lifecycle::RunState;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

app::RunRequest retryOf(const std::string& nodes) {
  app::RunRequest out{.kind = lifecycle::RunKind::FirmwareRetry, .apply = {nodes}};
  out.firmware_retry.reason = "reseated, BMC log clean";
  return out;
}

/// The BIOS of one of two nodes has failed to install; both are named.
class RetryTrial : public RackRun {
 public:
  RetryTrial() : RackRun({"gpu001", "gpu002"}) {
    rack_.bmcs.fake(NodeName("gpu001")).failing_update = "BIOS";
    rack_.declare("1.5.0", "44.0");
    rack_.cluster.limits->max_unavailable.pool = {std::nullopt, 100};
    const auto end = test::live(rack_, store_);
    EXPECT_FALSE(end.ok);
    EXPECT_THAT(failure(), HasSubstr("1.5.0 "));
    EXPECT_EQ(rack_.bmcs.fake(NodeName("gpu002")).components["BIOS"].version, "1.5.0");
    rack_.bmcs.fake(NodeName("gpu001")).failing_update.clear();
    rack_.forgetCounts();
    before_ = rack_.uploads("gpu001", "BIOS");
    others_ = rack_.uploads("gpu002", "BIOS");
    rack_.cluster.approvals = {{inventory::Disturbance::Reset, 1, {}, 1}};
    rack_.wall.offset += 1h;
    ask(retryOf("gpu[001-002]"));
    rack_.on_tick = [this] { tick(); };
  }
  virtual void tick() {
    if (!run().begun) {
      EXPECT_EQ(uploads(), 0) << "it was installed before anybody agreed";
      EXPECT_THAT(failure(), HasSubstr("1.5.0 ")) << "the block was lifted before";
    }
    approve();
  }
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Done)) << run().text;
    EXPECT_EQ(run().approvals.size(), 1u) << "nobody is asked twice";
    EXPECT_EQ(run().subjects, "gpu001") << "nothing had failed on the other";
    expectInstalledOnce();
  }

 protected:
  int uploads() { return rack_.uploads("gpu001", "BIOS") - before_; }
  std::string failure() {
    const auto facts = *store_.facts();
    const auto* fact =
        facts.find(lifecycle::Subject(NodeName("gpu001")), firmware::failedFacet("BIOS"));
    return fact ? fact->value : "";
  }
  void expectInstalledOnce() {
    expectClean();
    EXPECT_EQ(uploads(), 1);
    EXPECT_EQ(rack_.bmcs.fake(NodeName("gpu001")).components["BIOS"].version, "1.5.0");
    EXPECT_THAT(failure(), IsEmpty());
    EXPECT_TRUE(rack_.inPool("gpu001"));
    EXPECT_EQ(rack_.uploads("gpu002", "BIOS"), others_);
    EXPECT_EQ(rack_.machines.at(NodeName("gpu002")).drains, 0);
  }

  int before_ = 0, others_ = 0;
};

TEST(FirmwareRetryRun, installsOnceWhateverDiesAndOnlyWhenAnotherHasAgreed) {
  killAtEveryWrite(trials<RetryTrial>(), 15, {.every = 2});
}

TEST(FirmwareRetryRun, installsOnceAfterTwoKills) { killTwice(trials<RetryTrial>(), {.pairs = 8}); }

/// The monitor lives beside it, and sees a block that is gone: it leaves the node to the run.
TEST(FirmwareRetryRun, isNotDisturbedByTheMonitor) {
  struct Monitored final : RetryTrial {
    LifeEnd live(Death death) override {
      return serve(rack_, store_, rows_, death, [this] { return over(); }, Beside::Monitor);
    }
    using RetryTrial::rack_;
  };
  killAtEveryWrite(trials<Monitored>(), 15, {.every = 5});
}

/// It fails again: it is told, and stays blocked; the run does not try a third time, nor does the
/// next apply.
class FailsAgain final : public RetryTrial {
 public:
  FailsAgain() { rack_.bmcs.fake(NodeName("gpu001")).failing_update = "BIOS"; }
  void expectTheEnd() override {
    // Killed between the failure and its report, what is left is a block with the same words.
    const bool is_failed =
        run().state == RunState::Failed && run().reason == RunReason::ActionFailed;
    const bool is_blocked = run().state == RunState::WorkLeft && run().reason == RunReason::Blocked;
    EXPECT_TRUE(is_failed || is_blocked) << toString(run().state) << ": " << run().text;
    EXPECT_THAT(run().text, HasSubstr("image verification failed"));
    EXPECT_EQ(uploads(), 1);
    EXPECT_THAT(failure(), HasSubstr("1.5.0 "));
    rack_.on_tick = {};
    (void)test::live(rack_, store_);
    EXPECT_EQ(uploads(), 1) << "it was installed without anybody's word";
  }
};

TEST(FirmwareRetryRun, isBlockedAgainWhereItFailsAgain) {
  killAtEveryWrite(trials<FailsAgain>(), 12, {.every = 2});
}

/// Cancelled while the node waits for its job to end: what failed is blocked as before, so that
/// nobody installs it by the agreement to a run that was taken back.
class CancelledRetry final : public RetryTrial {
 public:
  CancelledRetry() {
    auto& machine = rack_.machines.at(NodeName("gpu001"));
    machine.drained = false, machine.drain_reason.clear(), machine.slurmd = true;
    rack_.startJob("gpu001", 3'000s);
    failed_ = failure();
  }
  void tick() override {
    RetryTrial::tick();
    if (run().state == RunState::Running && run().order == lifecycle::RunOrder::None)
      EXPECT_TRUE(app::cancelRun(runs_, id_, kBen, rack_.wall.now()));
  }
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Cancelled));
    EXPECT_EQ(failure(), failed_);
    rack_.on_tick = {};
    (void)test::live(rack_, store_);
    EXPECT_EQ(uploads(), 0) << "it was installed after the run was cancelled";
    EXPECT_THAT(rack_.violations, IsEmpty());
  }

 private:
  std::string failed_;
};

TEST(FirmwareRetryRun, isCancelledAndTheBlockIsBack) {
  killAtEveryWrite(trials<CancelledRetry>(), 5, {.every = 1});
}

/// Paused at the same moment, and gone on with: the agreement counts still.
class PausedRetry final : public RetryTrial {
 public:
  PausedRetry() {
    auto& machine = rack_.machines.at(NodeName("gpu001"));
    machine.drained = false, machine.drain_reason.clear(), machine.slurmd = true;
    rack_.startJob("gpu001", 300s);
  }
  void tick() override {
    RetryTrial::tick();
    const auto now = run();
    if (now.state == RunState::Running && !was_paused_ && now.order == lifecycle::RunOrder::None)
      EXPECT_TRUE(app::pauseRun(runs_, id_, kBen, rack_.wall.now()));
    if (now.state != RunState::Paused) return;
    was_paused_ = true;
    EXPECT_THAT(failure(), HasSubstr("1.5.0 ")) << "nothing was begun: it is blocked meanwhile";
    EXPECT_TRUE(app::resumeRun(runs_, id_, kBen, rack_.wall.now()));
  }

 private:
  bool was_paused_ = false;
};

TEST(FirmwareRetryRun, isPausedAndGoesOn) {
  killAtEveryWrite(trials<PausedRetry>(), 15, {.every = 4});
}

/// The BMC did not answer once, long ago: nothing has moved since the plan, so the first round
/// works.
TEST(FirmwareRetryRun, goesOnAtOnceWhereSomethingCouldNotBeReadBefore) {
  struct WasUnread final : RetryTrial {
    WasUnread() {
      EXPECT_TRUE(store_.putFacts({lifecycle::readAgainFact(lifecycle::Subject(NodeName("gpu001")),
                                                            "enrolled", rack_.wall.now())}));
    }
    std::string held() {
      for (const auto& event : *store_.lastEvents(1'000, nullptr))
        if (event.text.find("plan again") != std::string::npos) return event.text;
      return {};
    }
    using RetryTrial::run;
  };
  WasUnread trial;
  EXPECT_TRUE(trial.live({}).ok);
  trial.expectTheEnd();
  EXPECT_THAT(trial.run().problems, IsEmpty());
  EXPECT_THAT(trial.held(), IsEmpty());
}

TEST(FirmwareRetryRun, hasNothingToDoWhereNothingHasFailed) {
  struct Healthy final : RetryTrial {
    Healthy() { ask(retryOf("gpu002")); }
    bool over() override { return isEnd(run().state); }
    using RetryTrial::run;
    using RetryTrial::uploads;
  };
  Healthy trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Done));
  EXPECT_EQ(trial.run().reason, RunReason::NothingToDo);
  EXPECT_THAT(trial.run().text, HasSubstr("has failed"));
}

TEST(FirmwareRetryRun, refusesWhatSaysNeitherWhyNorWhere) {
  struct Any final : RetryTrial {
    using RetryTrial::rack_;
    using RetryTrial::runs_;
  };
  Any trial;
  const auto ask = [&trial](const app::RunRequest& request) {
    return app::submitRun(trial.runs_, request, kAnna, trial.rack_.wall.now());
  };
  auto request = retryOf("gpu001");
  request.firmware_retry.reason = " ";
  ASSERT_FALSE(ask(request));
  EXPECT_THAT(ask(request).error().text(), HasSubstr("reason"));
  EXPECT_FALSE(ask(retryOf("")));
}

}  // namespace
}  // namespace muster::test
