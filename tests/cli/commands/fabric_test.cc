// SPDX-License-Identifier: Apache-2.0
// `muster fabric` by the real program: plan, plot, diff of what was found elsewhere.
#include "tests/cli/muster_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>

namespace muster::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kFabric = R"(
fabric:
  ib: {shape: explicit, cables_file: cables.csv, switches: [{names: sw1, rack: r9, unit: 40}]}
)";
constexpr std::string_view kCables =
    "from,to,to_port,role\ngpu001,sw1,1,\ngpu002,sw1,2,\nstore1 mlx5_0,sw1,5,storage\n";

/// What ibnetdiscover prints where gpu001 and gpu002 are exchanged and the storage is not there.
constexpr std::string_view kFound = R"(switchguid=0x20(20)
Switch	64 "S-20"		# "sw1" base port 0 lid 1 lmc 0
[2]	"H-1"[1](2) 		# "gpu001 mlx5_0" lid 2 4xHDR
[1]	"H-3"[1](4) 		# "gpu002 mlx5_0" lid 3 4xHDR

caguid=0x1
Ca	1 "H-1"		# "gpu001 mlx5_0"
[1](2) 	"S-20"[2]		# lid 2 lmc 0 "sw1" lid 1 4xHDR

caguid=0x3
Ca	1 "H-3"		# "gpu002 mlx5_0"
[1](4) 	"S-20"[1]		# lid 3 lmc 0 "sw1" lid 1 4xHDR
)";

class FabricCommands : public ::testing::Test {
 protected:
  FabricCommands() {
    std::string inventory(MusterFolder::kInventory);
    auto profile = inventory.find("image: bookworm}");
    inventory.replace(profile, 16, "image: bookworm, fabric: ib}");
    folder_.write("cluster.yaml", inventory + std::string(kFabric));
    folder_.write("cables.csv", kCables);
    folder_.write("found.topo", kFound);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void replace(std::string_view what, std::string_view by) {
    auto inventory = read("cluster.yaml");
    ASSERT_NE(inventory.find(what), std::string::npos) << what;
    folder_.write("cluster.yaml", inventory.replace(inventory.find(what), what.size(), by));
  }
  MusterFolder folder_;
};

TEST_F(FabricCommands, planPrintsALabelForEachEnd) {
  auto plan = folder_.muster({"fabric", "plan", "--rack", "r9"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out, StartsWith("rack,unit,device,port,label,"));
  EXPECT_THAT(
      plan.out,
      HasSubstr("\nr9,40,sw1,1,sw1/1 > r1 U10 gpu001 mlx5_0/1,r1,10,gpu001 mlx5_0,1,4xHDR,"));
  EXPECT_THAT(plan.err, HasSubstr("3 HCAs, 3 cables to them, 0 between switches"));
}

// What was wrong: the inventory passed, and the plan refused it.
TEST_F(FabricCommands, theInventorysCheckSaysWhatThePlanWouldSay) {
  folder_.write("cables.csv", std::string(kCables) + "gpu001 mlx5_0,sw1,7,\n");
  for (const auto& typed : {std::vector<std::string>{"inventory", "check"},
                            std::vector<std::string>{"fabric", "plan"}}) {
    const auto refused = folder_.muster(typed);
    EXPECT_NE(refused.code, 0) << typed[0];
    EXPECT_THAT(refused.out + refused.err,
                HasSubstr("cables.csv:5:1: error: two cables end at gpu001 mlx5_0 port 1"));
  }
  folder_.write("cables.csv", kCables);
  replace("cables_file: cables.csv,",
          "cables_file: cables.csv, exclude: [{device: gpu009 mlx5_0, "
          "reason: typo}],");
  const auto warned = folder_.muster({"inventory", "check"});
  EXPECT_EQ(warned.code, 0) << warned.out;
  EXPECT_THAT(warned.out, HasSubstr("exclude names gpu009 mlx5_0, which is no declared device"));
}

TEST_F(FabricCommands, diffSaysWhatToDoAndExitsWithOne) {
  auto diff = folder_.muster({"fabric", "diff", "--found", (folder_ / "found.topo").string()});
  EXPECT_EQ(diff.code, 1) << diff.err;
  EXPECT_THAT(diff.out, HasSubstr("swap the cables in ports 1 and 2 of sw1\n"));
  EXPECT_THAT(diff.out, HasSubstr("check that store1 mlx5_0 is powered and its driver runs, then "
                                  "the cable to sw1 port 5\n"));
  auto json = nlohmann::json::parse(
      folder_.muster({"--json", "fabric", "diff", "--found", (folder_ / "found.topo").string()})
          .out);
  EXPECT_EQ(json["format"], "muster-fabric-diff/2");
  EXPECT_EQ(json["deviations"].size(), 3u);
  EXPECT_EQ(json["repairs"].size(), 2u);
}

TEST_F(FabricCommands, diffHasNoAnswerForHalfATopology) {
  folder_.write("found.topo", kFound.substr(0, kFound.rfind("caguid")));
  auto diff = folder_.muster({"fabric", "diff", "--found", (folder_ / "found.topo").string()});
  EXPECT_EQ(diff.code, 2);
  EXPECT_THAT(diff.out, HasSubstr("no answer: "));
}

TEST_F(FabricCommands, plotWritesOneSelfContainedFile) {
  auto file = folder_ / "fabric.svg";
  auto plot = folder_.muster(
      {"fabric", "plot", "--found", (folder_ / "found.topo").string(), "--out", file.string()});
  EXPECT_EQ(plot.code, 0) << plot.err;
  std::ifstream in(file);
  std::string svg((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(svg, StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, HasSubstr("3 deviations"));
}

TEST_F(FabricCommands, renderWritesWhatOthersNeed) {
  auto render = folder_.muster({"fabric", "render", "--out", (folder_ / "out").string()});
  EXPECT_EQ(render.code, 0) << render.err;
  for (auto file : {"cabling.csv", "fabric.svg", "slurm/topology.conf", "slurm/topology.yaml",
                    "kubernetes/node-labels.yaml", "nccl/gpu-node.env"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / (std::string("out/") + file))) << file;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/roce"));
}

TEST_F(FabricCommands, markingComparesASwitchWithTheDeclaration) {
  folder_.write(
      "config_db.json",
      R"({"PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "AZURE", "pfc_enable": "3,4"}}, "DSCP_TO_TC_MAP": {"AZURE": {"26": "1", "48": "6"}}})");
  auto without =
      folder_.muster({"fabric", "qos-check", "--sonic", (folder_ / "config_db.json").string()});
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("has no roce"));
  std::ifstream in(folder_ / "cluster.yaml");
  std::string inventory((std::istreambuf_iterator<char>(in)), {});
  inventory.replace(inventory.find("shape: explicit"), 15, "shape: explicit, roce: {}");
  folder_.write("cluster.yaml", inventory);
  auto marking =
      folder_.muster({"fabric", "qos-check", "--sonic", (folder_ / "config_db.json").string()});
  EXPECT_EQ(marking.code, 1) << marking.err;
  EXPECT_THAT(marking.out,
              HasSubstr("Ethernet0: DSCP 26 has priority 1 instead of 3: RDMA is not lossless\n"));
  EXPECT_NE(folder_.muster({"fabric", "qos-check"}).code, 0);
}

