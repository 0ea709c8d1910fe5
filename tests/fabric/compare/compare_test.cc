// SPDX-License-Identifier: Apache-2.0
// One mistake in the cabling gives one deviation that says what to do.
#include "fabric/compare/compare.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace muster::fabric::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Compare : public ::testing::Test {
 protected:
  Topology declared_ = declared(railCluster(4));
  Topology found_ = declared_;

  Deviation only() {
    auto deviations = compare(declared_, found_).deviations;
    EXPECT_EQ(deviations.size(), 1u);
    return deviations.empty() ? Deviation{} : deviations.front();
  }
};

TEST_F(Compare, saysNothingOfAFabricAsDeclared) {
  EXPECT_TRUE(compare(declared_, found_).deviations.empty());
}

TEST_F(Compare, namesAPulledCableBetweenSwitchesOnce) {
  unplug(found_, {"leaf-su1-r1", 9});
  auto one = only();
  EXPECT_EQ(one.kind, DeviationKind::MissingLink);
  EXPECT_EQ(one.at, (Port{"leaf-su1-r1", 9}));
  EXPECT_EQ(one.declared, "spine-001 port 2");
  EXPECT_EQ(one.found, "no cable");
  EXPECT_THAT(one.repair, HasSubstr("between leaf-su1-r1 port 9 and spine-001 port 2"));
}

TEST_F(Compare, namesAMissingHcaOnceAndWhereItBelongs) {
  unplug(found_, {"gpu003 mlx5_1", 1});
  found_.devices.erase("gpu003 mlx5_1");
  auto one = only();
  EXPECT_EQ(one.kind, DeviationKind::MissingNode);
  EXPECT_EQ(one.at.node, "gpu003 mlx5_1");
  EXPECT_THAT(one.repair, HasSubstr("leaf-su1-r1 port 3"));
}

TEST_F(Compare, namesADeadSpineOnceNotEachOfItsCables) {
  std::erase_if(found_.links, [](const Link& link) { return link.b.node == "spine-002"; });
  found_.devices.erase("spine-002");
  EXPECT_EQ(only().kind, DeviationKind::MissingNode);
}

TEST_F(Compare, turnsARailSwapIntoTheOrderToSwap) {
  unplug(found_, {"gpu002 mlx5_0", 1});
  unplug(found_, {"gpu002 mlx5_1", 1});
  plug(found_, {"gpu002 mlx5_0", 1}, {"leaf-su1-r1", 2});
  plug(found_, {"gpu002 mlx5_1", 1}, {"leaf-su1-r0", 2});
  auto compared = compare(declared_, found_);
  ASSERT_EQ(compared.deviations.size(), 2u);
  for (const auto& one : compared.deviations) EXPECT_EQ(one.kind, DeviationKind::RailSwapped);
  EXPECT_EQ(compared.deviations[0].declared, "leaf-su1-r0 port 2");
  EXPECT_EQ(compared.deviations[0].found, "leaf-su1-r1 port 2");
  ASSERT_EQ(compared.repairs.size(), 1u);
  EXPECT_EQ(compared.repairs[0].text,
            "swap the cables at gpu002 mlx5_0 port 1 and gpu002 mlx5_1 port 1");
}

TEST_F(Compare, saysWhereAMiswiredCableBelongs) {
  unplug(found_, {"gpu001 mlx5_0", 1});
  plug(found_, {"gpu001 mlx5_0", 1}, {"leaf-su1-r0", 7});
  auto one = only();
  EXPECT_EQ(one.kind, DeviationKind::Miswired);
  EXPECT_EQ(one.repair,
            "move the cable of gpu001 mlx5_0 port 1 from leaf-su1-r0 port 7 to leaf-su1-r0 port 1");
}

TEST_F(Compare, seesAnUplinkPulledBesideOneThatTookItsPort) {
  unplug(found_, {"leaf-su1-r0", 9});
  unplug(found_, {"leaf-su1-r1", 9});
  plug(found_, {"leaf-su1-r1", 9}, {"spine-001", 1});
  auto deviations = compare(declared_, found_).deviations;
  ASSERT_EQ(deviations.size(), 2u);
  EXPECT_EQ(deviations[0].kind, DeviationKind::MissingLink);
  EXPECT_EQ(deviations[0].at, (Port{"leaf-su1-r0", 9}));
  EXPECT_EQ(deviations[1].kind, DeviationKind::Miswired);
  EXPECT_EQ(deviations[1].at, (Port{"leaf-su1-r1", 9}));
}

