// SPDX-License-Identifier: Apache-2.0
// NCCL inside one node by way of its HCAs: what is asked for, and that no other way passes. The
// outputs have the forms of nccl-tests' tables and of NCCL's own lines in public logs.
#include "tests/validate/fake_host.h"
#include "validate/gates.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using wire::CheckStatus;

class NcclLoopback : public FakeHost {
 protected:
  NcclLoopback() {
    for (int hca = 0; hca < 4; ++hca) asked_["devices"].push_back(fmt::format("mlx5_{}", hca));
    asked_.update({{"gpus", 4}, {"port_gbits", 400}, {"max_bytes", "1G"}});
    outputs_["all_reduce_perf"] = {0, table(), lines()};
  }
  static std::string table(const char* busbw = "38.41", const char* wrong = "0", int gpus = 4) {
    std::string devices;
    for (int gpu = 0; gpu < gpus; ++gpu)
      devices += fmt::format(
          "#  Rank  {0} Group  0 Pid   900 on n1 device  {0} [0000:{0}5:00] NVIDIA H100\n", gpu);
    return fmt::format(
        "# nThread 1 nGpus 4 minBytes 67108864 maxBytes 1073741824\n{2}#       size         count  "
        " "
        "   type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
        "  1073741824     268435456     float     sum      -1  41933.0   25.61   {0}      {1}  "
        "41933.0   25.61   {0}      {1}\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : "
        "{0}\n",
        busbw, wrong, devices);
  }
  /// What NCCL says of a ring of four GPUs, each on the HCA beside it.
  static std::string lines(const char* network = "NET/IB", const char* gdr = "/GDRDMA") {
    std::string out =
        "n1:9:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB "
        "[3]mlx5_3:1/IB [RO]; OOB eth0:10.0.0.1<0>\n";
    for (int gpu = 0; gpu < 4; ++gpu) {
      out += fmt::format(
          "n1:9:9 [{0}] NCCL INFO Channel 00/0 : {0}[{0}] -> {1}[{1}] [send] via {2}/{0}{3}\n", gpu,
          (gpu + 1) % 4, network, gdr);
      out += fmt::format(
          "n1:9:9 [{1}] NCCL INFO Channel 00/0 : {0}[{0}] -> {1}[{1}] [receive] via {2}/{1}{3}\n",
          gpu, (gpu + 1) % 4, network, gdr);
    }
    return out;
  }
  Verdict run() { return check("gpu.nccl-loopback", asked_); }

  json asked_ = json::object();
};

TEST_F(NcclLoopback, theLargestMessageThatWasAskedForMustBeThere) {
  for (const char* asked : {"1G", "1g", "2G", "1073741824", "1500M"}) {
    asked_["max_bytes"] = asked;
    EXPECT_EQ(run().status, CheckStatus::Pass) << asked << ": sizes are rounded down";
  }
  for (const char* asked : {"8G", "1T"}) {
    asked_["max_bytes"] = asked;
    EXPECT_EQ(run().status, CheckStatus::NoData) << asked;
    EXPECT_THAT(run().text, HasSubstr("the largest result is of 1073741824 bytes"));
  }
}

TEST_F(NcclLoopback, passesOverTheHcasAndLeavesNoOtherWay) {
  const auto good = run();
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_THAT(good.text, AllOf(HasSubstr("38.4 GB/s"), HasSubstr("8 of 8 channels straight"),
                               Not(HasSubstr("nothing was expected")), Not(HasSubstr("no data"))));
  EXPECT_DOUBLE_EQ(good.values.at("nccl_loopback_busbw_gbytes_per_s"), 38.41);
  EXPECT_DOUBLE_EQ(good.values.at("gdr_share"), 1);
  ASSERT_EQ(ran_.size(), 1u);
  const auto& env = ran_[0].env;
  EXPECT_EQ(env.at("NCCL_P2P_DISABLE"), "1");
  EXPECT_EQ(env.at("NCCL_SHM_DISABLE"), "1");
  EXPECT_EQ(env.at("NCCL_NVLS_ENABLE"), "0");
  EXPECT_EQ(env.at("NCCL_NET"), "IB") << "no falling back to TCP";
  EXPECT_EQ(env.at("NCCL_IB_HCA"), "=mlx5_0,mlx5_1,mlx5_2,mlx5_3");
  EXPECT_FALSE(env.contains("NCCL_IB_GID_INDEX"));
  asked_.update({{"gid_index", 3}, {"traffic_class", 106}});
  run();
  EXPECT_EQ(ran_[1].env.at("NCCL_IB_GID_INDEX"), "3");
  EXPECT_EQ(ran_[1].env.at("NCCL_IB_TC"), "106");
}

TEST_F(NcclLoopback, theFloorIsAShareOfTheHcasRate) {
  outputs_["all_reduce_perf"].out = table("35.94");
  const auto slow = run();  // 0.72 of 50 GB/s
  EXPECT_EQ(slow.status, CheckStatus::Fail);
  EXPECT_THAT(slow.text, HasSubstr("35.9 GB/s of bus bandwidth, expected 36.0"));
  asked_["port_gbits"] = 200;
  EXPECT_EQ(run().status, CheckStatus::Pass) << "18 of HDR, as Azure asks for";
  asked_["port_gbits"] = 400;
  asked_["devices"] = {"mlx5_0", "mlx5_1"};
  EXPECT_EQ(run().status, CheckStatus::Pass) << "two GPUs share an HCA";
  asked_["min_busbw_gbytes_per_s"] = 36;
  EXPECT_EQ(run().status, CheckStatus::Fail);
}

