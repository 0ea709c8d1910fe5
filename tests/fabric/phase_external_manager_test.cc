// SPDX-License-Identifier: Apache-2.0
// A fabric whose subnet manager is UFM's or a switch's: checked, and left alone. Another OpenSM
// plays it.
#include "fabric/opensm/partitions.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/muster_over_fabric.h"

#include <gmock/gmock.h>

namespace muster::fabric::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kSeat = "gpu003 mlx5_0", kUfm = "ufm1 mlx5_0";
constexpr const char* kAsMusterDeclares = "Default=0x7fff, ipoib : ALL=limited, SELF=full ;\n";

class ExternalManager : public ::testing::Test {
 protected:
  ExternalManager() {
    auto& fabric = cluster_.fabrics.at("ib");
    fabric.subnet_managers.clear();
    fabric.partitions.clear();
    fabric.cables = {{.from_node = std::string(kUfm),
                      .to_node = "leaf-su1-r0",
                      .to_port = 8,
                      .role = inventory::AttachedRole::Ufm}};
  }
  void start() { fabric_ = std::make_unique<SimulatedFabric>(declared(cluster_), kSeat); }
  static constexpr int
      kMasters = 10,
      kBehind = 1;  // priorities: equal ones would change places, and nobody is master meanwhile
  std::unique_ptr<OtherOpensm> managerAt(std::string_view hca,
                                         const char* partitions = kAsMusterDeclares,
                                         int priority = kMasters) {
    auto files = fabric_->options().run_folder / "of-others";
    EXPECT_TRUE(io::makeDirs(files));
    EXPECT_TRUE(io::writeFileAtomic(files / "partitions.conf", partitions));
    auto opensm =
        std::make_unique<OtherOpensm>(*fabric_, hca,
                                      fmt::format("sm_priority {}\npartition_config_file {}\n",
                                                  priority, (files / "partitions.conf").string()));
    EXPECT_TRUE(eventually([&] {
      const auto log = readSmLog(io::readFile(opensm->folder() / "opensm.log").value_or(""));
      return log.subnet_up || log.standby;
    }));
    return opensm;
  }
  /// The master lists another one when it has swept after that one's trap.
  static bool isTold(Muster& muster, const char* words) {
    return eventually([&] {
      return muster.verified(muster.whole, "fabric.sm").find(words) != std::string::npos;
    });
  }
  bool musterRunsOne() {
    return io::PidFile{fabric_->options().run_folder / "opensm.pid"}.alive().has_value();
  }
  void declarePartitions() {
    inventory::Partition all;
    all.name = "default";
    all.pkey = kDefaultPkey;
    all.ipoib = true;
    all.limited_members = {"ALL"};
    all.full_members = {"SELF"};
    cluster_.fabrics.at("ib").partitions = {all};
  }

  inventory::Cluster cluster_ = railCluster(3);
  std::unique_ptr<SimulatedFabric> fabric_;
};

TEST_F(ExternalManager, isCheckedAndMusterRunsNone) {
  start();
  Muster muster(cluster_, *fabric_);
  EXPECT_THAT(muster.tryTo(muster.whole, "fabric.sm"),
              AllOf(StartsWith("blocked"), HasSubstr("no subnet manager answers as master"),
                    HasSubstr("not muster's")));
  EXPECT_FALSE(muster.met(muster.whole, "fabric.sm"));
  const auto ufm = managerAt(kUfm);
  EXPECT_EQ(muster.tryTo(muster.whole, "fabric.sm"), "");
  EXPECT_TRUE(muster.met(muster.whole, "fabric.sm"));
  EXPECT_EQ(muster.tryTo(muster.whole, "fabric.links"), "");
  EXPECT_TRUE(muster.met(muster.whole, "fabric.links"));
  EXPECT_TRUE(muster.met(node("gpu001"), "fabric.ports"));
  EXPECT_FALSE(musterRunsOne());
  fabric_->unlink({"gpu001 mlx5_1", 1});
  EXPECT_FALSE(muster.met(muster.whole, "fabric.links"));
  EXPECT_FALSE(muster.met(node("gpu001"), "fabric.ports"));
  EXPECT_TRUE(muster.met(node("gpu002"), "fabric.ports"));
}

