// SPDX-License-Identifier: Apache-2.0
// The validate phase: tests between two nodes, over every rail and from GPU to GPU.
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"
#include "tests/validate/phase_fixture.h"

namespace muster::validate {
namespace {

TEST_F(ValidatePhaseTest, aPairTestWaitsForAPartner) {
  const auto outcome = act("gate.collective");
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(std::holds_alternative<Again>(*outcome));
}

TEST_F(ValidatePhaseTest, aPairTestRunsOnBothSides) {
  agents_.boot(NodeName("n2"), wire::Mode::Disk).probes["rdma.devices"] = "rxe0";
  agents_.answer(TaskKind::RdmaPair, results({{"rdma.pair", "pass"}}));
  const auto outcome = act("gate.collective");
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_EQ(agents_.submitted(NodeName("n2"), TaskKind::RdmaPair).size(), 1u);
  EXPECT_EQ(agents_.submitted(NodeName("n1"), TaskKind::RdmaPair).size(), 1u);
  EXPECT_TRUE(verified("gate.collective").starts_with("pass:"));
}

TEST_F(ValidatePhaseTest, aPartnerThatRunsJobsIsNotDisturbed) {
  cluster_.profiles["p"].pool = "batch";
  bootWithRdma("n2");
  agents_.answer(TaskKind::RdmaPair, results({{"rdma.pair", "pass"}}));
  setPool(context_.known, "n2", "in", false);  // as it was when the run began
  setPool(pool_now_, "n2", "in", true);
  auto outcome = act("gate.collective");
  ASSERT_TRUE(outcome);
  ASSERT_TRUE(std::holds_alternative<Again>(*outcome));
  EXPECT_NE(std::get<Again>(*outcome).waiting_for.find("n2 is in its pool and may be running jobs"),
            std::string::npos);
  EXPECT_TRUE(agents_.submitted(NodeName("n2"), TaskKind::RdmaPair).empty());
  setPool(pool_now_, "n2", "in", false);  // its jobs have ended: the second node of two can join
  outcome = act("gate.collective");
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(std::holds_alternative<Done>(*outcome));
}

TEST_F(ValidatePhaseTest, whoIsOutOfThePoolIsTakenWithoutAsking) {
  cluster_.profiles["p"].pool = "batch";
  bootWithRdma("n2"), bootWithRdma("n3");
  setPool(context_.known, "n2", "in"), setPool(context_.known, "n3", "out");
  agents_.answer(TaskKind::RdmaPair, results({{"rdma.pair", "pass"}}));
  ASSERT_TRUE(act("gate.collective"));
  EXPECT_EQ(agents_.submitted(NodeName("n3"), TaskKind::RdmaPair).size(), 1u);
  EXPECT_EQ(pool_state_reads_, 0);
}

TEST_F(ValidatePhaseTest, oneBadPartnerDoesNotFailAGoodNode) {
  bootWithRdma("n2"), bootWithRdma("n3");
  context_.known.put(
      {Subject(NodeName("n2")), FacetName("gate.collective"), "pass:long ago", {}, "", ""});
  pairsFailWith("n2");
  const auto outcome = actToEnd("gate.collective");
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(verified("gate.collective").starts_with("pass:"));
  ASSERT_EQ(context_.found.size(), 1u);
  EXPECT_EQ(context_.found[0].facet.subject.str(), "n2");
  EXPECT_NE(context_.found[0].text.find("of n1 failed with n2 and passed with n3"),
            std::string::npos)
      << context_.found[0].text;
}

TEST_F(ValidatePhaseTest, aBadNodeFailsAgainstTwoPartners) {
  bootWithRdma("n2"), bootWithRdma("n3");
  pairsFailWith("n1");
  const auto outcome = actToEnd("gate.collective");
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().text().find("with n2: "), std::string::npos) << outcome.error().str();
  EXPECT_NE(outcome.error().text().find("with n3: "), std::string::npos) << outcome.error().str();
  EXPECT_EQ(context_.found.size(), 1u);
}

TEST_F(ValidatePhaseTest, whereThereIsNoSecondPartnerTheFirstIsBelieved) {
  bootWithRdma("n2");
  pairsFailWith("n1");
  const auto outcome = actToEnd("gate.collective");
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().text().find("no other partner could confirm it"), std::string::npos)
      << outcome.error().str();
}

