// SPDX-License-Identifier: Apache-2.0
// The picture shows every device once and every fault with what to do.
#include "fabric/exports/plot.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Plot : public ::testing::Test {
 protected:
  std::size_t count(const std::string& text, std::string_view what) {
    std::size_t times = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
    return times;
  }
  std::string plotFound() {
    auto compared = compare(declared_, found_);
    FoundFabric now{found_, compared};
    return plotSvg("hall-2", declared_, places_, &now);
  }

  inventory::Cluster cluster_ = railCluster(4);
  Topology declared_ = declared(cluster_);
  Topology found_ = declared_;
  std::map<std::string, Place> places_ = placesOf(cluster_, cluster_.fabrics.at("ib"), declared_);
};

TEST_F(Plot, drawsSwitchesAndHostsOnce) {
  auto svg = plotSvg("a <&> b", declared_, places_);
  EXPECT_EQ(count(svg, "<rect"), 4u + 5u);  // switches; nodes and the controller
  EXPECT_THAT(svg, HasSubstr("a &lt;&amp;&gt; b"));
  EXPECT_THAT(svg, Not(HasSubstr("class=\"m\"")));
  EXPECT_EQ(count(svg, "<title>"), 9u);
}

TEST_F(Plot, ofAHealthyFabricHasNoRed) {
  auto svg = plotFound();
  EXPECT_THAT(svg, HasSubstr("found as declared"));
  for (auto kind : {"class=\"m\"", "class=\"w\"", "class=\"d\"", "class=\"x\"", "class=\"e\""})
    EXPECT_THAT(svg, Not(HasSubstr(kind)));
}

TEST_F(Plot, showsFaultsWithWhatToDo) {
  unplug(found_, {"leaf-su1-r1", 9});
  findLink(found_, {"gpu004 mlx5_1", 1})->width_speed = "1xHDR";
  found_.devices["laptop mlx5_0"] = {"laptop mlx5_0", false, 1, "0x1", {}};
  plug(found_, {"laptop mlx5_0", 1}, {"leaf-su1-r0", 6});
  auto svg = plotFound();
  EXPECT_EQ(count(svg, "class=\"m\""), 1u);
  EXPECT_EQ(count(svg, "class=\"w\""), 1u);
  EXPECT_EQ(count(svg, "class=\"d\""), 1u);
  EXPECT_EQ(count(svg, "class=\"e\""), 1u);
  EXPECT_THAT(
      svg,
      HasSubstr("missing: leaf-su1-r1 port 9 – spine-001 port 2; plug in or replace the cable"));
  EXPECT_THAT(svg, HasSubstr("1xHDR instead of 4xHDR"));
}

TEST_F(Plot, labelsHostsWhereTheyFit) {
  const auto small = plotSvg("su", declared(test::scalableUnit(31, {"controller"})), {});
  for (auto name : {">gpu001</text>", ">gpu031</text>", ">leaf-su1-r7</text>"})
    EXPECT_THAT(small, HasSubstr(name));
  auto four = railCluster(100, 4, 32);
  four.fabrics["ib"].switch_ports = 64;
  EXPECT_THAT(plotSvg("4 su", declared(four), {}), Not(HasSubstr(">gpu001</text>")));
}

}  // namespace
}  // namespace muster::fabric::test
