// SPDX-License-Identifier: Apache-2.0
// What is wrong with a node's network: each with its place and what to do, all at once.
#include "tests/inventory/network_fixture.h"

#include "inventory/model/cluster.h"

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class NodeNetworkRulesTest : public NodeNetworkFixture {
 protected:
  std::vector<std::string> saying(std::string_view old_text, std::string_view new_text) {
    return lines(loadYaml(changed(old_text, new_text)));
  }
  std::vector<std::string> sayingOf(const std::string& text) { return lines(loadYaml(text)); }
};

TEST_F(NodeNetworkRulesTest, theFixtureIsGood) { EXPECT_THAT(sayingOf(yaml()), IsEmpty()); }

TEST_F(NodeNetworkRulesTest, aBondHasTwoMembersAtLeast) {
  EXPECT_THAT(saying("[data0, data1]", "[data0]"),
              ElementsAre(AllOf(HasSubstr("the bond bond0 has 1 member"),
                                HasSubstr("name at least two Ethernets"))));
}

TEST_F(NodeNetworkRulesTest, anEthernetIsInOneBond) {
  EXPECT_THAT(saying("bonds: {", "bonds: {bond1: {interfaces: [data1, data0]}, "),
              ElementsAre(HasSubstr("data1 is in the bonds bond0 and bond1"),
                          HasSubstr("data0 is in the bonds bond0 and bond1")));
}

TEST_F(NodeNetworkRulesTest, membersAreEthernetsOfTheProfile) {
  EXPECT_THAT(saying("[data0, data1]", "[data0, dta1]"),
              ElementsAre(AllOf(HasSubstr("dta1 is no Ethernet of this profile"),
                                HasSubstr("did you mean \"data1\"?"))));
  EXPECT_THAT(saying("[data0, data1]", "[data0, stor]"),
              ElementsAre(HasSubstr("a bond is made of Ethernets alone")));
  EXPECT_THAT(saying("[data0, data1]", "[data0, data0]"),
              ElementsAre(HasSubstr("data0 is in the bond bond0 twice")));
  EXPECT_THAT(saying("data0: {match: \"pci:0000:18:00.0\"}",
                     "data0: {match: \"pci:0000:18:00.0\", mtu: 9000}"),
              ElementsAre(AllOf(HasSubstr("data0 is a member of the bond bond0, which has the mtu"),
                                HasSubstr("move it to bond0"))));
}

/// Firmware speaks no LACP: a switch that insists on it never lets the node boot again.
TEST_F(NodeNetworkRulesTest, theNicThatBootsIsInABondOnlyWithAWayBack) {
  const auto bond = [](std::string_view keys) {
    return yaml(
        "{ethernets: {boot: {match: provisioning}, second: {match: "
        "\"pci:0000:18:00.1\"}}, bonds: {uplink: {interfaces: [boot, second]" +
        std::string(keys) + "}}}");
  };
  EXPECT_THAT(
      sayingOf(bond("")),
      ElementsAre(AllOf(HasSubstr("boot boots the node and is in the bond uplink of mode "
                                  "802.3ad"),
                        HasSubstr("switch_fallback: true"), HasSubstr("mode: active-backup"))));
  EXPECT_THAT(sayingOf(bond(", mode: balance-xor")), ElementsAre(HasSubstr("balance-xor")));
  EXPECT_THAT(sayingOf(bond(", switch_fallback: true")), IsEmpty());
  EXPECT_THAT(sayingOf(bond(", mode: active-backup")), IsEmpty());
}

TEST_F(NodeNetworkRulesTest, oneNicBoots) {
  EXPECT_THAT(saying("boot: {match: provisioning}, ", ""),
              Contains(AllOf(HasSubstr("no Ethernet is the NIC that boots"),
                             HasSubstr("add boot: {match: provisioning}"))));
  EXPECT_THAT(saying("data0: {match: \"pci:0000:18:00.0\"}", "data0: {match: provisioning}"),
              Contains(HasSubstr("boot and data0 both match provisioning")));
  EXPECT_THAT(saying("pci:0000:3b:00.0", "pci:0000:18:00.0"),
              ElementsAre(HasSubstr("data0 and data1 are the same NIC")));
}

