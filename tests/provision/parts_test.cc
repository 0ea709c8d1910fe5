// SPDX-License-Identifier: Apache-2.0
#include "provision/inspection.h"

#include "inventory/model/cluster.h"
#include "inventory/model/hardware.h"
#include "inventory/model/node_network.h"
#include "inventory/model/profile.h"
#include "tests/provision/clusters.h"

#include <gmock/gmock.h>

namespace muster::provision {
namespace {

using inventory::PartKind;
using inventory::PartRule;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kGib = 1ull << 30;

wire::Hardware machine() {
  wire::Hardware out;
  for (int i = 0; i < 4; ++i)
    out.parts.push_back({"dimm", "DIMM_A" + std::to_string(i), "Samsung M321R8GA0BB0",
                         "S" + std::to_string(i), "", 64 * kGib});
  for (int i = 0; i < 2; ++i)
    out.parts.push_back({"nvme", "0000:4" + std::to_string(i) + ":00.0", "SAMSUNG MZQL23T8", "N",
                         "GDC7502Q", 3576 * kGib});
  out.parts.push_back({"nvme", "0000:01:00.0", "Boot Disk", "B", "1.0", 894 * kGib});
  out.parts.push_back(
      {"nic", "0000:5e:00.0", "ConnectX-7 (15b3:1021 MT4129)", "G", "28.39.1002", 0});
  out.nics = {{"eth0", "52:54:00:00:00:01", "e1000"}};
  return out;
}
std::vector<std::string> textsOf(const std::vector<Mismatch>& mismatches) {
  std::vector<std::string> out;
  for (const auto& one : mismatches) {
    EXPECT_FALSE(one.what_to_do.empty()) << one.text;
    EXPECT_THAT(one.evidence, HasSubstr("expected")) << one.text;
    out.push_back(one.text);
  }
  return out;
}

TEST(Parts, whatIsExpectedFits) {
  EXPECT_THAT(evaluateParts({{PartKind::Dimm, "", 4, 64, ""},
                             {PartKind::Nvme, "*mzql2*", 2, 3500, "GDC7*"},
                             {PartKind::Nvme, "boot*", 1, {}, ""},
                             {PartKind::Nic, "*15b3:1021*", 1, {}, "28.39.*"}},
                            machine()),
              IsEmpty());
}

TEST(Parts, countSizeAndFirmwareAreEachFound) {
  auto seen = machine();
  seen.parts.erase(seen.parts.begin());
  seen.parts[0].size_bytes = 32 * kGib;
  seen.parts[3].firmware = "GDC5602Q";
  EXPECT_THAT(
      textsOf(evaluateParts(
          {{PartKind::Dimm, "", 4, 64, ""}, {PartKind::Nvme, "*MZQL2*", 2, 3500, "GDC7*"}}, seen)),
      ElementsAre("3 DIMMs seen, 4 expected",
                  "DIMM DIMM_A1 (Samsung M321R8GA0BB0, 32 GiB): 64 GiB expected",
                  "NVMe disk 0000:40:00.0 (SAMSUNG MZQL23T8, 3576 GiB) runs firmware GDC5602Q, "
                  "expected is GDC7*"));
}

TEST(Parts, aModelThatIsNotThereIsMissingAndOneTooManyIsWrong) {
  const auto mismatches = evaluateParts(
      {{PartKind::Nic, "*BlueField*", {}, {}, ""}, {PartKind::Nvme, "", 2, {}, ""}}, machine());
  EXPECT_THAT(textsOf(mismatches),
              ElementsAre("0 NICs of model \"*BlueField*\" seen, at least 1 expected",
                          "3 NVMe disks seen, 2 expected"));
  EXPECT_THAT(mismatches[0].evidence, HasSubstr("0000:5e:00.0")) << "where the others are";
  EXPECT_THAT(evaluateParts({{PartKind::Gpu, "", 0, {}, ""}}, machine()), IsEmpty());
}

struct CablingTest : ::testing::Test {
  CablingTest() {
    hardware = machine();
    nodes[0].switch_name = "leaf1", nodes[0].switch_port = "Ethernet1/5";
    nodes[1].switch_name = "leaf1", nodes[1].switch_port = "Ethernet1/6";
    nodes[0].mac = *Mac::parse("52:54:00:00:00:01");
  }
  std::vector<Mismatch> evaluate(bool listened = true) {
    return evaluateCabling(nodes[0], hardware, listened, nodes);
  }
  std::vector<inventory::Node> nodes = twoNodes().nodes;
  inventory::Profile profile;
  wire::Hardware hardware;
};

/// Two Ethernets beside the one that boots, one found by its place and one by its MAC.
struct FurtherCablingTest : CablingTest {
  FurtherCablingTest() {
    inventory::NodeNetworkSpec network;
    inventory::DeclaredEthernet by_place, by_mac;
    by_place.name = "data0", by_place.match = *inventory::NicMatch::parse("pci:0000:18:00.0");
    by_mac.name = "data1", by_mac.match = *inventory::NicMatch::parse("mac");
    network.ethernets = {by_place, by_mac};
    profile.network = network;
    inventory::NodeLinks links;
    links.nics = *inventory::parseNics("data1=52:54:00:00:01:02");
    links.ports = *inventory::parsePorts("data0=leaf1:swp1 data1=leaf2:swp1");
    nodes[0].links = links;
    nodes[0].switch_name.clear(), nodes[0].switch_port.clear();
    hardware.parts.push_back({"nic", "0000:18:00.0", "MT2910", "52:54:00:00:01:01", "", 0});
    hardware.neighbours = {{"enp24s0", "52:54:00:00:01:01", "leaf1.example.com", "swp1"},
                           {"enp25s0", "52:54:00:00:01:02", "leaf2", "swp1"}};
  }
  std::vector<Mismatch> further(bool listened = true) {
    return evaluateFurtherCabling(nodes[0], profile, hardware, listened);
  }
};

TEST_F(FurtherCablingTest, eachIsFoundByPlaceOrMac) {
  EXPECT_THAT(further(), IsEmpty());
  EXPECT_TRUE(declaresCabling(nodes[0]));
  EXPECT_FALSE(needsNeighbour(nodes[0], profile, hardware));
}

TEST_F(FurtherCablingTest, swappedCablesAreTold) {
  std::swap(hardware.neighbours[0].switch_name, hardware.neighbours[1].switch_name);
  EXPECT_THAT(textsOf(further()),
              ElementsAre("data0 is cabled to leaf2 port swp1, declared is leaf1 port swp1",
                          "data1 is cabled to leaf1.example.com port swp1, declared is leaf2 port "
                          "swp1"));
}

TEST_F(FurtherCablingTest, silenceCountsOnlyAfterListening) {
  hardware.neighbours.pop_back();
  EXPECT_THAT(further(false), IsEmpty());
  EXPECT_TRUE(needsNeighbour(nodes[0], profile, hardware));
  EXPECT_THAT(textsOf(further()), ElementsAre(HasSubstr("data1 receives no LLDP")));
}

/// Members of a bond have the bond's MAC in the installed system.
TEST_F(FurtherCablingTest, inTheInstalledSystemItGoesByName) {
  for (auto& neighbour : hardware.neighbours) neighbour.mac = "52:54:00:00:01:01";
  hardware.neighbours[0].nic = "data0", hardware.neighbours[1].nic = "data1";
  EXPECT_THAT(further(), IsEmpty());
}

TEST_F(FurtherCablingTest, theDigestMovesWithTheDeclaration) {
  const auto before = expectationDigest(nodes[0], profile);
  nodes[0].links->ports = *inventory::parsePorts("data0=leaf1:swp2 data1=leaf2:swp1");
  EXPECT_NE(expectationDigest(nodes[0], profile), before);
}

TEST_F(CablingTest, theDeclaredPortFitsWithOrWithoutADomain) {
  hardware.neighbours = {{"eth0", "", "LEAF1.dc.example.com", "ethernet1/5"}};
  EXPECT_THAT(evaluate(), IsEmpty());
  EXPECT_FALSE(needsNeighbour(nodes[0], profile, hardware));
}

TEST_F(CablingTest, swappedCablesNameTheOtherNode) {
  hardware.neighbours = {{"eth0", "", "leaf1", "Ethernet1/6"}};
  const auto mismatches = evaluate();
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_THAT(mismatches[0].text,
              HasSubstr("is cabled to leaf1 port Ethernet1/6, which is " + nodes[1].name.str() +
                        "'s, declared is leaf1 port Ethernet1/5"));
  EXPECT_THAT(mismatches[0].what_to_do, HasSubstr("swap the cables of"));
  hardware.neighbours[0].port = "Ethernet1/9";
  EXPECT_THAT(evaluate()[0].what_to_do, HasSubstr("put the cable into leaf1 port Ethernet1/5"));
}

TEST_F(CablingTest, silenceCountsOnlyAfterListening) {
  EXPECT_THAT(evaluate(false), IsEmpty());
  EXPECT_TRUE(needsNeighbour(nodes[0], profile, hardware));
  EXPECT_THAT(evaluate()[0].text, HasSubstr("receives no LLDP"));
  hardware.neighbours = {{"eth7", "", "leaf1", "Ethernet1/5"}};
  EXPECT_EQ(evaluate().size(), 1u) << "another NIC's neighbour is not this one's";
  nodes[0].switch_name.clear(), nodes[0].switch_port.clear();
  EXPECT_THAT(evaluate(), IsEmpty());
  EXPECT_FALSE(needsNeighbour(nodes[0], profile, hardware));
}

TEST_F(CablingTest, anotherNodesSerialOrMacIsAMixUp) {
  EXPECT_THAT(evaluateMixUp(nodes[0], hardware, IdentityIndex(nodes)), IsEmpty());
  nodes[1].serial = hardware.serial = "SN-2";
  hardware.nics.push_back({"eth1", nodes[1].mac.str(), "e1000"});
  EXPECT_THAT(textsOf(evaluateMixUp(nodes[0], hardware, IdentityIndex(nodes))),
              ElementsAre("it has the serial of " + nodes[1].name.str(),
                          HasSubstr("its NIC eth1 has the MAC")));
}

TEST_F(CablingTest, whatIsDeclaredOfPartsAndCablesIsPartOfTheExpectation) {
  const auto cluster = twoNodes();
  auto profile = cluster.profiles.begin()->second;
  const auto plain = expectationDigest(cluster.nodes[0], profile);
  EXPECT_NE(expectationDigest(nodes[0], profile), plain);
  profile.expect.parts = {{PartKind::Dimm, "", 4, 64, ""}};
  const auto four = expectationDigest(cluster.nodes[0], profile);
  profile.expect.parts[0].count = 8;
  EXPECT_NE(expectationDigest(cluster.nodes[0], profile), four);
}

}  // namespace
}  // namespace muster::provision
