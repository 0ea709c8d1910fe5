// SPDX-License-Identifier: Apache-2.0
// The executor over agents: what is asked of them, and what their answers mean. Fail closed.
#include "validate/isolate/runner.h"
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/run_async.h"

#include <nlohmann/json.hpp>

namespace muster::validate::isolate {
namespace {

class IsolateRunner : public testing::Test {
 protected:
  IsolateRunner() {
    auto& fabric = cluster_.fabrics["ib"];
    fabric.name = "ib", fabric.nodes_per_su = 4, fabric.sus = 2, fabric.link = "4xNDR";
    auto& profile = cluster_.profiles["p"];
    profile.name = "p", profile.fabric = "ib";
    for (int i = 0; i < 8; ++i) {
      inventory::Node node;
      node.name = NodeName("n" + std::to_string(i));
      node.profile = "p";
      node.address = Ipv4(static_cast<std::uint32_t>(100 + i));
      names_.push_back(node.name);
      cluster_.nodes.push_back(node);
      agents_.boot(node.name, wire::Mode::Disk).probes["rdma.devices"] = "mlx5_10,mlx5_2";
    }
  }

  /// Every test gives 390 Gb/s; with a slow device at either end less.
  void answerRates() {
    agents_.answer(
        wire::TaskKind::RdmaPair,
        [this](const NodeName& node, const wire::AgentTask& task) -> Result<std::string> {
          const auto params = nlohmann::json::parse(task.params);
          wire::CheckResult result;
          result.id = "rdma.pair";
          result.status = wire::CheckStatus::Pass;
          const auto device = node.str() + " " + params.at("device").get<std::string>();
          if (params.at("role") == "server") {
            serving_[task.id.substr(0, task.id.rfind('/'))] = device;
          } else {
            const auto& server = serving_[task.id.substr(0, task.id.rfind('/'))];
            const bool slow = device == slow_ || server == slow_;
            if (device != silent_ && server != silent_)
              result.values["rdma_write_gbits"] =
                  (slow ? 300 : 390) + static_cast<double>(++asked_ % 5) * 0.5;
            else
              result.status = wire::CheckStatus::NoData;
          }
          return wire::toJson({result});
        });
  }

  Verdict isolated() {
    const auto site = siteOf(cluster_, names_, agents_);
    EXPECT_TRUE(site);
    PairRunner runner(*site, agents_, "run");
    Isolation isolation(site->layout, {.groups = runner.runsGroups(), .least_gbits = 200});
    auto work = [](Isolation& each, PairRunner& by) -> Async<Verdict> {
      co_return co_await isolateBy(each, by, {});
    };
    const auto verdict = test::runAsync(work(isolation, runner));
    EXPECT_TRUE(verdict);
    return *verdict;
  }

