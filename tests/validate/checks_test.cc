// SPDX-License-Identifier: Apache-2.0
// Checks: the engines see injected faults, and whatever cannot be known has not passed.
#include "validate/checks/catalogue.h"
#include "validate/checks/rdma_devices.h"
#include "validate/checks/rdma_output.h"
#include "validate/gates.h"
#include "validate/pair_partner.h"

#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "tests/fakes/fake_agent_gateway.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::validate {
namespace {

using std::chrono::milliseconds;
using wire::CheckStatus;

wire::CheckResult run(std::string id, std::string params,
                      std::chrono::seconds deadline = std::chrono::seconds(60)) {
  return runChecks({{std::move(id), std::move(params), deadline}}).front();
}

TEST(Checks, anUnknownCheckIsAnError) {
  EXPECT_EQ(run("host.nonsense", "{}").status, CheckStatus::Error);
}
TEST(Checks, parametersThatAreNoObjectAreAnError) {
  EXPECT_EQ(run("host.gemm", "[1").status, CheckStatus::Error);
}
TEST(Checks, aParameterOfTheWrongTypeIsAnError) {
  EXPECT_EQ(run("host.gemm", R"({"n":"many"})").status, CheckStatus::Error);
}
TEST(Checks, aSizeThatTheHostCannotDoIsAnError) {
  EXPECT_EQ(run("host.gemm", R"({"n":100,"seconds":0})").status, CheckStatus::Error);
}
TEST(Checks, aGoodHostPassesWithItsRate) {
  const auto gemm = run("host.gemm", R"({"n":128,"seconds":0})");
  EXPECT_EQ(gemm.status, CheckStatus::Pass) << gemm.text;
  EXPECT_GT(gemm.values.at("gemm_gflops"), 0);
  EXPECT_GT(gemm.values.at("products"), 0);
  const auto memory = run("host.memory", R"({"mebibytes":1,"seconds":5})");
  EXPECT_EQ(memory.status, CheckStatus::Pass) << memory.text;
}
TEST(Checks, aSlowHostFails) {
  EXPECT_EQ(run("host.gemm", R"({"n":128,"seconds":0,"min_gflops":1e9})").status,
            CheckStatus::Fail);
}
TEST(Checks, aTcpPairWithNobodyThereIsATimeout) {
  EXPECT_EQ(
      runRdmaPair(
          R"({"engine":"tcp","role":"client","peer":"127.0.0.1","port":1,"min_gbits":1,"limit_seconds":1})")
          .status,
      CheckStatus::Timeout);
  EXPECT_EQ(runRdmaPair(R"({"engine":"tcp","role":"client","port":1})").status, CheckStatus::Error);
}
TEST(Checks, anUnfinishedMemoryTestIsNoPass) {
  EXPECT_EQ(run("host.memory", R"({"mebibytes":256,"seconds":0})").status, CheckStatus::Timeout);
}
TEST(Checks, memoryOnASlowHostPassesAndIsToldAsSlow) {
  const auto slow = run("host.memory", R"({"mebibytes":64,"seconds":0.001,"limit_seconds":600})");
  EXPECT_EQ(slow.status, CheckStatus::Pass) << slow.text;
  EXPECT_NE(slow.text.find("slow: the first round took"), std::string::npos) << slow.text;
  EXPECT_NE(slow.text.find("GB/s"), std::string::npos) << slow.text;
}
TEST(Checks, whereTimeWasShortNobodyIsAskedToSwapParts) {
  EXPECT_NE(adviceFor("host.memory", CheckStatus::Fail).find("DIMM"), std::string_view::npos);
  EXPECT_EQ(adviceFor("host.memory", CheckStatus::Timeout).find("DIMM"), std::string_view::npos);
}
TEST(Checks, aPassAfterTheDeadlineIsNoPass) {
  EXPECT_EQ(run("host.gemm", R"({"n":128,"seconds":0.05})", std::chrono::seconds(0)).status,
            CheckStatus::Timeout);
}

TEST(Checks, withoutNvmlThereIsNoData) {
  setenv("MUSTER_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
  for (const char* id : {"gpu.ecc", "gpu.remap", "gpu.throttle"})
    EXPECT_EQ(run(id, "{}").status, CheckStatus::NoData) << id;
  EXPECT_EQ(run("gpu.count", R"({"count":0})").status, CheckStatus::NoData);
  unsetenv("MUSTER_NVML");
}

TEST(Checks, everyRowSaysWhatToDo) {
  for (const auto& row : catalogue()) {
    EXPECT_FALSE(row.advice.empty() || row.what.empty() || row.needs.empty() ||
                 row.source.empty() || row.group.empty())
        << row.id;
    EXPECT_EQ(findCheck(row.id), &row);
  }
  EXPECT_TRUE(std::is_sorted(catalogue().begin(), catalogue().end(),
                             [](const auto& a, const auto& b) { return a.id < b.id; }));
}

constexpr std::string_view kTable =
    R"(---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      200              1.75               1.52   		   0.002905
---------------------------------------------------------------------------------------
)";

TEST(RdmaOutput, readsTheRow) {
  const auto rate = parseWriteBandwidth(kTable, 65536);
  ASSERT_TRUE(rate) << rate.error().str();
  EXPECT_EQ(rate->iterations, 200);
  EXPECT_DOUBLE_EQ(rate->average_gbits, 1.52);
}

TEST(RdmaOutput, anotherUnitIsRefused) {
  std::string text(kTable);
  while (text.find("Gb/sec") != std::string::npos) text.replace(text.find("Gb/sec"), 6, "MB/sec");
  EXPECT_EQ(parseWriteBandwidth(text, 65536).error().code(), ErrorCode::Corrupt);
}

TEST(RdmaOutput, aMissingRowOrTableOrZeroIsNoResult) {
  EXPECT_FALSE(parseWriteBandwidth(kTable, 4096));
  EXPECT_FALSE(parseWriteBandwidth("", 65536));
  std::string zero(kTable);
  zero.replace(zero.find("1.52"), 4, "0.00");
  EXPECT_FALSE(parseWriteBandwidth(zero, 65536));
  std::string nan(kTable);
  nan.replace(nan.find("1.52"), 4, "-nan");
  EXPECT_FALSE(parseWriteBandwidth(nan, 65536));
}

TEST(Gates, anUnknownGroupIsInvalid) {
  inventory::Gate gate{"odd", inventory::GateLevel::Quick, {"host", "moon"}};
  EXPECT_EQ(localChecks({}, {}, gate).error().code(), ErrorCode::InvalidInput);
}

TEST(Gates, gpuGroupAsksForTheProfilesExpectations) {
  inventory::Cluster cluster;
  cluster.drivers["nvidia"].verify = {{"nvml.driver", "570.*"}};
  inventory::Profile profile;
  profile.expect.gpus = 8;
  profile.expect.gpu_model = "H100";
  profile.drivers = {"nvidia"};
  const auto checks = localChecks(cluster, profile, {"g", inventory::GateLevel::Quick, {"gpu"}});
  ASSERT_TRUE(checks);
  std::vector<std::string> ids;
  for (const auto& check : *checks) ids.push_back(check.id);
  EXPECT_EQ(
      ids, (std::vector<std::string>{"gpu.affinity", "gpu.clocks", "gpu.count", "gpu.driver",
                                     "gpu.ecc", "gpu.fabric", "gpu.model", "gpu.nvlink", "gpu.pcie",
                                     "gpu.power", "gpu.remap", "gpu.retired", "gpu.stack",
                                     "gpu.temperature", "gpu.throttle", "gpu.vbios", "gpu.xid"}));
  EXPECT_EQ(checks->at(2).params, R"({"count":8})");
  const auto medium = localChecks(cluster, profile, {"g", inventory::GateLevel::Medium, {"gpu"}});
  EXPECT_EQ(medium->size(), checks->size() + 1) << "muster-burn takes minutes";
}

TEST(Gates, amdGpusAreAskedByTheirOwnCheck) {
  inventory::Profile profile;
  profile.expect.gpus = 8;
  profile.expect.gpu_model = "MI300X";
  const auto checks = localChecks({}, profile, {"g", inventory::GateLevel::Medium, {"gpu"}});
  ASSERT_EQ(checks->size(), 2u);
  EXPECT_EQ(checks->at(0).id, "gpu.affinity");
  EXPECT_EQ(checks->at(1).id, "gpu.amd");
  EXPECT_EQ(checks->at(1).params, R"({"count":8,"model":"MI300X"})");
  const auto rccl = localChecks({}, profile, {"g", inventory::GateLevel::Quick, {"nccl-tests"}});
  EXPECT_EQ(rccl->at(0).params, R"({"gpus":8,"max_bytes":"1G","model":"MI300X"})");
}

TEST(Gates, theirLevelSaysHowLongOthersProgramsRun) {
  const auto asked = [](inventory::GateLevel level, const char* group) {
    return localChecks({}, {}, {"g", level, {group}})->at(0).params;
  };
  EXPECT_EQ(asked(inventory::GateLevel::Quick, "dcgm"), R"({"level":1,"limit_seconds":300})")
      << "two minutes of level 2 are not quick";
  EXPECT_EQ(asked(inventory::GateLevel::Long, "dcgm"), R"({"level":3,"limit_seconds":9000})");
  EXPECT_EQ(localChecks({}, {}, {"g", inventory::GateLevel::Quick, {"disk"}})->at(1).params,
            R"({"seconds":1.0})");
  EXPECT_EQ(localChecks({}, {}, {"g", inventory::GateLevel::Medium, {"disk"}})->at(2).params,
            R"({"mebibytes":1024})");
}

TEST(Gates, limitsFollowASlowPlaceAndMeasurementsDoNot) {
  const inventory::Gate gate{"g", inventory::GateLevel::Quick, {"host", "dcgm"}};
  const auto idle = localChecks({}, {}, gate), busy = localChecks({}, {}, gate, 5);
  ASSERT_TRUE(idle && busy);
  ASSERT_EQ(idle->size(), busy->size());
  for (std::size_t i = 0; i < idle->size(); ++i) {
    EXPECT_EQ(idle->at(i).deadline, std::chrono::seconds(300));
    EXPECT_EQ(busy->at(i).deadline, std::chrono::seconds(1500)) << busy->at(i).id;
    auto here = nlohmann::json::parse(idle->at(i).params),
         there = nlohmann::json::parse(busy->at(i).params);
    if (here.contains("limit_seconds"))
      EXPECT_EQ(there["limit_seconds"], 5 * here["limit_seconds"].get<int>()) << busy->at(i).id;
    here.erase("limit_seconds"), there.erase("limit_seconds");
    EXPECT_EQ(here, there) << busy->at(i).id;
  }
  const auto soak = localChecks({}, {}, {"g", inventory::GateLevel::Soak, {"host"}}, 20);
  ASSERT_TRUE(soak);
  EXPECT_EQ(soak->at(0).deadline, std::chrono::hours(24)) << "an agent takes no longer one";
}

/// Run times of others' programs: DCGM's documentation; nccl-tests to 8 GiB on a slow node.
TEST(Gates, aGateOnEverythingFitsIntoItsLevelsTimeBox) {
  struct Box {
    inventory::GateLevel level;
    double seconds, dcgm, nccl_tests;
  };
  constexpr int kDisks = 8, kBurnStages = 15;
  constexpr double kDiskMebibytes = 1500;  // a second, of a disk that does nothing else
  constexpr double kPulses = 11, kThrottleWindow = 2;
  for (const auto& box : {Box{inventory::GateLevel::Quick, 60, 30, 10},
                          {inventory::GateLevel::Medium, 900, 120, 60},
                          {inventory::GateLevel::Long, 7200, 900, 60},
                          {inventory::GateLevel::Soak, 43200, 7200, 60}}) {
    inventory::Cluster cluster;
    cluster.fabrics["ib"].name = "ib";
    inventory::Profile profile;
    profile.fabric = "ib";
    const inventory::Gate gate{
        "all", box.level, {"host", "gpu", "rdma", "system", "disk", "dcgm", "nccl-tests"}};
    double sum = 0;
    const auto checks = localChecks(cluster, profile, gate);
    ASSERT_TRUE(checks);
    for (const auto& check : *checks) {
      const auto params = nlohmann::json::parse(check.params);
      const double own = params.value("seconds", 0.0) + params.value("window_seconds", 0.0),
                   hold = params.value("hold_seconds", 0.0);
      if (check.id == "disk.read")
        sum += kDisks * own;
      else if (check.id == "disk.write")
        sum += kDisks * 2 * params.at("mebibytes").get<double>() / kDiskMebibytes;
      else if (check.id == "gpu.burn")
        sum += kBurnStages * own + hold + kPulses;
      else if (check.id == "gpu.dcgm")
        sum += box.dcgm;
      else if (check.id == "gpu.nccl-tests")
        sum += box.nccl_tests;
      else if (check.id == "gpu.throttle")
        sum += kThrottleWindow;
      else
        sum += own + hold;
      EXPECT_EQ(check.deadline, gateDeadline(gate)) << check.id;
    }
    EXPECT_LE(sum, box.seconds) << "level of " << box.seconds << " s";
    EXPECT_LE(gateExpected(gate).count(), box.seconds);
    EXPECT_GE(sum, box.seconds / 2) << "a box that is not used tests too little";
  }
}

TEST(Gates, everyGroupOfTheCatalogueCanBeAskedFor) {
  for (const auto& row : catalogue())
    EXPECT_TRUE(localChecks({}, {}, {"g", inventory::GateLevel::Soak, {std::string(row.group)}}))
        << row.group;
}

TEST(Gates, rdmaNicsAreCountedWhereTheProfileSaysHowMany) {
  inventory::Profile profile;
  EXPECT_TRUE(localChecks({}, profile, {"g", inventory::GateLevel::Quick, {"rdma"}})->empty());
  profile.expect.nics = 8;
  const auto checks = localChecks({}, profile, {"g", inventory::GateLevel::Quick, {"rdma"}});
  ASSERT_EQ(checks->size(), 1u);
  EXPECT_EQ(checks->at(0).id, "rdma.count");
  EXPECT_EQ(checks->at(0).params, R"({"count":8})");
}

TEST(Gates, pairsLoadTheirLinksForSeconds) {
  const auto seconds_of = [](double floor) {
    return rdmaIterations(floor, std::chrono::seconds(2)) * 65536.0 * 8 / (floor * 1e9);
  };
  EXPECT_NEAR(seconds_of(360), 2, 0.01);
  EXPECT_NEAR(seconds_of(722), 2, 0.01);
  EXPECT_EQ(rdmaIterations(0.001, std::chrono::seconds(2)), 200) << "soft-RoCE";
  EXPECT_LE(rdmaIterations(1e9, std::chrono::seconds(2)), 100'000'000)
      << "more than perftest takes";
}

TEST(Gates, portsMustRunAtTheRateOfTheFabricsLink) {
  inventory::Cluster cluster;
  cluster.fabrics["ib"].link = "4xNDR";
  inventory::Profile profile;
  const auto asked = [&] {
    const auto checks =
        localChecks(cluster, profile, {"g", inventory::GateLevel::Medium, {"rdma"}});
    for (const auto& check : *checks)
      if (check.id == "rdma.ports") return nlohmann::json::parse(check.params);
    return nlohmann::json();
  };
  EXPECT_EQ(asked(), nlohmann::json::object()) << "no fabric, no rate";
  profile.fabric = "ib";
  EXPECT_EQ(asked()["link_layer"], "InfiniBand");
  EXPECT_NEAR(asked()["min_gbits"].get<double>(), 400, 1);
  EXPECT_LE(asked()["min_gbits"].get<double>(), 400) << "what the kernel says of a good one";
}

TEST(RdmaCount, neitherFewerNorMore) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("muster-rdma-" + io::randomToken(6));
  EXPECT_EQ(countRdmaDevices(folder, 1).status, CheckStatus::Fail) << "no driver, no device";
  std::filesystem::create_directories(folder / "mlx5_0");
  std::filesystem::create_directories(folder / "mlx5_1");
  EXPECT_EQ(countRdmaDevices(folder, 2).status, CheckStatus::Pass);
  EXPECT_EQ(countRdmaDevices(folder, 3).text, "2 RDMA NICs seen, 3 expected");
  EXPECT_EQ(countRdmaDevices(folder, 1).status, CheckStatus::Fail);
  EXPECT_EQ(run("rdma.count", "{}").status, CheckStatus::Error) << "a count that is not named";
  std::filesystem::remove_all(folder);
}

