// SPDX-License-Identifier: Apache-2.0
// A node's network, resolved from its profile, the networks' pools and the node's own columns.
#include "inventory/model/node_network.h"

#include "tests/inventory/network_fixture.h"

#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "inventory/schema/json.h"

namespace muster::inventory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NodeNetworkTest : public NodeNetworkFixture {
 protected:
  wire::NodeNetwork of(const Loaded& loaded, const std::string& node) {
    EXPECT_THAT(lines(loaded), IsEmpty());
    if (!loaded.cluster) return {};
    return nodeNetworkOf(*loaded.cluster, *loaded.cluster->findNode(NodeName(node)))
        .value_or(wire::NodeNetwork());
  }
  /// One that is missing is empty, and the expectations say so.
  static const wire::NetworkLink& link(const wire::NodeNetwork& network, std::string_view name) {
    static const wire::NetworkLink kNone;
    const auto* found = network.find(name);
    return found ? *found : kNone;
  }
  static std::vector<std::string> addresses(const wire::NodeNetwork& network,
                                            std::string_view link) {
    const auto* found = network.find(link);
    return found ? found->addresses : std::vector<std::string>{"(no such link)"};
  }
};

TEST_F(NodeNetworkTest, isResolvedWhole) {
  const auto loaded = loadYaml(yaml());
  const auto network = of(loaded, "gpu002");
  const auto& boot = link(network, "boot");
  EXPECT_EQ(boot.mac, "52:54:00:20:00:02");
  EXPECT_THAT(boot.addresses, ElementsAre("10.20.1.2/16"));
  EXPECT_THAT(boot.routes, ElementsAre(wire::NetworkRoute{"0.0.0.0/0", "10.20.0.254", 0}));
  EXPECT_EQ(link(network, "data0").pci, "0000:18:00.0");
  const auto& bond = link(network, "bond0");
  EXPECT_EQ(bond.kind, wire::LinkKind::Bond);
  EXPECT_THAT(bond.members, ElementsAre("data0", "data1"));
  EXPECT_EQ(bond.bond.mode, BondMode::Lacp);
  EXPECT_EQ(bond.mac, "") << "the NIC that boots is not in it";
  EXPECT_THAT(bond.addresses, IsEmpty());
  const auto& vlan = link(network, "stor");
  EXPECT_EQ(vlan.parent, "bond0");
  EXPECT_EQ(vlan.vlan_id, 30);
  EXPECT_EQ(vlan.mtu, 9000) << "its network's";
  EXPECT_THAT(vlan.addresses, ElementsAre("10.30.1.2/16", "fd00:30::102/64"));
  EXPECT_THAT(vlan.dns, ElementsAre("10.30.0.53"));
  EXPECT_THAT(vlan.routes, IsEmpty()) << "the default route is the provisioning network's";
  EXPECT_EQ(network.provisioning, (wire::ProvisioningPath{"52:54:00:20:00:02",
                                                          "boot",
                                                          "10.20.1.2/16",
                                                          {{"0.0.0.0/0", "10.20.0.254", 0}},
                                                          {"10.20.0.1"}}));
  const auto parsed = wire::parseNodeNetwork(wire::toJson(network));
  EXPECT_TRUE(parsed) << "the agent takes it: " << parsed.error().str();
}

/// The place in a pool must not move when another node leaves, or one in the middle is added.
TEST_F(NodeNetworkTest, addressesStayWhenNodesComeAndLeave) {
  const auto all = addresses(of(loadYaml(yaml()), "gpu002"), "stor");
  write("racks.csv",
        "name,rack,unit,mac,address,bmc,serial\n"
        "gpu002,r1,12,52:54:00:20:00:02,10.20.1.2,https://10.20.250.2,\n");
  auto without = with("names: \"gpu[001-002]\"", "names: gpu002", yaml());
  without = with("[gpu001, controller]", "[controller]", without);
  without = with("[\"gpu[001-002]\"]", "[gpu002]", without);
  EXPECT_EQ(addresses(of(loadYaml(without), "gpu002"), "stor"), all);
}

