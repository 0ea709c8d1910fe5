// One mistake in the cabling gives one deviation that says what to do.
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;

class Compare : public ::testing::Test {
 protected:
  Topology declared_ = declared(railCluster(4));
  Topology found_ = declared_;

  Deviation only() {
    auto deviations = compare(declared_, found_);
    EXPECT_EQ(deviations.size(), 1u);
    return deviations.empty() ? Deviation{} : deviations.front();
  }
};

TEST_F(Compare, saysNothingOfAFabricAsDeclared) { EXPECT_TRUE(compare(declared_, found_).empty()); }

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
  auto deviations = compare(declared_, found_);
  ASSERT_EQ(deviations.size(), 2u);
  for (const auto& one : deviations) {
    EXPECT_EQ(one.kind, DeviationKind::Miswired);
    EXPECT_THAT(one.repair, HasSubstr("swap the cables at leaf-su1-r"));
  }
  EXPECT_EQ(deviations[0].declared, "leaf-su1-r0 port 2");
  EXPECT_EQ(deviations[0].found, "leaf-su1-r1 port 2");
}

TEST_F(Compare, saysWhereAMiswiredCableBelongs) {
  unplug(found_, {"gpu001 mlx5_0", 1});
  plug(found_, {"gpu001 mlx5_0", 1}, {"leaf-su1-r0", 7});
  auto one = only();
  EXPECT_EQ(one.kind, DeviationKind::Miswired);
  EXPECT_EQ(one.repair, "move the cable of gpu001 mlx5_0 port 1 from leaf-su1-r0 port 7 to leaf-su1-r0 port 1");
}

TEST_F(Compare, seesAnUplinkPulledBesideOneThatTookItsPort) {
  unplug(found_, {"leaf-su1-r0", 9});
  unplug(found_, {"leaf-su1-r1", 9});
  plug(found_, {"leaf-su1-r1", 9}, {"spine-001", 1});
  auto deviations = compare(declared_, found_);
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

TEST_F(Compare, namesAStrangerOnADeclaredPortAndTheHcaItDisplaced) {
  unplug(found_, {"gpu001 mlx5_0", 1});
  found_.devices.erase("gpu001 mlx5_0");
  found_.devices["localhost HCA-1"] = {"localhost HCA-1", false, 1, "0x1", {}};
  plug(found_, {"localhost HCA-1", 1}, {"leaf-su1-r0", 1});
  auto deviations = compare(declared_, found_);
  ASSERT_EQ(deviations.size(), 3u);
  EXPECT_EQ(deviations[0].kind, DeviationKind::MissingNode);
  EXPECT_EQ(deviations[1].kind, DeviationKind::Miswired);
  EXPECT_EQ(deviations[1].at, (Port{"leaf-su1-r0", 1}));
  EXPECT_EQ(deviations[2].kind, DeviationKind::ExtraNode);
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

// Whatever is done to the cables, a fabric that differs is never called equal.
TEST_F(Compare, neverCallsADifferentFabricEqual) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    found_ = declared_;
    for (auto changes = 1 + random() % 3; changes > 0 && !found_.links.empty(); --changes) {
      auto& link = found_.links[random() % found_.links.size()];
      switch (random() % 4) {
        case 0: unplug(found_, Port(link.a)); break;
        case 1: link.width_speed = "1xHDR"; break;
        case 2: std::swap(link.b, found_.links[random() % found_.links.size()].b); break;
        default:
          found_.devices.erase(link.a.node);
          std::erase_if(found_.links, [node = link.a.node](const Link& l) { return l.a.node == node || l.b.node == node; });
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
    EXPECT_EQ(compare(declared_, found_).empty(), same) << "round " << round;
  }
}

}  // namespace
}  // namespace muster::fabric::test
