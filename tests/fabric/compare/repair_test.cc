// SPDX-License-Identifier: Apache-2.0
// Every fault of a whole scalable unit, and random ones: named exactly, and healed by doing what
// the repair says.
#include "fabric/compare/compare.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/found_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;

/// SuperPOD's scalable unit: 32 nodes of 8 HCAs, 8 leaves, 4 spines; 256 cables to HCAs and 256
/// between switches.
inventory::Cluster scalableUnit() {
  auto cluster = railCluster(32, 1, 32, 8, 4);
  auto& fabric = cluster.fabrics["ib"];
  fabric.switch_ports = 64;
  fabric.uplinks_per_leaf_spine = 8;
  fabric.subnet_managers.clear();
  return cluster;
}

class Repairs : public ::testing::Test {
 protected:
  /// An HCA whose only cable is out is not seen either.
  void pull(const Link& link) {
    unplug(found_, Port(link.a));
    for (const auto& end : {link.a, link.b})
      if (!declared_.devices.at(end.node).is_switch) found_.devices.erase(end.node);
  }
  void heal(const Comparison& compared) {
    for (const auto& repair : compared.repairs) apply(repair, found_, "4xHDR");
    for (const auto& link : found_.links)
      for (const auto& end : {link.a, link.b})
        if (declared_.devices.count(end.node))
          found_.devices.emplace(end.node, declared_.devices.at(end.node));
  }

  Topology declared_ = declared(scalableUnit());
  Topology found_ = declared_;
};

TEST_F(Repairs, nameEachPulledCableOfAScalableUnitAndHealIt) {
  ASSERT_EQ(declared_.links.size(), 512u);
  for (const auto& link : declared_.links) {
    found_ = declared_;
    pull(link);
    auto compared = compare(declared_, found_);
    ASSERT_EQ(compared.deviations.size(), 1u) << toString(link.a);
    const auto& one = compared.deviations[0];
    bool hca = !declared_.devices.at(link.a.node).is_switch;
    EXPECT_EQ(one.kind, hca ? DeviationKind::MissingNode : DeviationKind::MissingLink);
    EXPECT_EQ(one.at, hca ? (Port{link.a.node, 0}) : link.a);
    EXPECT_EQ(one.declared, (hca ? "at " : "") + toString(link.b));
    EXPECT_THAT(one.repair, HasSubstr(toString(link.b)));
    ASSERT_EQ(compared.repairs.size(), 1u);
    heal(compared);
    EXPECT_TRUE(compare(declared_, found_).deviations.empty()) << toString(link.a);
  }
}

TEST_F(Repairs, nameEachSlowCable) {
  for (const auto& link : declared_.links) {
    found_ = declared_;
    findLink(found_, link.a)->width_speed = "1xHDR";
    auto compared = compare(declared_, found_);
    ASSERT_EQ(compared.deviations.size(), 1u);
    EXPECT_EQ(compared.deviations[0].kind, DeviationKind::WrongWidthSpeed);
    EXPECT_EQ(compared.deviations[0].at, link.a);
  }
}

TEST_F(Repairs, ofTwoExchangedCablesAreOneSwap) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    found_ = declared_;
    auto& one = found_.links[random() % found_.links.size()];
    auto& other = found_.links[random() % found_.links.size()];
    if (&one == &other) continue;
    const std::set<Port> ends = {one.a, one.b, other.a, other.b};
    std::swap(one.b, other.b);
    for (auto* link : {&one, &other})
      if (link->b < link->a) std::swap(link->a, link->b);
    std::sort(found_.links.begin(), found_.links.end());
    auto compared = compare(declared_, found_);
    ASSERT_EQ(compared.deviations.size(), 2u) << round;
    for (const auto& deviation : compared.deviations) {
      EXPECT_TRUE(ends.count(deviation.at)) << toString(deviation.at);
      EXPECT_TRUE(deviation.kind == DeviationKind::Miswired ||
                  deviation.kind == DeviationKind::RailSwapped);
    }
    ASSERT_EQ(compared.repairs.size(), 1u);
    EXPECT_TRUE(compared.repairs[0].text.starts_with("swap the cables "))
        << compared.repairs[0].text;
    EXPECT_EQ(compared.repairs[0].moves.size(), 2u);
    heal(compared);
    EXPECT_TRUE(compare(declared_, found_).deviations.empty()) << round;
  }
}

TEST_F(Repairs, swapInOneSwitchWhereThatDoes) {
  unplug(found_, {"leaf-su1-r0", 5});
  unplug(found_, {"leaf-su1-r0", 6});
  plug(found_, {"gpu005 mlx5_0", 1}, {"leaf-su1-r0", 6});
  plug(found_, {"gpu006 mlx5_0", 1}, {"leaf-su1-r0", 5});
  EXPECT_EQ(compare(declared_, found_).repairs.at(0).text,
            "swap the cables in ports 5 and 6 of leaf-su1-r0");
}