TEST_F(NodeNetworkRulesTest, vlansLieOnSomethingOnceAndFit) {
  EXPECT_THAT(saying("link: bond0", "link: bond1"),
              ElementsAre(AllOf(HasSubstr("bond1 is no Ethernet or bond of this profile"),
                                HasSubstr("did you mean \"bond0\"?"))));
  EXPECT_THAT(saying("link: bond0", "link: data0"),
              ElementsAre(AllOf(HasSubstr("data0 is a member of the bond bond0"),
                                HasSubstr("write link: bond0"))));
  EXPECT_THAT(saying("vlans: {", "vlans: {more: {id: 31, link: stor}, "),
              ElementsAre(HasSubstr("stor is a VLAN itself")));
  EXPECT_THAT(saying("vlans: {", "vlans: {more: {id: 30, link: bond0}, "),
              ElementsAre(HasSubstr("more and stor are both VLAN 30 on bond0")));
  EXPECT_THAT(saying("id: 30", "id: 4095"), ElementsAre(HasSubstr("from 1 to 4094")));
  EXPECT_THAT(saying("id: 30", "id: 0"), ElementsAre(HasSubstr("from 1 to 4094")));
  EXPECT_THAT(saying("data1], mtu: 9000", "data1]"),
              ElementsAre(AllOf(HasSubstr("the MTU 9000 of the VLAN stor is above the 1500 of "
                                          "bond0 below it"),
                                HasSubstr("write mtu: 9000 for bond0 too"))));
  EXPECT_THAT(saying("data1], mtu: 9000", "data1], mtu: 70000"),
              Contains(HasSubstr("a whole number from")));
}

TEST_F(NodeNetworkRulesTest, namesAreFreeAndNotTheKernels) {
  EXPECT_THAT(saying("stor: {id", "bond0: {id"), Contains(HasSubstr("two links are named bond0")));
  for (const auto* name : {"eth0", "lo", "a-name-of-sixteen", "sp ace"})
    EXPECT_THAT(saying("stor: {id", fmt::format("\"{}\": {{id", name)), ::testing::SizeIs(1))
        << name;
}

TEST_F(NodeNetworkRulesTest, aNetworkIsOnOneLink) {
  EXPECT_THAT(
      saying("data1], mtu: 9000", "data1], mtu: 9000, addresses: [storage]"),
      ElementsAre(HasSubstr("the node has its address on network storage on bond0 already")));
  EXPECT_THAT(saying("addresses: [storage]", "addresses: [provisioning]"),
              ElementsAre(HasSubstr("the provisioning address is on boot, not on stor")));
  EXPECT_THAT(saying("addresses: [storage]", "addresses: [storge]"),
              ElementsAre(AllOf(HasSubstr("\"storge\" is not declared under networks"),
                                HasSubstr("storage"))));
}

TEST_F(NodeNetworkRulesTest, routesLeadSomewhereAndOneIsTheDefault) {
  const auto with_route = [&](std::string_view route) {
    return saying("addresses: [storage]",
                  "addresses: [storage], routes: [" + std::string(route) + "]");
  };
  EXPECT_THAT(with_route("{to: 10.40.0.0/16, via: 10.30.0.1}"), IsEmpty());
  EXPECT_THAT(with_route("{to: 10.40.0.0/16, via: 10.31.0.1}"),
              ElementsAre(HasSubstr("the gateway 10.31.0.1 is on no network of stor")));
  EXPECT_THAT(with_route("{to: 10.40.0.0/16, via: \"fd00:30::1\"}"),
              ElementsAre(HasSubstr("is not of the family")));
  EXPECT_THAT(with_route("{to: default, via: 10.30.0.1}"),
              ElementsAre(AllOf(HasSubstr("two default routes of the same metric: by network "
                                          "provisioning and by 10.30.0.1"),
                                HasSubstr("give one a metric"))));
  EXPECT_THAT(with_route("{to: default, via: 10.30.0.1, metric: 200}"), IsEmpty());
  EXPECT_THAT(with_route("{to: default, via: \"fd00:30::1\"}"), IsEmpty())
      << "the only one of IPv6";
  EXPECT_THAT(with_route("{to: 10.40.0.1/16, via: 10.30.0.1}"),
              ElementsAre(HasSubstr("host bits")));
  EXPECT_THAT(with_route("{to: \"fd00:40::/64\", via: \"fe80::1\"}"), IsEmpty());
  EXPECT_THAT(saying("data1], mtu: 9000",
                     "data1], mtu: 9000, routes: [{to: \"fd00:40::/64\", via: \"fe80::1\"}]"),
              ElementsAre(HasSubstr("the gateway fe80::1 is on no network of bond0")))
      << "it has no IPv6";
  EXPECT_THAT(saying("id: 30, link: bond0, addresses: [storage]}}",
                     "id: 30, link: bond0}}, default_route: storage"),
              ElementsAre(HasSubstr("no link has an address on network storage")));
}

