// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/regression.h"
#include "lifecycle/rollout/freeze.h"
#include "lifecycle/rollout/gate.h"
#include "tests/fakes/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace muster::lifecycle {
namespace {

using testing::HasSubstr;

std::vector<NodeMeasures> measured(const std::string& name,
                                   const std::vector<std::pair<double, double>>& before_after) {
  std::vector<NodeMeasures> out;
  for (const auto& [before, after] : before_after)
    out.push_back({NodeName(fmt::format("n{}", out.size())), {{name, before}}, {{name, after}}});
  return out;
}

TEST(Regression, provesALossAndNamesTheWorstNode) {
  const auto found = compareMeasures(
      measured("rdma_write_gbits", {{390, 350}, {392, 349}, {391, 355}, {389, 340}}), {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].verdict, RegressionVerdict::Slower);
  EXPECT_EQ(found[0].worst_node, "n3");
  EXPECT_GT(found[0].least_loss_percent, 3);
  // By hand: losses 10.2564, 10.9694, 9.2072, 12.5964; mean 10.7573, s 1.4237, t(3; 0.95)
  // = 2.3534: 10.7573 - 1.6753.
  EXPECT_NEAR(found[0].mean_loss_percent, 10.7573, 1e-3);
  EXPECT_NEAR(found[0].least_loss_percent, 9.0820, 1e-3);
}

TEST(Regression, provesThatNothingWasLost) {
  const auto found = compareMeasures(
      measured("gemm_gflops", {{100, 100.2}, {101, 100.5}, {99, 99.1}, {100, 99.8}}), {});
  EXPECT_EQ(found[0].verdict, RegressionVerdict::Holds) << found[0].text();
}

TEST(Regression, doesNotTakeSilenceForProof) {
  EXPECT_EQ(compareMeasures(measured("gemm_gflops", {{100, 100}}), {})[0].verdict,
            RegressionVerdict::Inconclusive);
  const auto scattered =
      compareMeasures(measured("gemm_gflops", {{100, 104}, {100, 93}, {100, 101}}), {});
  EXPECT_EQ(scattered[0].verdict, RegressionVerdict::Inconclusive);
  EXPECT_THAT(scattered[0].text(),
              HasSubstr("too few nodes for so much scatter: with 95 % confidence it is between"));
  EXPECT_TRUE(
      compareMeasures({{NodeName("n"), {{"gemm_gflops", 1}}, {{"rdma_write_gbits", 1}}}}, {})
          .empty());
}

TEST(Regression, knowsThatLongerIsWorse) {
  const auto found =
      compareMeasures(measured("boot_seconds", {{100, 150}, {102, 155}, {99, 148}}), {});
  EXPECT_EQ(found[0].verdict, RegressionVerdict::Slower);
  EXPECT_EQ(found[0].tolerated_percent, 25);
  EXPECT_EQ(
      compareMeasures(measured("boot_seconds", {{100, 101}, {102, 99}, {99, 100}}), {})[0].verdict,
      RegressionVerdict::Holds);
}

/// Of many rollouts without any loss at most 5 % may be called slower, whatever the scatter; of
/// those at the limit likewise.
TEST(Regression, isWrongNoMoreOftenThanStated) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 4);
  int wrong_slower = 0, wrong_holds = 0;
  constexpr int kRounds = 4'000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::pair<double, double>> at_limit;
    for (int i = 0; i < 5; ++i) at_limit.emplace_back(100, 100 - 3 + noise(random));
    const auto verdict = compareMeasures(measured("gemm_gflops", at_limit), {})[0].verdict;
    wrong_slower += verdict == RegressionVerdict::Slower;
    wrong_holds += verdict == RegressionVerdict::Holds;
  }
  EXPECT_NEAR(wrong_slower, kRounds * 0.05, kRounds * 0.015);
  EXPECT_NEAR(wrong_holds, kRounds * 0.05, kRounds * 0.015);
}

TEST(Regression, readsRatesOutOfEvidenceAndNothingElse) {
  Fact gate{Subject(NodeName("n")),
            FacetName("gate.a"),
            "pass:x",
            {},
            "",
            R"({"results":[{"id":"host.gemm","values":{"gemm_gflops":51.5,"products":9}},
    {"id":"gpu.0","values":{"gemm_gflops":49.0,"gemm_tflops":"many"}},{"id":"odd"}]})"};
  Fact other{Subject(NodeName("n")), FacetName("pool"), "in", {}, "", R"({"jobs":false})"};
  Fact broken{Subject(NodeName("n")), FacetName("gate.b"), "fail:x", {}, "", "[{"};
  EXPECT_EQ(measuresOf({gate, other, broken}), (Measures{{"gemm_gflops", 49.0}}))
      << "the worst of several";
}

TEST(Regression, measuresHowLongTheSystemTookToStart) {
  test::MemoryStore store;
  const Subject node{NodeName("n")};
  const auto at = [](int seconds) { return WallTime(std::chrono::seconds(seconds)); };
  const auto boot = [&](const std::string& id, int opened, int closed, IntentState state) {
    Intent intent;
    intent.id = id;
    intent.action.facet = {node, FacetName("os")};
    intent.opened_at = at(opened);
    ASSERT_TRUE(store.openIntent(intent));
    ASSERT_TRUE(store.closeIntent(id, state, "", at(closed)));
  };
  boot("first", 100, 190, IntentState::Done);
  EXPECT_EQ(nodeMeasures(store, node, {}, {})->at("boot_seconds"), 90);
  EXPECT_TRUE(nodeMeasures(store, node, {}, at(500))->empty()) << "that start was before";
  boot("second", 600, 720, IntentState::Done);
  boot("third", 800, 900, IntentState::Failed);
  EXPECT_EQ(nodeMeasures(store, node, {}, at(500))->at("boot_seconds"), 120);
  Fact old{node, FacetName("gate.a"), "pass:x", at(400), "", R"([{"values":{"gemm_gflops":5}}])"};
  EXPECT_FALSE(nodeMeasures(store, node, {old}, at(500))->contains("gemm_gflops"))
      << "evidence from before is no 'after'";
}

}  // namespace
}  // namespace muster::lifecycle
