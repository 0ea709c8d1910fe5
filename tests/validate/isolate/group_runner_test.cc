// SPDX-License-Identifier: Apache-2.0
// Isolation by collectives, end to end below the command: the planner, the engine that asks agents,
// what nodes answer, the log that survives a kill. The nodes' rates come from the simulated
// cluster; the answers have the form that muster-collective gives them.
#include "validate/isolate/group_runner.h"
#include "base/io/files.h"
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/run_async.h"
#include "tests/validate/isolate_world.h"
#include "validate/isolate/isolation_run.h"
#include "validate/report/report.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::validate::isolate {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Killed {};

class IsolateGroups : public testing::Test {
 protected:
  static constexpr int kLeaves = 4, kNodesOfLeaf = 8, kGpus = 2;

  IsolateGroups() : world_(11) {
    world_.leaves = kLeaves, world_.nodes_per_leaf = kNodesOfLeaf, world_.leaves_per_pod = kLeaves,
    world_.rails = kGpus, world_.spines = 8, world_.routes_known = false;
    auto& fabric = cluster_.fabrics["ib"];
    fabric.name = "ib", fabric.nodes_per_su = kNodesOfLeaf, fabric.sus = kLeaves,
    fabric.link = "4xNDR";
    auto& profile = cluster_.profiles["p"];
    profile.name = "p", profile.fabric = "ib";
    for (int i = 0; i < world_.nodes(); ++i) {
      inventory::Node node;
      node.name = NodeName(fmt::format("n{:02}", i));
      node.profile = "p";
      node.address = Ipv4(static_cast<std::uint32_t>(100 + i));
      names_.push_back(node.name);
      cluster_.nodes.push_back(node);
      agents_.boot(node.name, wire::Mode::Disk).probes["rdma.devices"] = "mlx5_0,mlx5_1";
    }
    agents_.answer(
        wire::TaskKind::RunChecks,
        [this](const NodeName& node, const wire::AgentTask& task) -> Result<std::string> {
          return answer(node, task);
        });
  }

  Begun begun(Engine engine = {EngineKind::Nccl, kGpus}) {
    Begun out;
    out.run_id = "run", out.engine = engine, out.seed = 3;
    out.site = *siteOf(cluster_, names_, agents_, engine);
    return out;
  }
  RunLog log() { return RunLog(folder_ / "log"); }

  /// `until`: dies before this round begins.
  Result<IsolationRun> isolationRun(RunLog& log, int until = 1000) {
    const RoundBegins begins = [this, until](const Round& round) {
      if (round.number >= until) throw Killed{};
      for (std::size_t g = 0; g < round.groups.size(); ++g)
        groups_[fmt::format("run/{}/{}", round.number, g)] = round.groups[g];
    };
    auto work = [](Begun begun, RunLog& into, gateway::AgentGateway& by,
                   RoundBegins tell) -> Async<IsolationRun> {
      co_return co_await runIsolation(std::move(begun), into, by, std::move(tell));
    };
    return test::runAsync(work(begun(), log, agents_, begins));
  }
  IsolationRun whole() {
    auto kept = log();
    auto done = isolationRun(kept);
    EXPECT_TRUE(done) << done.error().str();
    return std::move(*done);
  }

  int numberOf(const NodeName& node) const {
    return static_cast<int>(std::find(names_.begin(), names_.end(), node) - names_.begin());
  }

  Result<std::string> answer(const NodeName& node, const wire::AgentTask& task) {
    const auto check = json::parse(task.params).at("checks").at(0);
    wire::CheckResult result;
    result.id = check.at("id");
    result.status = wire::CheckStatus::Pass;
    if (result.id == "collective.ready") {
      const int gpus = gpus_.contains(node.str()) ? gpus_[node.str()] : kGpus;
      if (gpus < 0) return fail(ErrorCode::Unavailable, "the check's process died");
      result.values = {{"tcp", 1}, {"nccl_gpus", static_cast<double>(gpus)}};
      result.text = gpus ? "NCCL" : "TCP alone: no such file";
      return wire::toJson({result});
    }
    const auto job = collective::parseJob(check.at("params").dump());
    EXPECT_TRUE(job) << job.error().str();
    const auto report = reportOf(*job, numberOf(node));
    result.status = report.passed ? wire::CheckStatus::Pass : wire::CheckStatus::Fail;
    result.text = report.passed ? "" : report.findings.front();
    result.evidence = collective::toJson(report).dump();
    return wire::toJson({result});
  }

