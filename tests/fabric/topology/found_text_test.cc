// SPDX-License-Identifier: Apache-2.0
// Texts as people hand them over: read, or refused by their name.
#include "fabric/topology/found_text.h"
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

// The forms are those of infiniband-diags 1.6 to 50 and of public logs of sites; names and GUIDs
// are not theirs.
constexpr std::string_view kTwoHosts = R"(vendid=0x2c9
devid=0xd2f0
sysimgguid=0x100
switchguid=0x100(100)
Switch	41 "S-0000000000000100"		# "MF0;sw1:MQM8700/U1" enhanced port 0 lid 10 lmc 0
[1]	"H-0000000000000200"[1](201) 		# "node1 HCA-2" lid 4 4xHDR
[2]	"H-0000000000000300"[1](301) 		# "node2 HCA-2" lid 5 4xHDR
[41]	"H-0000000000000400"[1](401) 		# "Mellanox Technologies Aggregation Node" lid 6 4xHDR

caguid=0x200
Ca	1 "H-0000000000000200"		# "node1 HCA-2"
[1](201) 	"S-0000000000000100"[1]		# lid 4 lmc 0 "MF0;sw1:MQM8700/U1" lid 10 4xHDR

caguid=0x300
Ca	1 "H-0000000000000300"		# "node2 HCA-2"
[1](301) 	"S-0000000000000100"[2]		# lid 5 lmc 0 "MF0;sw1:MQM8700/U1" lid 10 4xHDR

caguid=0x400
Ca	1 "H-0000000000000400"		# "Mellanox Technologies Aggregation Node"
[1](401) 	"S-0000000000000100"[41]		# lid 6 lmc 0 "MF0;sw1:MQM8700/U1" lid 10 4xHDR
)";
constexpr std::string_view kPorts =
    R"(CA     4  1 0x0000000000000201 4x HDR - SW    10  1 0x0000000000000100 ( 'node1 HCA-2' - 'MF0;sw1:MQM8700/U1' )
CA     5  1 0x0000000000000301 4x HDR - SW    10  2 0x0000000000000100 ( 'node2 HCA-2' - 'MF0;sw1:MQM8700/U1' )
CA     6  1 0x0000000000000401 4x HDR - SW    10 41 0x0000000000000100 ( 'Mellanox Technologies Aggregation Node' - 'MF0;sw1:MQM8700/U1' )
SW    10  1 0x0000000000000100 4x HDR - CA     4  1 0x0000000000000201 ( 'MF0;sw1:MQM8700/U1' - 'node1 HCA-2' )
SW    10  2 0x0000000000000100 4x HDR - CA     5  1 0x0000000000000301 ( 'MF0;sw1:MQM8700/U1' - 'node2 HCA-2' )
SW    10  3 0x0000000000000100 4x SDR                                    'MF0;sw1:MQM8700/U1'
SW    10 41 0x0000000000000100 4x HDR - CA     6  1 0x0000000000000401 ( 'MF0;sw1:MQM8700/U1' - 'Mellanox Technologies Aggregation Node' )
)";
constexpr std::string_view kLinks =
    R"(CA: node1 HCA-2:
      0x0000000000000201      4    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>      10    1[  ] "MF0;sw1:MQM8700/U1" ( )
CA: Mellanox Technologies Aggregation Node:
      0x0000000000000401      6    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>      10   41[  ] "MF0;sw1:MQM8700/U1" ( )
CA: node2 HCA-2:
      0x0000000000000301      5    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>      10    2[  ] "MF0;sw1:MQM8700/U1" ( )