TEST_F(Compare, namesExtraDevicesAndExtraCables) {
  found_.devices["laptop mlx5_0"] = {"laptop mlx5_0", false, 1, "0x1", {}};
  plug(found_, {"laptop mlx5_0", 1}, {"leaf-su1-r0", 6});
  auto one = only();
  EXPECT_EQ(one.kind, DeviationKind::ExtraNode);
  EXPECT_EQ(one.found, "at leaf-su1-r0 port 6");

  found_ = declared_;
  plug(found_, {"leaf-su1-r0", 12}, {"leaf-su1-r1", 12});
  EXPECT_EQ(only().kind, DeviationKind::ExtraLink);
}

TEST_F(Compare, knowsADeviceByItsPlaceWhenItsDescriptionIsWrong) {
  rename(found_, "gpu001 mlx5_0", "localhost HCA-1");
  auto one = only();
  EXPECT_EQ(one.kind, DeviationKind::WrongDescription);
  EXPECT_EQ(one.at.node, "gpu001 mlx5_0");
  EXPECT_THAT(one.found, HasSubstr("localhost HCA-1 (at leaf-su1-r0 port 1)"));
  EXPECT_THAT(one.repair, HasSubstr("set it to gpu001 mlx5_0"));
}

TEST_F(Compare, tellsHostsThatAnswerWithEachOthersNameFromSwappedCables) {
  rename(found_, "gpu001 mlx5_0", "x 0");
  rename(found_, "gpu001 mlx5_1", "x 1");
  rename(found_, "gpu002 mlx5_0", "gpu001 mlx5_0");
  rename(found_, "gpu002 mlx5_1", "gpu001 mlx5_1");
  rename(found_, "x 0", "gpu002 mlx5_0");
  rename(found_, "x 1", "gpu002 mlx5_1");
  auto compared = compare(declared_, found_);
  ASSERT_EQ(compared.deviations.size(), 2u);
  for (const auto& one : compared.deviations) EXPECT_EQ(one.kind, DeviationKind::WrongDescription);
  ASSERT_EQ(compared.repairs.size(), 1u);
  EXPECT_EQ(
      compared.repairs[0].text,
      "gpu001 and gpu002 report each other's name: exchange the node descriptions, move no cable");
}

TEST_F(Compare, tellsExchangedLeavesAndDoesNotBlameTheirHosts) {
  rename(found_, "leaf-su1-r0", "x");
  rename(found_, "leaf-su1-r1", "leaf-su1-r0");
  rename(found_, "x", "leaf-su1-r1");
  auto compared = compare(declared_, found_);
  ASSERT_EQ(compared.repairs.size(), 1u);
  EXPECT_EQ(compared.repairs[0].text,
            "leaf-su1-r0 and leaf-su1-r1 report each other's name: exchange the node descriptions, "
            "move no cable");
}

TEST_F(Compare, asksForAHostsPowerOnceNotForEachHca) {
  for (auto hca : {"gpu003 mlx5_0", "gpu003 mlx5_1"}) {
    unplug(found_, {hca, 1});
    found_.devices.erase(hca);
  }
  auto compared = compare(declared_, found_);
  EXPECT_EQ(compared.deviations.size(), 2u);
  ASSERT_EQ(compared.repairs.size(), 1u);
  EXPECT_EQ(compared.repairs[0].text,
            "check that gpu003 is powered and its driver runs: none of its 2 HCAs is seen; then "
            "their cables");
  EXPECT_EQ(compared.repairs[0].moves.size(), 2u);
}

TEST_F(Compare, saysHowManyUplinksAreLeft) {
  auto cluster = railCluster(4);
  cluster.fabrics["ib"].uplinks_per_leaf_spine = 4;
  declared_ = declared(cluster);
  found_ = declared_;
  unplug(found_, {"leaf-su1-r1", 9});
  EXPECT_EQ(only().found, "no cable (3 of 4 to spine-001 are left)");
}

