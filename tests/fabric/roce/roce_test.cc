// SPDX-License-Identifier: Apache-2.0
// One declaration for hosts and switches, and what happens when one of them does otherwise.
#include "fabric/roce/roce.h"
#include "tests/fabric/roce/nvidia_roce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::fabric::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(RoceSonic, readsBackAsDeclared) {
  auto marking = sonicMarking(roceSonic(kNvidiaRoce, {"Ethernet0", "Ethernet8"}, SonicAsic::Other),
                              "Ethernet8");
  ASSERT_TRUE(marking) << marking.error().str();
  EXPECT_THAT(disagreements(kNvidiaRoce, *marking), IsEmpty());
  auto config = nlohmann::json::parse(roceSonic(kNvidiaRoce, {"Ethernet0"}, SonicAsic::Other));
  EXPECT_EQ(config["DSCP_TO_TC_MAP"]["MUSTER"].size(), 64u);
  EXPECT_EQ(config["WRED_PROFILE"]["MUSTER_ECN"]["green_min_threshold"], "153600");
  EXPECT_EQ(config["QUEUE"]["Ethernet0|6"]["scheduler"], "MUSTER_STRICT");
}

// As a switch comes from the factory: DSCP 3 and 4 are lossless, 26 is not.
TEST(RoceSonic, tellsThatAStockSwitchDropsWhatHostsThinkLossless) {
  auto stock = sonicMarking(
      R"({"DSCP_TO_TC_MAP": {"AZURE": {"3": "3", "4": "4", "26": "1", "46": "5", "48": "6"}},
      "PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "[DSCP_TO_TC_MAP|AZURE]", "pfc_enable": "3,4"}}, "PORT": {"Ethernet0": {"mtu": "9100"}}})",
      "Ethernet0");
  ASSERT_TRUE(stock) << stock.error().str();
  EXPECT_THAT(disagreements(kNvidiaRoce, *stock),
              ElementsAre("DSCP 26 has priority 1 instead of 3: RDMA is not lossless",
                          "DSCP 3 shares the lossless priority 3", "PFC is on for 3,4 instead of 3",
                          "the MTU is 9100 instead of 9000"));
}

TEST(RoceSonic, refusesWhatItCannotRead) {
  EXPECT_FALSE(sonicMarking("[]", "Ethernet0"));
  EXPECT_THAT(sonicMarking("{}", "Ethernet0").error().text(), HasSubstr("it ignores DSCP"));
  EXPECT_THAT(
      sonicMarking(R"({"PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "X"}}})", "Ethernet0")
          .error()
          .text(),
      HasSubstr("no DSCP_TO_TC_MAP|X"));
  EXPECT_FALSE(sonicMarking(
      R"({"PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "X"}}, "DSCP_TO_TC_MAP": {"X": {"a": "1"}}})",
      "Ethernet0"));
}

TEST(RoceHost, comparesWhatDcbReports) {
  auto good = hostMarking(
      R"({"dscp_prio": [[26, 3], [48, 6]]})",
      R"({"pfc_cap": 8, "prio_pfc": [false,false,false,true,false,false,false,false]})", 9000);
  ASSERT_TRUE(good) << good.error().str();
  EXPECT_THAT(disagreements(kNvidiaRoce, *good), IsEmpty());
  auto untouched =
      hostMarking("{}", R"({"prio_pfc": ["off","off","off","off","off","off","off","off"]})", 1500);
  ASSERT_TRUE(untouched);
  EXPECT_THAT(disagreements(kNvidiaRoce, *untouched), Contains("it ignores DSCP"));
  EXPECT_THAT(disagreements(kNvidiaRoce, *untouched), Contains("PFC is on for none instead of 3"));
  EXPECT_FALSE(hostMarking("{}", "{}", 9000));
  EXPECT_FALSE(hostMarking(R"({"dscp_prio": [26]})", R"({"prio_pfc": [0,0,0,0,0,0,0,0]})", 9000));
  EXPECT_FALSE(hostMarking("dcb: not supported", "", 9000));
}

TEST(RoceHost, scriptSetsEveryPriorityAndTheTrafficClass) {
  auto script = roceHostScript(kNvidiaRoce, {"mlx5_0", "mlx5_3"});
  EXPECT_THAT(script, HasSubstr("for device in mlx5_0 mlx5_3; do"));
  EXPECT_THAT(script,
              HasSubstr("prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off || no_dcb\n"));
  EXPECT_THAT(script, HasSubstr("dscp-prio 26:3 48:6 || no_dcb "));
  EXPECT_THAT(script, HasSubstr("-t 106 "));
}

