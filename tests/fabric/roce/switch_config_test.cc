// SPDX-License-Identifier: Apache-2.0
// What a switch really has against what is rendered for it: nothing where it was loaded, each
// difference by port, with what mends it.
#include "fabric/roce/switch_config.h"
#include "tests/fabric/roce/nvidia_roce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::fabric::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

auto differs(const std::string& port, const std::string& text) {
  return AllOf(Field(&PortDifference::port, port), Field(&PortDifference::text, HasSubstr(text)));
}

class SonicConfig : public ::testing::Test {
 protected:
  std::vector<PortDifference> check(std::vector<int> ports = {1, 3}) {
    return checkSwitch(kNvidiaRoce, ports, config_.dump()).value();
  }
  json loaded(SonicAsic asic) const {  // the rendered fragment, loaded into a switch
    auto config = json::parse(roceSonic(kNvidiaRoce, {"Ethernet0", "Ethernet8"}, asic));
    for (const char* port : {"Ethernet0", "Ethernet8", "Ethernet16"})
      config["PORT"][port]["admin_status"] = "up";
    return config;
  }
  json config_ = loaded(SonicAsic::Other);
};

TEST_F(SonicConfig, asRenderedDiffersInNothing) {
  EXPECT_THAT(check(), IsEmpty());
  EXPECT_THAT(check({}), IsEmpty()) << "all ports that the file configures";
}

TEST_F(SonicConfig, eachDifferenceIsNamedAtItsPort) {
  const auto only = [this](const char* pointer, json value) {
    const auto before = config_;
    config_[json::json_pointer(pointer)] = std::move(value);
    auto out = check();
    config_ = before;
    return out;
  };
  EXPECT_THAT(only("/PORT/Ethernet8/mtu", "1500"),
              ElementsAre(PortDifference{"Ethernet8", "the MTU is 1500 instead of 9000",
                                         "config interface mtu Ethernet8 9000"}));
  EXPECT_THAT(only("/PORT/Ethernet0/admin_status", "down"),
              ElementsAre(PortDifference{"Ethernet0", "it is shut down",
                                         "config interface startup Ethernet0"}));
  EXPECT_THAT(only("/PORT_QOS_MAP/Ethernet8/pfc_enable", "3,4"),
              ElementsAre(differs("Ethernet8", "PFC is on for 3,4 instead of 3")));
  EXPECT_THAT(only("/DSCP_TO_TC_MAP/MUSTER/26", "1"),
              ElementsAre(differs("Ethernet0", "DSCP 26 has priority 1"),
                          differs("Ethernet8", "DSCP 26 has priority 1")));
  EXPECT_THAT(only("/TC_TO_PRIORITY_GROUP_MAP/MUSTER/3", "0"),
              Contains(differs("Ethernet0", "dropped, not paused")));
  EXPECT_THAT(
      only("/TC_TO_QUEUE_MAP/MUSTER/3", "1"),
      Contains(differs("Ethernet8", "leaves by queue 1, a pause for priority 3 stops queue 3")));
  EXPECT_THAT(only("/QUEUE/Ethernet0|3", json::object()),
              ElementsAre(differs("Ethernet0", "queue 3 does not mark")));
  EXPECT_THAT(only("/WRED_PROFILE/MUSTER_ECN/green_max_threshold", "10000000"),
              Contains(differs("Ethernet0", "from 153600 to 10000000 bytes instead of")));
  EXPECT_THAT(only("/QUEUE/Ethernet8|6/scheduler", "MUSTER_SHARED"),
              ElementsAre(differs("Ethernet8", "queue 6 is not strict")));
  EXPECT_THAT(only("/PFC_WD/Ethernet8", json::object()),
              ElementsAre(differs("Ethernet8", "no PFC watchdog")));
}