TEST_F(Repairs, turnARingOfCablesByOneMoveEach) {
  for (int port : {5, 6, 7}) unplug(found_, {"leaf-su1-r0", port});
  plug(found_, {"gpu005 mlx5_0", 1}, {"leaf-su1-r0", 6});
  plug(found_, {"gpu006 mlx5_0", 1}, {"leaf-su1-r0", 7});
  plug(found_, {"gpu007 mlx5_0", 1}, {"leaf-su1-r0", 5});
  auto compared = compare(declared_, found_);
  ASSERT_EQ(compared.repairs.size(), 1u);
  EXPECT_EQ(compared.repairs[0].moves.size(), 3u);
  EXPECT_THAT(compared.repairs[0].text,
              ::testing::MatchesRegex("take the cable of gpu.* out of leaf-su1-r0 port .; then "
                                      "move .*; then move .*; then put the first one into "
                                      "leaf-su1-r0 port ."));
}

TEST_F(Repairs, beginWhereAPortIsFree) {  // two hosts one port too far to the right, the last
                                          // port's host pulled out
  pull(*findLink(declared_, {"leaf-su1-r0", 7}));
  for (int port : {5, 6}) unplug(found_, {"leaf-su1-r0", port});
  plug(found_, {"gpu005 mlx5_0", 1}, {"leaf-su1-r0", 6});
  plug(found_, {"gpu006 mlx5_0", 1}, {"leaf-su1-r0", 7});
  auto compared = compare(declared_, found_);
  ASSERT_EQ(compared.repairs.size(), 1u);
  EXPECT_EQ(compared.repairs[0].text,
            "move the cable of gpu005 mlx5_0 port 1 from leaf-su1-r0 port 6 to leaf-su1-r0 port 5; "
            "then move the cable of gpu006 mlx5_0 "
            "port 1 from "
            "leaf-su1-r0 port 7 to leaf-su1-r0 port 6; then check that gpu007 mlx5_0 is powered "
            "and its driver runs, then the cable to "
            "leaf-su1-r0 port 7");
  heal(compared);
  EXPECT_TRUE(compare(declared_, found_).deviations.empty());
}

// Whatever the cables are like: doing everything that is said makes the fabric as declared, with
// one move a wrong cable at most.
TEST_F(Repairs, healAnyShuffle) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    found_ = declared_;
    const auto faults = 1 + random() % 40;
    for (unsigned i = 0; i < faults; ++i) {
      auto& one = found_.links[random() % found_.links.size()];
      switch (random() % 3) {
        case 0:
          std::swap(one.b, found_.links[random() % found_.links.size()].b);
          break;
        case 1:
          std::swap(one.a, found_.links[random() % found_.links.size()].a);
          break;
        default: {
          auto pulled = one;
          unplug(found_, pulled.a);
        }
      }
    }
    for (auto& link : found_.links)
      if (link.b < link.a) std::swap(link.a, link.b);
    std::sort(found_.links.begin(), found_.links.end());
    std::set<Port> cabled;
    for (const auto& link : found_.links) cabled.insert({link.a, link.b});
    std::erase_if(found_.devices, [&](const auto& entry) {
      return !entry.second.is_switch && !cabled.count({entry.first, 1});
    });
    std::vector<Link> wrong;
    std::set_difference(declared_.links.begin(), declared_.links.end(), found_.links.begin(),
                        found_.links.end(), std::back_inserter(wrong));
    auto compared = compare(declared_, found_);
    std::size_t moves = 0;
    for (const auto& repair : compared.repairs) moves += repair.moves.size();
    EXPECT_EQ(moves, wrong.size())
        << round;  // no cable too many is in: each wanted one costs a move
    heal(compared);
    EXPECT_TRUE(compare(declared_, found_).deviations.empty()) << round;
  }
}

TEST(Healthy, randomFabricsRaiseNoAlarm) {
  std::mt19937 random(17);
  auto upTo = [&](int most) {
    return 1 + static_cast<int>(random() % static_cast<unsigned>(most));
  };
  for (int round = 0; round < 100; ++round) {
    auto cluster = railCluster(1, upTo(3), upTo(6), upTo(4), upTo(3));
    auto& fabric = cluster.fabrics["ib"];
    fabric.uplinks_per_leaf_spine = upTo(2);
    fabric.switch_ports = 64;
    if (round % 3 == 1) fabric.cores = fabric.spines_per_su * upTo(2);
    if (round % 2 == 1) {
      fabric.shape = inventory::FabricShape::FatTree;
      fabric.leaves_per_su = upTo(4);
    }
    if (round % 5 == 0) fabric.subnet_managers.clear();
    const auto nodes =
        upTo(fabric.sus * std::min(fabric.nodes_per_su, fabric.leaves_per_su * 32 / fabric.rails));
    for (int i = 2; i <= nodes; ++i) {
      cluster.nodes.push_back(cluster.nodes.front());
      cluster.nodes.back().name = NodeName(fmt::format("gpu{:03}", i));
    }
    auto topology = declaredTopology(cluster, fabric);
    ASSERT_TRUE(topology) << round << " " << topology.error().str();
    auto found = parseIbnetdiscover(foundText(*topology, static_cast<unsigned>(round)));
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_TRUE(compare(*topology, *found).deviations.empty()) << round;
  }
}

}  // namespace
}  // namespace muster::fabric::test