TEST_F(NodeNetworkTest, aPoolByNameTakesTheNumberAtItsEnd) {
  const auto by_name =
      with("names: login1", "names: login9",
           with("base6: \"fd00:30::\"", "base6: \"fd00:30::100\", by: name", yaml()));
  EXPECT_THAT(addresses(of(loadYaml(by_name), "gpu002"), "stor"),
              ElementsAre("10.30.0.2/16", "fd00:30::102/64"));
}

TEST_F(NodeNetworkTest, aNodesOwnAddressGoesBeforeThePools) {
  write("racks.csv",
        "name,rack,unit,mac,address,bmc,serial,addresses,ports\n"
        "gpu001,r1,10,52:54:00:20:00:01,10.20.1.1,https://10.20.250.1,SN1,"
        "storage=10.30.9.9,data0=leaf1:swp7 data1=leaf2:Ethernet1/7\n"
        "gpu002,r1,12,52:54:00:20:00:02,10.20.1.2,https://10.20.250.2,,,\n");
  const auto loaded = loadYaml(yaml());
  const auto network = of(loaded, "gpu001");
  EXPECT_THAT(addresses(network, "stor"), ElementsAre("10.30.9.9/16", "fd00:30::101/64"));
  EXPECT_EQ(link(network, "data1").switch_name, "leaf2");
  EXPECT_EQ(link(network, "data1").switch_port, "Ethernet1/7");
  EXPECT_THAT(addresses(of(loaded, "gpu002"), "stor"),
              ElementsAre("10.30.1.2/16", "fd00:30::102/64"));
  const auto json = toJson(*loaded.cluster);
  EXPECT_THAT(json, HasSubstr("storage=10.30.9.9"));
  EXPECT_THAT(json, HasSubstr("data0=leaf1:swp7 data1=leaf2:Ethernet1/7"));
}

TEST_F(NodeNetworkTest, aNicByMacIsTheNodesOwn) {
  const auto by_mac = changed("data1: {match: \"pci:0000:3b:00.0\"}", "data1: {match: mac}");
  write("racks.csv",
        "name,rack,unit,mac,address,bmc,serial,nics\n"
        "gpu001,r1,10,52:54:00:20:00:01,10.20.1.1,https://10.20.250.1,SN1,data1=52-54-00-30-00-01\n"
        "gpu002,r1,12,52:54:00:20:00:02,10.20.1.2,https://10.20.250.2,,data1=525400300002\n");
  const auto login =
      with("address: 10.20.2.1,", "address: 10.20.2.1, nics: \"data1=52:54:00:30:00:03\",", by_mac);
  EXPECT_EQ(link(of(loadYaml(login), "gpu002"), "data1").mac, "52:54:00:30:00:02");
  EXPECT_THAT(lines(loadYaml(by_mac)),
              ElementsAre(HasSubstr("error: login1: nothing says the MAC of data1")))
      << "and no other node";
}

TEST_F(NodeNetworkTest, theBondOverTheNicThatBootsIsTheWayToTheController) {
  const auto network = of(loadYaml(yaml(R"({
      ethernets: {boot: {match: provisioning}, second: {match: "pci:0000:18:00.1"}},
      bonds: {uplink: {interfaces: [boot, second], mode: active-backup, addresses: [storage]}}})")),
                          "gpu001");
  const auto& bond = link(network, "uplink");
  EXPECT_EQ(network.provisioning.link, "uplink");
  EXPECT_EQ(bond.mac, "52:54:00:20:00:01") << "as it booted";
  EXPECT_EQ(bond.bond.primary, "boot");
  EXPECT_THAT(bond.addresses, ElementsAre("10.20.1.1/16", "10.30.1.1/16", "fd00:30::101/64"));
  EXPECT_THAT(link(network, "boot").addresses, IsEmpty());
}

TEST_F(NodeNetworkTest, theDefaultRouteMayBeAnotherNetworks) {
  const auto network = of(loadYaml(changed("vlans:", "default_route: storage, vlans:")), "gpu001");
  EXPECT_THAT(link(network, "boot").routes, IsEmpty());
  EXPECT_THAT(link(network, "stor").routes,
              ElementsAre(wire::NetworkRoute{"0.0.0.0/0", "10.30.255.254", 0},
                          wire::NetworkRoute{"::/0", "fd00:30::fffe", 0}));
  EXPECT_THAT(network.provisioning.routes, IsEmpty());
}