TEST_F(SonicConfig, theLosslessClassIsAlone) {
  const auto with = [this](std::vector<std::pair<const char*, json>> changes) {
    const auto before = config_;
    for (auto& [pointer, value] : changes) config_[json::json_pointer(pointer)] = std::move(value);
    auto out = check({1});
    config_ = before;
    return out;
  };
  EXPECT_THAT(with({{"/TC_TO_PRIORITY_GROUP_MAP/MUSTER/0", "3"},
                    {"/TC_TO_PRIORITY_GROUP_MAP/MUSTER/5", "3"}}),
              ElementsAre(differs("Ethernet0", "classes 0,5 share priority group 3")));
  EXPECT_THAT(with({{"/TC_TO_QUEUE_MAP/MUSTER/0", "3"}}),
              ElementsAre(differs("Ethernet0", "classes 0 leave by queue 3 with the lossless")));
  EXPECT_THAT(with({{"/WRED_PROFILE/MUSTER_ECN/wred_green_enable", "false"}}),
              ElementsAre(differs("Ethernet0", "queue 3 does not mark: its profile is off")));
  EXPECT_THAT(with({{"/SCHEDULER/MUSTER_SHARED/type", "STRICT"}}),
              ElementsAre(differs("Ethernet0", "MUSTER_SHARED, is 'STRICT' instead of DWRR")));
  EXPECT_THAT(with({{"/SCHEDULER/MUSTER_SHARED/weight", "0"}}),
              ElementsAre(differs("Ethernet0", "queue 3 has the weight '0'")));
  EXPECT_THAT(with({{"/SCHEDULER/MUSTER_SHARED/weight", "15"}}), IsEmpty()) << "SONiC's own";
  EXPECT_THAT(with({{"/PFC_WD/Ethernet0/action", "alert"}}),
              ElementsAre(differs("Ethernet0", "action is alert instead of drop")));
  EXPECT_THAT(with({{"/PFC_WD/Ethernet0/detection_time", "100000000"}}),
              ElementsAre(differs("Ethernet0", "detection_time is '100000000': 100 to 5000 ms")));
  EXPECT_THAT(with({{"/PORT_QOS_MAP/Ethernet0/pfcwd_sw_enable", "4"}}),
              ElementsAre(differs("Ethernet0", "does not watch priority 3")));
  EXPECT_THAT(with({{"/PORT_QOS_MAP/Ethernet0/pfcwd_sw_enable", "3,4"}}), IsEmpty());
  config_ = loaded(SonicAsic::Mellanox);
  config_["DEVICE_METADATA"]["localhost"]["platform"] = "x86_64-mlnx_msn4700-r0";
  config_["BUFFER_PG"].erase("Ethernet0|3-4");
  config_["BUFFER_PG"]["Ethernet0|0-7"]["profile"] = "NULL";
  EXPECT_THAT(check({1}), ElementsAre(differs("Ethernet0",
                                              "priority group 0 of the classes "
                                              "0,1,2,4,5,6,7 is lossless as well")));
}

TEST_F(SonicConfig, aLargerMtuIsGoodAndNoneIsSonicsOwn) {
  config_["PORT"]["Ethernet0"]["mtu"] = "9100";
  config_["PORT"]["Ethernet8"].erase("mtu");
  EXPECT_THAT(check(), IsEmpty());
  config_["PORT"]["Ethernet0"]["mtu"] = "9000x";
  EXPECT_THAT(check(), ElementsAre(differs("Ethernet0", "the MTU is '9000x', which is no number")));
}

TEST_F(SonicConfig, aPortIsUpOnlyWhereItSaysSo) {
  config_["PORT"]["Ethernet0"]["admin_status"] = "DOWN";
  EXPECT_THAT(check(), ElementsAre(differs("Ethernet0", "it is shut down")));
  config_["PORT"]["Ethernet0"].erase("admin_status");
  config_["PORT"]["Ethernet0"]["lanes"] = "0,1,2,3";
  EXPECT_THAT(check(), ElementsAre(differs("Ethernet0", "it is shut down")));
}

TEST_F(SonicConfig, isHeldToTheSwitchThatWasNamed) {
  const std::set<std::string> switches = {"leaf-su1-r0", "spine-001"};
  const auto of = [&](const char* host) {
    config_["DEVICE_METADATA"]["localhost"]["hostname"] = host;
    return isOfAnotherSwitch(config_.dump(), "leaf-su1-r0", switches);
  };
  for (const char* own : {"leaf-su1-r0", "LEAF-SU1-R0.example.com", "sonic"})
    EXPECT_FALSE(of(own)) << own;
  const auto other = of("Spine-001.example.com");
  ASSERT_TRUE(other);
  EXPECT_THAT(other->text, HasSubstr("another switch than leaf-su1-r0"));
  EXPECT_TRUE(
      isOfAnotherSwitch(R"([{"header": {}}, {"set": {"system": {"hostname": "spine-001"}}}])",
                        "leaf-su1-r0", switches));
}

TEST_F(SonicConfig, aPortThatIsCabledAndUntouchedIsFound) {
  EXPECT_THAT(check({1, 5}), ElementsAre(differs("Ethernet16", "it ignores DSCP")));
  EXPECT_THAT(check({1, 40}), ElementsAre(differs("port 40", "the switch has no such port")));
  config_["PORT"]["Ethernet16"]["index"] = "40";  // eight lanes a port: the file tells the numbers
  EXPECT_THAT(check({1, 40}), ElementsAre(differs("Ethernet16", "it ignores DSCP")));
}

