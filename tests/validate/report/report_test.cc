// SPDX-License-Identifier: Apache-2.0
// A report shows what was measured and nothing else.
#include "validate/report/report.h"
#include "lifecycle/store/store.h"
#include "tests/run_async.h"
#include "tests/validate/fleet_history.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace muster::validate {
namespace {

using test::FleetHistory;
using testing::HasSubstr;

TEST(FleetReport, isOneFileThatFetchesNothingAndEscapesWhatItShows) {
  FleetHistory fleet;
  fleet.nodes = 64;
  auto sets = fleet.make(1);
  for (auto& set : sets)
    if (set.node.str() == FleetHistory::node(7))
      set.node = NodeName("<script>alert(1)</script>"), set.numbers[FleetHistory::metric(1)] = 1;
  const auto statistics = history::analyse(sets, {});
  report::Subject subject{"hall & co", fleet.from,
                          report::Matrix{"t", {"a", "b"}, {-1, 0.5, 0.5, -1}}};
  const auto html = report::toHtml(statistics, subject);
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(html, HasSubstr("hall &amp; co"));
  for (const auto* word : {"http://", "https://", "src=", "@import", "url("})
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  const auto junit = report::toJunit(statistics, subject);
  EXPECT_EQ(junit.find("<script>"), std::string::npos);
  EXPECT_THAT(junit, HasSubstr("<failure type=\"node\""));
  const auto json = nlohmann::json::parse(report::toJson(statistics, subject));
  EXPECT_EQ(json.at("nodes").size(), 64u);
  EXPECT_FALSE(json.at("alarms").empty());
}

TEST(FleetReport, anEmptyHistoryIsSaidToBeEmpty) {
  const auto statistics = history::analyse({}, {});
  EXPECT_THAT(report::toHtml(statistics, {"c", {}, std::nullopt}),
              HasSubstr("Nothing has been measured yet"));
  EXPECT_THAT(report::toJunit(statistics, {"c", {}, std::nullopt}), HasSubstr("tests=\"0\""));
}

TEST(FleetReport, theMatrixShowsTheLeastOfEachPair) {
  const auto matrix = report::matrixOf(
      R"({"typical_gbits":400,"rounds_run":[{"tests":[{"a":"n1","b":"n2","gbits":400},{"a":"n2","b":"n1","gbits":300},{"a":"n1","b":"n3","gbits":null}]}]})");
  ASSERT_TRUE(matrix);
  EXPECT_EQ(matrix->names, (std::vector<std::string>{"n1", "n2", "n3"}));
  EXPECT_DOUBLE_EQ(matrix->shares[1], 0.75);
  EXPECT_DOUBLE_EQ(matrix->shares[3], 0.75);
  EXPECT_LT(matrix->shares[2], 0);  // said nothing: not tested
  EXPECT_FALSE(report::matrixOf("{}"));
  EXPECT_FALSE(report::matrixOf(R"({"typical_gbits":1,"rounds_run":[{"tests":[{"a":1}]}]})"));
}

TEST(Measurements, areKeptInTheStoresDatabase) {
  test::TempFolder folder;
  const auto file = folder / "muster.db";
  const auto url = "sqlite:" + file.string();
  EXPECT_FALSE(lifecycle::openMeasurements(url));  // no store yet
  std::filesystem::remove(file);
  const auto store = lifecycle::openStore(url);
  ASSERT_TRUE(store) << store.error().str();
  auto kept = lifecycle::openMeasurements(url);
  ASSERT_TRUE(kept) << kept.error().str();
  FleetHistory fleet;
  fleet.nodes = 700, fleet.runs = 2, fleet.metrics = 3;  // more rows than one fetch takes
  auto sets = fleet.make(1);
  sets[0].numbers["bad"] = std::nan("");
  sets[0].numbers["a=b"] = 1;
  sets[1].node = NodeName("odd'; DROP TABLE measured;--");
  ASSERT_TRUE((*kept)->add(sets));
  ASSERT_TRUE((*kept)->add(
      {{fleet.from, NodeName("empty"), "o", "s", "r", {}}}));  // nothing measured: no row
  sets[0].numbers.erase("bad"), sets[0].numbers.erase("a=b");
  const auto again = (*kept)->since(fleet.from);
  ASSERT_TRUE(again) << again.error().str();
  ASSERT_EQ(again->size(), sets.size());
  for (std::size_t i = 0; i < sets.size(); ++i) {
    EXPECT_EQ((*again)[i].numbers, sets[i].numbers);  // to the last bit
    EXPECT_EQ((*again)[i].node, sets[i].node);
    EXPECT_EQ((*again)[i].at, sets[i].at);
    EXPECT_EQ((*again)[i].sku, sets[i].sku);
  }
  const auto later = (*kept)->since(fleet.from + std::chrono::hours(24));
  ASSERT_TRUE(later);
  EXPECT_EQ(later->size(), 700u);
}

}  // namespace
}  // namespace muster::validate