/// A storage fabric beside "ib", whose switch is sw2 and whose HCAs are mlx5_1.
class TwoFabricCommands : public FabricCommands {
 protected:
  TwoFabricCommands() {
    replace("fabric: ib}",
            "fabric: [ib, storage], rails: [{hca: mlx5_0, fabric: ib}, {hca: mlx5_1, fabric: "
            "storage}]}");
    replace(
        "\nfabric:\n",
        "\nfabric:\n  storage: {purpose: storage, shape: explicit, controller_hca: mlx5_1, "
        "cables: [{from: gpu001, to: sw2, to_port: 1}, {from: gpu002, to: sw2, to_port: 2}]}\n");
  }
};

TEST_F(TwoFabricCommands, nameTheFabricThatIsMeant) {
  EXPECT_EQ(folder_.muster({"inventory", "check"}).code, 0)
      << folder_.muster({"inventory", "check"}).out;
  const auto which = folder_.muster({"fabric", "plan"});
  EXPECT_NE(which.code, 0);
  EXPECT_THAT(which.err, HasSubstr("the inventory has the fabrics ib, storage: name one of them"));
  const auto storage = folder_.muster({"fabric", "plan", "--fabric", "storage"});
  EXPECT_EQ(storage.code, 0) << storage.err;
  EXPECT_THAT(storage.out, HasSubstr("gpu002 mlx5_1"));
  EXPECT_EQ(storage.out.find("mlx5_0"), std::string::npos) << storage.out;
  EXPECT_EQ(folder_
                .muster({"fabric", "diff", "--fabric", "ib", "--found",
                         (folder_ / "found.topo").string()})
                .code,
            1);
  const auto none = folder_.muster({"fabric", "plot", "--declared", "--fabric", "stroage"});
  EXPECT_NE(none.code, 0);
  EXPECT_THAT(none.err, HasSubstr("the inventory has no fabric stroage, but ib, storage"));
}