// On these ASICs SONiC binds PFC priorities to priority groups, and computes buffers by BUFFER_PG.
TEST_F(SonicConfig, anAsicWithAMapOfPauseToGroupsIsHeldToIt) {
  for (const auto& [platform, family] : {std::pair("x86_64-mlnx_msn4700-r0", "mellanox"),
                                         {"x86_64-accton_wedge100bf_65x-r0", "barefoot"}}) {
    config_ = loaded(sonicAsicOf(platform));
    config_["DEVICE_METADATA"]["localhost"]["platform"] = platform;
    EXPECT_THAT(check(), IsEmpty()) << platform;
    config_ = loaded(SonicAsic::Other);  // what is for other ASICs
    config_["DEVICE_METADATA"]["localhost"]["platform"] = platform;
    const auto found = check();
    EXPECT_THAT(found, Contains(differs("Ethernet0",
                                        "priority 3 pauses for priority group none, "
                                        "its packets are in 3")));
    EXPECT_THAT(found, Contains(differs("Ethernet8", "priority group 3 has no lossless buffer")));
    EXPECT_THAT(toText(found), HasSubstr(fmt::format("roce/sonic/{}/SWITCH.json", family)));
  }
  config_ = loaded(SonicAsic::Mellanox);
  config_["DEVICE_METADATA"]["localhost"]["platform"] = "x86_64-mlnx_msn4700-r0";
  config_["BUFFER_PG"]["Ethernet8|3-4"]["profile"] = "ingress_lossy_profile";
  EXPECT_THAT(check(), ElementsAre(differs("Ethernet8", "has no lossless buffer")));
  config_["BUFFER_PG"].erase("Ethernet8|3-4");
  config_["BUFFER_PG"]["Ethernet8|3"]["profile"] = "pg_lossless_400000_5m_profile";
  EXPECT_THAT(check(), IsEmpty());
  config_["PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"]["MUSTER"]["3"] = "4";
  EXPECT_THAT(check(), Contains(differs("Ethernet0", "pauses for priority group 4")));
}

TEST_F(SonicConfig, queuesMayBeWrittenAsRanges) {
  const auto marks = config_["QUEUE"]["Ethernet0|3"], strict = config_["QUEUE"]["Ethernet0|6"];
  config_["QUEUE"] = {{"Ethernet0,Ethernet8|3-4", marks}, {"Ethernet0,Ethernet8|6", strict}};
  EXPECT_THAT(check(), IsEmpty());
}