TEST_F(NodeNetworkRulesTest, poolsLieInTheirNetwork) {
  const auto pool = [&](std::string_view old_text, std::string_view new_text) {
    return sayingOf(with(old_text, new_text, yaml()));
  };
  EXPECT_THAT(pool("base: 10.30.0.0", "base: 10.31.0.0"),
              ElementsAre(HasSubstr("the pool's base 10.31.0.0 is outside 10.30.0.0/16")));
  EXPECT_THAT(pool("base6: \"fd00:30::\"", "base6: \"fd00:31::\""),
              ElementsAre(HasSubstr("is outside fd00:30::/64")));
  EXPECT_THAT(pool("cidr6: \"fd00:30::/64\", ", ""), ::testing::Not(IsEmpty()));
  EXPECT_THAT(pool("gateway6: \"fd00:30::fffe\"", "gateway6: \"fd00:31::1\""),
              ElementsAre(HasSubstr("the gateway fd00:31::1 is outside fd00:30::/64")));
  EXPECT_THAT(pool("base: 10.30.0.0", "base: 10.30.255.0"),
              ElementsAre(StartsWith("cluster.yaml:34:13: error: login1: the address 10.31.1.1 is "
                                     "outside 10.30.0.0/16"),
                          StartsWith("racks.csv:2:1: error: gpu001: the address 10.31.0.1 is"),
                          StartsWith("racks.csv:3:1: error: gpu002: the address 10.31.0.2 is")));
  EXPECT_THAT(pool("pool: {base: 10.30.0.0, base6: \"fd00:30::\"}, ", ""),
              ElementsAre(AllOf(HasSubstr("gpu[001-002],login1: it has no address on network "
                                          "storage"),
                                HasSubstr("add pool:"))))
      << "one message for all of them";
  EXPECT_THAT(
      pool("    gateway: 10.20.0.254\n", "    gateway: 10.20.0.254\n    pool: {base: 10.20.0.0}\n"),
      ElementsAre(HasSubstr("provisioning addresses are those that nodes declare")));
}

TEST_F(NodeNetworkRulesTest, anAddressIsGivenOnce) {
  EXPECT_THAT(
      sayingOf(with("base: 10.30.0.0, base6: \"fd00:30::\"", "base: 10.30.0.0, by: name", yaml())),
      ElementsAre(AllOf(HasSubstr("the address 10.30.0.1 of login1 is also that of gpu001"),
                        HasSubstr("a pool by name"))));
  EXPECT_THAT(sayingOf(with("10.30.255.254", "10.30.1.2", yaml())),
              ElementsAre(AllOf(HasSubstr("gpu002: the address 10.30.1.2 on network storage is the "
                                          "gateway's address"))));
  const auto own = [&](std::string_view keys) {
    return sayingOf(
        with("address: 10.20.2.1,", "address: 10.20.2.1, " + std::string(keys) + ",", yaml()));
  };
  EXPECT_THAT(own("addresses: \"storage=10.30.1.2\""),
              ElementsAre(HasSubstr("the address 10.30.1.2 of login1 is also that of gpu002")));
  EXPECT_THAT(own("addresses: \"storage=10.31.1.2\""), ElementsAre(HasSubstr("is outside")));
  EXPECT_THAT(own("addresses: \"storage=10.30.0.0\""), ElementsAre(HasSubstr("broadcast")));
  EXPECT_THAT(own("addresses: \"backup=10.30.1.2\""),
              ElementsAre(HasSubstr("addresses names the network backup, on which no link")));
  EXPECT_THAT(own("nics: \"data0=52:54:00:20:00:09\""),
              ElementsAre(HasSubstr("nics names data0, which its profile finds by match: pci:")));
  EXPECT_THAT(own("nics: \"data7=52:54:00:20:00:09\""),
              ElementsAre(HasSubstr("nics names data7, which is no Ethernet")));
  EXPECT_THAT(own("ports: \"data7=leaf1:1\""), ElementsAre(HasSubstr("ports names data7")));
  EXPECT_THAT(own("ports: \"data0=leaf1:1 data1=leaf1:1\""),
              ElementsAre(HasSubstr("the switch port leaf1 1 of login1 is there twice")));
}

