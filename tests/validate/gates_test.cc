// SPDX-License-Identifier: Apache-2.0
// Which checks a gate asks for, and with what limits.
#include "inventory/model/gates.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "validate/checks/check_row.h"
#include "validate/gates.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::validate {
namespace {

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
  EXPECT_EQ(ids, (std::vector<std::string>{"gpu.affinity", "gpu.clocks", "gpu.count", "gpu.driver",
                                           "gpu.ecc", "gpu.fabric", "gpu.model", "gpu.nvlink",
                                           "gpu.nvlink-ber", "gpu.pcie", "gpu.power", "gpu.remap",
                                           "gpu.retired", "gpu.stack", "gpu.temperature",
                                           "gpu.throttle", "gpu.vbios", "gpu.xid"}));
  EXPECT_EQ(checks->at(2).params, R"({"count":8})");
  const auto medium = localChecks(cluster, profile, {"g", inventory::GateLevel::Medium, {"gpu"}});
  EXPECT_EQ(medium->size(), checks->size() + 1) << "muster-burn takes minutes";
}

TEST(Gates, linksBesideNvlinkAreAskedForWhereTheModelHasThem) {
  inventory::Profile profile;
  profile.expect.gpus = 8;
  const auto asked = [&](const std::string& model, std::string_view id) {
    profile.expect.gpu_model = model;
    const auto checks =
        localChecks({}, profile, {"g", inventory::GateLevel::Quick, {"nvidia-smi"}});
    for (const auto& check : *checks)
      if (check.id == id) return check.params;
    return std::string("not asked");
  };
  EXPECT_EQ(asked("A100-SXM4-80GB", "gpu.nvswitch"), R"({"switches":6})");
  EXPECT_EQ(asked("H100", "gpu.nvswitch"), R"({"switches":4})");
  EXPECT_EQ(asked("H200", "gpu.nvswitch"), R"({"switches":4})");
  for (const char* other : {"H100 PCIe", "H100 NVL", "H200 NVL", "B200", "L40S", "GH200 480GB"})
    EXPECT_EQ(asked(other, "gpu.nvswitch"), "not asked") << other;
  EXPECT_EQ(asked("GB200", "gpu.c2c"), R"({"gpus":8})");
  EXPECT_EQ(asked("H200", "gpu.c2c"), "not asked");
  profile.expect.gpus = 4;
  EXPECT_EQ(asked("H100", "gpu.nvswitch"), "not asked") << "four GPUs have none";
}

TEST(Gates, xgmiAndReasonsOfThrottlingAreOfAmdGpus) {
  inventory::Profile profile;
  profile.expect.gpus = 8, profile.expect.gpu_model = "MI300X";
  const inventory::Gate gate{"g", inventory::GateLevel::Quick, {"amd-smi"}};
  const auto checks = localChecks({}, profile, gate);
  ASSERT_EQ(checks->size(), 2u);
  EXPECT_EQ(checks->front().id, "gpu.amd-throttle");
  EXPECT_EQ(checks->back().id, "gpu.xgmi");
  for (const auto& each : *checks) EXPECT_EQ(each.params, R"({"gpus":8})");
  profile.expect.gpu_model = "H100";
  EXPECT_TRUE(localChecks({}, profile, gate)->empty());
}

TEST(Gates, theBootOrderIsAskedWhereTheInstallationMendsIt) {
  inventory::Cluster cluster;
  cluster.images["noble"].kind = inventory::ImageKind::RootFs;
  cluster.images["whole"].kind = inventory::ImageKind::Disk;
  inventory::Profile profile;
  const auto asked = [&] {
    const auto checks =
        localChecks(cluster, profile, {"g", inventory::GateLevel::Quick, {"system"}});
    return std::ranges::any_of(*checks,
                               [](const auto& check) { return check.id == "system.boot-order"; });
  };
  EXPECT_FALSE(asked()) << "no image";
  profile.image = "noble";
  EXPECT_TRUE(asked());
  profile.boot = inventory::BootMode::Bios;
  EXPECT_FALSE(asked());
  profile.boot = inventory::BootMode::Uefi;
  profile.image = "whole";
  EXPECT_FALSE(asked()) << "it brings a loader of its own";
}

TEST(Gates, amdGpusAreAskedByTheirOwnCheck) {
  inventory::Profile profile;
  profile.expect.gpus = 8;
  profile.expect.gpu_model = "MI300X";
  const auto checks = localChecks({}, profile, {"g", inventory::GateLevel::Medium, {"gpu"}});
  ASSERT_EQ(checks->size(), 3u);
  EXPECT_EQ(checks->at(0).id, "gpu.affinity");
  EXPECT_EQ(checks->at(1).id, "gpu.amd");
  EXPECT_EQ(checks->at(1).params, R"({"count":8,"model":"MI300X"})");
  EXPECT_EQ(checks->at(2).id, "gpu.burn");
  EXPECT_NE(checks->at(2).params.find(R"("model":"MI300X")"), std::string::npos)
      << "NVML knows nothing of them: " << checks->at(2).params;
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

TEST(Gates, portsOfSeveralFabricsAreAskedEachAsItsOwn) {
  inventory::Cluster cluster;
  for (const std::string name : {"ib", "storage"}) cluster.fabrics[name].name = name;
  cluster.fabrics["ib"].link = "4xNDR";
  cluster.fabrics["storage"].link = "4xHDR";
  cluster.fabrics["storage"].roce.emplace();
  inventory::Profile profile;
  profile.fabric = "ib";
  profile.other_fabrics = {"storage"};
  profile.rails = {{"mlx5_0", {}, "", "ib"}, {"mlx5_4", {}, "", "storage"}};
  const auto params = [&](const std::string& id) {
    for (const auto& check :
         *localChecks(cluster, profile, {"g", inventory::GateLevel::Medium, {"rdma"}}))
      if (check.id == id) return nlohmann::json::parse(check.params);
    return nlohmann::json();
  };
  const auto devices = params("rdma.ports")["devices"];
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices["mlx5_0"]["link_layer"], "InfiniBand");
  EXPECT_NEAR(devices["mlx5_0"]["min_gbits"].get<double>(), 400, 1);
  EXPECT_EQ(devices["mlx5_4"]["link_layer"], "Ethernet");
  EXPECT_NEAR(devices["mlx5_4"]["min_gbits"].get<double>(), 200, 1);
  EXPECT_TRUE(params("rdma.links").contains("window_seconds")) << "one of them is InfiniBand";
}

TEST(Gates, aPairIsAskedForWhatTheSlowestCableBetweenItCarries) {
  inventory::Fabric fabric;
  EXPECT_EQ(pairLink(nullptr), "");
  EXPECT_EQ(pairLink(&fabric), "4xHDR");
  fabric.link = "4xNDR";
  fabric.link_node_leaf = "2xNDR";
  EXPECT_EQ(pairLink(&fabric), "2xNDR");
  fabric.link_leaf_spine = "4xEDR";
  EXPECT_EQ(pairLink(&fabric), "4xEDR");
  fabric.link_spine_core = "4xFDR";
  EXPECT_EQ(pairLink(&fabric), "4xEDR") << "there are no cores";
  fabric.cores = 4;
  EXPECT_EQ(pairLink(&fabric), "4xFDR");
  fabric.cores = 0, fabric.spines_per_su = 0;
  EXPECT_EQ(pairLink(&fabric), "2xNDR") << "one leaf";
  fabric.shape = inventory::FabricShape::Explicit, fabric.link_node_leaf.clear();
  EXPECT_EQ(pairLink(&fabric), "4xNDR");
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

}  // namespace
}  // namespace muster::validate
