// SPDX-License-Identifier: Apache-2.0
// What others are told of the fabric.
#include "fabric/exports/exports.h"
#include "fabric/exports/render.h"
#include "fabric/fabric_diff.h"
#include "fabric/opensm/subnet_manager.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Vicinity vicinity(const inventory::Cluster& cluster) {
  const auto& fabric = cluster.fabrics.at("ib");
  return vicinityOf(cluster, fabric, declared(cluster));
}

TEST(SlurmTopology, hasOneSwitchAScalableUnitWhereNodesAreOnEveryLeaf) {
  EXPECT_EQ(slurmTree(vicinity(railCluster(6, 2))),
            "# Written by muster from the inventory. TopologyPlugin=topology/tree\n"
            "SwitchName=su1 Nodes=gpu[001-004]\nSwitchName=su2 Nodes=gpu[005-006]\nSwitchName=ib "
            "Switches=su[1-2]\n");
}

TEST(SlurmTopology, ofAFatTreeWithCoresHasThreeLevels) {
  auto cluster = railCluster(12, 2, 4, 2, 2);
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::FatTree;
  fabric.leaves_per_su = 2;
  fabric.leaf_down_ports = 8;
  fabric.cores = 2;
  auto tree = slurmTree(vicinity(cluster));
  EXPECT_THAT(tree, HasSubstr("SwitchName=leaf-su1-01 Nodes=gpu[001-004]\n"));
  EXPECT_THAT(tree, HasSubstr("SwitchName=su1 Switches=leaf-su1-[01-02]\n"));
  EXPECT_THAT(tree, HasSubstr("SwitchName=leaf-su2-01 Nodes=gpu[009-012]\n"));
  EXPECT_THAT(tree, HasSubstr("SwitchName=ib Switches=su[1-2]\n"));
  EXPECT_THAT(kubernetesLabels(vicinity(cluster), fabric),
              HasSubstr("name: gpu009\n  labels:\n    network.topology.nvidia.com/leaf: "
                        "\"leaf-su2-01\"\n    network.topology.nvidia.com/spine: \"su2\"\n"
                        "    network.topology.nvidia.com/core: \"ib\"\n"));
}

TEST(SlurmTopology, givesLegalNamesWhateverSwitchesAndDomainsAreCalled) {
  const auto cluster = factoryNamedCluster();
  const auto& fabric = cluster.fabrics.at("ib");
  const auto top = vicinity(cluster);
  std::set<std::string> names = {top.name};
  for (const auto& group : top.children) names.insert(group.name);
  ASSERT_EQ(names.size(), 3u) << "two groups of nodes, and the fabric";
  for (const auto& name : names) {
    EXPECT_LE(name.size(), 63u) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789-_."),
              std::string::npos)
        << name;
    EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(name.front())) &&
                std::isalnum(static_cast<unsigned char>(name.back())))
        << name;
  }
  EXPECT_EQ(vicinity(cluster).children[0].name, top.children[0].name) << "and the same every time";
  const auto labels = kubernetesLabels(top, fabric);
  for (std::size_t at = 0; (at = labels.find("/leaf: \"", at)) != std::string::npos; ++at)
    EXPECT_LE(labels.find('"', at + 8) - at - 8, 63u);
}

// Slurm ends at a tree in which a switch is its own child.
TEST(SlurmTopology, aSwitchWithTheFabricsNameIsAnotherSwitch) {
  auto cluster = railCluster(4);
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::Explicit;
  fabric.subnet_managers.clear();
  fabric.cables = {{.from_node = "gpu001", .from_port = 1, .to_node = "ib", .to_port = 1},
                   {.from_node = "gpu002", .from_port = 1, .to_node = "ib", .to_port = 2},
                   {.from_node = "gpu003", .from_port = 1, .to_node = "leaf", .to_port = 1},
                   {.from_node = "gpu004", .from_port = 1, .to_node = "leaf", .to_port = 2},
                   {.from_node = "ib", .from_port = 9, .to_node = "leaf", .to_port = 9}};
  const auto top = vicinity(cluster);
  ASSERT_EQ(top.children.size(), 2u);
  EXPECT_EQ(top.children[0].name, "ib") << "switches keep their names";
  EXPECT_THAT(top.name, ::testing::MatchesRegex("ib-[0-9a-f]+"));
  EXPECT_THAT(slurmTree(top), HasSubstr("SwitchName=" + top.name + " Switches=ib,leaf\n"));
  EXPECT_THAT(kubernetesLabels(top, fabric), HasSubstr("spine: \"" + top.name + "\""));
}

