// SPDX-License-Identifier: Apache-2.0
// Builds of images and changes of BMCs as runs, which take no node out of work: each missing image
// is built to its end once, never two at the same time, and each BMC that was named gets its
// certificate, one at first, wherever the process that carries the run out is killed.
#include "app/runs/bmc_changer.h"
#include "app/runs/image_builder.h"
#include "tests/crash/run_rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using lifecycle::RunReason;
using lifecycle::RunState;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr auto kBuildTakes = 40s;

/// The host's cache, and the builds that run there. A build ends with the process that began it.
struct Cache {
  std::set<std::string> missing{"bookworm", "ramos"};
  std::map<std::string, int> built;
  int begun = 0, running = 0, most = 0;
  bool fails = false;
};

class Build final : public io::Child {
 public:
  Build(std::shared_ptr<Cache> cache, Clock& clock, std::string name, std::filesystem::path log)
      : cache_(std::move(cache)),
        clock_(clock),
        name_(std::move(name)),
        log_(std::move(log)),
        ends_at_(clock.steady() + kBuildTakes) {
    ++cache_->begun;
    cache_->most = std::max(cache_->most, ++cache_->running);
    std::ofstream(log_) << "cluster.yaml:1:1: warning: the inventory has no nodes\n"
                        << "installs packages\n";
  }
  ~Build() override { end(); }
  pid_t pid() const override { return 1; }
  bool running() override {
    if (over_) return false;
    if (clock_.steady() < ends_at_) return true;
    std::ofstream(log_, std::ios::app)
        << (cache_->fails ? "muster: unavailable: the mirror does not answer\n" : "packed\n");
    if (!cache_->fails) {
      ++cache_->built[name_];
      cache_->missing.erase(name_);
    }
    end();
    return false;
  }
  void terminate(std::chrono::milliseconds) override { end(); }
  void signal(int) override {}

 private:
  void end() {
    if (!std::exchange(over_, true)) --cache_->running;
  }
  std::shared_ptr<Cache> cache_;
  Clock& clock_;
  const std::string name_;
  const std::filesystem::path log_;
  const std::chrono::steady_clock::time_point ends_at_;
  bool over_ = false;
};

class Builder final : public app::ImageBuilder {
 public:
  Builder(std::shared_ptr<Cache> cache, Clock& clock, std::filesystem::path folder)
      : cache_(std::move(cache)), clock_(clock), folder_(std::move(folder)) {}
  Async<std::vector<std::string>> missing(std::string only) override {
    std::vector<std::string> out;
    for (const auto& name : cache_->missing)
      if (only.empty() || only == name) out.push_back(name);
    co_return out;
  }
  Result<std::unique_ptr<io::Child>> start(const std::string& name, const std::string&,
                                           const std::filesystem::path& log) override {
    return std::make_unique<Build>(cache_, clock_, name, log);
  }
  std::filesystem::path folder() const override { return folder_; }

 private:
  std::shared_ptr<Cache> cache_;
  Clock& clock_;
  const std::filesystem::path folder_;
};

class BuildTrial : public RackRun {
 public:
  BuildTrial() : RackRun({"gpu001"}) {
    rack_.image_builder = std::make_shared<Builder>(cache_, rack_.clock, rack_.folder.path());
    ask({.kind = lifecycle::RunKind::ImageBuild});
    rack_.on_tick = [this] { tick(); };
  }
  virtual void tick() {}
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Done)) << run().text;
    EXPECT_THAT(cache_->missing, IsEmpty());
    EXPECT_THAT(cache_->built, Each(Pair(::testing::_, 1)));
    EXPECT_EQ(cache_->most, 1);
    EXPECT_EQ(cache_->running, 0) << "a build outlived its run";
    expectClean();
    EXPECT_EQ(rack_.machines.at(NodeName("gpu001")).drains, 0);
  }

 protected:
  std::shared_ptr<Cache> cache_ = std::make_shared<Cache>();
};

TEST(ImageBuildRun, buildsEachOnceWhateverDies) {
  killAtEveryWrite(trials<BuildTrial>(), 10, {.every = 2});
}

