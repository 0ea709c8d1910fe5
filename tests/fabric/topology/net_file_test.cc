// SPDX-License-Identifier: Apache-2.0
// ibsim's net files and what ibnetdiscover prints.
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/found_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;

TEST(NetFile, readsBackWhatItWrites) {
  auto topology = declared(railCluster(6, 2, 4, 3, 2));
  auto again = parseIbnetdiscover(toIbsimNet(topology));
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->links, topology.links);
  ASSERT_EQ(again->devices.size(), topology.devices.size());
  for (const auto& [name, device] : topology.devices) {
    EXPECT_EQ(again->devices.at(name).ports, device.ports);
    EXPECT_EQ(again->devices.at(name).is_switch, device.is_switch);
  }
}

TEST(NetFile, startsWithTheControllersHcaWhereClientsAttach) {
  EXPECT_EQ(
      toIbsimNet(declared(railCluster(2)))
          .rfind("Hca\t1 \"controller-mlx5_0\"\t\t# \"controller mlx5_0\"\n[1]\t\"leaf-su1-r0\"[8]",
                 0),
      0u);
  auto cluster = railCluster(2);
  cluster.fabrics["ib"].subnet_managers.clear();
  EXPECT_EQ(toIbsimNet(declared(cluster)).rfind("Hca\t1 \"gpu001-mlx5_0\"", 0), 0u);
}

constexpr std::string_view kFound = R"(#
# Topology file: generated on Fri Nov 20 14:16:20 2026
#
# Initiated from node 0000000000100000 port 0000000000100001

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x200000
switchguid=0x200000(200000)
Switch	64 "S-0000000000200000"		# "leaf-su1-r0" enhanced port 0 lid 2 lmc 0
[1]	"H-0000000000100002"[1](100003) 		# "gpu001 mlx5_0" lid 4 4xHDR
[8]	"H-0000000000100000"[1](100001) 		# "controller mlx5_0" lid 1 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0x100002
caguid=0x100002
Ca	1 "H-0000000000100002"		# "gpu001 mlx5_0"
[1](100003) 	"S-0000000000200000"[1]		# lid 4 lmc 0 "leaf-su1-r0" lid 2 4xHDR

caguid=0x100000
Ca	1 "H-0000000000100000"		# "controller mlx5_0"
[1](100001) 	"S-0000000000200000"[8]		# lid 1 lmc 0 "leaf-su1-r0" lid 2 4xHDR
)";

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out(text);
  auto at = out.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? out : out.replace(at, what.size(), by);
}

TEST(ParseIbnetdiscover, readsNamesPortsGuidsAndLids) {
  auto topology = parseIbnetdiscover(kFound);
  ASSERT_TRUE(topology) << topology.error().str();
  EXPECT_EQ(topology->links,
            (std::vector<Link>{{{"controller mlx5_0", 1}, {"leaf-su1-r0", 8}, "4xHDR"},
                               {{"gpu001 mlx5_0", 1}, {"leaf-su1-r0", 1}, "4xHDR"}}));
  const auto& leaf = topology->devices.at("leaf-su1-r0");
  EXPECT_TRUE(leaf.is_switch);
  EXPECT_EQ(leaf.ports, 64);
  EXPECT_EQ(leaf.addresses.at(0), (PortAddress{"0x0000000000200000", 2}));
  const auto& hca = topology->devices.at("gpu001 mlx5_0");
  EXPECT_EQ(hca.guid, "0x0000000000100002");
  EXPECT_EQ(hca.addresses.at(1), (PortAddress{"0x0000000000100003", 4}));
}

TEST(ParseIbnetdiscover, doesNotTakeTwoDevicesWithOneNameForEither) {
  auto topology =
      parseIbnetdiscover(replaced(kFound, "\"H-0000000000100000\"\t\t# \"controller mlx5_0\"",
                                  "\"H-0000000000100000\"\t\t# \"gpu001 mlx5_0\""));
  ASSERT_TRUE(topology) << topology.error().str();
  EXPECT_EQ(topology->devices.count("gpu001 mlx5_0"), 0u);
  EXPECT_EQ(topology->devices.count("gpu001 mlx5_0 (0x0000000000100002)"), 1u);
  EXPECT_EQ(topology->devices.count("gpu001 mlx5_0 (0x0000000000100000)"), 1u);
}

TEST(ParseIbnetdiscover, keepsBothEndsWhenTheyDisagreeOnTheWidth) {
  auto topology = parseIbnetdiscover(
      replaced(kFound, "\"gpu001 mlx5_0\" lid 4 4xHDR", "\"gpu001 mlx5_0\" lid 4 1xHDR"));
  ASSERT_TRUE(topology) << topology.error().str();
  EXPECT_EQ(topology->links[1].width_speed, "4xHDR/1xHDR");
}

TEST(ParseIbnetdiscover, refusesWhatIsNoSoundDiscovery) {
  struct Case {
    std::string text;
    const char* words;
  };
  const std::vector<Case> cases = {
      {replaced(
           kFound,
           "[1](100003) \t\"S-0000000000200000\"[1]\t\t# lid 4 lmc 0 \"leaf-su1-r0\" lid 2 4xHDR\n",
           ""),
       "line 11: the cable is seen from"},
      {replaced(kFound, "\"S-0000000000200000\"[8]", "\"S-0000000000200009\"[8]"),
       "not in the list"},
      {replaced(kFound, "4xHDR", "fast"), "'fast' is no width and speed"},
      {replaced(kFound, "Ca\t1 \"H-0000000000100000\"", "Ca\t1 \"H-0000000000100002\""),
       "occurs twice"},
      {replaced(kFound, "[8]", "[x]"), "expected: [PORT]"},
      {replaced(kFound, "[8]", "[999]"), "expected: [PORT]"},
      {replaced(kFound, "vendid=0x2c9", "ibpanic: out of luck"), "line 6"},
      {"[1]\t\"a\"[1]\t# 4xHDR\n", "before any device"},
      {std::string(5000, 'x'), "longer than"},
  };
  for (const auto& one : cases) {
    auto topology = parseIbnetdiscover(one.text);
    ASSERT_FALSE(topology) << one.words;
    EXPECT_EQ(topology.error().code(), ErrorCode::Corrupt);
    EXPECT_THAT(topology.error().text(), HasSubstr(one.words));
  }
}

}  // namespace
}  // namespace muster::fabric::test