TEST_F(TwoFabricCommands, areRenderedSideBySide) {
  ASSERT_EQ(folder_.muster({"fabric", "render", "--out", (folder_ / "out").string()}).code, 0);
  EXPECT_THAT(read("out/ib/cabling.csv"), HasSubstr("gpu001 mlx5_0"));
  EXPECT_THAT(read("out/storage/cabling.csv"), HasSubstr("gpu001 mlx5_1"));
  EXPECT_THAT(read("out/slurm/topology.conf"), HasSubstr("SwitchName=ib "));
  EXPECT_EQ(read("out/slurm/topology.conf").find("sw2"), std::string::npos);
  ASSERT_EQ(
      folder_
          .muster({"fabric", "render", "--fabric", "storage", "--out", (folder_ / "one").string()})
          .code,
      0);
  EXPECT_THAT(read("one/cabling.csv"), HasSubstr("gpu001 mlx5_1"));
  EXPECT_EQ(read("one/slurm/topology.conf"), "") << "no scheduler is told of a storage fabric";
}

TEST_F(TwoFabricCommands, aSwitchInBothIsRefusedByName) {
  replace("{from: gpu002, to: sw2, to_port: 2}", "{from: gpu002, to: sw1, to_port: 7}");
  const auto check = folder_.muster({"inventory", "check"});
  EXPECT_EQ(check.code, 1);
  EXPECT_THAT(check.out, HasSubstr("the fabrics ib and storage both have the switch sw1"));
  EXPECT_NE(folder_.muster({"fabric", "plan", "--fabric", "ib"}).code, 0);
}

class RoceCommands : public FabricCommands {
 protected:
  RoceCommands() { replace("shape: explicit", "shape: explicit, roce: {}"); }
};

