// SPDX-License-Identifier: Apache-2.0
#include "app/firmware/firmware_matrix.h"

#include "firmware/files.h"
#include "firmware/progress.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/orphaned_operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace muster::app {
namespace {

using lifecycle::Subject;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Four nodes whose BMC passes through 2.0, and whose CPLD needs that BMC.
class FirmwareMatrixTest : public ::testing::Test {
 protected:
  FirmwareMatrixTest() {
    inventory::FirmwareBaseline baseline;
    baseline.name = "2026.1";
    baseline.components = {{"BMC", "3.0", "/f/bmc", std::string(64, 'a')},
                           {"CPLD", "0x14", "/f/cpld", std::string(64, 'b')}};
    baseline.components[0].intermediate = {{"2.0", "/f/bmc-2", std::string(64, 'c')}};
    baseline.order = {"BMC", "CPLD"};
    baseline.declared_order = 2;
    cluster_.firmware["2026.1"] = baseline;
    auto& profile = cluster_.profiles["gpu"];
    profile.name = "gpu";
    profile.firmware = "2026.1";
    cluster_.profiles["login"].name = "login";
    for (int i = 1; i <= 4; ++i) addNode(fmt::format("gpu{}", i), "gpu");
    addNode("login1", "login");
  }
  void addNode(const std::string& name, const std::string& profile) {
    inventory::Node node;
    node.name = NodeName(name);
    node.profile = profile;
    cluster_.nodes.push_back(node);
  }
  void runs(const std::string& node, const std::string& bmc, const std::string& cpld) {
    facts_.put({Subject(NodeName(node)), FacetName("firmware.BMC"), bmc, {}, "bmc", ""});
    facts_.put({Subject(NodeName(node)), FacetName("firmware.CPLD"), cpld, {}, "bmc", ""});
  }
  std::vector<FirmwareCell> cellsOf(const std::string& component) {
    std::vector<FirmwareCell> out;
    for (auto& cell : firmwareMatrix(cluster_, facts_))
      if (cell.component == component) out.push_back(cell);
    return out;
  }

  inventory::Cluster cluster_;
  lifecycle::FactSet facts_;
};

/// An apply leaves it alone, so the matrix does not promise it.
TEST_F(FirmwareMatrixTest, whatHasFailedForGoodIsLeftAndSaysWhatToDo) {
  for (const auto* node : {"gpu1", "gpu2", "gpu3", "gpu4"}) runs(node, "2.0", "0x14");
  facts_.put({Subject(NodeName("gpu2")),
              firmware::failedFacet("BMC"),
              "3.0 it was refused",
              {},
              "firmware",
              ""});
  facts_.put({Subject(NodeName("gpu3")),
              firmware::failedFacet("BMC"),
              "2.9 it was refused",
              {},
              "firmware",
              ""});
  const auto cells = cellsOf("BMC");
  ASSERT_THAT(cells, SizeIs(2));
  for (const auto& cell : cells) {
    const bool is_left = cell.nodes == std::vector<std::string>{"gpu2"};
    EXPECT_EQ(cell.state, is_left ? FirmwareState::Left : FirmwareState::ToUpdate);
    EXPECT_EQ(cell.why.find("muster firmware retry gpu2") != std::string::npos, is_left);
    EXPECT_EQ(cell.nodes.size(), is_left ? 1u : 3u) << "another version may be tried";
  }
}

TEST_F(FirmwareMatrixTest, groupsNodesThatAreAlikeAndSaysWhatLiesBetween) {
  runs("gpu1", "3.0", "0x14");
  runs("gpu2", "1.0", "0x14");
  runs("gpu3", "1.0", "0x14");
  const auto bmc = cellsOf("BMC");
  ASSERT_THAT(bmc, SizeIs(3));
  EXPECT_THAT(bmc.back().nodes, ElementsAre("gpu1")) << "what is as declared stands last";
  EXPECT_EQ(bmc.back().state, FirmwareState::AsDeclared);
  EXPECT_EQ(bmc[0].state, FirmwareState::ToUpdate);
  EXPECT_THAT(bmc[0].nodes, ElementsAre("gpu2", "gpu3"));
  EXPECT_EQ(bmc[0].found, "1.0");
  EXPECT_THAT(bmc[0].through, ElementsAre("2.0"));
  EXPECT_EQ(bmc[1].state, FirmwareState::Unknown);
  EXPECT_THAT(bmc[1].nodes, ElementsAre("gpu4"))
      << "nothing is known of it; login1 has no baseline";
}

TEST_F(FirmwareMatrixTest, saysWhyAComponentStaysAsItIs) {
  cluster_.firmware["2026.1"].constraints = {
      *inventory::FirmwareConstraint::parse("CPLD >= 0x14 needs BMC >= 9.0")};
  for (int i = 1; i <= 4; ++i) runs(fmt::format("gpu{}", i), "3.0", "0x12");
  const auto cpld = cellsOf("CPLD");
  ASSERT_THAT(cpld, SizeIs(1));
  EXPECT_EQ(cpld[0].state, FirmwareState::Left);
  EXPECT_THAT(cpld[0].why, HasSubstr("9.0"));
  EXPECT_THAT(cpld[0].nodes, SizeIs(4));
}

TEST_F(FirmwareMatrixTest, saysWhatIsStaged) {
  for (int i = 1; i <= 4; ++i) runs(fmt::format("gpu{}", i), "2.0", "0x14");
  firmware::Progress progress;
  progress.step = firmware::InstallStep::Next;
  progress.staged = {{"BMC", "3.0"}};
  lifecycle::Intent intent;
  intent.action.facet = {Subject(NodeName("gpu2")), FacetName("firmware.BMC")};
  intent.action.to = "3.0";
  intent.operation = progress.str();
  const auto left = lifecycle::orphanedOperationOf(intent, SystemClock().now());
  ASSERT_TRUE(left);
  facts_.put(*left);
  const auto bmc = cellsOf("BMC");
  ASSERT_THAT(bmc, SizeIs(2));
  for (const auto& cell : bmc) {
    const bool is_gpu2 = cell.nodes == std::vector<std::string>{"gpu2"};
    EXPECT_EQ(cell.staged, is_gpu2 ? "3.0" : "");
  }
}

}  // namespace
}  // namespace muster::app