TEST(SlurmTopology, yamlAndBlocksNameTheNvlinkDomains) {
  auto cluster = railCluster(4);
  auto& fabric = cluster.fabrics["ib"];
  fabric.nvlink_domains = {{"rack1", {"gpu001", "gpu002"}}, {"rack2", {"gpu003", "gpu004"}}};
  auto yaml = slurmYaml(vicinity(cluster), fabric);
  EXPECT_THAT(yaml, HasSubstr("      - switch: su1\n        nodes: \"gpu[001-004]\"\n"));
  EXPECT_THAT(yaml, HasSubstr("    block_sizes:\n      - 2\n    blocks:\n      - block: rack1\n    "
                              "    nodes: \"gpu[001-002]\"\n"));
  EXPECT_THAT(slurmBlocks(vicinity(cluster), fabric),
              HasSubstr("BlockName=rack2 Nodes=gpu[003-004]\nBlockSizes=2\n"));
  EXPECT_THAT(kubernetesLabels(vicinity(cluster), fabric),
              HasSubstr("network.topology.nvidia.com/accelerator: \"rack2\""));
}

TEST(Nccl, isToldTheHcasByExactNameAndOnRoceTheClass) {
  auto cluster = railCluster(1);
  auto& profile = cluster.profiles["gpu-node"];
  auto& fabric = cluster.fabrics["ib"];
  EXPECT_THAT(ncclEnvironment(profile, fabric),
              HasSubstr("\nNCCL_IB_HCA==mlx5_0:1,mlx5_1:1\nNCCL_CROSS_NIC=0\n"));
  EXPECT_THAT(ncclEnvironment(profile, fabric), Not(HasSubstr("NCCL_IB_TC")));
  profile.rails = {{"mlx5_0", 0, {}}, {"mlx5_3", 1, {}}};
  fabric.roce = inventory::Roce{};
  EXPECT_THAT(ncclEnvironment(profile, fabric), HasSubstr("NCCL_IB_HCA==mlx5_0:1,mlx5_3:1\n"));
  EXPECT_THAT(ncclEnvironment(profile, fabric),
              HasSubstr("NCCL_IB_TC=106\nNCCL_IB_GID_INDEX=3\n"));  // 26 << 2 | 2
}