TEST_F(NcclLoopback, anotherWayIsNoPass) {
  auto& said = outputs_["all_reduce_perf"].err;
  said += "n1:9:9 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n";
  EXPECT_EQ(run().status, CheckStatus::NoData) << run().text;
  EXPECT_THAT(run().text, HasSubstr("1 channels went by NVLink, PCIe or shared memory"));
  said = lines() + "n1:9:9 [0] NCCL INFO Channel 01 : 0[0] -> 1[1] via SHM/direct/direct\n";
  EXPECT_EQ(run().status, CheckStatus::NoData);
  said = lines("NET/Socket", "");
  EXPECT_EQ(run().status, CheckStatus::Fail);
  EXPECT_THAT(run().text, HasSubstr("8 channels went over Socket instead of RDMA"));
  said = "";
  EXPECT_EQ(run().status, CheckStatus::NoData) << "a good rate whose way nobody knows";
  said = "n1:9:9 [0] NCCL INFO Using network IB\n";
  EXPECT_EQ(run().status, CheckStatus::NoData);
}

TEST_F(NcclLoopback, linesAmongTheTableAreReadToo) {
  outputs_["all_reduce_perf"].err = "";
  outputs_["all_reduce_perf"].out = lines() + table();
  EXPECT_EQ(run().status, CheckStatus::Pass) << run().text;
}

TEST_F(NcclLoopback, whatGoesThroughTheHostsMemoryAndIdleHcasAreNamed) {
  outputs_["all_reduce_perf"].err = lines("NET/IB", "");
  EXPECT_THAT(run().text, HasSubstr("0 of 8 channels straight to the GPU's memory"));
  EXPECT_EQ(run().values.at("gdr_share"), 0);
  auto moved = lines();
  for (auto at = moved.find("NET/IB/3"); at != std::string::npos; at = moved.find("NET/IB/3"))
    moved.replace(at, 8, "NET/IB/0");
  outputs_["all_reduce_perf"].err = moved;
  EXPECT_THAT(run().text, HasSubstr("no data by mlx5_3"));
}

TEST_F(NcclLoopback, whatIsNotWholeOrNotRightIsNoPass) {
  auto& exit = outputs_["all_reduce_perf"];
  exit.out = table("38.41", "2");
  EXPECT_EQ(run().status, CheckStatus::Fail) << "wrong values";
  exit.out = table("38.41", "0", 3);
  EXPECT_EQ(run().status, CheckStatus::Fail) << "three of four GPUs";
  exit.out = table().substr(0, 300);
  EXPECT_EQ(run().status, CheckStatus::NoData);
  // NCCL's words where no HCA is there (NVIDIA/nccl issues: "Failed to initialize NET plugin IB").
  exit = {3, "", "n1:9:9 [0] misc.cc:36 NCCL WARN Error: network IB not found.\nmore\n"};
  EXPECT_EQ(run().status, CheckStatus::NoData);
  EXPECT_THAT(run().text, HasSubstr("Error: network IB not found."));
  exit = {1, table(), lines()};
  EXPECT_EQ(run().status, CheckStatus::Fail) << "an exit status counts";
  outputs_.clear();
  EXPECT_EQ(run().status, CheckStatus::Error) << "not installed";
  asked_["gpus"] = 1;
  EXPECT_EQ(run().status, CheckStatus::NoData);
}

TEST(NcclLoopbackGate, asksForTheHcasOfTheComputeFabric) {
  inventory::Cluster cluster;
  auto& fabric = cluster.fabrics["ib"];
  fabric.name = "ib";
  fabric.link = "4xNDR";
  inventory::Profile profile;
  profile.fabric = "ib";
  profile.expect.gpus = 8;
  profile.rails = {{"mlx5_0"}, {"mlx5_5"}};
  const inventory::Gate gate{"g", inventory::GateLevel::Medium, {"nccl-loopback"}};
  const auto asked = [&] { return json::parse(localChecks(cluster, profile, gate)->at(0).params); };
  EXPECT_EQ(asked()["devices"], (json{"mlx5_0", "mlx5_5"}));
  EXPECT_EQ(asked()["gpus"], 8);
  EXPECT_EQ(asked()["max_bytes"], "8G");
  EXPECT_NEAR(asked()["port_gbits"].get<double>(), 400, 1);
  EXPECT_FALSE(asked().contains("gid_index"));
  fabric.roce.emplace();
  EXPECT_EQ(asked()["gid_index"], 3);
  EXPECT_EQ(asked()["traffic_class"], 106);
  profile.fabric.clear();
  EXPECT_TRUE(localChecks(cluster, profile, gate)->empty()) << "nothing to go over";
}

}  // namespace
}  // namespace muster::validate