TEST(Gates, rdmaFloorsFollowTheLink) {
  EXPECT_EQ(rdmaFloorGbits("mlx5_0", "4xNDR"), 360);
  EXPECT_EQ(rdmaFloorGbits("mlx5_3", "4xHDR"), 180);
  EXPECT_LT(rdmaFloorGbits("rxe0", "4xHDR"), 1);
  EXPECT_NEAR(rdmaFloorGbits("mlx5_0", "4xXDR"), 722, 1) << "faster than any that is in the table";
  EXPECT_NEAR(rdmaFloorGbits("bnxt_re0", "4xNDR"), 361, 1) << "another vendor's: no free pass";
  EXPECT_NEAR(rdmaFloorGbits("mlx5_0", "2xNDR"), 181, 1);
  EXPECT_EQ(rdmaFloorGbits("mlx5_0", ""), 1);
}

inventory::Cluster rack(int nodes) {
  inventory::Cluster cluster;
  cluster.profiles["p"] = {};
  cluster.profiles["p"].name = "p";
  for (int i = 1; i <= nodes; ++i) {
    inventory::Node node;
    node.name = NodeName(fmt::format("n{}", i));
    node.profile = "p";
    node.address = Ipv4(0x0a000000u + static_cast<unsigned>(i));
    cluster.nodes.push_back(node);
  }
  return cluster;
}