TEST_F(Compare, tellsButDoesNotCountWhatIsExcused) {
  unplug(found_, {"leaf-su1-r1", 9});
  unplug(found_, {"leaf-su1-r0", 9});
  auto compared = compare(declared_, found_, {{"spine-001", 2, "port broken, case 4711"}});
  ASSERT_EQ(compared.deviations.size(), 1u);
  EXPECT_EQ(compared.deviations[0].at, (Port{"leaf-su1-r0", 9}));
  ASSERT_EQ(compared.excluded.size(), 1u);
  EXPECT_EQ(compared.excluded[0].at, (Port{"leaf-su1-r1", 9}));
}

// What ibnetdiscover shows of two HCAs with one GUID: the second at its place, under the first
// one's name; the first one's port is silent.
TEST_F(Compare, blamesTheGuidAndNoCableWhenTwoHcasShareOne) {
  found_.devices.at("gpu001 mlx5_0").addresses[1] = {"0x0000000000100003", 7};
  found_.shared_guids = {"0x0000000000100003"};
  unplug(found_, {"gpu001 mlx5_0", 1});
  unplug(found_, {"gpu004 mlx5_0", 1});
  found_.devices.erase("gpu004 mlx5_0");
  plug(found_, {"gpu001 mlx5_0", 1}, {"leaf-su1-r0", 4});
  auto compared = compare(declared_, found_);
  ASSERT_EQ(compared.repairs.size(), 1u);
  EXPECT_THAT(compared.repairs[0].text,
              HasSubstr("gpu001 mlx5_0 and gpu004 mlx5_0 have the same GUID 0x0000000000100003"));
  EXPECT_TRUE(compared.repairs[0].moves.empty());
  EXPECT_EQ(compared.deviations.front().kind, DeviationKind::DuplicateGuid);
}

TEST_F(Compare, doesNotTakeASwitchForAHca) {
  found_.devices["gpu001 mlx5_0"].is_switch = true;
  EXPECT_EQ(only().kind, DeviationKind::ExtraNode);
}

TEST_F(Compare, measuresTheLinkAgainstTheDeclarationAlone) {
  findLink(found_, {"gpu004 mlx5_1", 1})->width_speed = "1xHDR";
  auto one = only();
  EXPECT_EQ(one.kind, DeviationKind::WrongWidthSpeed);
  EXPECT_EQ(one.declared, "4xHDR");
  EXPECT_EQ(one.found, "1xHDR");
}

TEST_F(Compare, reseatsNoCableThatIsFasterThanDeclared) {
  findLink(found_, {"gpu001 mlx5_0", 1})->width_speed = "4xNDR";
  const auto one = only();
  EXPECT_EQ(one.kind, DeviationKind::WrongWidthSpeed);
  EXPECT_THAT(
      one.repair,
      HasSubstr("faster than declared: correct its speed in the inventory (`link_node_leaf`"));
  EXPECT_THAT(one.repair, ::testing::Not(HasSubstr("reseat")));
}

class CompareClasses : public ::testing::Test {
 protected:
  CompareClasses() : cluster_(railCluster(4)) {
    auto& fabric = cluster_.fabrics.at("ib");
    fabric.spines_per_su = 4, fabric.cores = 4;
    fabric.link_node_leaf = "2xNDR";
    fabric.link_leaf_spine = "4xNDR";
    fabric.link_spine_core = "4xXDR";
    fabric.cables = {{.from_node = "store1 mlx5_0",
                      .to_node = "leaf-su1-r0",
                      .to_port = 7,
                      .role = inventory::AttachedRole::Storage}};
    declared_ = declared(cluster_);
    found_ = declared_;
  }
  inventory::Cluster cluster_;
  Topology declared_, found_;
};