TEST(ImageBuildRun, buildsEachOnceAfterTwoKills) { killTwice(trials<BuildTrial>(), {.pairs = 8}); }

/// Paused, its build ends with it; resumed, it begins again.
TEST(ImageBuildRun, isPausedAndGoesOn) {
  struct Paused final : BuildTrial {
    void tick() override {
      const auto now = run();
      const bool runs = now.state == RunState::Running && cache_->running > 0;
      if (runs && !paused_ && now.order == lifecycle::RunOrder::None)
        EXPECT_TRUE(app::pauseRun(runs_, id_, kBen, rack_.wall.now()));
      if (now.state != RunState::Paused) return;
      EXPECT_EQ(cache_->running, 0);
      paused_ = true;
      EXPECT_TRUE(app::resumeRun(runs_, id_, kBen, rack_.wall.now()));
    }
    bool paused_ = false;
  };
  killAtEveryWrite(trials<Paused>(), 10, {.every = 4});
}

TEST(ImageBuildRun, tellsWhyABuildHasFailed) {
  struct Failing final : BuildTrial {
    Failing() { cache_->fails = true; }
    using BuildTrial::cache_;
    using BuildTrial::run;
  };
  Failing trial;
  EXPECT_TRUE(trial.live({}).ok) << trial.story();
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Failed));
  EXPECT_EQ(trial.run().reason, RunReason::ActionFailed);
  EXPECT_THAT(trial.run().text, HasSubstr("the mirror does not answer"));
  EXPECT_THAT(trial.run().text, ::testing::Not(HasSubstr("the inventory has no nodes")));
  EXPECT_EQ(trial.cache_->begun, 1) << "the next one is not begun";
}

TEST(ImageBuildRun, hasNothingToDoWhereAllIsBuilt) {
  struct Built final : BuildTrial {
    Built() { cache_->missing.clear(); }
    using BuildTrial::cache_;
    using BuildTrial::run;
  };
  Built trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(trial.run().reason, RunReason::NothingToDo);
  EXPECT_EQ(trial.cache_->begun, 0);
}

TEST(ImageBuildRun, isAboutImagesAlone) {
  struct Any final : BuildTrial {
    using BuildTrial::rack_;
    using BuildTrial::runs_;
  };
  Any trial;
  const auto ask = [&trial](const app::RunRequest& request) {
    return app::submitRun(trial.runs_, request, kAnna, trial.rack_.wall.now());
  };
  EXPECT_FALSE(ask({.kind = lifecycle::RunKind::ImageBuild, .apply = {"gpu001"}}));
  EXPECT_FALSE(
      ask({.kind = lifecycle::RunKind::ImageBuild, .apply = {}, .image_build = {"", "none"}}));
  EXPECT_TRUE(ask(
      {.kind = lifecycle::RunKind::ImageBuild, .apply = {}, .image_build = {"bookworm", "none"}}));
}

constexpr auto kChangeTakes = 20s;

/// The rack's BMCs, whoever works on them.
struct Bmcs {
  std::map<std::string, int> issued;
  std::set<std::string> under_way, failing;
  std::vector<std::string> begun;
  std::size_t most = 0;
};

class Changer final : public app::BmcChanger {
 public:
  Changer(std::shared_ptr<Bmcs> bmcs, Clock& clock) : bmcs_(std::move(bmcs)), clock_(clock) {}
  Async<void> rotatePassword(NodeName) override {
    co_return fail(ErrorCode::Internal, "no password is changed here");
  }
  Async<void> issueCertificate(NodeName node) override {
    auto bmcs = bmcs_;
    bmcs->begun.push_back(node.str());
    EXPECT_TRUE(bmcs->under_way.insert(node.str()).second) << node.str() << " is asked twice";
    const std::shared_ptr<void> ends(
        nullptr, [bmcs, name = node.str()](void*) { bmcs->under_way.erase(name); });
    bmcs->most = std::max(bmcs->most, bmcs->under_way.size());
    co_await clock_.sleep(kChangeTakes);
    if (bmcs->failing.contains(node.str()))
      co_return fail(ErrorCode::Unavailable, "the BMC does not answer");
    ++bmcs->issued[node.str()];
    co_return Result<void>();
  }