  collective::JobReport reportOf(const collective::Job& job, int node) {
    const auto& group = groups_.at(job.group);
    collective::JobReport report{job.group, {}, {}, false};
    EXPECT_EQ(group.members.at(static_cast<std::size_t>(job.first_rank / kGpus)), node)
        << "each node has the ranks of its place";
    for (const int member : group.members)
      if (!agents_.state(names_[static_cast<std::size_t>(member)]) ||
          (fails_in_groups_ == member && group.kind != Collective::Pair))
        report.findings = {"1 of the other ranks did not come"};
    if (!report.findings.empty()) return report;
    auto [known, fresh] = rates_.try_emplace(job.group);
    if (fresh) known->second = world_.run(Round{.groups = {group}}).front();
    const auto m = group.members.size();
    const auto at = static_cast<std::size_t>(job.first_rank / kGpus);
    for (int local = 0; local < kGpus; ++local) {
      const auto rail = static_cast<std::size_t>(local);
      const auto row = [&](collective::Operation operation, double gbits, int peer) {
        const bool wrong =
            wrong_.contains({node, local}) ||
            (peer >= 0 &&
             wrong_.contains({group.members[static_cast<std::size_t>(peer / kGpus)], local}));
        report.rows.push_back({job.first_rank + local, peer, "gpu", operation, job.max_bytes,
                               wrong ? 3u : 0u, 1, gbits / 8, gbits / 8});
      };
      for (const auto operation : job.operations) {
        if (operation != collective::Operation::Pair) {
          row(operation, known->second.rail_gbits[rail], -1);
          continue;
        }
        for (std::size_t other = 0; other < m; ++other)
          if (other != at) {
            const auto pair = (rail * m + std::min(at, other)) * m + std::max(at, other);
            row(operation,
                group.kind == Collective::Pair
                    ? known->second.rail_gbits[rail]
                    : static_cast<double>(known->second.peer_gbits[pair]),
                static_cast<int>(other) * kGpus + local);
          }
      }
    }
    report.passed = true;
    return *collective::parseReport(collective::toJson(report).dump(),
                                    job);  // evaluated like everywhere
  }

  test::IsolateWorld world_;
  inventory::Cluster cluster_;
  std::vector<NodeName> names_;
  test::FakeAgentGateway agents_;
  test::TempFolder folder_;
  std::map<std::string, Group> groups_;  ///< what was planned, by the name that jobs have
  std::map<std::string, GroupResult> rates_;
  std::map<std::string, int> gpus_;      ///< that NCCL can use; -1: the check breaks
  std::set<std::pair<int, int>> wrong_;  ///< (node, GPU) that computes wrong data
  int fails_in_groups_ = -1;
};

TEST_F(IsolateGroups, clearsAHealthyClusterAndKeepsEveryTest) {
  const auto done = whole();
  EXPECT_TRUE(done.verdict.culprits.empty());
  EXPECT_TRUE(done.verdict.unclear.empty());
  EXPECT_EQ(done.verdict.cleared.size(), names_.size());
  EXPECT_EQ(done.rounds.size(), static_cast<std::size_t>(done.verdict.rounds));
  EXPECT_EQ(done.best.size(), names_.size() * kGpus);
  const auto matrix = report::matrixOf(toJson(done).dump());
  ASSERT_TRUE(matrix) << matrix.error().str();
  EXPECT_EQ(matrix->names.size(), names_.size());
  const auto n = names_.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (i != j) {
        EXPECT_NEAR(matrix->shares[i * n + j], 1, 0.15)
            << "the all-to-all of all has seen every pair";
      }
}

TEST_F(IsolateGroups, namesASlowNodeWithItsNextStep) {
  world_.slowNode(13, 0.9);
  const auto done = whole();
  ASSERT_EQ(done.verdict.culprits.size(), 1u);
  EXPECT_EQ(done.verdict.culprits[0].kind, CulpritKind::Node);
  EXPECT_THAT(toText(done.begun.site, done.verdict),
              AllOf(HasSubstr("n13 (node"), HasSubstr("BIOS settings"),
                    HasSubstr("0 of 32 nodes are cleared"),
                    HasSubstr("31 nodes were good in every test. To clear them takes 39 rounds")));
}