TEST_F(CompareClasses, eachCableOfAShapeHasTheSpeedOfItsClass) {
  std::map<std::string, int> speeds;
  for (const auto& link : declared_.links) ++speeds[link.width_speed];
  EXPECT_EQ(speeds, (std::map<std::string, int>{
                        {"2xNDR", 4 * 2 + 1},  // and the controller's
                        {"4xNDR", 2 * 4},
                        {"4xXDR", 4},
                        {"4xHDR", 1}}))  // what is no part of the shape: the fabric's link
      << "node to leaf, leaf to spine, spine to core";
  EXPECT_EQ(findLink(declared_, {"gpu001 mlx5_0", 1})->width_speed, "2xNDR");
  EXPECT_EQ(findLink(declared_, {"controller mlx5_0", 1})->width_speed, "2xNDR");
  EXPECT_EQ(findLink(declared_, {"store1 mlx5_0", 1})->width_speed, "4xHDR");
  EXPECT_EQ(findLink(declared_, {"core-001", 1})->width_speed, "4xXDR");
  EXPECT_TRUE(compare(declared_, found_).deviations.empty());
}

TEST_F(CompareClasses, aCableIsMeasuredByItsOwnClass) {
  findLink(found_, {"core-002", 1})->width_speed = "4xNDR";  // as good as an uplink of a leaf
  auto deviations = compare(declared_, found_).deviations;
  ASSERT_EQ(deviations.size(), 1u);
  EXPECT_EQ(deviations[0].kind, DeviationKind::WrongWidthSpeed);
  EXPECT_EQ(deviations[0].declared, "4xXDR");
  EXPECT_EQ(deviations[0].found, "4xNDR");
}

// Without classes each of them seemed a bad cable: 32 of 100 links that are declared alike.
TEST_F(CompareClasses, aWholeClassAtAnotherSpeedIsADeclarationToCorrect) {
  cluster_ = railCluster(31, 1, 32, 2, 16);
  auto& fabric = cluster_.fabrics.at("ib");
  fabric.switch_ports = 64;
  declared_ = declared(cluster_);
  const auto with = [this](bool (*is)(const Link&)) {
    found_ = declared_;
    for (auto& link : found_.links)
      if (is(link)) link.width_speed = "4xNDR";
    return compare(declared_, found_);
  };
  const auto uplinks = with([](const Link& link) { return link.b.node.starts_with("spine-"); });
  ASSERT_EQ(uplinks.deviations.size(), 32u);
  for (const auto& each : uplinks.deviations)
    EXPECT_THAT(each.repair,
                AllOf(HasSubstr("32 of 32 links that are declared 4xHDR run 4xNDR"),
                      HasSubstr("`link_leaf_spine`"), HasSubstr("no single cable is to blame")));
  EXPECT_EQ(uplinks.repairs.size(), 1u);
  const auto all = with([](const Link&) { return true; });
  ASSERT_EQ(all.deviations.size(), declared_.links.size());
  EXPECT_EQ(all.repairs.size(), 1u) << "one job, not one a class";
  EXPECT_THAT(all.deviations.front().repair, HasSubstr("`link`"));
  fabric.link_leaf_spine = "4xEDR";  // alone declared so
  declared_ = declared(cluster_);
  EXPECT_THAT(with([](const Link& link) { return link.b.node.starts_with("spine-"); })
                  .deviations.front()
                  .repair,
              HasSubstr("`link_leaf_spine`"));
}

// Whatever is done to the cables, a fabric that differs is never called equal.
TEST_F(Compare, neverCallsADifferentFabricEqual) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    found_ = declared_;
    for (auto changes = 1 + random() % 3; changes > 0 && !found_.links.empty(); --changes) {
      auto& link = found_.links[random() % found_.links.size()];
      switch (random() % 4) {
        case 0:
          unplug(found_, Port(link.a));
          break;
        case 1:
          link.width_speed = "1xHDR";
          break;
        case 2:
          std::swap(link.b, found_.links[random() % found_.links.size()].b);
          break;
        default:
          found_.devices.erase(link.a.node);
          std::erase_if(found_.links, [node = link.a.node](const Link& l) {
            return l.a.node == node || l.b.node == node;
          });
      }
      for (auto& l : found_.links)
        if (l.b < l.a) std::swap(l.a, l.b);
      std::sort(found_.links.begin(), found_.links.end());
    }
    auto device_names = [](const Topology& t) {
      std::vector<std::string> names;
      for (const auto& [name, d] : t.devices) names.push_back(name);
      return names;
    };
    bool same = found_.links == declared_.links && device_names(found_) == device_names(declared_);
    EXPECT_EQ(compare(declared_, found_).deviations.empty(), same) << "round " << round;
  }
}

}  // namespace
}  // namespace muster::fabric::test