// sonic-buildimage, files/build_templates/qos_config.j2: pfc_to_pg_map_supported_asics.
// buffers_config.j2: with the dynamic buffer model the lossless groups are rows "3-4" with profile
// NULL; platform/mellanox/rules.mk and platform/barefoot/rules.mk set that model.
TEST(RoceSonic, asicsWithAMapOfPauseToGroupsHaveItBound) {
  for (const auto asic : {SonicAsic::Mellanox, SonicAsic::Barefoot}) {
    const auto config = nlohmann::json::parse(roceSonic(kNvidiaRoce, {"Ethernet0"}, asic));
    EXPECT_EQ(config["PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"],
              (nlohmann::json{{"MUSTER", {{"3", "3"}}}}));
    EXPECT_EQ(config["PORT_QOS_MAP"]["Ethernet0"]["pfc_to_pg_map"], "MUSTER");
    EXPECT_EQ(config["BUFFER_PG"], (nlohmann::json{{"Ethernet0|3-4", {{"profile", "NULL"}}}}));
  }
  const auto other = nlohmann::json::parse(roceSonic(kNvidiaRoce, {"Ethernet0"}, SonicAsic::Other));
  EXPECT_FALSE(other.contains("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"));
  EXPECT_FALSE(other.contains("BUFFER_PG")) << "buffermgrd writes it by pfc_enable";
  EXPECT_FALSE(other["PORT_QOS_MAP"]["Ethernet0"].contains("pfc_to_pg_map"));
  auto five = kNvidiaRoce;
  five.priority = 5;
  const auto moved = nlohmann::json::parse(roceSonic(five, {"Ethernet0"}, SonicAsic::Mellanox));
  EXPECT_TRUE(moved["BUFFER_PG"].contains("Ethernet0|5"));
  EXPECT_EQ(moved["PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"]["MUSTER"], (nlohmann::json{{"5", "5"}}));
}

// device/*/*/platform_asic of sonic-buildimage.
TEST(RoceSonic, thePlatformSaysTheAsic) {
  EXPECT_EQ(sonicAsicOf("x86_64-mlnx_msn4700-r0"), SonicAsic::Mellanox);
  EXPECT_EQ(sonicAsicOf("x86_64-nvidia_sn5600-r0"), SonicAsic::Mellanox);
  EXPECT_EQ(sonicAsicOf("x86_64-arista_7170_64c"), SonicAsic::Barefoot);
  EXPECT_EQ(sonicAsicOf("x86_64-accton_wedge100bf_32x-r0"), SonicAsic::Barefoot);
  for (const char* other : {"x86_64-arista_7060x6_64pe", "x86_64-dellemc_z9332f_d1508-r0",
                            "arm64-nvda_bf-bf3comdpu", "x86_64-accton_as9716_32d-r0", ""})
    EXPECT_EQ(sonicAsicOf(other), SonicAsic::Other) << other;
  EXPECT_EQ(sonicFile(SonicAsic::Other, "leaf-su1-r0"), "roce/sonic/leaf-su1-r0.json");
  EXPECT_EQ(sonicFile(SonicAsic::Barefoot, "leaf-su1-r0"), "roce/sonic/barefoot/leaf-su1-r0.json");
}

TEST(RoceCumulus, saysTheSameMap) {
  for (const auto since : {NvueSince::Cumulus50, NvueSince::Cumulus515}) {
    const auto commands = roceCumulus(kNvidiaRoce, since);
    EXPECT_THAT(commands,
                HasSubstr("nv set qos mapping default-global dscp 26 switch-priority 3\n"));
    EXPECT_THAT(commands, HasSubstr("traffic-class 3 max-threshold-bytes 1536000\n"));
  }
}

// Cumulus Linux 5.15, New and Changed NVUE Commands: `nv set qos roce enable on|off` is
// `nv set qos roce state enabled|disabled`.
TEST(RoceCumulus, switchesRoceOnAsItsReleaseWritesIt) {
  EXPECT_THAT(roceCumulus(kNvidiaRoce, NvueSince::Cumulus50),
              AllOf(HasSubstr("before 5.15"), HasSubstr("\nnv set qos roce enable on\n"),
                    Not(HasSubstr("state enabled"))));
  EXPECT_THAT(roceCumulus(kNvidiaRoce, NvueSince::Cumulus515),
              AllOf(HasSubstr("5.15 and later"), HasSubstr("\nnv set qos roce state enabled\n"),
                    Not(HasSubstr("enable on"))));
}

}  // namespace
}  // namespace muster::fabric::test
