// SPDX-License-Identifier: Apache-2.0
// Isolations as runs: tests between nodes that nobody works with find what is bad, each test once,
// wherever the process that carries the run out is killed.
#include "inventory/model/approvals.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "tests/crash/run_rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using lifecycle::RunReason;
using lifecycle::RunState;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kGood = 390, kBad = 250;

app::RunRequest isolationOf(const std::string& nodes) {
  app::RunRequest out{.kind = lifecycle::RunKind::Isolate, .apply = {nodes}};
  out.isolate = {"rdma", 350, 7};
  return out;
}

/// Eight idle nodes on one fabric, and the NIC of one of them is slow. Another person has to agree.
class IsolationTrial : public RackRun {
 public:
  explicit IsolationTrial(const app::RunRequest& request = isolationOf("gpu[001-008]"))
      : RackRun({"gpu001", "gpu002", "gpu003", "gpu004", "gpu005", "gpu006", "gpu007", "gpu008"}) {
    auto& fabric = rack_.cluster.fabrics["ib"];
    fabric.name = "ib", fabric.nodes_per_su = 8, fabric.sus = 1, fabric.link = "4xNDR";
    rack_.cluster.profiles.at("gpu-node").fabric = "ib";
    rack_.cluster.approvals = {{inventory::Disturbance::Any, 2, {}, 1}};
    for (const auto& [node, machine] : rack_.machines) {
      auto state = *rack_.agents.state(node);
      state.probes["rdma.devices"] = "mlx5_0";
      rack_.agents.setState(std::move(state));
    }
    rack_.agents.answer(
        wire::TaskKind::RdmaPair,
        [this](const NodeName& node, const wire::AgentTask& task) { return pairTest(node, task); });
    ask(request);
    rack_.on_tick = [this] { tick(); };
  }
  virtual void tick() {
    if (!run().begun) EXPECT_EQ(tests(), 0u) << "it was tested before anybody agreed";
    approve();
  }
  void expectTheEnd() override {
    EXPECT_EQ(toString(run().state), toString(RunState::Failed)) << run().text;
    EXPECT_EQ(run().reason, RunReason::FaultsFound) << run().text;
    EXPECT_THAT(run().problems, Contains(HasSubstr("gpu003")));
    EXPECT_EQ(run().approvals.size(), 1u) << "nobody is asked twice";
    expectTestedOnce();
    const auto findings = store_.findings(nullptr);
    ASSERT_THAT(*findings, SizeIs(1));
    EXPECT_EQ(findings->front().facet.subject.str(), "gpu003");
  }

 protected:
  std::size_t tests() {
    std::size_t out = 0;
    for (const auto& [node, task] : rack_.agents.submitted())
      out += task.kind == wire::TaskKind::RdmaPair && task.id.ends_with("/client");
    return out;
  }
  void expectTestedOnce() {
    expectClean();
    EXPECT_EQ(tests(), run().progress.done) << "each test once";
    EXPECT_THAT(rack_.measurements.sets, SizeIs(8)) << "each node's measurements once";
    for (const auto& [node, machine] : rack_.machines) {
      EXPECT_EQ(machine.drains, 0) << node.str();
      EXPECT_TRUE(rack_.inPool(node.str())) << node.str();
    }
    const auto folder = rack_.folder / rack_.state / "validation";
    std::error_code none;  // of a host that found nothing left to do
    for (const auto& entry : std::filesystem::directory_iterator(folder, none))
      EXPECT_THAT(entry.path().filename().string(), ::testing::StartsWith("isolate-"))
          << "what was done so far is not needed any more";
  }
  Result<std::string> pairTest(const NodeName& node, const wire::AgentTask& task) {
    if (rack_.machines.at(node).job_ends_at &&
        rack_.clock.steady() < *rack_.machines.at(node).job_ends_at)
      rack_.violations.push_back(node.str() + ": was tested beside a job");
    const auto test = task.id.substr(0, task.id.rfind('/'));
    wire::CheckResult result;
    result.id = "rdma.pair";
    result.status = wire::CheckStatus::Pass;
    if (nlohmann::json::parse(task.params).at("role") == "server") {
      serving_[test] = node.str();
    } else {
      const bool slow = node.str() == slow_ || serving_[test] == slow_;
      result.values["rdma_write_gbits"] =
          (slow ? kBad : kGood) + static_cast<double>(++asked_ % 5) / 2;
    }
    return wire::toJson(std::vector{result});
  }

  std::string slow_ = "gpu003";

 private:
  std::map<std::string, std::string> serving_;
  int asked_ = 0;
};

TEST(IsolationRun, findsTheSameWhateverDiesAndOnlyWhenAnotherHasAgreed) {
  killAtEveryWrite(trials<IsolationTrial>(), 15, {.every = 2});
}

TEST(IsolationRun, findsTheSameAfterTwoKills) { killTwice(trials<IsolationTrial>(), {.pairs = 6}); }