/// The controller is behind the router of the subnet: without a route there the node would be lost.
TEST_F(NodeNetworkTest, inASubnetTheWayToTheControllerStays) {
  auto text = changed("vlans:", "default_route: storage, vlans:");
  text = with("    dhcp: {mode: authoritative",
              "    subnets: {row-a: {cidr: 10.21.0.0/24, gateway: 10.21.0.1}}\n    dhcp: {mode: "
              "relay",
              text);
  text = with("address: 10.20.2.1,", "address: 10.21.0.9,", text);
  text = with("10.30.0.0/16", "10.30.0.0/15", text);
  const auto network = of(loadYaml(text), "login1");
  const wire::NetworkRoute to_controller{"10.20.0.0/16", "10.21.0.1", 0};
  EXPECT_THAT(link(network, "boot").addresses, ElementsAre("10.21.0.9/24"));
  EXPECT_THAT(link(network, "boot").routes, ElementsAre(to_controller));
  EXPECT_THAT(network.provisioning.routes, ElementsAre(to_controller));
}

TEST_F(NodeNetworkTest, bothFamiliesOnTheProvisioningNetwork) {
  const auto text =
      with("    gateway: 10.20.0.254\n",
           "    gateway: 10.20.0.254\n    cidr6: \"fd00:20::/64\"\n    gateway6: \"fe80::1\"\n    "
           "pool: {base6: \"fd00:20::\"}\n",
           yaml());
  const auto network = of(loadYaml(text), "gpu001");
  EXPECT_THAT(addresses(network, "boot"), ElementsAre("10.20.1.1/16", "fd00:20::101/64"));
  EXPECT_THAT(link(network, "boot").routes,
              ElementsAre(wire::NetworkRoute{"0.0.0.0/0", "10.20.0.254", 0},
                          wire::NetworkRoute{"::/0", "fe80::1", 0}));
}

TEST_F(NodeNetworkTest, whatIsNotDeclaredChangesNoDigest) {
  const auto before = loadYaml(std::string(kSmall));
  ASSERT_TRUE(before.cluster);
  EXPECT_THAT(toJson(*before.cluster), ::testing::Not(HasSubstr("pool\":{\"b")));
  EXPECT_EQ(nodeNetworkOf(*before.cluster, before.cluster->nodes.front()), std::nullopt);
  const auto with_network = loadYaml(yaml());
  const auto other = loadYaml(changed("id: 30", "id: 31"));
  ASSERT_TRUE(with_network.cluster && other.cluster);
  EXPECT_NE(with_network.cluster->digest, before.cluster->digest);
  EXPECT_NE(with_network.cluster->digest, other.cluster->digest);
}

TEST(NodeLinks, columnsAreReadAndPrinted) {
  const auto nics = parseNics("b=52-54-00-20-01-02  a=525400200101");
  ASSERT_TRUE(nics);
  EXPECT_EQ(str(*nics), "a=52:54:00:20:01:01 b=52:54:00:20:01:02");
  const auto own = parseNodeAddresses("storage=fd00:30::7 storage=10.30.0.7");
  ASSERT_TRUE(own);
  EXPECT_EQ(str(*own), "storage=10.30.0.7 storage=fd00:30::7");
  const auto ports = parsePorts("data0=leaf1:Ethernet1/7");
  ASSERT_TRUE(ports);
  EXPECT_EQ(str(*ports), "data0=leaf1:Ethernet1/7");
  for (const auto* text : {"a", "a=", "=b", "a=52:54:00:20:01", "a=525400200101 a=525400200102"})
    EXPECT_FALSE(parseNics(text)) << text;
  for (const auto* text : {"s=10.30.0.256", "s=10.30.0.1 s=10.30.0.2", "s=x"})
    EXPECT_FALSE(parseNodeAddresses(text)) << text;
  for (const auto* text : {"a=leaf1", "a=:swp1", "a=leaf1:", "a=l:1 a=l:2"})
    EXPECT_FALSE(parsePorts(text)) << text;
}

}  // namespace
}  // namespace muster::inventory