TEST(RenderExports, givesSchedulersTheComputeFabricAlone) {
  auto cluster = twoFabrics(3);
  auto& storage = cluster.fabrics["storage"];
  storage.roce.emplace();
  storage.subnet_managers.clear();
  const auto compute = declared(cluster), other = declaredTopology(cluster, storage).value();
  std::map<std::string, std::string> files;
  for (auto& file :
       renderExports(cluster, {{&cluster.fabrics["ib"], &compute}, {&storage, &other}}))
    files[file.path] = file.content;
  EXPECT_THAT(files["slurm/topology.conf"], HasSubstr("SwitchName=su1 Nodes=gpu[001-003]\n"));
  EXPECT_THAT(files["slurm/topology.conf"], HasSubstr("SwitchName=ib Switches=su1\n"));
  EXPECT_THAT(files["slurm/topology.conf"], Not(HasSubstr("storage")));
  EXPECT_THAT(files["kubernetes/node-labels.yaml"], Not(HasSubstr("storage")));
  EXPECT_THAT(files["nccl/gpu-node.env"], HasSubstr("NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\n"));
  EXPECT_THAT(files["nccl/gpu-node.env"], Not(HasSubstr("NCCL_IB_TC")));
  EXPECT_THAT(files["storage/roce/gpu-node.sh"], HasSubstr("for device in mlx5_8; do"));
  EXPECT_TRUE(files.contains("storage/roce/sonic/st-leaf-su1-r0.json"));
  EXPECT_EQ(files["storage/roce/sonic/st-leaf-su1-r0.json"].find("pfc_to_pg_map"),
            std::string::npos);
  for (const char* family : {"mellanox", "barefoot"})
    EXPECT_THAT(files[fmt::format("storage/roce/sonic/{}/st-leaf-su1-r0.json", family)],
                HasSubstr("\"pfc_to_pg_map\": \"MUSTER\""));
  EXPECT_THAT(files["storage/roce/cumulus.txt"], HasSubstr("nv set qos roce enable on\n"));
  EXPECT_THAT(files["storage/roce/cumulus-5.15.txt"], HasSubstr("nv set qos roce state enabled\n"));
  EXPECT_FALSE(files.contains("ib/roce/cumulus.txt"));
  EXPECT_THAT(files["ib/cabling.csv"], Not(HasSubstr("mlx5_8")));
  EXPECT_THAT(files["storage/cabling.csv"], HasSubstr("gpu003 mlx5_8"));
  EXPECT_EQ(files.count("cabling.csv"), 0u);
}

// Names of switches come from cable lists and from outputs of others' tools.
TEST(RenderExports, aSwitchsNameIsNoPath) {
  auto cluster = railCluster(2);
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::Explicit;
  fabric.subnet_managers.clear();
  fabric.partitions.clear();
  fabric.roce.emplace();
  fabric.cables = {{.from_node = "gpu001", .from_port = 1, .to_node = "../../../up", .to_port = 1},
                   {.from_node = "gpu001", .from_port = 2, .to_node = "/tmp/abs", .to_port = 1},
                   {.from_node = "gpu002", .from_port = 1, .to_node = "..-..-..-up", .to_port = 1},
                   {.from_node = "gpu002", .from_port = 2, .to_node = "leaf-1", .to_port = 1}};
  const auto topology = declared(cluster);
  std::set<std::string> paths;
  for (const auto& file : renderExports(cluster, {{&fabric, &topology}})) {
    const std::filesystem::path path(file.path);
    EXPECT_TRUE(paths.insert(file.path).second) << file.path << " is that of two switches";
    EXPECT_EQ(path.lexically_normal(), path) << file.path;
    EXPECT_FALSE(path.is_absolute()) << file.path;
    if (path.extension() == ".json") {
      const auto folder = path.parent_path().filename();
      EXPECT_TRUE(folder == "sonic" || folder == "mellanox" || folder == "barefoot") << file.path;
    }
  }
  EXPECT_TRUE(paths.contains("roce/sonic/leaf-1.json"));
}

TEST(RenderExports, twoComputeFabricsAreTwoTreesWithoutACommonName) {
  const auto cluster = twoHalls();
  const auto a = declared(cluster),
             b = declaredTopology(cluster, cluster.fabrics.at("ib-b")).value();
  const std::vector<ExpandedFabric> both = {{&cluster.fabrics.at("ib"), &a},
                                            {&cluster.fabrics.at("ib-b"), &b}};
  const auto tops = vicinitiesOf(cluster, both);
  EXPECT_EQ(slurmTree(tops),
            "# Written by muster from the inventory. TopologyPlugin=topology/tree\n"
            "SwitchName=ib-su1 Nodes=gpu[001-002]\nSwitchName=ib Switches=ib-su1\n"
            "SwitchName=ib-b-su1 Nodes=gpu[003-004]\nSwitchName=ib-b Switches=ib-b-su1\n");
  EXPECT_THAT(slurmBlocks(tops, {both[0].fabric, both[1].fabric}),
              HasSubstr("BlockName=ib-su1 Nodes=gpu[001-002]\nBlockName=ib-b-su1 "
                        "Nodes=gpu[003-004]\nBlockSizes=2\n"));
}