TEST_F(SonicConfig, oneLoadIsToldOnceAPort) {
  config_["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] = "";
  config_["QUEUE"].erase("Ethernet0|3");
  config_["QUEUE"].erase("Ethernet0|6");
  const auto text = toText(check());
  EXPECT_EQ(text.find("sonic-cfggen"), text.rfind("sonic-cfggen")) << text;
}

class NvueConfig : public ::testing::Test {
 protected:
  std::vector<PortDifference> check(std::vector<int> ports = {1, 12}) {
    return checkSwitch(
               kNvidiaRoce, ports,
               json::array({json{{"header", {{"model", "SN5600"}}}}, json{{"set", set_}}}).dump())
        .value();
  }
  json set_ = {{"interface", {{"swp1-16", {{"link", {{"state", {{"up", json::object()}}}}}}}}},
               {"qos", {{"roce", {{"enable", "on"}, {"mode", "lossless"}}}}}};
};

TEST_F(NvueConfig, theDefaultsOfLosslessModeAreTheDeclaration) { EXPECT_THAT(check(), IsEmpty()); }

TEST_F(NvueConfig, eachDifferenceHasItsCommand) {
  set_["qos"]["mapping"]["default-global"]["dscp"]["26"]["switch-priority"] = 4;
  EXPECT_THAT(check(),
              ElementsAre(PortDifference{
                  "", "DSCP 26 has priority 4 instead of 3: RDMA is not lossless",
                  "nv set qos mapping default-global dscp 26 switch-priority 3; nv config apply"}));
  set_["qos"].erase("mapping");
  set_["qos"]["pfc"]["default-global"]["switch-priority"] = {{"3", json::object()},
                                                             {"4", json::object()}};
  EXPECT_THAT(check(), ElementsAre(differs("", "PFC is on for 3,4 instead of 3")));
  set_["qos"].erase("pfc");
  set_["qos"]["congestion-control"]["default-global"]["traffic-class"]["3"]["probability"] = 5;
  EXPECT_THAT(check(), ElementsAre(differs("", "probability is 5 instead of 100")));
  set_["qos"].erase("congestion-control");
  set_["interface"]["swp12"]["link"]["mtu"] = 1500;
  EXPECT_THAT(check(),
              ElementsAre(PortDifference{"swp12", "the MTU is 1500, hosts send 9000",
                                         "nv set interface swp12 link mtu 9216; nv config apply"}));
  EXPECT_THAT(check({1, 40}), ElementsAre(differs("swp40", "the switch does not configure it")));
  set_["qos"]["roce"]["mode"] = "lossy";
  EXPECT_THAT(check(), ElementsAre(differs("", "RoCE is lossy instead of lossless")));
  set_["qos"].erase("roce");
  EXPECT_THAT(check(), ElementsAre(differs("", "RoCE is off")));
}

TEST_F(NvueConfig, aDscpThatIsMappedToTheLosslessPriorityIsTold) {
  auto& map = set_["qos"]["mapping"]["default-global"]["dscp"];
  map["25"]["switch-priority"] = 3;  // as by default
  map["8"]["switch-priority"] = 2;
  EXPECT_THAT(check(), IsEmpty());
  map["0"]["switch-priority"] = 3;
  EXPECT_THAT(check(),
              ElementsAre(PortDifference{
                  "", "DSCP 0 shares the lossless priority 3",
                  "nv set qos mapping default-global dscp 0 switch-priority 0; nv config apply"}));
}

TEST_F(NvueConfig, theStateOfLaterReleasesIsRead) {
  set_["qos"]["roce"] = {{"state", "enabled"}, {"mode", "lossless"}};
  EXPECT_THAT(check(), IsEmpty());
  set_["qos"]["roce"] = {{"state", "disabled"}};
  EXPECT_THAT(check(), ElementsAre(differs("", "RoCE is off")));
}

TEST_F(NvueConfig, theCommandIsThatOfItsRelease) {
  const auto repair = [this](const json& header) {
    set_["qos"].erase("roce");
    return checkSwitch(kNvidiaRoce, {},
                       json::array({json{{"header", header}}, json{{"set", set_}}}).dump())
        .value()
        .front()
        .repair;
  };
  EXPECT_THAT(repair({{"version", "Cumulus Linux 5.9.1"}}),
              ::testing::StartsWith("nv set qos roce enable on; "));
  for (const char* later : {"Cumulus Linux 5.15.0", "Cumulus Linux 5.16", "Cumulus Linux 6.0.0"})
    EXPECT_THAT(repair({{"version", later}}),
                ::testing::StartsWith("nv set qos roce state enabled; "));
  for (const json& unknown : {json{{"version", "HBN 2.4.0"}}, json{{"version", "Cumulus Linux x"}},
                              json{{"version", 5}}, json::object()})
    EXPECT_THAT(repair(unknown), AllOf(HasSubstr("state enabled"), HasSubstr("enable on")));
}

TEST(SwitchConfig, refusesWhatItCannotRead) {
  EXPECT_EQ(checkSwitch(kNvidiaRoce, {}, "nv: command not found").error().code(),
            ErrorCode::Corrupt);
  EXPECT_EQ(checkSwitch(kNvidiaRoce, {}, "[]").error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(checkSwitch(kNvidiaRoce, {}, "{}").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(checkSwitch(kNvidiaRoce, {}, R"({"PORT": {}})").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(checkSwitch(kNvidiaRoce, {}, R"({"set": 7})").error().code(), ErrorCode::Corrupt);
}

TEST(SwitchConfig, aStockSwitchIsToldEveryPort) {
  const auto stock =
      checkSwitch(kNvidiaRoce, {1, 2},
                  R"({"DSCP_TO_TC_MAP": {"AZURE": {"3": "3", "4": "4", "26": "1", "48": "6"}},
      "PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "AZURE", "pfc_enable": "3,4"}},
      "PORT": {"Ethernet0": {"mtu": "9100"}, "Ethernet4": {"mtu": "9100"}}})");
  ASSERT_TRUE(stock) << stock.error().str();
  EXPECT_THAT(
      *stock,
      Contains(differs("Ethernet0", "DSCP 26 has priority 1 instead of 3: RDMA is not lossless")));
  EXPECT_THAT(*stock, Contains(differs("Ethernet0", "shares priority group 0")));
  EXPECT_THAT(*stock, Contains(differs("Ethernet4", "it ignores DSCP")));
  EXPECT_EQ(json::parse(toJson(*stock))["as_declared"], false);
}

}  // namespace
}  // namespace muster::fabric::test