lifecycle::FactSet poolFacts(std::vector<std::pair<std::string, std::string>> values) {
  lifecycle::FactSet facts;
  for (const auto& [node, value] : values)
    facts.put({lifecycle::Subject(NodeName(node)), FacetName("pool"), value, {}, "", ""});
  return facts;
}

std::string names(const std::vector<Partner>& partners) {
  std::string out;
  for (const auto& partner : partners) out += partner.node.str() + (partner.pooled ? "? " : " ");
  return out;
}

TEST(PairPartner, devicesAreSortedAsRails) {
  const auto cluster = rack(2);
  test::FakeAgentGateway agents;
  agents.boot(NodeName("n2"), wire::Mode::Disk).probes["rdma.devices"] = "mlx5_10,mlx5_0, mlx5_2";
  EXPECT_EQ(partnersOf(cluster, cluster.nodes[0], agents, {}).front().devices,
            (std::vector<std::string>{"mlx5_0", "mlx5_2", "mlx5_10"}));
}

TEST(PairPartner, aNicOfAnotherNetworkIsNoRail) {
  auto cluster = rack(2);
  cluster.fabrics["ib"].name = "ib";
  cluster.profiles["p"].fabric = "ib";
  test::FakeAgentGateway agents;
  auto& probes = agents.boot(NodeName("n1"), wire::Mode::Disk).probes;
  probes["rdma.devices"] = "mlx5_0,mlx5_1,mlx5_2,rxe0";
  probes["rdma.layers"] = "mlx5_0=InfiniBand,mlx5_1=Ethernet,mlx5_2=InfiniBand,rxe0=Ethernet";
  const auto rails = [&] { return railDevicesOf(cluster, cluster.nodes[0], agents); };
  EXPECT_EQ(rails(), (std::vector<std::string>{"rxe0", "mlx5_0", "mlx5_2"}))
      << "soft-RoCE stands for any fabric";
  cluster.profiles["p"].rails = {{"mlx5_2", {}, ""}, {"mlx5_0", {}, ""}, {"mlx5_7", {}, ""}};
  EXPECT_EQ(rails(), (std::vector<std::string>{"mlx5_2", "mlx5_0"}))
      << "as the profile numbers them, and as far as they are there";
  cluster.profiles["p"].rails.clear();
  cluster.fabrics["ib"].roce.emplace();
  EXPECT_EQ(rails(), (std::vector<std::string>{"rxe0", "mlx5_1"}));
  probes.erase("rdma.layers");
  EXPECT_EQ(rails().size(), 4u) << "an agent of before tells no layers";
}