/// Each process is on another host, which sees nothing of the folders of those before.
class OtherHostTrial final : public IsolationTrial {
 public:
  OtherHostTrial() {
    auto& network = rack_.cluster.networks.front();
    network.controllers = {*Ipv4::parse("10.20.0.1"), *Ipv4::parse("10.20.0.2")};
  }
  LifeEnd live(Death death) override {
    rack_.state = fmt::format("host{}", ++hosts_);
    return IsolationTrial::live(death);
  }

 private:
  int hosts_ = 0;
};

TEST(IsolationRun, findsTheSameWhereverItGoesOn) {
  killAtEveryWrite(trials<OtherHostTrial>(), 15, {.every = 2});
}

TEST(IsolationRun, isDoneWhereEveryNodeIsCleared) {
  struct Healthy final : IsolationTrial {
    Healthy() { slow_.clear(); }
    using IsolationTrial::expectTestedOnce;
    using IsolationTrial::run;
    using IsolationTrial::store_;
  };
  Healthy trial;
  EXPECT_TRUE(trial.live({}).ok) << trial.story();
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Done)) << trial.run().text;
  EXPECT_THAT(trial.run().text, HasSubstr("0 bad"));
  EXPECT_THAT(*trial.store_.findings(nullptr), IsEmpty());
  trial.expectTestedOnce();
}

/// A named node that works is not disturbed, and nothing is tested; of a whole fabric it is left
/// out.
TEST(IsolationRun, leavesNodesWithJobsAlone) {
  struct Busy final : IsolationTrial {
    explicit Busy(const std::string& nodes) : IsolationTrial(isolationOf(nodes)) {
      rack_.startJob("gpu005", 10'000s);
    }
    using IsolationTrial::rack_;
    using IsolationTrial::run;
    using IsolationTrial::tests;
  };
  Busy named("gpu[001-008]");
  EXPECT_TRUE(named.live({}).ok);
  EXPECT_EQ(toString(named.run().state), toString(RunState::Failed));
  EXPECT_EQ(named.run().reason, RunReason::CannotPlan);
  EXPECT_THAT(named.run().text, HasSubstr("gpu005"));
  EXPECT_EQ(named.tests(), 0u);
  Busy all("");
  EXPECT_TRUE(all.live({}).ok) << all.story();
  EXPECT_EQ(all.run().reason, RunReason::FaultsFound) << all.run().text;
  EXPECT_THAT(all.rack_.violations, IsEmpty());
  EXPECT_EQ(all.run().subjects, "gpu[001-004,006-008]");
}

// What was wrong: it was tried again for ever, said nothing, and held up every run behind it.
TEST(IsolationRun, thatCannotBeginHasFailed) {
  struct Deaf final : IsolationTrial {
    Deaf() {
      for (const auto& [node, machine] : rack_.machines) {
        auto state = *rack_.agents.state(node);
        state.probes.erase("rdma.devices");
        rack_.agents.setState(std::move(state));
      }
    }
    using IsolationTrial::run;
    using IsolationTrial::tests;
  };
  Deaf trial;
  EXPECT_TRUE(trial.live({}).ok) << trial.story();
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Failed)) << trial.run().text;
  EXPECT_EQ(trial.run().reason, RunReason::CannotPlan);
  EXPECT_THAT(trial.run().text, HasSubstr("nothing was tested: "));
  EXPECT_THAT(trial.run().text, HasSubstr("no RDMA device is reported"));
  EXPECT_EQ(trial.tests(), 0u);
}

/// Cancelled, it leaves nothing that a later one would go on with.
TEST(IsolationRun, isCancelledBeforeItBegins) {
  struct Cancelled final : IsolationTrial {
    void tick() override {
      if (run().state == RunState::NeedsApproval)
        EXPECT_TRUE(app::cancelRun(runs_, id_, kAnna, rack_.wall.now()));
    }
    using IsolationTrial::run;
    using IsolationTrial::tests;
  };
  Cancelled trial;
  EXPECT_TRUE(trial.live({}).ok);
  EXPECT_EQ(toString(trial.run().state), toString(RunState::Cancelled));
  EXPECT_EQ(trial.tests(), 0u);
}

TEST(IsolationRun, refusesAnEngineThatIsNone) {
  struct Any final : IsolationTrial {
    using IsolationTrial::rack_;
    using IsolationTrial::runs_;
  };
  Any trial;
  auto request = isolationOf("gpu[001-002]");
  request.isolate.engine = "mpi";
  const auto refused = app::submitRun(trial.runs_, request, kAnna, trial.rack_.wall.now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
  request = isolationOf("gpu[001-002]");
  request.isolate.min_gbps = -1;
  EXPECT_FALSE(app::submitRun(trial.runs_, request, kAnna, trial.rack_.wall.now()));
}

}  // namespace
}  // namespace muster::test
