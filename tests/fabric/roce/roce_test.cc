// SPDX-License-Identifier: Apache-2.0
// One declaration for hosts and switches, and what happens when one of them does otherwise.
#include "fabric/roce/roce.h"
#include "tests/fabric/roce/nvidia_roce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::fabric::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RoceSonic, readsBackAsDeclared) {
  auto marking = sonicMarking(roceSonic(kNvidiaRoce, {"Ethernet0", "Ethernet8"}), "Ethernet8");
  ASSERT_TRUE(marking) << marking.error().str();
  EXPECT_THAT(disagreements(kNvidiaRoce, *marking), IsEmpty());
  auto config = nlohmann::json::parse(roceSonic(kNvidiaRoce, {"Ethernet0"}));
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

TEST(RoceCumulus, saysTheSameMap) {
  EXPECT_THAT(roceCumulus(kNvidiaRoce),
              HasSubstr("nv set qos mapping default-global dscp 26 switch-priority 3\n"));
  EXPECT_THAT(roceCumulus(kNvidiaRoce), HasSubstr("traffic-class 3 max-threshold-bytes 1536000\n"));
}

}  // namespace
}  // namespace muster::fabric::test