TEST_F(ValidatePhaseTest, aPairTestWithoutANumberIsRepeatedWithTheSamePartner) {
  bootWithRdma("n2");
  int without = 0, tests = 0;
  agents_.answer(
      TaskKind::RdmaPair, [&](const NodeName&, const wire::AgentTask& task) -> Result<std::string> {
        if (task.id.ends_with("/client")) ++tests;
        return results(
            {{"rdma.pair", task.id.ends_with("/client") && tests <= without ? "no-data" : "pass"}});
      });
  without = 2;
  ASSERT_TRUE(actToEnd("gate.collective"));
  EXPECT_TRUE(verified("gate.collective").starts_with("pass:"));
  EXPECT_EQ(tests, 3);
}

TEST_F(ValidatePhaseTest, aPairTestThatNeverGivesANumberFailsTheGate) {
  bootWithRdma("n2");
  int tests = 0;
  agents_.answer(TaskKind::RdmaPair,
                 [&](const NodeName&, const wire::AgentTask& task) -> Result<std::string> {
                   if (task.id.ends_with("/client")) ++tests;
                   return results({{"rdma.pair", "no-data"}});
                 });
  const auto outcome = actToEnd("gate.collective");
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().text().find("no-data"), std::string::npos) << outcome.error().str();
  EXPECT_EQ(tests, 8);
}

TEST_F(ValidatePhaseTest, everyRdmaDeviceIsTestedAndOneBadRailFails) {
  agents_.boot(NodeName("n1"), wire::Mode::Disk).probes["rdma.devices"] = "mlx5_0,mlx5_1";
  agents_.boot(NodeName("n2"), wire::Mode::Disk).probes["rdma.devices"] = "mlx5_0,mlx5_1";
  std::vector<std::string> tested;
  std::string bad;
  agents_.answer(
      TaskKind::RdmaPair, [&](const NodeName&, const wire::AgentTask& task) -> Result<std::string> {
        const auto device = nlohmann::json::parse(task.params).at("device").get<std::string>();
        if (task.id.ends_with("/client")) tested.push_back(device);
        return pairResult(device == bad ? "fail" : "pass", {{"rdma_latency_us", 2.1}});
      });
  ASSERT_TRUE(actToEnd("gate.collective"));
  EXPECT_EQ(tested, (std::vector<std::string>{"mlx5_0", "mlx5_1"}));
  bad = "mlx5_1", context_.id = "intent-2";
  const auto outcome = actToEnd("gate.collective");
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().str().find("mlx5_1"), std::string::npos) << outcome.error().str();
}

TEST_F(ValidatePhaseTest, latencyIsAskedForAndMustBeAnswered) {
  agents_.boot(NodeName("n1"), wire::Mode::Disk).probes["rdma.devices"] = "mlx5_0,mlx5_1";
  agents_.boot(NodeName("n2"), wire::Mode::Disk).probes["rdma.devices"] = "mlx5_0,mlx5_1";
  std::map<std::string, double> values;
  nlohmann::json asked;
  agents_.answer(TaskKind::RdmaPair,
                 [&](const NodeName&, const wire::AgentTask& task) -> Result<std::string> {
                   asked = nlohmann::json::parse(task.params);
                   auto own = values;
                   if (asked.at("device") == "mlx5_1" && own.contains("rdma_latency_us"))
                     own["rdma_latency_us"] += 1, own["rdma_write_gbits"] += 1;
                   return pairResult("pass", own);
                 });
  values = {{"rdma_latency_us", 2.1}, {"rdma_write_gbits", 390}};
  ASSERT_TRUE(actToEnd("gate.collective"));
  EXPECT_EQ(asked.at("max_us"), 5);
  const auto facts = wait(phase_->verify(action("gate.collective")));
  const auto seen = wire::parseCheckResults(facts->front().evidence)->front().values;
  EXPECT_EQ(seen.at("rdma_latency_us"), 3.1) << "of the worst rail";
  EXPECT_EQ(seen.at("rdma_write_gbits"), 390) << "of the worst rail";
  cluster_.gates["collective"].checks["rdma.pair"]["max_latency_us"] = "2.5";
  context_.id = "intent-2";
  ASSERT_TRUE(actToEnd("gate.collective"));
  EXPECT_EQ(asked.at("max_us"), 2.5);
  values.clear(), context_.id = "intent-3";
  const auto outcome = actToEnd("gate.collective");
  ASSERT_FALSE(outcome) << "an older agent leaves out what it does not know";
  EXPECT_NE(outcome.error().str().find("update the agent"), std::string::npos)
      << outcome.error().str();
}