Switch: 0x0000000000000100 MF0;sw1:MQM8700/U1:
          10    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       4    1[  ] "node1 HCA-2" ( )
          10    2[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       5    1[  ] "node2 HCA-2" ( )
          10    3[  ] ==(                Down/ Polling)==>             [  ] "" ( )
          10   41[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       6    1[  ] "Mellanox Technologies Aggregation Node" ( )
)";

const std::vector<Link> kBoth = {{{"MF0;sw1:MQM8700/U1", 1}, {"node1 HCA-2", 1}, "4xHDR"},
                                 {{"MF0;sw1:MQM8700/U1", 2}, {"node2 HCA-2", 1}, "4xHDR"}};

std::string changed(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  for (std::size_t at = 0; (at = out.find(from, at)) != std::string::npos; at += to.size())
    out.replace(at, from.size(), to);
  EXPECT_NE(out, text) << from;
  return out;
}

TEST(FoundText, isReadAsEveryToolPrintsIt) {
  for (auto text : {kTwoHosts, kPorts, kLinks}) {
    const auto found = parseFound(text);
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_EQ(found->links, kBoth);
    EXPECT_EQ(found->devices.size(), 3u) << "an aggregation node is a part of its switch";
    EXPECT_EQ(found->devices.at("node1 HCA-2").addresses.at(1),
              (PortAddress{"0x0000000000000201", 4}));
    EXPECT_EQ(found->devices.at("MF0;sw1:MQM8700/U1").addresses.at(0),
              (PortAddress{"0x0000000000000100", 10}));
  }
}

// What was wrong: it was refused as ibsim's form. Links below EDR have no "e=".
TEST(FoundText, isReadWithTheFieldsOfEachLink) {
  for (const std::string_view fields : {" s=4 w=2 v=4 e=4", " s=4 w=2 v=2"}) {
    const auto found = parseFound(changed(kTwoHosts, " 4xHDR", " 4xHDR" + std::string(fields)));
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_EQ(found->links, kBoth);
    EXPECT_EQ(found->devices.size(), 3u);
  }
  EXPECT_FALSE(parseFound("Hca\t1 \"n1\"\n[1]\t\"sw\"[1]\t s=4 w=1\n")) << "ibsim's";
}

// Root of a host can write that name too, but neither its device id nor where its cable leads.
TEST(FoundText, believesAnAggregationNodeByItsPlaceOnly) {
  const auto moved =
      [](std::string_view text,
         std::initializer_list<std::pair<std::string_view, std::string_view>> changes) {
        std::string out(text);
        for (const auto& [from, to] : changes) out = changed(out, from, to);
        return out;
      };
  for (const auto& text :
       {moved(kTwoHosts, {{"[41]", "[5]"}}),  // an ordinary port
        moved(kPorts, {{" 10 41 ", " 10  5 "}, {"10  3 0x", "10 41 0x"}}),
        moved(kLinks, {{"  41[", "   5["}, {"10    3[", "10   41["}}),
        moved(kTwoHosts, {{"Switch\t41", "Switch\t40"}, {"[41]", "[5]"}}),
        moved(kLinks, {{"  41[", "  40["}}),  // the last one of a switch without such a node
        moved(kPorts, {{" 10 41 ", " 10 40 "}}),
        moved(kTwoHosts, {{"caguid=0x400", "devid=0x101b\ncaguid=0x400"}}),  // ConnectX-6
        moved(kTwoHosts, {{"caguid=0x400", "devid=0xa2d6\ncaguid=0x400"}})}) {
    const auto found = parseFound(text);
    ASSERT_TRUE(found) << found.error().str() << "\n" << text;
    EXPECT_EQ(found->devices.size(), 4u) << text;
    EXPECT_EQ(found->links.size(), 3u) << text;
    EXPECT_TRUE(found->switch_parts.empty());
  }
  const auto real = parseFound(moved(kTwoHosts, {{"caguid=0x400", "devid=0xcf09\ncaguid=0x400"}}));
  ASSERT_TRUE(real) << real.error().str();
  EXPECT_EQ(real->switch_parts, std::vector<std::string>{"0x0000000000000400"});
}

TEST(FoundText, isReadAsTerminalsAndOtherSystemsLeaveIt) {
  const std::vector<std::string> texts = {
      "\xef\xbb\xbf" + std::string(kTwoHosts),
      changed(kTwoHosts, "\n", "\r\n"),
      "[root@node1 ~]# ibnetdiscover\n" + std::string(kTwoHosts) + "[root@node1 ~]# \n",
      "root@node1:/home/me# ibnetdiscover\n" + std::string(kTwoHosts) + "root@node1:/home/me#\n",
      "me@node1:~$ sudo ibnetdiscover -s\nDR path slid 0; dlid 0; 0 -> new Channel Adapter "
      "{0000000000000200} portnum 1 lid 4-4 \"node1 HCA-2\"\n" +
          std::string(kTwoHosts),
      "Last login: Fri Nov 20 14:16:20 2026 from 10.0.0.1\n(base) me@node1:~$ iblinkinfo\n" +
          std::string(kLinks),
      "\x1b[01;32mroot@node1\x1b[00m:\x1b[01;34m~\x1b[00m# iblinkinfo\n" + std::string(kLinks),
      "sw1 [standalone: master] # ibnetdiscover -p\n" + std::string(kPorts),
      "ibwarn: [7] sim_connect: attached as client 1 at node \"n1\"\n" + std::string(kTwoHosts),
      // -g of a chassis, -f, -m
      "Chassis 1 (guid 0x100)\n" +
          changed(changed(kTwoHosts, "sysimgguid=0x100", "sysimgguid=0x100\t\t# Chassis 1"),
                  "[1]\t\"H-0", "[1][ext 7]\t\"H-0") +
          "\nNon-Chassis Nodes\n",
      changed(changed(kTwoHosts, "[1]\t\t# lid 4", "[1][ext 7]\t\t# lid 4"), "(100)\n",
              "(100)\t# Line 1 Chip 1\n"),
      changed(kTwoHosts, "4xHDR", "4xHDR s=4 w=2 v=4"),
      "# Reported max hops discovered: 4\n# Total MADs used: 264\n" + std::string(kTwoHosts),
      // iblinkinfo -p, and as in versions of ten years ago
      changed(kLinks, "LinkUp)", "LinkUp) (HOQ:0 VL_Stall:7)"),
      changed(kLinks, "Active/  LinkUp", "Active/ LinkUp"),
  };
  for (const auto& text : texts) {
    const auto found = parseFound(text);
    ASSERT_TRUE(found) << found.error().str() << "\n" << text.substr(0, 200);
    EXPECT_EQ(found->links, kBoth) << text.substr(0, 200);
  }
}

TEST(FoundText, isRefusedByItsName) {
  struct Case {
    std::string text;
    const char* words;
  };
  const std::vector<Case> cases = {
      {"", "holds no device"},
      {"\n \n", "holds no device"},
      {"# Topology file: generated on Fri Nov 20 14:16:20 2026\n#\n", "holds no device"},
      {"\xef\xbb\xbf", "holds no device"},
      {"vendid=0x2c9\n", "holds no device"},
      {"[root@node1 ~]# ibnetdiscover\n[root@node1 ~]#\n", "holds no device"},
      {std::string("\xff\xfe#\0\n\0", 6), "UTF-16"},
      {std::string("\xff\xfe\0\0#\0\0\0\n\0\0\0", 12), "UTF-32"},
      {std::string("\0\0\xfe\xff\0\0\0#\0\0\0\n", 12), "UTF-32"},
      {"[root@node1 ~]# iblinkinfo | grep Up\n" + std::string(kLinks),
       "filtered: iblinkinfo | grep Up"},
      {"Ca\t : 0x0000000000000200 ports 1 devid 0x0 vendid 0x0 \"node1 HCA-2\"\n",
       "list of devices without their cables"},
      {"Switch\t: 0x0000000000000100 ports 41 \"sw\" base port 0 lid 1 lmc 0\n",
       "list of devices without their cables"},
      {"Ca      : 0x0000000000000200 ports 1 \"node1 HCA-2\"\n",
       "list of devices without their cables"},
      {"< [1]\t\"H-0000000000000200\"[1](201)\n", "difference of two fabrics"},
      {"width=3\nspeed=7\nHca\t1 \"n1\"\n[1]\t\"sw\"[1]\n", "ibsim's short form"},
      {"Hca\t1 \"n1\"\n[1]\t\"sw\"[1]\t w=1\n", "ibsim's short form"},
      {"START_NODES\nNodeDesc,NumPorts\n", "ibdiagnet (db_csv)"},
      {"{ CA Ports:02 SystemGUID:0002c90300001234 } …\n", "ibdiagnet (lst)"},
      {"{\"systems\": []}\n", "JSON"},
      {"ibwarn: [77] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0)\n" +
           std::string(kTwoHosts),
       "belongs to stderr"},
      {"ibpanic: [3187] main: discover failed\n", "belongs to stderr"},
      {"src/query_smp.c:227; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110\n",
       "belongs to stderr"},
      // ibnetdiscover of 2009 prints no speed
      {changed(kTwoHosts, " 4xHDR", ""), "too old"},
      // iblinkinfo --switches-only
      {std::string(kLinks.substr(kLinks.find("Switch:"))), "without --switches-only"},
      {std::string(kPorts.substr(0, kPorts.find("\nSW ") + 1)), "seen from"},
      {changed(kPorts, "4x HDR", "4x ???"), "no width and speed"},
      {changed(kPorts, "SW    10  2", "SW    10  1"), "occurs twice"},
      {changed(kPorts, " - SW", " = SW"), "expected behind the speed"},
      {changed(kPorts, "10  1 0x", "10 999 0x"), "line "},
      {"hello\n", "is not ibnetdiscover's syntax"},
  };
  for (const auto& one : cases) {
    const auto found = parseFound(one.text);
    ASSERT_FALSE(found) << one.words;
    EXPECT_EQ(found.error().code(), ErrorCode::Corrupt);
    EXPECT_THAT(found.error().text(), HasSubstr(one.words));
  }
}

TEST(FoundText, keepsLineNumbers) {
  const auto found = parseFound("[root@n ~]# ibnetdiscover\nvendid=0x1\n\nnonsense\n");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().text(), HasSubstr("line 4"));
}

