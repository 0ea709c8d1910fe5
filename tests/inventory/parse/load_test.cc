// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_positions.h"
#include "inventory/model/firmware.h"
#include "inventory/model/gates.h"
#include "inventory/model/images.h"
#include "inventory/model/networks.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"
#include "tests/inventory/inventory_fixture.h"

#include <nlohmann/json.hpp>

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LoadTest : public InventoryTest {};

TEST_F(LoadTest, readsEverySection) {
  auto loaded = loadYaml(kSmall);
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  EXPECT_THAT(lines(loaded), IsEmpty());
  const Cluster& cluster = *loaded.cluster;
  EXPECT_EQ(cluster.name, "small");
  EXPECT_EQ(cluster.provisioning().controller.str(), "10.20.0.1");
  EXPECT_EQ(cluster.provisioning().dhcp_range->second.str(), "10.20.247.254");
  EXPECT_EQ(cluster.networks.back().dhcp_mode, DhcpMode::None);
  EXPECT_EQ(std::get<ImageBuild>(cluster.images.at("noble").source).suite, "noble");
  EXPECT_EQ(cluster.drivers.at("rdma").verify.at("module.rdma_rxe"), "loaded");
  EXPECT_THAT(cluster.firmware.at("base").order, ElementsAre("BMC", "BIOS"));
  const Fabric& fabric = cluster.fabrics.at("ib");
  EXPECT_EQ(fabric.name, "ib");
  EXPECT_EQ(fabric.rails, 2);
  EXPECT_THAT(fabric.subnet_managers, ElementsAre("gpu001", "controller"));
  ASSERT_EQ(fabric.partitions.size(), 2u);
  EXPECT_EQ(fabric.partitions[0].name, "batch");
  EXPECT_EQ(fabric.partitions[0].pkey, 0x10);
  EXPECT_TRUE(fabric.partitions[1].ipoib);
  EXPECT_THAT(cluster.gates.at("burn-in").groups, ElementsAre("host", "gpu"));
  EXPECT_EQ(cluster.pools.at("batch").slurm->partition, "gpu");
  EXPECT_EQ(cluster.profiles.at("gpu-node").expect.gpus, 8);
  EXPECT_EQ(cluster.profiles.at("gpu-node").boot, BootMode::Uefi);
  EXPECT_EQ(cluster.folder, folder_);
}

TEST_F(LoadTest, takesNodesFromTheFileAndFromCsv) {
  auto loaded = loadYaml(kSmall);
  ASSERT_TRUE(loaded.cluster);
  ASSERT_EQ(loaded.cluster->nodes.size(), 3u);
  const Node* gpu = loaded.cluster->findNode(NodeName("gpu001"));
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->rack, "r1");
  EXPECT_EQ(gpu->unit, 10);
  EXPECT_EQ(gpu->mac.str(), "52:54:00:20:00:01");
  EXPECT_EQ(gpu->bmc.url, "https://10.20.250.1");
  EXPECT_EQ(gpu->serial, "SN1");
  EXPECT_EQ(gpu->where.line, 2);
  EXPECT_EQ(&loaded.cluster->profileOf(*gpu), &loaded.cluster->profiles.at("gpu-node"));
  const Node* login = loaded.cluster->findNode(NodeName("login1"));
  ASSERT_NE(login, nullptr);
  EXPECT_EQ(login->bmc.url, "libvirt:login1");
  EXPECT_EQ(login->where.line, 30);
  EXPECT_EQ(loaded.cluster->findNode(NodeName("gpu003")), nullptr);
}

TEST_F(LoadTest, ordersNodesNaturally) {
  std::string csv = "address,mac,bmc,name\n";
  for (int i : {10, 9, 1, 2, 11})
    csv += fmt::format("10.20.3.{},52:54:00:20:03:{:02x},libvirt:n{},n{}\n", i, i, i, i);
  write("other.csv", csv);
  auto loaded =
      loadYaml(with("nodes:\n", "nodes:\n  - {profile: gpu-node, from: other.csv, rack: r9}\n"));
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  std::vector<std::string> names;
  for (const Node& node : loaded.cluster->nodes) names.push_back(node.name.str());
  EXPECT_THAT(names, ElementsAre("gpu001", "gpu002", "login1", "n1", "n2", "n9", "n10", "n11"));
  EXPECT_EQ(loaded.cluster->nodes.back().rack, "r9")
      << "the entry's rack holds where the CSV has none";
  for (const std::string& name : names)
    EXPECT_NE(loaded.cluster->findNode(NodeName(name)), nullptr) << name;
}