TEST_F(NodeNetworkRulesTest, aMacIsGivenOnce) {
  const auto by_mac = changed("data1: {match: \"pci:0000:3b:00.0\"}", "data1: {match: mac}");
  write("racks.csv",
        "name,rack,unit,mac,address,bmc,serial,nics\n"
        "gpu001,r1,10,52:54:00:20:00:01,10.20.1.1,https://10.20.250.1,SN1,data1=52:54:00:20:00:02\n"
        "gpu002,r1,12,52:54:00:20:00:02,10.20.1.2,https://10.20.250.2,,data1=52:54:00:20:00:03\n");
  EXPECT_THAT(sayingOf(with("address: 10.20.2.1,",
                            "address: 10.20.2.1, nics: \"data1=52:54:00:20:00:03\",", by_mac)),
              ElementsAre(HasSubstr("the MAC 52:54:00:20:00:03 of login1 is also that of gpu002"),
                          HasSubstr("the MAC 52:54:00:20:00:02 of gpu002 is also that of gpu001")));
}

/// A LACP bond with it would get round the rule of the NIC that boots.
TEST_F(NodeNetworkRulesTest, theNicThatBootsIsNoOtherNicOfItsNode) {
  const auto by_mac = changed("data1: {match: \"pci:0000:3b:00.0\"}", "data1: {match: mac}");
  write("racks.csv",
        "name,rack,unit,mac,address,bmc,serial,nics\n"
        "gpu001,r1,10,52:54:00:20:00:01,10.20.1.1,https://10.20.250.1,SN1,data1=52:54:00:20:00:01\n"
        "gpu002,r1,12,52:54:00:20:00:02,10.20.1.2,https://10.20.250.2,,data1=52:54:00:20:00:03\n");
  EXPECT_THAT(sayingOf(with("address: 10.20.2.1,",
                            "address: 10.20.2.1, nics: \"data1=52:54:00:20:00:09\",", by_mac)),
              ElementsAre(HasSubstr("the MAC 52:54:00:20:00:01 of gpu001 is there twice")));
}

TEST_F(NodeNetworkRulesTest, aGroupAddressIsNoNic) {
  for (const char* mac : {"ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01"})
    EXPECT_THAT(
        sayingOf(with("address: 10.20.2.1,",
                      "address: 10.20.2.1, nics: \"data1=" + std::string(mac) + "\",",
                      changed("data1: {match: \"pci:0000:3b:00.0\"}", "data1: {match: mac}"))),
        Contains(AllOf(HasSubstr(mac), HasSubstr("a group address"))));
}

TEST_F(NodeNetworkRulesTest, noRouteTakesTheWayToTheController) {
  for (const char* to : {"10.20.0.0/16", "10.20.0.1/32"})
    EXPECT_THAT(saying("addresses: [storage]}", "addresses: [storage], routes: [{to: " +
                                                    std::string(to) + ", via: 10.30.0.254}]}"),
                ElementsAre(HasSubstr("the node would lose its controller")))
        << to;
  EXPECT_THAT(saying("addresses: [storage]}",
                     "addresses: [storage], routes: [{to: 10.0.0.0/8, via: 10.30.0.254}]}"),
              IsEmpty())
      << "a wider one loses against the link's own network";
}

