// SPDX-License-Identifier: Apache-2.0
// What the kernel's answer says of a declared network. The answers are written after the output of
// iproute2 6.1; its real output is read by tests/agent/network/network_files_system_test.cc.
#include "validate/checks/node_network.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::validate {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kAddresses = R"([
{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"operstate":"UNKNOWN","link_type":"loopback","address":"00:00:00:00:00:00","addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host","label":"lo"}]},
{"ifindex":2,"ifname":"boot","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,"operstate":"UP","link_type":"ether","address":"52:54:00:20:00:01","parentbus":"pci","parentdev":"0000:01:00.0","addr_info":[{"family":"inet","local":"10.20.1.1","prefixlen":16,"broadcast":"10.20.255.255","scope":"global","label":"boot"},{"family":"inet6","local":"fe80::5054:ff:fe20:1","prefixlen":64,"scope":"link"}]},
{"ifindex":3,"ifname":"data0","flags":["BROADCAST","MULTICAST","SLAVE","UP","LOWER_UP"],"mtu":9000,"master":"bond0","operstate":"UP","link_type":"ether","address":"b8:3f:d2:00:00:01","linkinfo":{"info_slave_kind":"bond","info_slave_data":{"state":"ACTIVE","mii_status":"UP","link_failure_count":0,"perm_hwaddr":"b8:3f:d2:00:00:01","queue_id":0,"ad_aggregator_id":1}},"parentbus":"pci","parentdev":"0000:18:00.0","addr_info":[]},
{"ifindex":4,"ifname":"data1","flags":["BROADCAST","MULTICAST","SLAVE","UP","LOWER_UP"],"mtu":9000,"master":"bond0","operstate":"UP","link_type":"ether","address":"b8:3f:d2:00:00:01","linkinfo":{"info_slave_kind":"bond","info_slave_data":{"state":"ACTIVE","mii_status":"UP","link_failure_count":0,"perm_hwaddr":"b8:3f:d2:00:00:02","queue_id":0,"ad_aggregator_id":1}},"permaddr":"b8:3f:d2:00:00:02","parentbus":"pci","parentdev":"0000:3b:00.0","addr_info":[]},
{"ifindex":5,"ifname":"bond0","flags":["BROADCAST","MULTICAST","MASTER","UP","LOWER_UP"],"mtu":9000,"operstate":"UP","link_type":"ether","address":"b8:3f:d2:00:00:01","linkinfo":{"info_kind":"bond","info_data":{"mode":"802.3ad","miimon":100,"updelay":0,"downdelay":0,"xmit_hash_policy":"layer3+4","min_links":0,"ad_lacp_rate":"fast","ad_info":{"aggregator":1,"num_ports":2,"actor_key":21,"partner_key":33,"partner_mac":"44:38:39:00:00:11"}}},"addr_info":[]},
{"ifindex":6,"link":"bond0","ifname":"stor","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":9000,"operstate":"UP","link_type":"ether","address":"b8:3f:d2:00:00:01","linkinfo":{"info_kind":"vlan","info_data":{"protocol":"802.1Q","id":30,"flags":["REORDER_HDR"]}},"addr_info":[{"family":"inet","local":"10.30.1.1","prefixlen":16,"scope":"global","label":"stor"},{"family":"inet6","local":"fd00:30::101","prefixlen":64,"scope":"global"}]}
])";
constexpr std::string_view kRoutes = R"([
{"dst":"default","gateway":"10.20.0.254","dev":"boot","protocol":"static","flags":[]},
{"dst":"10.20.0.0/16","dev":"boot","protocol":"kernel","scope":"link","prefsrc":"10.20.1.1","flags":[]},
{"dst":"10.30.0.0/16","dev":"stor","protocol":"kernel","scope":"link","prefsrc":"10.30.1.1","flags":[]},
{"dst":"10.40.0.0/16","gateway":"10.30.0.254","dev":"stor","protocol":"static","metric":50,"flags":[]}])";
constexpr std::string_view kRoutes6 = R"([
{"dst":"fd00:30::/64","dev":"stor","protocol":"kernel","metric":256,"flags":[],"pref":"medium"}])";