TEST_F(IsolateGroups, namesASlowGpusNicAndItsSwitchPort) {
  world_.slowNic(9, 1, 0.8);
  const auto done = whole();
  ASSERT_EQ(done.verdict.culprits.size(), 1u);
  EXPECT_THAT(tell(done.begun.site, done.verdict.culprits[0]).next,
              HasSubstr("leaf-su2-r1 port 2"));
}

TEST_F(IsolateGroups, namesTwoThatDoNotGetOnAlthoughNoMatchingMeetsThem) {
  world_.slowPair(4, 27, 0, 0.5);
  const auto done = whole();
  ASSERT_TRUE(test::names(done.verdict, CulpritKind::Pair, 4, 27, 0))
      << toText(done.begun.site, done.verdict);
}

TEST_F(IsolateGroups, wrongDataIsAsBadAsNoData) {
  wrong_.insert({20, 0});
  const auto done = whole();
  ASSERT_EQ(done.verdict.culprits.size(), 1u) << toText(done.begun.site, done.verdict);
  EXPECT_EQ(done.verdict.culprits[0].a, 20);
  EXPECT_EQ(done.verdict.culprits[0].rail, 0);
  EXPECT_EQ(done.verdict.culprits[0].reached, 0);
  EXPECT_THAT(done.rounds.dump(), HasSubstr("3 wrong values"));
}

TEST_F(IsolateGroups, aNodeThatIsGoneIsNamedAndNobodyElse) {
  const auto site = begun();
  agents_.silence(names_[17]);
  auto kept = log();
  auto work = [](Begun begun, RunLog& into, gateway::AgentGateway& by,
                 RoundBegins tell) -> Async<IsolationRun> {
    co_return co_await runIsolation(std::move(begun), into, by, std::move(tell));
  };
  const RoundBegins begins = [this](const Round& round) {
    for (std::size_t g = 0; g < round.groups.size(); ++g)
      groups_[fmt::format("run/{}/{}", round.number, g)] = round.groups[g];
  };
  const auto done = test::runAsync(work(site, kept, agents_, begins));
  ASSERT_TRUE(done);
  ASSERT_EQ(done->verdict.culprits.size(), 1u) << toText(done->begun.site, done->verdict);
  EXPECT_EQ(done->verdict.culprits[0].a, 17);
  EXPECT_EQ(done->verdict.good.size(), 31u);
}

TEST_F(IsolateGroups, collectivesThatFailAlthoughAllPairsAreGoodClearNobodyThatWasInThem) {
  fails_in_groups_ = 6;
  const auto done = whole();
  EXPECT_TRUE(done.verdict.culprits.empty());
  ASSERT_FALSE(done.verdict.unclear.empty()) << "a collective failed: it must not pass for silence";
  EXPECT_EQ(std::count(done.verdict.cleared.begin(), done.verdict.cleared.end(), 6), 0);
  EXPECT_THAT(toText(done.begun.site, done.verdict),
              HasSubstr("a collective of all of them failed"));
}

/// Rounds of a run that nothing disturbed; they follow from the seed.
TEST_F(IsolateGroups, killedBeforeAnyRoundItGoesOnWithTheSameRounds) {
  world_.slowNode(13, 0.9);
  const auto undisturbed = whole();
  const auto tasks = agents_.submitted().size();
  auto kept = log();
  ASSERT_TRUE(kept.remove());
  for (int round = 1; round <= undisturbed.verdict.rounds; ++round) {
    auto again = log();
    EXPECT_THROW((void)isolationRun(again, round), Killed);
    if (round > 2 && round % 2 == 0)
      std::filesystem::remove(
          again.folder() /
          fmt::format("round-{:03}.json", round - 1));  // the kill came before the round was kept
  }
  auto last = log();
  const auto done = isolationRun(last);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_GT(done->taken_up, 0);
  EXPECT_EQ(toJson(*done)["culprits"], toJson(undisturbed)["culprits"]);
  EXPECT_EQ(done->rounds.size(), undisturbed.rounds.size());
  EXPECT_EQ(done->best, undisturbed.best);
  EXPECT_EQ(agents_.submitted().size(), tasks) << "no test ran twice: agents know its id";
}

TEST_F(IsolateGroups, aLogOfOtherRoundsIsRefusedNotRead) {
  auto kept = log();
  EXPECT_THROW((void)isolationRun(kept, 3), Killed);
  ASSERT_TRUE(kept.add(2, {RoundResult(3), json::object()}));  // fewer groups than the round had
  const auto done = isolationRun(kept);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(done.error().str(), HasSubstr("remove that folder"));
}