 private:
  std::shared_ptr<Bmcs> bmcs_;
  Clock& clock_;
};

class ChangeTrial : public RackRun {
 public:
  ChangeTrial() : RackRun({"gpu001", "gpu002", "gpu003"}) {
    rack_.bmc_changer = std::make_shared<Changer>(bmcs_, rack_.clock);
    ask({.kind = lifecycle::RunKind::BmcCertificate, .apply = {"gpu[001-003]"}});
    rack_.on_tick = [this] { tick(); };
  }
  virtual void tick() {}
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Done)) << run().text;
    EXPECT_EQ(run().bmc_change.done, "gpu[001-003]");
    EXPECT_EQ(run().progress.done, 3u);
    // One whose row was not written before its process died gets another one.
    EXPECT_THAT(bmcs_->issued, AllOf(SizeIs(3), Each(Pair(::testing::_, AllOf(Ge(1), Le(3))))));
    EXPECT_THAT(bmcs_->under_way, IsEmpty());
    EXPECT_LE(bmcs_->most, 2u) << "one goes first";
    expectClean();
    for (const auto& [name, machine] : rack_.machines) EXPECT_EQ(machine.drains, 0) << name.str();
  }

 protected:
  std::shared_ptr<Bmcs> bmcs_ = std::make_shared<Bmcs>();
};

TEST(BmcChangeRun, changesEachOnceWhereNothingDies) {
  struct Any final : ChangeTrial {
    using ChangeTrial::bmcs_;
    using ChangeTrial::run;
  };
  Any trial;
  EXPECT_TRUE(trial.live({}).ok) << trial.story();
  trial.expectTheEnd();
  EXPECT_THAT(trial.bmcs_->issued, Each(Pair(::testing::_, 1)));
  EXPECT_THAT(trial.run().text, HasSubstr("3 of 3 done"));
  EXPECT_THAT(trial.story(), HasSubstr("certificate of the BMC: done (run "));
}

TEST(BmcChangeRun, changesEachWhateverDies) {
  killAtEveryWrite(trials<ChangeTrial>(), 10, {.every = 2});
}

TEST(BmcChangeRun, changesEachAfterTwoKills) { killTwice(trials<ChangeTrial>(), {.pairs = 8}); }

/// Paused, what it works on ends with it; resumed, it goes on with those that have it not.
TEST(BmcChangeRun, isPausedAndGoesOn) {
  struct Paused final : ChangeTrial {
    void tick() override {
      const auto now = run();
      const bool one_is_done = now.state == RunState::Running && now.bmc_change.done == "gpu001";
      if (one_is_done && !paused_ && now.order == lifecycle::RunOrder::None)
        EXPECT_TRUE(app::pauseRun(runs_, id_, kBen, rack_.wall.now()));
      if (now.state != RunState::Paused) return;
      EXPECT_THAT(bmcs_->under_way, IsEmpty());
      paused_ = true;
      EXPECT_TRUE(app::resumeRun(runs_, id_, kBen, rack_.wall.now()));
    }
    using ChangeTrial::bmcs_;
    bool paused_ = false;
  };
  Paused trial;
  EXPECT_TRUE(trial.live({}).ok) << trial.story();
  EXPECT_TRUE(trial.paused_);
  trial.expectTheEnd();
  EXPECT_EQ(trial.bmcs_->issued.at("gpu001"), 1) << "it had one";
}

TEST(BmcChangeRun, theFirstThatFailsStopsTheRest) {
  struct Failing final : ChangeTrial {
    Failing() { bmcs_->failing = {"gpu001"}; }
    using ChangeTrial::bmcs_;
    using ChangeTrial::run;
  };
  Failing trial;
  EXPECT_TRUE(trial.live({}).ok) << trial.story();
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Failed));
  EXPECT_EQ(trial.run().reason, RunReason::ActionFailed);
  EXPECT_THAT(trial.run().text, HasSubstr("0 of 3 done, 1 failed, 2 not begun"));
  EXPECT_THAT(trial.run().problems, Contains(HasSubstr("gpu001: the BMC does not answer")));
  EXPECT_THAT(trial.bmcs_->begun, SizeIs(1));
}

}  // namespace
}  // namespace muster::test