wire::NodeNetwork declaredNetwork() {
  wire::NodeNetwork network;
  wire::NetworkLink boot;
  boot.name = "boot";
  boot.mac = "52:54:00:20:00:01";
  boot.addresses = {"10.20.1.1/16"};
  boot.routes = {{"0.0.0.0/0", "10.20.0.254", 0}};
  wire::NetworkLink data0, data1, bond, vlan;
  data0.name = "data0", data0.pci = "0000:18:00.0";
  data1.name = "data1", data1.mac = "b8:3f:d2:00:00:02";
  bond.name = "bond0", bond.kind = wire::LinkKind::Bond, bond.mtu = 9000;
  bond.members = {"data0", "data1"};
  bond.bond.mode = wire::BondMode::Lacp;
  vlan.name = "stor", vlan.kind = wire::LinkKind::Vlan, vlan.parent = "bond0", vlan.vlan_id = 30;
  vlan.addresses = {"10.30.1.1/16", "fd00:30::101/64"};
  vlan.routes = {{"10.40.0.0/16", "10.30.0.254", 50}};
  network.links = {boot, data0, data1, bond, vlan};
  network.provisioning.link = "boot";
  return network;
}

/// The problems after one piece of the kernel's answer was replaced.
std::vector<std::string> seeing(std::string_view old_text, std::string_view new_text) {
  std::string addresses(kAddresses), routes(kRoutes);
  for (auto* text : {&addresses, &routes})
    if (const auto at = text->find(old_text); at != std::string::npos) {
      text->replace(at, old_text.size(), new_text);
      const auto kernel = parseKernelNetwork(addresses, routes, kRoutes6);
      EXPECT_TRUE(kernel) << kernel.error().str();
      return networkProblems(declaredNetwork(), kernel.value_or(KernelNetwork()));
    }
  ADD_FAILURE() << "the answer has no " << old_text;
  return {};
}

TEST(NetworkProblems, noneWhereAllIsAsDeclared) { EXPECT_THAT(seeing("lo", "lo"), IsEmpty()); }

TEST(NetworkProblems, ofCablesAndSwitches) {
  EXPECT_THAT(seeing(R"("flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500)",
                     R"("flags":["NO-CARRIER","BROADCAST","MULTICAST","UP"],"mtu":1500)"),
              ElementsAre("boot has no carrier; check its cable and the switch port"));
  EXPECT_THAT(seeing("44:38:39:00:00:11", "00:00:00:00:00:00"),
              ElementsAre("bond0: the switch does not speak LACP; check its port channel"));
  EXPECT_THAT(seeing(R"("perm_hwaddr":"b8:3f:d2:00:00:02","queue_id":0,"ad_aggregator_id":1)",
                     R"("perm_hwaddr":"b8:3f:d2:00:00:02","queue_id":0,"ad_aggregator_id":2)"),
              ElementsAre(HasSubstr("its member data1 did not join by LACP")));
  EXPECT_THAT(
      seeing(R"("state":"ACTIVE","mii_status":"UP")", R"("state":"BACKUP","mii_status":"DOWN")"),
      ElementsAre(HasSubstr("its member data0 is DOWN; check the cable")));
}