TEST_F(NodeNetworkRulesTest, aNumberIsNoNameOfAnInterface) {
  for (const char* name : {"\"1\"", "\"007\"", "bonding_masters"})
    EXPECT_FALSE(sayingOf(yaml("{ethernets: {boot: {match: provisioning}, " + std::string(name) +
                               ": {match: \"pci:0000:18:00.0\"}}}"))
                     .empty())
        << name;
}

TEST_F(NodeNetworkRulesTest, columnsWithoutANetworkMeanNothing) {
  EXPECT_THAT(complaints("address: 10.20.2.1,", "address: 10.20.2.1, ports: \"data0=leaf1:1\","),
              ElementsAre(AllOf(HasSubstr("login1: its profile declares no network"),
                                HasSubstr("add network to the profile"))));
}

TEST_F(NodeNetworkRulesTest, aNetworkThatCannotBeReadIsNotCalledMissing) {
  EXPECT_THAT(sayingOf(with("address: 10.20.2.1,", "address: 10.20.2.1, ports: \"data0=leaf1:1\",",
                            changed("id: 30", "id: 4095"))),
              ElementsAre(HasSubstr("4095 is out of range")));
}

TEST_F(NodeNetworkRulesTest, ipv6NetworksDoNotOverlap) {
  EXPECT_THAT(sayingOf(with("    gateway: 10.20.0.254\n",
                            "    gateway: 10.20.0.254\n    cidr6: \"fd00:30::/48\"\n", yaml())),
              ElementsAre(HasSubstr("the networks provisioning (fd00:30::/48) and storage "
                                    "(fd00:30::/64) overlap")));
}

TEST_F(NodeNetworkRulesTest, aLiveImageHasNoneYet) {
  EXPECT_THAT(sayingOf(with("packages: [linux-generic]}}",
                            "packages: [linux-generic]}, kind: live}", yaml())),
              ElementsAre(HasSubstr("image noble is live")));
}

/// Mistakes of several kinds are told together, each where it is.
TEST_F(NodeNetworkRulesTest, allAtOnceWithTheirPlaces) {
  EXPECT_THAT(
      sayingOf(yaml(R"({
      ethernets: {boot: {match: provisioning}, data0: {match: "pci:0000:18:00.0"}},
      bonds: {bond0: {interfaces: [data0, data9], primary: data0, mode: active-backup}},
      vlans: {stor: {id: 30, link: bond9, addresses: [storage]},
              more: {id: 31, link: data0}}})")),
      ElementsAre(AllOf(StartsWith("cluster.yaml:30:43:"), HasSubstr("data9")),
                  AllOf(StartsWith("cluster.yaml:31:36:"), HasSubstr("bond9")),
                  AllOf(StartsWith("cluster.yaml:32:36:"), HasSubstr("data0 is a member"))));
}

/// 0.0.0.0/0 overlaps everything, and was taken for a network that could not be read.
TEST_F(NodeNetworkRulesTest, networksLieWhereMachinesCanBe) {
  const auto cidr = [&](std::string_view text) {
    return lines(
        loadYaml(with("storage: {cidr: 10.30.0.0/16", "storage: {cidr: " + std::string(text))));
  };
  EXPECT_THAT(cidr("10.30.0.0/16"), IsEmpty());
  EXPECT_THAT(cidr("0.0.0.0/0"),
              Contains(AllOf(HasSubstr("cluster.yaml:6:19"),
                             HasSubstr("the network 0.0.0.0/0 reaches into 0.0.0.0/8"))));
  for (const char* text : {"0.0.0.0/8", "0.0.0.0/1", "169.254.0.0/16", "224.0.0.0/24",
                           "239.1.0.0/16", "255.0.0.0/8", "126.0.0.0/7"})
    EXPECT_THAT(cidr(text), Contains(HasSubstr("where no node can have an address"))) << text;
  for (const char* text : {"::/0", "::/127", "fe80::/64", "ff02::/16", "::ffff:0:0/96", "f000::/4"})
    EXPECT_THAT(cidr("10.30.0.0/16, cidr6: \"" + std::string(text) + "\""),
                Contains(HasSubstr("reaches into")))
        << text;
  EXPECT_THAT(cidr("10.30.0.0/16, cidr6: \"2001:db8::/32\""), IsEmpty());
  EXPECT_THAT(
      lines(loadYaml(with("    dhcp: {mode: authoritative",
                          "    subnets: {row-a: {cidr: 169.254.0.0/16, gateway: 169.254.0.1}}\n"
                          "    dhcp: {mode: authoritative"))),
      Contains(HasSubstr("169.254.0.0/16 (link-local)")));
  EXPECT_THAT(cidr("127.0.1.0/24"), ElementsAre(HasSubstr("the network 127.0.1.0/24 is loopback")));
}