TEST_F(RoceCommands, aSwitchThatWasLoadedWithTheRenderedFileIsAsDeclared) {
  ASSERT_EQ(folder_.muster({"fabric", "render", "--out", (folder_ / "out").string()}).code, 0);
  const auto file = (folder_ / "out/roce/sonic/sw1.json").string();
  const auto same = folder_.muster({"fabric", "qos-check", "--config", file, "--switch", "sw1"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  auto config = nlohmann::json::parse(read("out/roce/sonic/sw1.json"));
  config["PORT"]["Ethernet4"]["mtu"] = "1500";
  folder_.write("config_db.json", config.dump());
  const auto other = folder_.muster({"fabric", "qos-check", "--config",
                                     (folder_ / "config_db.json").string(), "--switch", "sw1"});
  EXPECT_EQ(other.code, 1) << other.err;
  EXPECT_THAT(other.out, HasSubstr("Ethernet4: the MTU is 1500 instead of 9000\n    → config "
                                   "interface mtu Ethernet4 9000\n"));
  const auto json =
      nlohmann::json::parse(folder_
                                .muster({"--json", "fabric", "qos-check", "--config",
                                         (folder_ / "config_db.json").string(), "--switch", "sw1"})
                                .out);
  EXPECT_THAT(json.dump(), HasSubstr("Ethernet4"));
  const auto unknown = folder_.muster({"fabric", "qos-check", "--config", file, "--switch", "sw9"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("has no switch sw9"));
}

TEST_F(RoceCommands, aHostIsComparedByWhatDcbPrints) {
  folder_.write("app.json", R"({"dscp_prio": [[26, 3], [48, 6]]})");
  folder_.write(
      "pfc.json",
      R"({"pfc_cap": 8, "prio_pfc": [false, false, false, true, false, false, false, false]})");
  const auto marking = [this](const char* mtu) {
    return folder_.muster({"fabric", "qos-check", "--dcb-app", (folder_ / "app.json").string(),
                           "--dcb-pfc", (folder_ / "pfc.json").string(), "--mtu", mtu});
  };
  EXPECT_EQ(marking("9000").code, 0) << marking("9000").out << marking("9000").err;
  EXPECT_EQ(marking("1500").code, 1);
  folder_.write("pfc.json", "not JSON");
  EXPECT_EQ(marking("9000").code, 2);
}

// The plan of an Ethernet fabric: gates wait for its marking, and not for ports of a subnet manager
// that nobody has.
TEST_F(RoceCommands, aProfileWithGatesCanBePlanned) {
  replace("fabric: ib}", "fabric: ib, gates: [burn-in]}");
  folder_.write("cluster.yaml", read("cluster.yaml") + "gates:\n  burn-in: {level: quick}\n");
  ASSERT_EQ(folder_.muster({"wipe", "gpu002", "--reason", "returned from repair"}).code, 0)
      << "makes the store";
  const auto plan = folder_.muster({"plan", "--no-refresh"});
  EXPECT_THAT(plan.out, HasSubstr("fabric.roce")) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("gate.burn-in"));
  EXPECT_THAT(plan.err, ::testing::Not(HasSubstr("no phase has as a goal")));
}

TEST_F(FabricCommands, aNodeThatLeavesMovesNoOthersCables) {
  replace("shape: explicit, cables_file: cables.csv, switches: [{names: sw1, rack: r9, unit: 40}]",
          "nodes_per_su: 4, spines_per_su: 0, places: [gpu001, gpu002]");
  const auto rows = [this] {
    const auto plan = folder_.muster({"fabric", "plan"});
    EXPECT_EQ(plan.code, 0) << plan.err;
    std::set<std::string> out;
    std::istringstream lines(plan.out);
    for (std::string line; std::getline(lines, line);)
      out.insert(line.substr(0, line.rfind(',')));  // less the running number
    return out;
  };
  const auto before = rows();
  EXPECT_EQ(before.size(), 5u);
  auto inventory = read("cluster.yaml");
  inventory.erase(inventory.find("  - {names: gpu001"),
                  inventory.find("  - {names: gpu002") - inventory.find("  - {names: gpu001"));
  folder_.write("cluster.yaml", inventory);
  const auto refused = folder_.muster({"fabric", "plan"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("\"gpu001\" is no node"));
  replace("places: [gpu001,", "places: [\"-\",");
  const auto after = rows();
  EXPECT_EQ(after.size(), 3u);
  EXPECT_TRUE(std::includes(before.begin(), before.end(), after.begin(), after.end()))
      << "the rows that are left are the same";
}

TEST_F(FabricCommands, plotDrawsTheDeclarationWithoutLooking) {
  const auto plot = folder_.muster({"fabric", "plot", "--declared"});
  EXPECT_EQ(plot.code, 0) << plot.err;
  EXPECT_THAT(plot.out, AllOf(StartsWith("<svg xmlns="), HasSubstr("store1")));
}

TEST_F(FabricCommands, healthComparesTwoReadingsOfPerfquery) {
  auto reading = [sent = 0](int downs) mutable {
    std::string out;
    sent += 40;  // a reading sends packets itself
    for (auto [lid, port] : {std::pair(1, 1), std::pair(1, 2), std::pair(2, 1), std::pair(3, 1)})
      out += fmt::format(
          "# Port counters: Lid {} port {} (CapMask: "
          "0x1300)\nSymbolErrorCounter:....0\nLinkErrorRecoveryCounter:....0\nLinkDownedCounter:..."
          ".{}\nPortRcvErrors:....0\nPortXmitPkts:....{}\n",
          lid, port, lid == 1 && port == 2 ? downs : 0, sent);
    return out;
  };
  const auto health = [this](const char* window) {
    return folder_.muster({"fabric", "health", "--found", (folder_ / "found.topo").string(),
                           "--before", (folder_ / "before").string(), "--after",
                           (folder_ / "after").string(), "--window", window});
  };
  folder_.write("before", reading(4));
  folder_.write("after", reading(4));
  EXPECT_EQ(health("300").code, 0) << health("300").out;
  EXPECT_EQ(health("2").code, 2) << "two seconds prove no error rate";
  folder_.write("after", reading(5));
  const auto bad = health("300");
  EXPECT_EQ(bad.code, 1) << bad.err;
  EXPECT_THAT(bad.out,
              HasSubstr("gpu001 mlx5_0 port 1 -- sw1 port 2\n    sw1 port 2: 1 times down\n"));
  folder_.write("after", "perfquery: iberror");
  EXPECT_EQ(health("300").code, 2);
  EXPECT_NE(folder_.muster({"fabric", "health", "--before", (folder_ / "before").string()}).code, 0)
      << "one reading is none";
}

TEST_F(FabricCommands, saysWhereABadCableIs) {
  folder_.write("cables.csv", "from,to,to_port\ngpu001,sw1,1\ngpu002,sw1,1\n");
  auto plan = folder_.muster({"fabric", "plan"});
  EXPECT_NE(plan.code, 0);
  EXPECT_THAT(plan.err, HasSubstr("cables.csv:3:1"));
  EXPECT_THAT(plan.err, HasSubstr("port 1 of sw1 already has a cable"));
}

}  // namespace
}  // namespace muster::test
