// SPDX-License-Identifier: Apache-2.0
// What is told of each cable is what the reports of real comparisons say.
#include "app/fabric/fabric_cables.h"

#include "base/io/files.h"
#include "base/json_input.h"
#include "fabric/fabric_diff.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/found_text.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::app {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class FabricCablesTest : public ::testing::Test {
 protected:
  FabricCablesTest()
      : cluster_(fabric::test::railCluster(3)),
        declared_(*fabric::declaredTopology(cluster_, cluster_.fabrics["ib"])),
        found_(declared_) {}

  /// As `muster fabric diff` would have left it.
  std::optional<fabric::KeptReport> look() {
    const auto report = fabric::diff(cluster_, fabric::test::foundText(found_));
    EXPECT_EQ(report.error, "");
    EXPECT_TRUE(fabric::keepReport(folder_.path(), fabric::KeptReportKind::Diff,
                                   SystemClock().now(), toJson(report)));
    return fabric::keptReport(folder_.path(), fabric::KeptReportKind::Diff);
  }
  static std::vector<FabricCable> faulty(const FabricView& view) {
    std::vector<FabricCable> out;
    for (const auto& cable : view.cables)
      if (cable.isFaulty()) out.push_back(cable);
    return out;
  }

  test::TempFolder folder_;
  inventory::Cluster cluster_;
  fabric::Topology declared_, found_;
};

TEST_F(FabricCablesTest, withoutALookNothingIsClaimed) {
  const auto view = fabricView(declared_, std::nullopt, std::nullopt);
  ASSERT_EQ(view.cables.size(), declared_.links.size());
  for (const auto& cable : view.cables) EXPECT_EQ(cable.state, CableState::NotSeen);
  ASSERT_THAT(view.levels, SizeIs(2));
  EXPECT_EQ(view.levels[0].level, 1);
  EXPECT_EQ(view.levels[0].switches.size(), 2u);
  EXPECT_EQ(view.levels[0].cables + view.levels[1].cables, declared_.links.size());
}

TEST_F(FabricCablesTest, aFabricAsDeclaredHasNoFaultyCable) {
  const auto view = fabricView(declared_, look(), std::nullopt);
  EXPECT_THAT(faulty(view), SizeIs(0));
  for (const auto& cable : view.cables) EXPECT_EQ(cable.state, CableState::AsDeclared);
}

TEST_F(FabricCablesTest, aMissingCableHasTheTechniciansSentence) {
  const auto is_of = [](const fabric::Link& link) {
    return link.a.node == "gpu002 mlx5_1" || link.b.node == "gpu002 mlx5_1";
  };
  ASSERT_EQ(std::erase_if(found_.links, is_of), 1u);
  const auto view = fabricView(declared_, look(), std::nullopt);
  const auto bad = faulty(view);
  ASSERT_THAT(bad, SizeIs(1));
  EXPECT_TRUE(bad[0].a.node == "gpu002 mlx5_1" || bad[0].b.node == "gpu002 mlx5_1");
  ASSERT_FALSE(bad[0].faults.empty());
  EXPECT_THAT(bad[0].faults[0].repair, HasSubstr("gpu002"));
  EXPECT_EQ(bad[0].level, 1);
  EXPECT_EQ(view.levels[0].deviating, 1u);
}

TEST_F(FabricCablesTest, anAnswerThatIsNoneIsNotSeenAndNotFine) {
  fabric::DiffReport report;
  report.fabric = "ib";
  report.error = "a MAD timed out";
  ASSERT_TRUE(fabric::keepReport(folder_.path(), fabric::KeptReportKind::Diff, SystemClock().now(),
                                 toJson(report)));
  const auto kept = fabric::keptReport(folder_.path(), fabric::KeptReportKind::Diff);
  ASSERT_TRUE(kept);
  for (const auto& cable : fabricView(declared_, kept, std::nullopt).cables)
    EXPECT_EQ(cable.state, CableState::NotSeen);
}

TEST_F(FabricCablesTest, errorsOfACableStandAtThatCable) {
  const auto& link = declared_.links.front();
  const auto json = fmt::format(
      R"({{"format": "muster-fabric-health/1", "links": [{{"grade": "bad", "advice": "clean it",
        "transceiver": "MT2231", "ends": [{{"device": "{}", "port": {}, "grade": "bad",
        "complaints": [{{"grade": "bad", "kind": "ber", "text": "the bit error rate is too high"}}]
        }}]}}]}})",
      link.a.node, link.a.number);
  ASSERT_TRUE(fabric::keepReport(folder_.path(), fabric::KeptReportKind::Health,
                                 SystemClock().now(), json));
  const auto view = fabricView(declared_, look(),
                               fabric::keptReport(folder_.path(), fabric::KeptReportKind::Health));
  const auto bad = faulty(view);
  ASSERT_THAT(bad, SizeIs(1));
  EXPECT_EQ(bad[0].a.node, link.a.node);
  EXPECT_EQ(bad[0].a.number, link.a.number);
  ASSERT_TRUE(bad[0].health);
  EXPECT_EQ(bad[0].health->advice, "clean it");
  EXPECT_EQ(bad[0].health->transceiver, "MT2231");
}

TEST_F(FabricCablesTest, aReportThatIsNoReportIsNone) {
  EXPECT_FALSE(fabric::keptReport(folder_.path(), fabric::KeptReportKind::Diff));
  EXPECT_FALSE(fabric::keepReport(folder_.path(), fabric::KeptReportKind::Diff, SystemClock().now(),
                                  "{\"half"));
  ASSERT_TRUE(io::writeFileAtomic(folder_.path() / "last-diff.json", R"({"at": 7, "report": {}})"));
  EXPECT_FALSE(fabric::keptReport(folder_.path(), fabric::KeptReportKind::Diff));
  ASSERT_TRUE(io::writeFileAtomic(folder_.path() / "last-diff.json", R"([1, 2)"));
  EXPECT_FALSE(fabric::keptReport(folder_.path(), fabric::KeptReportKind::Diff));
}

}  // namespace
}  // namespace muster::app