TEST_F(NodeNetworkRulesTest, ipv6NeedsItsLeastMtuOnEveryNetwork) {
  EXPECT_THAT(sayingOf(with("cidr6: \"fd00:30::/64\", mtu: 9000",
                            "cidr6: \"fd00:30::/64\", mtu: 1279", yaml())),
              Contains(AllOf(HasSubstr("the network storage has IPv6 and an MTU of 1279"),
                             HasSubstr("1280 bytes or more"))));
  const auto provisioning =
      with("    gateway: 10.20.0.254\n",
           "    gateway: 10.20.0.254\n    cidr6: \"fd00:20::/64\"\n"
           "    pool: {base6: \"fd00:20::\"}\n",
           changed("boot: {match: provisioning}", "boot: {match: provisioning, mtu: 1000}"));
  EXPECT_THAT(sayingOf(provisioning), ElementsAre(HasSubstr("boot has IPv6 and an MTU of 1000")))
      << "the provisioning address is never named in addresses";
}

TEST_F(NodeNetworkRulesTest, aLinkHasOneMtuForAllItsNetworks) {
  EXPECT_THAT(saying("link: bond0, addresses", "link: bond0, mtu: 9000, addresses"), IsEmpty());
  EXPECT_THAT(
      sayingOf(with("mtu: 9000, dns", "mtu: 4000, dns",
                    changed("link: bond0, addresses", "link: bond0, mtu: 9000, addresses"))),
      ElementsAre(AllOf(HasSubstr("the MTU 9000 of stor is above the 4000 of its network "
                                  "storage"),
                        HasSubstr("lower it"))));
  const auto two = [&](std::string_view keys) {
    return sayingOf(
        with("  storage: {",
             "  backup: {cidr: 10.31.0.0/16, mtu: 1500, dhcp: {mode: "
             "none}, pool: {base: 10.31.0.0}}\n  storage: {",
             changed("addresses: [storage]", "addresses: [storage, backup]" + std::string(keys))));
  };
  EXPECT_THAT(two(""), ElementsAre(AllOf(HasSubstr("stor is on network backup with an MTU of 1500 "
                                                   "and on storage with 9000"),
                                         HasSubstr("write mtu: 1500"))));
  EXPECT_THAT(two(", mtu: 1500"), IsEmpty());
}

TEST_F(NodeNetworkRulesTest, aRouteIsOnALinkOnceAndLeadsToMachines) {
  const auto with_routes = [&](std::string_view routes) {
    return saying("addresses: [storage]",
                  "addresses: [storage], routes: [" + std::string(routes) + "]");
  };
  EXPECT_THAT(with_routes("{to: 10.40.0.0/16, via: 10.30.0.1}, {to: 10.40.0.0/16, via: 10.30.0.2}"),
              ElementsAre(AllOf(HasSubstr("the route to 10.40.0.0/16 is there twice on stor"),
                                HasSubstr("give one a metric"))));
  EXPECT_THAT(with_routes("{to: 10.40.0.0/16, via: 10.30.0.1}, "
                          "{to: 10.40.0.0/16, via: 10.30.0.2, metric: 100}"),
              IsEmpty());
  EXPECT_THAT(with_routes("{to: 127.0.0.0/8, via: 10.30.0.1}"),
              ElementsAre(HasSubstr("reaches into 127.0.0.0/8 (loopback)")));
  EXPECT_THAT(with_routes("{to: 239.0.0.0/8, via: 10.30.0.1}"),
              ElementsAre(HasSubstr("224.0.0.0/4 (multicast)")));
}