TEST(Prometheus, countsDeviationsOrSaysThatThereIsNoAnswer) {
  DiffReport report;
  report.fabric = "ib";
  report.comparison.deviations.push_back({DeviationKind::Miswired, {"a", 1}, {}, {}, {}});
  auto text = toPrometheus(report);
  EXPECT_THAT(text, HasSubstr("muster_fabric_answered{fabric=\"ib\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("muster_fabric_deviations{fabric=\"ib\",kind=\"miswired\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("muster_fabric_deviations{fabric=\"ib\",kind=\"missing-link\"} 0\n"));
  report.error = "a MAD timed out";
  EXPECT_THAT(toPrometheus(report), HasSubstr("muster_fabric_answered{fabric=\"ib\"} 0\n"));
  EXPECT_THAT(toPrometheus(report), Not(HasSubstr("deviations{")));
}

TEST(RenderManager, putsAStandbyBehindTheMasterAndNeverStartsItWithoutPartitions) {
  auto cluster = railCluster(3);
  auto& fabric = cluster.fabrics["ib"];
  fabric.subnet_managers = {"controller", "gpu003"};
  auto topology = declared(cluster);
  KnownGuids known;
  auto unknown = renderManager(cluster, fabric, topology, known, "gpu003", "");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().text(),
              HasSubstr("gpu003 mlx5_0 was never seen at its declared port"));
  known.hcas = {{"gpu003 mlx5_0", "0x0000000000000031"},
                {"controller mlx5_0", "0x0000000000000001"}};
  auto files = renderManager(cluster, fabric, topology, known, "gpu003", "0x1 0x1 0x1\n");
  ASSERT_TRUE(files) << files.error().str();
  std::map<std::string, std::string> by_path;
  for (const auto& file : *files) by_path[file.path] = file.content;
  EXPECT_THAT(by_path["opensm/gpu003/opensm.conf"],
              HasSubstr("guid 0x0000000000000031\nsm_priority 13\n"));
  EXPECT_THAT(by_path["opensm/gpu003/opensm.conf"],
              HasSubstr("partition_config_file /etc/muster/opensm/partitions.conf\n"));
  EXPECT_THAT(by_path["opensm/gpu003/opensm.conf"],
              HasSubstr("sminfo_polling_timeout 800\npolling_retry_number 3\n"));
  // Whoever of the two is master, both are full members and the tables of all ports are the same.
  EXPECT_THAT(by_path["opensm/gpu003/partitions.conf"],
              HasSubstr("SELF=full, 0x0000000000000001=full, 0x0000000000000031=full"));
  EXPECT_THAT(by_path["opensm/gpu003/muster-opensm.service"],
              HasSubstr("ExecStartPre=/usr/bin/test -s /etc/muster/opensm/partitions.conf\n"));
  EXPECT_EQ(by_path["opensm/gpu003/guid2lid"], "0x1 0x1 0x1\n");
  EXPECT_FALSE(renderManager(cluster, fabric, topology, known, "gpu001", ""));
}

TEST(ParseManagers, readsTheFirstListOfSaqueryOnly) {
  auto lids = parseManagers(
      "IsSM ports\nPortInfoRecord dump:\n\t\tEndPortLid..............1\nPortInfoRecord "
      "dump:\n\t\tEndPortLid..............6\n\nIsSMdisabled ports\n"
      "\t\tEndPortLid..............9\n");
  ASSERT_TRUE(lids);
  EXPECT_EQ(*lids, (std::set<int>{1, 6}));
  EXPECT_FALSE(parseManagers("Failed to bind"));
}

}  // namespace
}  // namespace muster::fabric::test