TEST_F(ValidatePhaseTest, betweenGpusEveryRailUsesTheGpuOfItsSide) {
  cluster_.gates["collective"].groups = {"rdma", "gdr"};
  const auto withGpus = [&](const char* node, std::size_t gpus) {
    auto& state = agents_.boot(NodeName(node), wire::Mode::Disk);
    state.probes["rdma.devices"] = "mlx5_0,mlx5_1";
    state.hardware.gpus.assign(gpus, wire::Gpu{.model = "NVIDIA H100 80GB HBM3"});
  };
  withGpus("n1", 8), withGpus("n2", 4);
  agents_.answer(TaskKind::RdmaPair, pairResult("pass", {{"rdma_latency_us", 2.4}}));
  agents_.answer(TaskKind::RunChecks, results({}));
  const auto outcome = actToEnd("gate.collective");
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(std::holds_alternative<Done>(*outcome));
  std::map<std::string, std::vector<std::string>>
      gpus;  // node → "device gpu", none for the hosts' memory
  std::set<std::string> ids;
  for (const auto& [node, task] : agents_.submitted()) {
    EXPECT_TRUE(ids.insert(node.str() + task.id).second) << "one task for two tests: " << task.id;
    const auto params = nlohmann::json::parse(task.params);
    if (params.contains("gpu"))
      gpus[node.str()].push_back(fmt::format("{} {}", params.at("device").get<std::string>(),
                                             params.at("gpu").get<int>()));
    if (params.contains("gpu") && params.at("role") == "client") {
      EXPECT_EQ(params.at("min_gbits"), 1) << "the link is not declared: no table speaks of it";
      EXPECT_FALSE(params.contains("max_us")) << "nobody has published one of GPU memory";
    }
  }
  EXPECT_EQ(gpus["n1"], (std::vector<std::string>{"mlx5_0 0", "mlx5_1 4"}));
  EXPECT_EQ(gpus["n2"], (std::vector<std::string>{"mlx5_0 0", "mlx5_1 2"}));
  EXPECT_EQ(agents_.submitted().size(), 8u) << "host memory and GPUs, two rails, both ends";
}

TEST_F(ValidatePhaseTest, aGateSetsTheFloorOfItsPairs) {
  auto& gate = cluster_.gates["collective"];
  gate.groups = {"rdma"};
  gate.checks = {{"rdma.pair", {{"min_gbits", "385.5"}}}};
  bootWithRdma("n1"), bootWithRdma("n2");
  agents_.answer(TaskKind::RdmaPair, results({{"rdma.pair", "pass"}}));
  agents_.answer(TaskKind::RunChecks, results({}));
  ASSERT_TRUE(actToEnd("gate.collective"));
  int clients = 0;
  for (const auto& [node, task] : agents_.submitted()) {
    const auto params = nlohmann::json::parse(task.params);
    if (params.value("role", "") != "client") continue;
    ++clients;
    EXPECT_EQ(params.at("min_gbits"), 385.5);
  }
  EXPECT_EQ(clients, 1);
}

TEST_F(ValidatePhaseTest, betweenGpusWithoutAGpuIsNoPass) {
  cluster_.gates["collective"].groups = {"gdr"};
  bootWithRdma("n2"), bootWithRdma("n3");
  agents_.answer(TaskKind::RdmaPair, results({{"rdma.pair", "pass"}}));
  const auto outcome = actToEnd("gate.collective");
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().str().find("gdr.pair error"), std::string::npos)
      << outcome.error().str();
  EXPECT_NE(context_.found[0].what_to_do.find("nvidia-peermem"), std::string::npos);
}

}  // namespace
}  // namespace muster::validate