TEST_F(NodeNetworkRulesTest, aRoutesGatewayIsARouterAndLeadsElsewhere) {
  const auto with_route = [&](std::string_view route) {
    return saying("addresses: [storage]",
                  "addresses: [storage], routes: [" + std::string(route) + "]");
  };
  for (const char* via : {"10.30.0.0", "10.30.255.255"})
    EXPECT_THAT(with_route("{to: 10.40.0.0/16, via: " + std::string(via) + "}"),
                ElementsAre(AllOf(HasSubstr(via), HasSubstr("is the own or broadcast address of "
                                                            "network storage"))));
  EXPECT_THAT(with_route("{to: 10.30.0.0/16, via: 10.30.0.1}"),
              ElementsAre(AllOf(HasSubstr("the route to 10.30.0.0/16 is to network storage, which "
                                          "stor is on"),
                                HasSubstr("reached without a gateway"))));
  EXPECT_THAT(with_route("{to: \"fd00:30::/64\", via: \"fe80::1\"}"),
              ElementsAre(HasSubstr("is to network storage")));
  EXPECT_THAT(with_route("{to: 10.30.128.0/17, via: 10.30.0.1}"), IsEmpty())
      << "a part of it may lie behind a router";
}

/// By the pool gpu001 has 10.30.1.1: for the others it may be a router.
TEST_F(NodeNetworkRulesTest, noNodeIsItsOwnGateway) {
  EXPECT_THAT(saying("addresses: [storage]",
                     "addresses: [storage], routes: [{to: 10.40.0.0/16, via: 10.30.1.1}]"),
              ElementsAre(AllOf(HasSubstr("gpu001: it has itself the address 10.30.1.1, by which "
                                          "stor routes to 10.40.0.0/16"),
                                HasSubstr("correct via"))));
}

TEST_F(NodeNetworkRulesTest, aNameServerIsAMachine) {
  const auto dns = [&](std::string_view list) {
    return sayingOf(with("dns: [10.30.0.53]", "dns: [" + std::string(list) + "]", yaml()));
  };
  for (const char* address : {"0.0.0.0", "224.0.0.251", "255.255.255.255"})
    EXPECT_THAT(dns("10.30.0.53, " + std::string(address)),
                ElementsAre(AllOf(HasSubstr("the name server " + std::string(address) + " is in"),
                                  HasSubstr("where no machine can be"))));
  EXPECT_THAT(dns("127.0.0.53"), ElementsAre(HasSubstr("each node would ask itself")));
  EXPECT_THAT(dns("1.1.1.1, 10.30.0.53"), IsEmpty());
}

/// A bus has 32 devices of eight functions.
TEST_F(NodeNetworkRulesTest, aPlaceIsOneThatABusHas) {
  EXPECT_THAT(saying("pci:0000:18:00.0", "pci:0000:18:1f.7"), IsEmpty());
  for (const char* place : {"0000:18:20.0", "0000:18:00.8", "0000:1g:00.0"})
    EXPECT_THAT(saying("pci:0000:18:00.0", "pci:" + std::string(place)),
                ElementsAre(HasSubstr("finds no NIC")))
        << place;
}

TEST_F(NodeNetworkRulesTest, noNodeHasTheAddressOfAServer) {
  const auto own = [&](std::string_view address, const std::string& text = yaml()) {
    return sayingOf(with("address: 10.20.2.1,",
                         "address: 10.20.2.1, addresses: \"storage=" + std::string(address) + "\",",
                         text));
  };
  EXPECT_THAT(own("10.30.0.53"),
              ElementsAre(AllOf(HasSubstr("the address 10.30.0.53 of login1 is that of the name "
                                          "server of network storage"),
                                HasSubstr("give the node another one"))));
  EXPECT_THAT(own("10.30.0.1"), IsEmpty()) << "muster does not listen there";
  EXPECT_THAT(own("10.30.0.9", with("storage: {cidr: 10.30.0.0/16",
                                    "storage: {cidr: 10.30.0.0/16, controller: 10.30.0.9", yaml())),
              ElementsAre(HasSubstr("is that of the controller of network storage")));
  EXPECT_THAT(sayingOf(with("dns: [10.30.0.53]", "dns: [10.30.1.2]", yaml())),
              ElementsAre(HasSubstr("the address 10.30.1.2 of gpu002 is that of the name server")))
      << "by a pool";
}

}  // namespace
}  // namespace muster::inventory