TEST_F(ExternalManager, partitionsAreReadWhereDeclaredAndNeverWritten) {
  start();
  declarePartitions();
  Muster muster(cluster_, *fabric_);
  EXPECT_THAT(muster.verified(muster.whole, "fabric.partitions"),
              HasSubstr("no subnet manager answers"))
      << "no tables are no proof";
  {
    const auto open = managerAt(kUfm, "Default=0x7fff, ipoib : ALL=full ;\n");
    EXPECT_THAT(muster.verified(muster.whole, "fabric.partitions"),
                HasSubstr("has PKeys {0xffff}, declared {0x7fff}"));
    EXPECT_THAT(muster.tryTo(muster.whole, "fabric.partitions"),
                AllOf(StartsWith("blocked"), HasSubstr("change it there")));
    EXPECT_THAT(muster.tryTo(node("gpu001"), "fabric.ports"),
                AllOf(StartsWith("blocked"), HasSubstr("change it there")));
    EXPECT_FALSE(muster.met(node("gpu001"), "fabric.ports"));
  }
  EXPECT_FALSE(std::filesystem::exists(fabric_->options().run_folder / "partitions.conf"));
}

TEST_F(ExternalManager, asDeclaredIsMet) {
  start();
  declarePartitions();
  Muster muster(cluster_, *fabric_);
  const auto ufm = managerAt(kUfm);
  EXPECT_EQ(muster.tryTo(muster.whole, "fabric.partitions"), "");
  EXPECT_TRUE(muster.met(muster.whole, "fabric.partitions"));
  EXPECT_TRUE(muster.met(node("gpu001"), "fabric.ports"));
}

TEST_F(ExternalManager, onANodeIsNobodysBesideAUfm) {
  start();
  Muster muster(cluster_, *fabric_);
  const auto ufm = managerAt(kUfm);
  const auto unknown = managerAt("gpu002 mlx5_0", kAsMusterDeclares, kBehind);
  EXPECT_TRUE(isTold(muster, "gpu002 mlx5_0 (LID "));
  EXPECT_THAT(muster.verified(muster.whole, "fabric.sm"),
              AllOf(HasSubstr("not declared"), HasSubstr("role ufm")));
}

TEST_F(ExternalManager, comesAfterMustersOwn) {
  const auto own = railCluster(3);
  fabric_ = std::make_unique<SimulatedFabric>(declared(own));
  Muster before(own, *fabric_);
  before.bringUp();
  auto changed = own;
  changed.fabrics.at("ib").subnet_managers.clear();
  Muster after(changed, *fabric_);
  EXPECT_THAT(after.verified(after.whole, "fabric.sm"),
              AllOf(HasSubstr("muster's own OpenSM still runs"), HasSubstr("(kill ")));
  EXPECT_TRUE(musterRunsOne()) << "nobody but the operator takes a fabric its only subnet manager";
}

TEST_F(ExternalManager, mayBeASwitchWhereNoUfmIsDeclared) {
  cluster_.fabrics.at("ib").cables.clear();
  start();
  Muster muster(cluster_, *fabric_);
  const auto managed = managerAt("spine-001");
  EXPECT_EQ(muster.verified(muster.whole, "fabric.sm"),
            muster.goal(muster.whole, "fabric.sm").want);
  const auto unknown = managerAt("gpu002 mlx5_0", kAsMusterDeclares, kBehind);
  EXPECT_TRUE(isTold(muster, "gpu002 mlx5_0 (LID "));
}

}  // namespace
}  // namespace muster::fabric::test
