// SPDX-License-Identifier: Apache-2.0
// Parameters of checks that gates set: which there are, what is refused, what reaches the agent.
#include "validate/gate_params.h"

#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "validate/checks/check_row.h"
#include "validate/gates.h"
#include "validate/validation_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace muster::validate {
namespace {

using inventory::GateLevel;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Checks = std::map<std::string, std::map<std::string, std::string>>;

inventory::Gate gateWith(Checks checks, GateLevel level = GateLevel::Medium) {
  inventory::Gate gate{"burn", level, {"host", "rdma", "system", "disk"}};
  gate.checks = std::move(checks);
  gate.where = {"cluster.yaml", 9, 3};
  return gate;
}

std::vector<std::string> problems(Checks checks, GateLevel level = GateLevel::Medium) {
  inventory::Cluster cluster;
  cluster.gates["burn"] = gateWith(std::move(checks), level);
  Diagnostics diagnostics;
  evaluateGates(cluster, diagnostics);
  std::vector<std::string> out;
  for (const auto& one : diagnostics.all()) out.push_back(one.str());
  return out;
}

std::vector<std::string> idleProblems(Checks checks) {
  inventory::Cluster cluster;
  cluster.gates["burn"] = gateWith(std::move(checks), GateLevel::Quick);
  auto& pool = cluster.pools["batch"];
  pool.slurm.emplace().active_checks = inventory::ActiveChecks{"burn", 24, 1, 100};
  cluster.gates["other"] = gateWith({{"host.gemm", {{"seconds", "3600"}}}}, GateLevel::Quick);
  Diagnostics diagnostics;
  evaluateActiveChecks(cluster, diagnostics);
  std::vector<std::string> out;
  for (const auto& one : diagnostics.all()) out.push_back(one.str());
  return out;
}

nlohmann::json paramsOf(const inventory::Gate& gate, std::string_view check) {
  const auto checks = localChecks({}, {}, gate);
  for (const auto& one : *checks)
    if (one.id == check) return nlohmann::json::parse(one.params);
  return {};
}

/// A gate of level quick may have checks of hours by its own words; only the level was looked at.
TEST(GateParams, whatIdleNodesRunIsBoundedInSeconds) {
  EXPECT_THAT(idleProblems({}), IsEmpty());
  EXPECT_THAT(idleProblems({{"host.gemm", {{"seconds", "10"}, {"min_gflops", "500"}}},
                            {"host.memory", {{"mebibytes", "512"}}},
                            {"gpu.throttle", {{"max_seconds", "60"}}},
                            {"gpu.dcgm", {{"level", "1"}}},
                            {"gpu.nccl-tests", {{"max_bytes", "512M"}}}}),
              IsEmpty());
  EXPECT_THAT(idleProblems({{"host.gemm", {{"seconds", "3600"}}}}),
              ElementsAre(AllOf(HasSubstr("cluster.yaml:9:3"), HasSubstr("pool batch"),
                                HasSubstr("host.gemm: seconds is 3600, at most 10"),
                                HasSubstr("name another gate"))));
  for (const auto& [check, param, value] :
       {std::tuple("disk.read", "seconds", "10.5"), std::tuple("host.memory", "hold_seconds", "60"),
        std::tuple("gpu.throttle", "window_seconds", "300"), std::tuple("gpu.dcgm", "level", "2"),
        std::tuple("gpu.dcgm", "limit_seconds", "900"),
        std::tuple("host.memory", "percent_of_available", "80"),
        std::tuple("host.memory", "mebibytes", "262144"), std::tuple("host.gemm", "n", "1e6"),
        std::tuple("gpu.nccl-tests", "max_bytes", "16G"),
        std::tuple("gpu.nccl-loopback", "max_bytes", "8589934592")})
    EXPECT_THAT(idleProblems({{check, {{param, value}}}}), ElementsAre(HasSubstr(param)))
        << check << " " << param << " " << value;
}

TEST(GateParams, whereRailsSitIsTheProfilesWord) {
  inventory::Gate gate{"burn", GateLevel::Quick, {"gpu"}};
  inventory::Profile profile;
  const auto affinity = [&] {
    const auto checks = localChecks({}, profile, gate);
    for (const auto& one : *checks)
      if (one.id == "gpu.affinity") return nlohmann::json::parse(one.params);
    return nlohmann::json();
  };
  profile.rails = {{"mlx5_0", std::nullopt, ""}};
  EXPECT_EQ(affinity(), nlohmann::json::object());
  profile.rails.push_back({"mlx5_3", 1, "0000:18:00.0"});
  EXPECT_EQ(affinity(), nlohmann::json::parse(
                            R"({"rails": [{"hca": "mlx5_3", "gpu": 1, "pci": "0000:18:00.0"}]})"));
}

TEST(GateParams, whatIsRightIsSilent) {
  EXPECT_THAT(problems({}), IsEmpty());
  EXPECT_THAT(problems({{"host.gemm", {{"min_gflops", "1500"}, {"seconds", "9.5"}}},
                        {"rdma.pair", {{"min_gbits", "380"}}},
                        {"system.tuning", {{"governor", "powersave|performance"}, {"smt", "1"}}}}),
              IsEmpty());
}

TEST(GateParams, whatWouldTestNothingIsRefused) {
  const auto of = [](const char* check, const char* group, const char* param, const char* value) {
    inventory::Cluster cluster;
    inventory::Gate gate{"burn", GateLevel::Long, {group}};
    gate.checks = {{check, {{param, value}}}};
    cluster.gates["burn"] = gate;
    Diagnostics diagnostics;
    evaluateGates(cluster, diagnostics);
    return diagnostics.all().empty() ? "" : diagnostics.all().front().str();
  };
  for (const char* level : {"0", "5", "1.5", "99"})
    EXPECT_THAT(of("gpu.dcgm", "dcgm", "level", level), HasSubstr("the levels 1, 2, 3 and 4"))
        << level;
  EXPECT_EQ(of("gpu.dcgm", "dcgm", "level", "3"), "");
  for (const char* drivers : {",", " , ", ""})
    EXPECT_THAT(of("gpu.gds", "gds", "drivers", drivers), HasSubstr("drivers names nothing"));
  EXPECT_EQ(of("gpu.gds", "gds", "drivers", "NVMe, NFS"), "");
}

TEST(GateParams, whatIsWrongNamesGateCheckAndWayOut) {
  EXPECT_THAT(
      problems({{"host.gem", {{"n", "1"}}}}),
      ElementsAre(AllOf(HasSubstr("cluster.yaml:9:3"),
                        HasSubstr("gate burn, check host.gem: the catalogue has no such check"),
                        HasSubstr("muster validate checks"))));
  EXPECT_THAT(problems({{"gpu.power", {{"limit_watts", "600"}}}}),
              ElementsAre(AllOf(HasSubstr("the gate does not ask for it"),
                                HasSubstr("add gpu to `groups`"))));
  EXPECT_THAT(problems({{"system.knobs", {{"smt", "0"}}}}),
              ElementsAre(AllOf(HasSubstr("this check is named system.tuning now"),
                                HasSubstr("write system.tuning instead"))))
      << "its name before";
  EXPECT_THAT(problems({{"gdr.pair", {{"min_gbits", "600"}}}}),
              ElementsAre(HasSubstr("add gdr to `groups`")));
  EXPECT_THAT(problems({{"disk.write", {{"mebibytes", "600"}}}}, GateLevel::Quick),
              ElementsAre(AllOf(HasSubstr("not thorough enough"), HasSubstr("raise `level`"))));
  EXPECT_THAT(problems({{"host.gemm", {{"min_gflop", "1"}}}}),
              ElementsAre(AllOf(HasSubstr("it has no parameter min_gflop"),
                                HasSubstr("it takes n, seconds, min_gflops"))));
  EXPECT_THAT(problems({{"disk.health", {{"seconds", "1"}}}}),
              ElementsAre(HasSubstr("the check takes none")));
  for (const char* bad : {"many", "-1", "nan", "1e999", "380 Gb/s", "true"})
    EXPECT_THAT(problems({{"rdma.pair", {{"min_gbits", bad}}}}),
                ElementsAre(AllOf(HasSubstr(bad), HasSubstr("write a number, zero or more"))))
        << bad;
  EXPECT_THAT(
      problems({{"rdma.pair", {{"min_gbits", "many"}, {"pairs", "1"}}}, {"a.b", {{"c", "d"}}}}),
      testing::SizeIs(3))
      << "all at once";
}

TEST(GateParams, layOverWhatTheLevelSays) {
  EXPECT_EQ(paramsOf(gateWith({}), "host.gemm")["seconds"], 60);
  const auto gemm = paramsOf(
      gateWith({{"host.gemm", {{"seconds", "5"}, {"min_gflops", "1500.5"}}}}), "host.gemm");
  EXPECT_EQ(gemm["seconds"], 5);
  EXPECT_EQ(gemm["min_gflops"], 1500.5);
  EXPECT_EQ(paramsOf(gateWith({{"system.tuning", {{"smt", "1"}}}}), "system.tuning"),
            nlohmann::json({{"smt", "1"}}))
      << "a setting's value is a word, whatever it looks like";
  const auto memory = paramsOf(gateWith({{"host.memory", {{"mebibytes", "64"}}}}), "host.memory");
  EXPECT_EQ(memory["mebibytes"], 64);
  EXPECT_FALSE(memory.contains("percent_of_available")) << "the level's other word for the same";
  EXPECT_EQ(ownNumber(gateWith({{"rdma.pair", {{"min_gbits", "380"}}}}), "rdma.pair", "min_gbits"),
            380);
  EXPECT_EQ(ownNumber(gateWith({}), "rdma.pair", "min_gbits"), std::nullopt);
}

/// A floor that was raised has not been reached by who passed the lower one.
TEST(GateParams, areWhatACertificateRestsOn) {
  inventory::Cluster cluster;
  cluster.gates["burn"] = gateWith({});
  cluster.profiles["p"].gates = {"burn"};
  inventory::Node node;
  node.name = NodeName("n1");
  node.profile = "p";
  const auto before = declarationDigest(cluster, node);
  cluster.gates["burn"].checks = {{"rdma.pair", {{"min_gbits", "380"}}}};
  EXPECT_NE(declarationDigest(cluster, node), before);
}

TEST(GateParams, haveNames) {
  EXPECT_EQ(paramNames("host.gemm"), "n, seconds, min_gflops");
  EXPECT_EQ(paramNames("gdr.pair"), "min_gbits, max_latency_us");
  EXPECT_EQ(paramNames("no.check"), "");
}

}  // namespace
}  // namespace muster::validate
