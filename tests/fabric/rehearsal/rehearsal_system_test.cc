// SPDX-License-Identifier: Apache-2.0
// The declared fabric in real ibsim with real OpenSM: every fault of a small one.
#include "fabric/rehearsal/rehearsal.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::fabric::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RehearsalSystem : public ::testing::Test {
 protected:
  RehearsalReport rehearse(const inventory::Cluster& cluster, std::set<FaultKind> kinds) {
    auto processes = io::makeProcessRunner();
    SystemClock clock;
    RehearsalOptions options;
    options.folder = folder_.path();
    options.kinds = std::move(kinds);
    auto report = muster::test::runAsync(fabric::rehearse(cluster, *processes, clock, options),
                                         std::chrono::seconds(240));
    EXPECT_TRUE(report) << report.error().str();
    return report ? *report : RehearsalReport{};
  }
  muster::test::TempFolder folder_;
};

TEST_F(RehearsalSystem, holdsThroughEveryFaultOfASmallFabric) {
  auto cluster = railCluster(3);
  cluster.fabrics["ib"].subnet_managers = {"controller", "gpu003"};
  cluster.fabrics["ib"].link = "4xNDR";  // ibsim does not know it
  auto report = rehearse(cluster, {kAllFaults.begin(), kAllFaults.end()});
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.exitCode(), RehearsalReport::kHeld) << toText(report);
  EXPECT_EQ(report.routing_engine, "ftree");
  EXPECT_TRUE(report.slowed);
  EXPECT_EQ(report.healthy.pairs, 7u * 6);
  EXPECT_EQ(report.healthy.lost, 0u);
  std::map<FaultKind, int> kinds;
  for (const auto& one : report.outcomes) ++kinds[one.fault.kind];
  // 11 cables and 4 switches, less the controller's cable and leaf, which are named as left out.
  EXPECT_EQ(kinds, (std::map<FaultKind, int>{{FaultKind::CablePulled, 10},
                                             {FaultKind::SwitchLost, 3},
                                             {FaultKind::RailSwapped, 3},
                                             {FaultKind::PartitionsTypo, 1},
                                             {FaultKind::ManagerLost, 1}}));
  EXPECT_THAT(report.left_out, ElementsAre(HasSubstr("cable-pulled: controller mlx5_0 port 1"),
                                           HasSubstr("switch-lost: leaf-su1-r0")));
  EXPECT_THAT(toText(report),
              HasSubstr("OpenSM opened the fabric, the tables show it; closed again within"));
  EXPECT_THAT(toText(report), HasSubstr("gpu003 mlx5_0 is master with the subnet up after"));
  EXPECT_EQ(nlohmann::json::parse(toJson(report))["held"], true);
}

TEST_F(RehearsalSystem, leavesNoPairOutWhereStorageAndUfmAreOnSpines) {
  auto cluster = railCluster(7, 2);
  auto& ib = cluster.fabrics["ib"];
  ib.cables = portsOnSpines();
  ib.uplinks_per_leaf_spine = 2;
  for (auto& cable : ib.cables) cable.to_port += 16;
  ib.switch_ports = 32;
  auto report = rehearse(cluster, {FaultKind::CablePulled});
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.exitCode(), RehearsalReport::kHeld) << toText(report);
  EXPECT_EQ(report.routing_engine, "ftree");
  EXPECT_EQ(report.healthy.lost, 0u);
  EXPECT_EQ(report.healthy.pairs, 18u * 17);
  EXPECT_GT(report.healthy.reversed, 0u);
}

// One cable between each leaf and spine is too few for an HCA at a spine: ftree has no way around.
TEST_F(RehearsalSystem, saysWhatAPortOnASpineDependsOn) {
  auto cluster = railCluster(3);
  cluster.fabrics["ib"].cables = {portsOnSpines().front()};
  auto report = rehearse(cluster, {FaultKind::CablePulled});
  EXPECT_EQ(report.healthy.lost, 0u);
  EXPECT_EQ(report.exitCode(), RehearsalReport::kBroke);
  EXPECT_THAT(toText(report),
              HasSubstr("store1 mlx5_0 is cabled to spine-001, which is no leaf and has no cable "
                        "to leaf-su1-r1 at present: move it to a leaf, or plan two cables"));
}

TEST_F(RehearsalSystem, namesTheFaultThatBreaksIt) {  // one spine only: nobody can do without it
  auto report = rehearse(railCluster(2, 1, 4, 2, 1), {FaultKind::SwitchLost});
  EXPECT_EQ(report.exitCode(), RehearsalReport::kBroke);
  EXPECT_THAT(toText(report), HasSubstr("BROKE switch-lost      spine-001: "));
}

TEST_F(RehearsalSystem, hasNoAnswerForAnEngineThatDoesNotFit) {
  auto cluster = railCluster(2);
  cluster.fabrics["ib"].routing = "dor";
  cluster.fabrics["ib"].subnet_managers = {};
  EXPECT_THAT(rehearse(cluster, {FaultKind::CablePulled}).error,
              HasSubstr("declares no subnet manager"));
}

}  // namespace
}  // namespace muster::fabric::test