TEST(NetworkProblems, ofLinks) {
  EXPECT_THAT(seeing(R"("ifname":"stor")", R"("ifname":"other")"),
              ElementsAre("the vlan stor is not there"));
  EXPECT_THAT(seeing(R"("ifname":"boot")", R"("ifname":"enp1s0")"),
              Contains(HasSubstr("boot is not there: no NIC with the MAC 52:54:00:20:00:01")));
  EXPECT_THAT(seeing(R"("ifname":"data0")", R"("ifname":"enp24s0")"),
              ElementsAre("data0 is not there; its NIC is named enp24s0: udev did not rename it"));
  EXPECT_THAT(seeing(R"("parentdev":"0000:18:00.0")", R"("parentdev":"0000:19:00.0")"),
              ElementsAre("data0 is the NIC at 0000:19:00.0, declared is 0000:18:00.0"));
  EXPECT_THAT(
      seeing(R"("perm_hwaddr":"b8:3f:d2:00:00:02")", R"("perm_hwaddr":"b8:3f:d2:00:00:09")"),
      ElementsAre(HasSubstr("data1 is the NIC b8:3f:d2:00:00:09")));
  EXPECT_THAT(seeing(R"("mtu":9000,"master":"bond0")", R"("mtu":9000,"master":"bond1")"),
              ElementsAre("data0 is in bond1, declared is in bond0"));
  EXPECT_THAT(seeing(R"("mode":"802.3ad")", R"("mode":"balance-rr")"),
              ElementsAre("bond0 has the mode balance-rr, declared is 802.3ad"));
  EXPECT_THAT(seeing(R"("xmit_hash_policy":"layer3+4")", R"("xmit_hash_policy":"layer2")"),
              ElementsAre("bond0 has the hash policy layer2, declared is layer3+4"));
  EXPECT_THAT(seeing(R"("ad_lacp_rate":"fast")", R"("ad_lacp_rate":"slow")"),
              ElementsAre("bond0 has the LACP rate slow, declared is fast"));
  EXPECT_THAT(
      seeing(
          R"("mtu":9000,"operstate":"UP","link_type":"ether","address":"b8:3f:d2:00:00:01","linkinfo":{"info_kind":"bond")",
          R"("mtu":1500,"operstate":"UP","link_type":"ether","address":"b8:3f:d2:00:00:01","linkinfo":{"info_kind":"bond")"),
      ElementsAre("bond0 has the MTU 1500, declared is 9000"));
  EXPECT_THAT(seeing(R"("id":30)", R"("id":31)"),
              ElementsAre("stor is vlan 31 on bond0, declared is VLAN 30 on bond0"));
}

TEST(NetworkProblems, ofAddressesAndRoutes) {
  EXPECT_THAT(
      seeing(R"("local":"10.30.1.1","prefixlen":16)", R"("local":"10.30.1.1","prefixlen":24)"),
      ElementsAre("stor: the address 10.30.1.1/16 is missing",
                  "stor: the address 10.30.1.1/24 is not declared"));
  EXPECT_THAT(seeing(R"("prefixlen":64,"scope":"global")",
                     R"("prefixlen":64,"scope":"global","dadfailed":true)"),
              ElementsAre(HasSubstr("fd00:30::101/64 is another machine's too")));
  EXPECT_THAT(seeing(R"("prefixlen":64,"scope":"global")",
                     R"("prefixlen":64,"scope":"global","tentative":true)"),
              ElementsAre(HasSubstr("is not yet usable")));
  EXPECT_THAT(seeing(R"("gateway":"10.20.0.254")", R"("gateway":"10.20.0.1")"),
              ElementsAre("boot: the route to 0.0.0.0/0 by 10.20.0.254 is missing",
                          "a default route by 10.20.0.1 on boot is not declared"));
  EXPECT_THAT(seeing(R"("metric":50)", R"("metric":60)"),
              ElementsAre("stor: the route to 10.40.0.0/16 by 10.30.0.254 (metric 50) is missing"));
}

/// No answer is not an empty network.
TEST(NetworkProblems, anAnswerThatIsNoneIsNoData) {
  EXPECT_FALSE(parseKernelNetwork("", kRoutes, kRoutes6));
  EXPECT_FALSE(parseKernelNetwork("[]", kRoutes, kRoutes6));
  EXPECT_FALSE(parseKernelNetwork("[{}]", kRoutes, kRoutes6));
  EXPECT_FALSE(parseKernelNetwork(kAddresses, "Error: unknown", kRoutes6));
  EXPECT_FALSE(parseKernelNetwork(kAddresses, kRoutes, "{}"));
}

}  // namespace
}  // namespace muster::validate