TEST(PairPartner, neighboursComeFirst) {
  const auto cluster = rack(4);
  test::FakeAgentGateway agents;
  for (const auto& node : cluster.nodes)
    agents.boot(node.name, wire::Mode::Disk).probes["rdma.devices"] = "rxe0";
  EXPECT_EQ(names(partnersOf(cluster, cluster.nodes[0], agents, {})), "n2 n3 n4 ");
  EXPECT_EQ(names(partnersOf(cluster, cluster.nodes[1], agents, {})), "n1 n3 n4 ");
  EXPECT_EQ(names(partnersOf(cluster, cluster.nodes[2], agents, {})), "n4 n1 n2 ");
}

TEST(PairPartner, thoseThatMayRunJobsComeLast) {
  auto cluster = rack(5);
  cluster.profiles["p"].pool = "batch";
  test::FakeAgentGateway agents;
  for (const auto& node : cluster.nodes)
    agents.boot(node.name, wire::Mode::Disk).probes["rdma.devices"] = "rxe0";
  const auto facts = poolFacts({{"n2", "in"}, {"n3", "drained"}, {"n4", "out"}});
  EXPECT_EQ(names(partnersOf(cluster, cluster.nodes[0], agents, facts)), "n3 n4 n2? n5? ")
      << "of n5 nothing is known";
}