TEST_F(LoadTest, oneCsvCanServeSeveralProfiles) {
  std::string yaml = with("  - {names: \"gpu[001-002]\", profile: gpu-node, from: racks.csv}\n",
                          "  - {names: gpu001, profile: gpu-node, from: racks.csv}\n  - {names: "
                          "gpu002, profile: other, from: racks.csv}\n");
  yaml = with("profiles:\n", "profiles:\n  other: {image: noble, fabric: ib}\n", yaml);
  auto loaded = loadYaml(yaml);
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  EXPECT_EQ(loaded.cluster->findNode(NodeName("gpu002"))->profile, "other");
}

TEST_F(LoadTest, readsSpreadsheetsWithCarriageReturnsAndByteOrderMarks) {
  write("racks.csv",
        "\xef\xbb\xbf\"name\";\"mac\";\"address\";\"bmc\"\r\ngpu001;5254.0020.0001;10.20.1.1;https:"
        "//ops@BMC1.example\r\n"
        "gpu002;52-54-00-20-00-02;10.20.1.2;https://bmc2.example:8443/\r\n");
  auto loaded = loadYaml(std::string("\xef\xbb\xbf") + std::string(kSmall));
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  EXPECT_EQ(loaded.cluster->nodes[0].mac.str(), "52:54:00:20:00:01");
  EXPECT_EQ(loaded.cluster->nodes[0].bmc.url, "https://bmc1.example");
  EXPECT_EQ(loaded.cluster->nodes[0].bmc.username_override, "ops");
  EXPECT_EQ(loaded.cluster->nodes[1].bmc.url, "https://bmc2.example:8443");
}

TEST_F(LoadTest, pathsAreAbsoluteWhateverTheWorkingFolder) {
  write("x.qcow2", "");
  auto loaded = loadYaml(with("build: {suite: noble, packages: [linux-generic]}",
                              "import: ./x.qcow2, sha256: "
                              "3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b"));
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  EXPECT_EQ(std::get<ImageImport>(loaded.cluster->images.at("noble").source).path,
            folder_ / "x.qcow2");
}

TEST_F(LoadTest, aGateWithoutGroupsLooksAtEverything) {
  auto loaded = loadYaml(with("{level: quick, groups: [host, gpu]}", "{isolate: true}"));
  ASSERT_TRUE(loaded.cluster);
  EXPECT_THAT(loaded.cluster->gates.at("burn-in").groups, ElementsAre("host", "gpu", "rdma"));
}

TEST_F(LoadTest, anInventoryWithoutNodesLoadsWithAWarning) {
  std::string yaml(kSmall.substr(0, kSmall.find("nodes:")));
  yaml = with("[gpu001, controller]", "[controller]", yaml);
  yaml = with("full: [\"gpu[001-002]\"]", "full: [ALL]", yaml);
  auto loaded = loadYaml(yaml);
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  EXPECT_THAT(lines(loaded), ElementsAre(HasSubstr("has no nodes")));
}

TEST_F(LoadTest, placesSayWhoStandsWhere) {
  auto loaded =
      loadYaml(with("rails: 2", "rails: 2\n    places: [login1, \"-\", 2 free, \"gpu[001-002]\"]"));
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  const Fabric& fabric = loaded.cluster->fabrics.at("ib");
  EXPECT_THAT(fabric.places, ElementsAre("login1", "", "", "", "gpu001", "gpu002"));
  const auto places = placesOn(*loaded.cluster, fabric);
  EXPECT_EQ(places.at(NodeName("login1")), 0);
  EXPECT_EQ(places.at(NodeName("gpu002")), 5);
  EXPECT_EQ(nlohmann::json::parse(toJson(*loaded.cluster))["fabric"]["ib"]["places"][4], "gpu001");
  auto by_order = loadYaml(kSmall);
  EXPECT_NE(by_order.cluster->digest, loaded.cluster->digest);
  EXPECT_EQ(placesOn(*by_order.cluster, by_order.cluster->fabrics.at("ib")).at(NodeName("login1")),
            2);
}

TEST_F(LoadTest, aPlaceMayWaitForAMachineThatIsNotDiscoveredYet) {
  const auto yaml = with("rails: 2", "rails: 2\n    places: [\"gpu[001-003]\", login1]",
                         with("gpu[001-002]\", profile", "gpu[001-003]\", profile"));
  EXPECT_THAT(lines(loadYaml(yaml)), ElementsAre(HasSubstr("1 of 3 nodes have no row in")));
  LoadOptions options;
  options.rows_may_miss = true;
  const auto loaded = load(write("cluster.yaml", yaml), options);
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  EXPECT_EQ(placesOn(*loaded.cluster, loaded.cluster->fabrics.at("ib")).at(NodeName("login1")), 3)
      << "its place is kept for it";
}