TEST(PortReport, tellsTwoPortHcasAndEqualNamesApart) {
  constexpr std::string_view kText =
      R"(CA 1 1 0x201 4x HDR - SW 9 1 0x100 ( 'n1 HCA-1' - 'sw' )
CA 2 2 0x202 4x HDR - SW 9 2 0x100 ( 'n1 HCA-1' - 'sw' )
CA 3 1 0x301 4x HDR - SW 9 3 0x100 ( 'x HCA-1' - 'sw' )
CA 4 1 0x401 4x HDR - SW 9 4 0x100 ( 'x HCA-1' - 'sw' )
SW 9 1 0x100 4x HDR - CA 1 1 0x201 ( 'sw' - 'n1 HCA-1' )
SW 9 2 0x100 4x HDR - CA 2 2 0x202 ( 'sw' - 'n1 HCA-1' )
SW 9 3 0x100 4x HDR - CA 3 1 0x301 ( 'sw' - 'x HCA-1' )
SW 9 4 0x100 2x HDR - CA 4 1 0x401 ( 'sw' - 'x HCA-1' )
)";
  const auto found = parsePortReport(kText);
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(found->devices.size(), 4u);
  EXPECT_EQ(found->devices.at("n1 HCA-1").addresses.size(), 2u);
  EXPECT_TRUE(found->devices.contains("x HCA-1 (0x0000000000000301)"));
  EXPECT_EQ(found->links.back().width_speed, "2xHDR/4xHDR") << "the switch is the first end";
}

}  // namespace
}  // namespace muster::fabric::test
