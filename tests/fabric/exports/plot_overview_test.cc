// SPDX-License-Identifier: Apache-2.0
// A large fabric is a table that says where something is wrong.
#include "fabric/exports/plot_overview.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PlotOverview : public ::testing::Test {
 protected:
  std::size_t count(const std::string& text, std::string_view what) {
    std::size_t times = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
    return times;
  }
  Topology large_ = declared(threeLevels(2048));
  std::string plot(const Topology& found) {
    const auto compared = compare(large_, found);
    const FoundFabric now{found, compared};
    return plotSvg("hall", large_, {}, &now);
  }
};

TEST_F(PlotOverview, of16384HcasIsATableThatFitsAScreen) {
  const auto svg = plot(large_);
  EXPECT_LT(svg.size(), 150'000u);
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 1644 630\""));
  EXPECT_THAT(svg, HasSubstr(">core-001–016</text>"));
  EXPECT_THAT(svg, HasSubstr(">su16</text>"));
  EXPECT_THAT(svg, HasSubstr("su16: nodes</title></rect>"));
  EXPECT_THAT(svg, HasSubstr(">1024</text>")) << "cables to HCAs of a pod";
  EXPECT_THAT(svg, HasSubstr("256 of 256 root switches"));
  EXPECT_THAT(svg, Not(HasSubstr("class=\"b\"")));
}

TEST_F(PlotOverview, countsWhatIsMissingInItsCellAndSaysWhatToDo) {
  auto found = large_;
  unplug(found, {"leaf-su3-05", 40});
  unplug(found, {"core-009", 2});
  for (auto& link : found.links)
    if (link.a.node == "gpu100 mlx5_1" || link.b.node == "gpu100 mlx5_1")
      link.width_speed = "1xHDR";
  const auto svg = plot(found);
  EXPECT_EQ(count(svg, "class=\"b\""), 2u);
  EXPECT_EQ(count(svg, "class=\"d\""), 1u);
  EXPECT_THAT(svg, HasSubstr(">1023/1024</text>"));
  EXPECT_THAT(svg, HasSubstr("plug in or replace the cable between leaf-su3-05 port 40"));
}

TEST_F(PlotOverview, putsRowsTogetherWhereNoShapeNamesPods) {
  auto cluster = threeLevels(2048);
  auto topology = declared(cluster);
  Topology renamed;
  const auto now = [](std::string name) {
    std::replace(name.begin(), name.end(), '-', '.');
    return name;
  };
  for (const auto& [name, device] : topology.devices) {
    auto& one = renamed.devices[now(name)] = device;
    one.name = now(name);
  }
  for (const auto& link : topology.links)
    renamed.links.push_back(
        {{now(link.a.node), link.a.number}, {now(link.b.node), link.b.number}, link.width_speed});
  std::sort(renamed.links.begin(), renamed.links.end());
  const auto svg = plotSvg("hall", renamed, {});
  EXPECT_THAT(svg, HasSubstr(">leaf.su1.01</text>"));
  EXPECT_EQ(count(svg, "leaves</title>"), 16u);
}

}  // namespace
}  // namespace muster::fabric::test