TEST(PairPartner, aNodeWithoutRdmaOrInRamOsIsNoPartner) {
  const auto cluster = rack(3);
  test::FakeAgentGateway agents;
  agents.boot(NodeName("n2"), wire::Mode::Ram).probes["rdma.devices"] = "rxe0";
  agents.boot(NodeName("n3"), wire::Mode::Disk);
  EXPECT_TRUE(partnersOf(cluster, cluster.nodes[0], agents, {}).empty());
}

TEST(PairPartner, onlyAPoolThatSaysSoMakesANodeFree) {
  const auto why = [](const std::string& value, const std::string& evidence) {
    return whyNotDisturb(
        NodeName("n2"),
        lifecycle::Fact{
            lifecycle::Subject(NodeName("n2")), FacetName("pool"), value, {}, "", evidence});
  };
  EXPECT_EQ(why("drained", ""), "");
  EXPECT_EQ(why("out", ""), "");
  EXPECT_EQ(why("in", R"({"jobs":false,"state":"IDLE"})"), "");
  for (const auto* evidence :
       {R"({"jobs":true})", R"({"state":"IDLE"})", R"({"jobs":"no"})", "[]", "", "junk"})
    EXPECT_NE(why("in", evidence).find("may be running jobs"), std::string::npos) << evidence;
  EXPECT_NE(why("silent", R"({"jobs":false})"), "");
  EXPECT_NE(whyNotDisturb(NodeName("n2"), std::nullopt).find("could not be read"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::validate
