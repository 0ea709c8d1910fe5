// SPDX-License-Identifier: Apache-2.0
// Subnets behind relays, boot servers, Secure Boot: declared completely or refused, with the place.
#include "tests/inventory/inventory_fixture.h"

#include "base/ip_address.h"

#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "inventory/schema/json.h"

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// The line of "  provisioning:" is 3 and its cidr's 4, so what is added here begins at line 5.
class SubnetsTest : public InventoryTest {
 protected:
  static constexpr std::string_view kCidrLine = "    cidr: 10.20.0.0/16\n";
  static constexpr std::string_view kLogin =
      "address: 10.20.2.1, bmc: \"libvirt:login1\", rack: r2";
  static std::string yaml(const std::string& subnets,
                          const std::string& login = std::string(kLogin)) {
    return with(kLogin, login, with(kCidrLine, std::string(kCidrLine) + subnets));
  }
  std::vector<std::string> saying(const std::string& subnets,
                                  const std::string& login = std::string(kLogin)) {
    return lines(loadYaml(yaml(subnets, login)));
  }
  static std::string row(const std::string& keys) {
    return "    subnets:\n      row-a: {" + keys + "}\n";
  }
};

TEST_F(SubnetsTest, nodesAreInThemByAddress) {
  auto loaded = loadYaml(yaml(
      "    gateway: 10.20.0.254\n    dns: [10.20.0.53]\n    boot_servers:\n      b1: {tftp: "
      "10.21.0.2, http: 'http://10.21.0.2/'}\n      b2: {http: 'http://10.20.0.9', racks: [r1]}\n  "
      "  subnets:\n"
      "      row-a: {cidr: 10.21.0.0/24, gateway: 10.21.0.1, range: 10.21.0.200-10.21.0.210, dns: "
      "[10.21.0.53], image_mirrors: ['http://10.21.0.2'], boot_server: b1, racks: [r2]}\n",
      "address: 10.21.0.11, bmc: \"libvirt:login1\", rack: r2"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const auto& network = loaded.cluster->provisioning();
  const auto* login = loaded.cluster->findNode(NodeName("login1"));
  const auto* subnet = subnetOf(network, login->address);
  ASSERT_NE(subnet, nullptr);
  EXPECT_EQ(subnet->name, "row-a");
  const auto plan = addressPlan(network, login->address);
  EXPECT_EQ(plan.prefix_bits, 24);
  EXPECT_EQ(plan.gateway->str(), "10.21.0.1");
  EXPECT_EQ(plan.dns.at(0).str(), "10.21.0.53");
  EXPECT_THAT(plan.image_mirrors, ElementsAre("http://10.21.0.2"));
  EXPECT_EQ(bootServerOf(network, login->rack, login->address)->http, "http://10.21.0.2");
  const auto* gpu = loaded.cluster->findNode(NodeName("gpu001"));
  EXPECT_EQ(bootServerOf(network, gpu->rack, gpu->address)->name, "b2") << "by its rack";
  EXPECT_EQ(addressPlan(network, gpu->address).gateway->str(), "10.20.0.254");
  EXPECT_EQ(subnetOf(network, gpu->address), nullptr);
  EXPECT_EQ(bootServerOf(network, "", gpu->address), nullptr);
  const auto json = toJson(*loaded.cluster);
  EXPECT_THAT(json,
              AllOf(HasSubstr("row-a"), HasSubstr("10.21.0.200-10.21.0.210"), HasSubstr("\"b1\"")));
  const auto digest = loaded.cluster->digest;
  EXPECT_NE(loadYaml(std::string(kSmall)).cluster->digest, digest);
}

TEST_F(SubnetsTest, severalControllersAreTheSameInventoryOnEveryHost) {
  auto loaded = loadYaml(yaml("    controllers: [10.20.0.1, 10.20.0.2]\n"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  auto network = loaded.cluster->provisioning();
  EXPECT_EQ(network.controller.str(), "10.20.0.1");
  EXPECT_EQ(agentUrls(network, 8443), "https://10.20.0.1:8443,https://10.20.0.2:8443");
  EXPECT_TRUE(isController(network, *Ipv4::parse("10.20.0.2")));
  const auto json = toJson(*loaded.cluster);
  EXPECT_THAT(json, HasSubstr("\"controllers\""));
  EXPECT_THAT(showText(*loaded.cluster), HasSubstr("10.20.0.1, 10.20.0.2"));

  EXPECT_FALSE(putOnHost(network, {*Ipv4::parse("10.20.0.3")}));
  EXPECT_EQ(network.controller.str(), "10.20.0.1");
  EXPECT_TRUE(putOnHost(network, {*Ipv4::parse("127.0.0.1"), *Ipv4::parse("10.20.0.2")}));
  EXPECT_EQ(network.controller.str(), "10.20.0.2");
  EXPECT_EQ(agentUrls(network, 8443), "https://10.20.0.2:8443,https://10.20.0.1:8443")
      << "who serves comes first";
  EXPECT_EQ(controllersOf(network).front().str(), "10.20.0.1");
  loaded.cluster->networks.front() = network;
  EXPECT_EQ(toJson(*loaded.cluster), json) << "a plan of one host is good on the other";

  network = loadYaml(yaml("    controller: 10.20.0.7\n")).cluster->provisioning();
  EXPECT_EQ(agentUrls(network, 8443), "https://10.20.0.7:8443");
  EXPECT_FALSE(putOnHost(network, {*Ipv4::parse("10.20.0.2")}));
}

TEST_F(SubnetsTest, theyDoNotOverlap) {
  EXPECT_THAT(saying(row("cidr: 10.20.128.0/24, gateway: 10.20.128.1")),
              ElementsAre(AllOf(StartsWith("cluster.yaml:6:21: error: the networks provisioning "
                                           "(10.20.0.0/16) and row-a (10.20.128.0/24) overlap"),
                                HasSubstr("cluster.yaml:4:11"))));
  EXPECT_THAT(saying("    subnets:\n      row-a: {cidr: 10.21.0.0/24, gateway: 10.21.0.1}\n      "
                     "row-b: {cidr: 10.21.0.0/25, gateway: 10.21.0.1}\n"),
              ElementsAre(AllOf(StartsWith("cluster.yaml:7:21: error: the networks row-a"),
                                HasSubstr("cluster.yaml:6:21"))));
  EXPECT_THAT(saying(row("cidr: 10.30.7.0/24, gateway: 10.30.7.1")),
              ElementsAre(HasSubstr("row-a (10.30.7.0/24) and storage (10.30.0.0/16) overlap")));
}

TEST_F(SubnetsTest, everyNodeHasItsPlace) {
  const auto good =
      row("cidr: 10.21.0.0/24, gateway: 10.21.0.1, range: 10.21.0.200-10.21.0.210, racks: [r2]");
  const auto login = [](const std::string& address) {
    return "address: " + address + ", bmc: \"libvirt:login1\", rack: r2";
  };
  EXPECT_THAT(saying(good, login("10.21.0.5")), IsEmpty());
  EXPECT_THAT(saying(good, login("10.22.0.5")),
              ElementsAre(AllOf(StartsWith("cluster.yaml:32:75:"),
                                HasSubstr("the address 10.22.0.5 of login1 is outside the "
                                          "provisioning network 10.20.0.0/16 and its subnets"))));
  EXPECT_THAT(saying(good),
              ElementsAre(HasSubstr(
                  "10.20.2.1 of login1 is not in the subnet row-a (10.21.0.0/24) of its rack r2")));
  EXPECT_THAT(saying(good, login("10.21.0.1")), ElementsAre(HasSubstr("is the gateway's address")));
  EXPECT_THAT(saying(good, login("10.21.0.205")),
              ElementsAre(HasSubstr("is inside the DHCP range 10.21.0.200-10.21.0.210")));
  EXPECT_THAT(saying(good, login("10.21.0.255")),
              ElementsAre(HasSubstr("own or broadcast address")));
}

TEST_F(SubnetsTest, sayWhatIsWrongInThem) {
  EXPECT_THAT(saying(row("cidr: 10.21.0.0/24")), ElementsAre(HasSubstr("\"gateway\" is missing")));
  EXPECT_THAT(saying(row("cidr: 10.21.0.0/24, gateway: 10.22.0.1")),
              ElementsAre(AllOf(StartsWith("cluster.yaml:6:44:"),
                                HasSubstr("the gateway 10.22.0.1 is outside 10.21.0.0/24"))));
  EXPECT_THAT(saying(row("cidr: 10.21.0.0/24, gateway: 10.21.0.1, range: 10.21.0.1-10.21.0.9")),
              ElementsAre(HasSubstr("holds the gateway's address")));
  EXPECT_THAT(saying(row("cidr: 10.21.0.0/24, gateway: 10.21.0.1, range: 10.21.0.250-10.21.1.5")),
              ElementsAre(HasSubstr("end of the range 10.21.1.5 is outside")));
  EXPECT_THAT(saying(row("cidr: 10.21.0.0/24, gateway: 10.21.0.1, boot_server: b1")),
              ElementsAre(HasSubstr("\"b1\" is not declared under boot_servers")));
  EXPECT_THAT(saying("    boot_servers: {b1: {racks: [r1]}}\n"),
              ElementsAre(HasSubstr("the boot server b1 serves nothing")));
  EXPECT_THAT(
      saying("    boot_servers:\n      b1: {tftp: 10.20.0.7, racks: [r1]}\n      b2: {tftp: "
             "10.20.0.8, racks: [r1]}\n"),
      ElementsAre(AllOf(StartsWith("cluster.yaml:7:37: error: rack r1 is listed at b1 already"),
                        HasSubstr("cluster.yaml:6:37"))));
  EXPECT_THAT(saying("    boot_servers: {b1: {tftp: 10.20.2.1}}\n"),
              ElementsAre(HasSubstr("10.20.2.1 of login1 is that of the boot server b1")));
  EXPECT_THAT(
      complaints(
          "storage: {cidr: 10.30.0.0/16,",
          "storage: {cidr: 10.30.0.0/16, subnets: {a: {cidr: 10.31.0.0/24, gateway: 10.31.0.1}},"),
      ElementsAre(HasSubstr("only the network provisioning has subnets")));
  EXPECT_THAT(
      complaints("dhcp: {mode: authoritative, range: 10.20.240.1-10.20.247.254}",
                 "dhcp: {mode: proxy}\n    subnets: {a: {cidr: 10.31.0.0/24, gateway: 10.31.0.1}}"),
      ElementsAre(HasSubstr("subnets need muster as their DHCP server")));
}

TEST_F(SubnetsTest, oneMacIsOneNodeWhereverItIs) {
  EXPECT_THAT(
      complaints("mac: \"52:54:00:20:01:01\"", "mac: \"52:54:00:20:00:01\""),
      ElementsAre(AllOf(HasSubstr("the MAC 52:54:00:20:00:01"), HasSubstr("racks.csv:2:"))));
}

TEST_F(SubnetsTest, secureBootNeedsUefi) {
  auto loaded = loadYaml(with("image: noble", "image: noble, secure_boot: true"));
  ASSERT_TRUE(loaded.cluster);
  EXPECT_TRUE(loaded.cluster->profiles.at("gpu-node").secure_boot);
  EXPECT_NE(loaded.cluster->digest, loadYaml(std::string(kSmall)).cluster->digest);
  loaded = loadYaml(with("image: noble", "image: noble, boot_source: virtual-media"));
  ASSERT_TRUE(loaded.cluster) << lines(loaded).size();
  EXPECT_EQ(loaded.cluster->profiles.at("gpu-node").boot_source, BootSource::VirtualMedia);
  EXPECT_THAT(complaints("image: noble", "image: noble, boot: bios, boot_source: virtual-media"),
              ElementsAre(HasSubstr("muster's boot medium needs UEFI firmware")));
  EXPECT_THAT(complaints("image: noble", "image: noble, boot: bios, secure_boot: true"),
              ElementsAre(HasSubstr("only UEFI firmware has Secure Boot")));
}

TEST_F(SubnetsTest, anImageOfAnotherProcessorIsRefused) {
  EXPECT_THAT(complaints("image: noble", "image: noble, arch: arm64"),
              ElementsAre(HasSubstr("image noble is for amd64, profile gpu-node is of arm64")));
  EXPECT_THAT(complaints("image: noble", "image: noble, arch: arm64, boot: bios"),
              ::testing::Contains(HasSubstr("machines with arm64 have UEFI firmware, no BIOS")));
}

TEST_F(SubnetsTest, signedBootBesideAnotherServerNeedsItsHelp) {
  const std::string proxy =
      with("dhcp: {mode: authoritative, range: 10.20.240.1-10.20.247.254}", "dhcp: {mode: proxy}");
  EXPECT_THAT(lines(loadYaml(proxy)), IsEmpty());
  EXPECT_THAT(lines(loadYaml(with("image: noble", "image: noble, secure_boot: true", proxy))),
              ElementsAre(AllOf(HasSubstr("warning"), HasSubstr("next-server"))));
  EXPECT_THAT(lines(loadYaml(with("image: noble", "image: noble, secure_boot: true"))), IsEmpty());
}

}  // namespace
}  // namespace muster::inventory