  inventory::Cluster cluster_;
  std::vector<NodeName> names_;
  test::FakeAgentGateway agents_;
  std::map<std::string, std::string> serving_;
  std::string slow_, silent_;
  int asked_ = 0;
};

TEST_F(IsolateRunner, placesNodesAsTheFabricDeclaresThem) {
  const auto site = siteOf(cluster_, names_, agents_);
  ASSERT_TRUE(site);
  EXPECT_EQ(site->layout.rails, 2);
  EXPECT_EQ(site->layout.leaf, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(site->nodes[5].leaf_port, 2);
  EXPECT_EQ(site->nodes[0].devices, (std::vector<std::string>{"mlx5_2", "mlx5_10"}));  // by number
}

TEST_F(IsolateRunner, everyEngineThatMeasuresADeviceHasAFloor) {
  auto site = *siteOf(cluster_, names_, agents_);
  EXPECT_EQ(leastGbitsOf(site, EngineKind::Rdma), 360);
  EXPECT_EQ(leastGbitsOf(site, EngineKind::Nccl), 270);
  EXPECT_EQ(leastGbitsOf(site, EngineKind::Tcp), std::nullopt);
  const auto shared =
      *siteOf(cluster_, names_, agents_, {EngineKind::Nccl, 4});  // four GPUs, two NICs
  EXPECT_EQ(leastGbitsOf(shared, EngineKind::Nccl), std::nullopt);
  site.link.clear();
  EXPECT_EQ(leastGbitsOf(site, EngineKind::Nccl), std::nullopt);
}

/// A run that is no measure: told as one line for all nodes, in JSON without a node.
TEST_F(IsolateRunner, whatConcernsAllNodesIsToldOfAllNodes) {
  const auto site = *siteOf(cluster_, names_, agents_);
  const Verdict verdict{.culprits = {}, .unclear = {{.a = -1, .why = "constant"}}, .cleared = {}};
  EXPECT_NE(toText(site, verdict).find("unclear: all nodes: constant"), std::string::npos);
  const Verdict good{.good = {0, 1}, .good_rounds = 16};
  const auto text = toText(site, good);
  EXPECT_NE(text.find("0 of "), std::string::npos) << text;
  EXPECT_NE(text.find("2 nodes were good in 16 rounds. That excludes a fault that is always there; "
                      "one that makes a node bad in three of ten rounds is missed in 0.33 %"),
            std::string::npos)
      << text;
  EXPECT_EQ(toJson(site, good)["good_rounds"], 16);
  const auto json = toJson(site, verdict);
  ASSERT_EQ(json.at("unclear").size(), 1u);
  EXPECT_TRUE(json["unclear"][0].at("node").is_null());
}

TEST_F(IsolateRunner, aFaultThatComesAndGoesIsToldWithItsCount) {
  const auto site = *siteOf(cluster_, names_, agents_);
  const auto node = tell(
      site, {.kind = CulpritKind::Node, .a = 2, .reached = 0.5, .tests = 16, .bad = 5, .seen = {}});
  EXPECT_NE(node.what.find("bad in 5 of its 16 tests"), std::string::npos) << node.what;
  EXPECT_NE(node.next.find("run the isolation again"), std::string::npos) << node.next;
  const auto nic =
      tell(site, {.kind = CulpritKind::Nic, .a = 2, .rail = 1, .tests = 9, .bad = 3, .seen = {}});
  EXPECT_NE(nic.what.find("bad in 3 of its 9 tests"), std::string::npos) << nic.what;
  EXPECT_NE(nic.next.find("leaf-su1-r1 port 3"), std::string::npos) << nic.next;
}

// What was wrong: tests over the host network named a leaf switch of the fabric, which had carried
// none of their bytes, and a dead node's RDMA driver.
TEST_F(IsolateRunner, overTheHostNetworkTheFabricIsNotAccused) {
  for (std::size_t i = 0; i < cluster_.nodes.size(); ++i)
    cluster_.nodes[i].rack = i < 3 ? "r1" : "r2";  // not as the leaves are
  const auto site = siteFromJson(siteToJson(*siteOf(cluster_, names_, agents_, {EngineKind::Tcp})));
  ASSERT_TRUE(site) << site.error().str();
  EXPECT_TRUE(site->over_host_network);
  EXPECT_FALSE(site->leaves_are_switches);
  EXPECT_EQ(site->leaf_names, (std::vector<std::string>{"r1", "r2"}));
  EXPECT_EQ(site->layout.leaf, (std::vector<int>{0, 0, 0, 1, 1, 1, 1, 1}));
  const std::vector<Culprit> culprits{
      {.kind = CulpritKind::Leaf, .a = 0, .rail = 0, .reached = 0.25, .seen = {}},
      {.kind = CulpritKind::Uplinks, .a = 1, .rail = 0, .reached = 0.5, .seen = {}},
      {.kind = CulpritKind::Node, .a = 2, .reached = 0.25, .seen = {}},
      {.kind = CulpritKind::Node, .a = 2, .reached = 0, .seen = {}},
      {.kind = CulpritKind::Node, .a = 2, .reached = 0.5, .tests = 9, .bad = 3, .seen = {}},
      {.kind = CulpritKind::Pair, .a = 2, .b = 5, .rail = 0, .reached = 0.5, .seen = {}}};
  for (const auto& culprit : culprits) {
    const auto told = tell(*site, culprit);
    for (const char* part : {"leaf-su", "RDMA", "ibtracert", "rail", "fabric diff"})
      EXPECT_EQ((told.subject + told.what + told.next).find(part), std::string::npos)
          << part << " in: " << told.subject << ": " << told.what << "; " << told.next;
  }
  EXPECT_EQ(tell(*site, culprits[0]).subject, "rack r1");
  EXPECT_NE(tell(*site, culprits[1]).subject.find("rack r2"), std::string::npos);
  EXPECT_EQ(tell(*site, culprits[5]).subject, "n2 with n5");
  const auto rdma = *siteOf(cluster_, names_, agents_);
  EXPECT_EQ(tell(rdma, culprits[0]).subject, "leaf-su1-r0") << "the fabric's own tests name it";
}

TEST_F(IsolateRunner, namesTheSlowDeviceWithItsSwitchPort) {
  answerRates();
  slow_ = "n6 mlx5_10";
  const auto verdict = isolated();
  ASSERT_EQ(verdict.culprits.size(), 1u);
  const auto told = tell(*siteOf(cluster_, names_, agents_), verdict.culprits.front());
  EXPECT_EQ(told.subject, "n6 rail 1 (mlx5_10)");
  EXPECT_NE(told.next.find("leaf-su2-r1 port 3"), std::string::npos) << told.next;
  EXPECT_EQ(verdict.good.size(), 7u) << "cleared by the run after the repair";
}

TEST_F(IsolateRunner, railsOfAPairRunOnPortsAndTasksOfTheirOwn) {
  answerRates();
  isolated();
  std::set<std::string> ids;
  for (const auto& [node, task] : agents_.submitted()) {
    EXPECT_TRUE(ids.insert(node.str() + task.id).second) << "a task id twice: " << task.id;
    const auto params = nlohmann::json::parse(task.params);
    EXPECT_EQ(params.at("port").get<int>(), params.at("device") == "mlx5_2" ? 18515 : 18516);
    EXPECT_GT(params.at("iterations").get<int>(), 3'000'000)
        << "five seconds of 400 Gb/s, the same at both ends";
  }
}

TEST_F(IsolateRunner, anAgentThatIsGoneFailsItsTestsAndNobodyElses) {
  answerRates();
  const auto site = *siteOf(cluster_, names_, agents_);
  agents_.silence(NodeName("n3"));
  PairRunner runner(site, agents_, "run");
  Isolation isolation(site.layout, {.groups = false, .least_gbits = 200});
  auto work = [](Isolation& each, PairRunner& by) -> Async<Verdict> {
    co_return co_await isolateBy(each, by, {});
  };
  const auto verdict = *test::runAsync(work(isolation, runner));
  ASSERT_EQ(verdict.culprits.size(), 1u);
  EXPECT_EQ(verdict.culprits[0].kind, CulpritKind::Node);
  EXPECT_EQ(verdict.culprits[0].a, 3);
  EXPECT_EQ(verdict.culprits[0].reached, 0);
}

TEST_F(IsolateRunner, aDeviceThatNeverGivesANumberIsUnclearNotCleared) {
  answerRates();
  silent_ = "n1 mlx5_2";
  const auto verdict = isolated();
  EXPECT_TRUE(verdict.culprits.empty());
  ASSERT_EQ(verdict.unclear.size(), 1u);
  EXPECT_EQ(verdict.unclear[0].a, 1);
  EXPECT_EQ(std::count(verdict.cleared.begin(), verdict.cleared.end(), 1), 0);
}

TEST_F(IsolateRunner, refusesNodesWithoutDevicesByName) {
  agents_.boot(NodeName("n4"), wire::Mode::Disk).probes.clear();
  const auto site = siteOf(cluster_, names_, agents_);
  ASSERT_FALSE(site);
  EXPECT_EQ(site.error().code(), ErrorCode::Unavailable);
  EXPECT_NE(site.error().str().find("n4"), std::string::npos);
  EXPECT_FALSE(siteOf(cluster_, {NodeName("n0")}, agents_));
  EXPECT_FALSE(siteOf(cluster_, {NodeName("n0"), NodeName("unknown")}, agents_));
}

}  // namespace
}  // namespace muster::validate::isolate