TEST_F(IsolateGroups, theLogKeepsExactlyWhatWasBegunAndAnswered) {
  auto kept = log();
  EXPECT_FALSE(kept.begun()->has_value());
  auto begin = begun();
  begin.at = WallTime(std::chrono::milliseconds(1'790'000'000'123));
  begin.least_gbits = 361.5;
  ASSERT_TRUE(kept.begin(begin));
  const auto read = *kept.begun();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at, begin.at);
  EXPECT_EQ(read->least_gbits, 361.5);
  EXPECT_EQ(read->engine.ranks_per_node, kGpus);
  EXPECT_EQ(siteToJson(read->site), siteToJson(begin.site));
  const RoundResult answer{{{0.1 + 0.2, std::nan("")}, {1.1f, std::nanf(""), 0}}};
  ASSERT_TRUE(kept.add(1, {answer, json{{"a", 1}}}));
  const auto rounds = *kept.rounds();
  ASSERT_EQ(rounds.size(), 1u);
  EXPECT_EQ(rounds[0].result[0].rail_gbits[0], 0.1 + 0.2);
  EXPECT_TRUE(std::isnan(rounds[0].result[0].rail_gbits[1]));
  EXPECT_EQ(rounds[0].result[0].peer_gbits[0], 1.1f);
  EXPECT_TRUE(std::isnan(rounds[0].result[0].peer_gbits[1]));
  ASSERT_TRUE(io::writeFileAtomic(kept.folder() / "begun.json", "{\"format\": \"muster-isola"));
  EXPECT_EQ(kept.begun().error().code(), ErrorCode::Corrupt);
  ASSERT_TRUE(kept.remove());
  EXPECT_FALSE(kept.begun()->has_value());
}

class ChooseEngine : public IsolateGroups {
 protected:
  Result<Engine> choose(const std::string& wish) {
    auto work = [](std::string wanted, std::vector<NodeName> nodes, gateway::AgentGateway& by,
                   std::string id) -> Async<Engine> {
      co_return co_await chooseEngine(std::move(wanted), std::move(nodes), by, std::move(id));
    };
    return test::runAsync(work(wish, names_, agents_, fmt::format("probe-{}", ++probes_)));
  }
  int probes_ = 0;
};

TEST_F(ChooseEngine, takesWhatAllOfThemHave) {
  EXPECT_EQ(choose("auto")->kind, EngineKind::Nccl);
  EXPECT_EQ(choose("auto")->ranks_per_node, kGpus);
  EXPECT_EQ(choose("tcp")->kind, EngineKind::Tcp);
  EXPECT_EQ(choose("rdma")->kind, EngineKind::Rdma);
  EXPECT_EQ(choose("mpi").error().code(), ErrorCode::InvalidInput);
  gpus_["n05"] = 0;
  EXPECT_EQ(choose("auto")->kind, EngineKind::Rdma);
  const auto lacking = choose("nccl");
  ASSERT_FALSE(lacking);
  EXPECT_THAT(lacking.error().str(),
              AllOf(HasSubstr("1 of 32 nodes"), HasSubstr("n05: TCP alone: no such file"),
                    HasSubstr("--engine rdma")));
  gpus_["n05"] = kGpus - 1;
  EXPECT_EQ(choose("auto")->kind, EngineKind::Rdma);
  EXPECT_THAT(choose("nccl").error().str(), HasSubstr("n05 has 1 GPUs"));
  gpus_["n05"] = -1;
  EXPECT_THAT(choose("tcp").error().str(), HasSubstr("n05: "));
}

TEST_F(ChooseEngine, railsAreNicsOrGpusOrOne) {
  EXPECT_EQ(siteOf(cluster_, names_, agents_, {EngineKind::Nccl, 8})->nodes[0].devices.back(),
            "GPU 7")
      << "eight GPUs, two NICs";
  EXPECT_EQ(siteOf(cluster_, names_, agents_, {EngineKind::Nccl, 2})->nodes[0].devices.back(),
            "mlx5_1");
  EXPECT_EQ(siteOf(cluster_, names_, agents_, {EngineKind::Tcp, 1})->layout.rails, 1);
}

}  // namespace
}  // namespace muster::validate::isolate