TEST_F(LoadTest, scalableUnitsFollowThePlaces) {
  auto loaded = loadYaml(with(
      "rails: 2",
      "rails: 2\n    sus: 2\n    nodes_per_su: 2\n    places: [\"-\", gpu002, login1, gpu001]"));
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  const auto units = scalableUnitsOf(*loaded.cluster);
  EXPECT_EQ(units.at(NodeName("gpu002")), "ib-1");
  EXPECT_EQ(units.at(NodeName("gpu001")), "ib-2");
}

TEST_F(LoadTest, anExplicitFabricKeepsItsCables) {
  auto loaded = loadYaml(with("rails: 2",
                              "shape: explicit\n    cables: [{from: gpu001, to: leaf1, to_port: "
                              "1}, {from: gpu002, to: leaf1, to_port: 2}]"));
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  const Fabric& fabric = loaded.cluster->fabrics.at("ib");
  ASSERT_EQ(fabric.cables.size(), 2u);
  EXPECT_EQ(fabric.cables[1].to_port, 2);
  EXPECT_EQ(fabric.cables[1].where.line, 18);
  auto twice = lines(loadYaml(with("rails: 2",
                                   "shape: explicit\n    cables: [{from: gpu001, to: leaf1, "
                                   "to_port: 1}, {from: gpu002, to: leaf1, to_port: 1}]")));
  EXPECT_THAT(
      twice,
      ElementsAre(AllOf(HasSubstr("cluster.yaml:18:53: error: port 1 of leaf1 already has a cable"),
                        HasSubstr("cluster.yaml:18:14"))));
}

TEST_F(LoadTest, jsonIsExpandedAndHoldsNoSecret) {
  auto loaded = loadYaml(kSmall);
  ASSERT_TRUE(loaded.cluster);
  std::string text = toJson(*loaded.cluster);
  EXPECT_THAT(text, Not(HasSubstr("calvin")));
  auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["digest"], loaded.cluster->digest);
  ASSERT_EQ(json["nodes"].size(), 3u);
  EXPECT_EQ(json["nodes"][0]["image"], "noble");
  EXPECT_EQ(json["nodes"][0]["gates"][0], "burn-in");
  EXPECT_EQ(json["credentials"]["bmc"]["password"]["file"], "secrets/bmc");
}

TEST_F(LoadTest, viewsAreStable) {
  auto loaded = loadYaml(kSmall);
  ASSERT_TRUE(loaded.cluster);
  std::string digest = loaded.cluster->digest.substr(0, 12);
  EXPECT_EQ(checkText(loaded), "small: 3 nodes, 1 profile, nothing wrong; digest " + digest + "\n");
  EXPECT_EQ(showText(*loaded.cluster), "cluster small  (3 nodes, digest " + digest + R"()

NETWORK       CIDR          CONTROLLER  DHCP
provisioning  10.20.0.0/16  10.20.0.1   10.20.240.1-10.20.247.254
storage       10.30.0.0/16  10.30.0.1   -

PROFILE   NODES  IMAGE  DRIVERS  FIRMWARE  FABRIC  GATES    POOL   NAMES
gpu-node  3      noble  rdma     base      ib      burn-in  batch  gpu[001-002],login1

NODE    PROFILE   RACK  UNIT  MAC                ADDRESS    BMC                  SERIAL
gpu001  gpu-node  r1    10    52:54:00:20:00:01  10.20.1.1  https://10.20.250.1  SN1
gpu002  gpu-node  r1    12    52:54:00:20:00:02  10.20.1.2  https://10.20.250.2  -
login1  gpu-node  r2    3     52:54:00:20:01:01  10.20.2.1  libvirt:login1       -
)");
  auto bad = loadYaml(with("rails: 2", "rials: 2"));
  EXPECT_THAT(checkText(bad), AllOf(HasSubstr("cluster.yaml:17:5: error: fabric: unknown key"),
                                    HasSubstr("\n1 error, 0 warnings\n")));
  auto json = nlohmann::json::parse(checkJson(bad));
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["diagnostics"][0]["line"], 17);
  EXPECT_EQ(json["diagnostics"][0]["suggestion"], "did you mean \"rails\"?");
}

}  // namespace
}  // namespace muster::inventory
