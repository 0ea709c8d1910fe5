// SPDX-License-Identifier: Apache-2.0
// A real slurmctld takes the exported topology, in a network namespace of the test's own.
#include "fabric/exports/exports.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"
#include "tests/fakes/real_slurm.h"

#include <gmock/gmock.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;

class SlurmTopologySystem : public muster::test::RealSlurm {
 protected:
  /// What `scontrol show topology` says of it.
  std::string taken(const std::string& topology, const std::string& nodes) {
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "topology.conf", topology));
    startController(
        slurmConf(fmt::format("TopologyPlugin=topology/tree\nNodeName={} NodeAddr=10.99.0.1 CPUs=1 "
                              "State=DOWN\nPartitionName=gpu Nodes=ALL Default=YES State=UP\n",
                              nodes)));
    log_ = io::readFile(folder_ / "slurmctld.log").value_or("");
    return tool("scontrol", {"show", "topology"})->out;
  }
  std::string log_;
};

TEST_F(SlurmTopologySystem, takesScalableUnitsAsATree) {
  auto cluster = railCluster(6, 2);
  auto shown = taken(slurmTree(vicinityOf(cluster, cluster.fabrics["ib"], declared(cluster))),
                     "gpu[001-006]");
  EXPECT_THAT(shown, HasSubstr("SwitchName=su1 Level=0 LinkSpeed=1 Nodes=gpu[001-004]"));
  EXPECT_THAT(shown,
              HasSubstr("SwitchName=ib Level=1 LinkSpeed=1 Nodes=gpu[001-006] Switches=su[1-2]"));
  EXPECT_EQ(log_.find("error: TOPOLOGY"), std::string::npos) << log_;
}

TEST_F(SlurmTopologySystem, takesAFatTreeOfThreeLevels) {
  auto cluster = railCluster(12, 2, 4, 2, 2);
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::FatTree;
  fabric.leaves_per_su = 2;
  fabric.leaf_down_ports = 8;
  fabric.cores = 2;
  auto shown = taken(slurmTree(vicinityOf(cluster, fabric, declared(cluster))), "gpu[001-012]");
  EXPECT_THAT(shown,
              HasSubstr("SwitchName=ib Level=2 LinkSpeed=1 Nodes=gpu[001-012] Switches=su[1-2]"));
  EXPECT_EQ(log_.find("error: TOPOLOGY"), std::string::npos) << log_;
}

TEST_F(SlurmTopologySystem, takesSwitchesWithNamesThatItCouldNotRead) {
  auto cluster = factoryNamedCluster();
  const auto top = vicinityOf(cluster, cluster.fabrics["ib"], declared(cluster));
  auto shown = taken(slurmTree(top), "gpu[001-008]");
  EXPECT_THAT(shown, HasSubstr(fmt::format("SwitchName={} Level=0 LinkSpeed=1 Nodes=gpu[001-004]",
                                           top.children[0].name)));
  EXPECT_THAT(shown, HasSubstr("SwitchName=ib Level=1 LinkSpeed=1 Nodes=gpu[001-008]"));
  EXPECT_EQ(log_.find("error: TOPOLOGY"), std::string::npos) << log_;
}

TEST_F(SlurmTopologySystem, takesTheComputeFabricOfTwo) {
  const auto cluster = twoFabrics(3);
  const auto compute = declared(cluster);
  const auto tops = vicinitiesOf(cluster, {{&cluster.fabrics.at("ib"), &compute}});
  auto shown = taken(slurmTree(tops), "gpu[001-003]");
  EXPECT_THAT(shown, HasSubstr("SwitchName=ib Level=1 LinkSpeed=1 Nodes=gpu[001-003]"));
  EXPECT_EQ(shown.find("storage"), std::string::npos) << shown;
  EXPECT_EQ(log_.find("error: TOPOLOGY"), std::string::npos) << log_;
}

TEST_F(SlurmTopologySystem, takesTwoComputeFabricsAsTwoTrees) {
  const auto cluster = twoHalls();
  const auto a = declared(cluster),
             b = declaredTopology(cluster, cluster.fabrics.at("ib-b")).value();
  const auto tops =
      vicinitiesOf(cluster, {{&cluster.fabrics.at("ib"), &a}, {&cluster.fabrics.at("ib-b"), &b}});
  auto shown = taken(slurmTree(tops), "gpu[001-004]");
  EXPECT_THAT(shown, HasSubstr("SwitchName=ib Level=1 LinkSpeed=1 Nodes=gpu[001-002]"));
  EXPECT_THAT(shown, HasSubstr("SwitchName=ib-b Level=1 LinkSpeed=1 Nodes=gpu[003-004]"));
}

}  // namespace
}  // namespace muster::fabric::test
