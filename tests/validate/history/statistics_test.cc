// SPDX-License-Identifier: Apache-2.0
// Fleet statistics: what is wrong is found, and the budget of false alarms is kept.
#include "validate/history/statistics.h"
#include "tests/validate/fleet_history.h"
#include "validate/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace muster::validate {
namespace {

using history::Alarm;
using history::AlarmKind;
using test::FleetHistory;
using testing::HasSubstr;

std::vector<Alarm> of(const history::Statistics& statistics, AlarmKind kind) {
  std::vector<Alarm> out;
  for (const auto& alarm : statistics.alarms)
    if (alarm.kind == kind) out.push_back(alarm);
  return out;
}

TEST(FleetStatistics, keepsItsBudgetWhenNothingIsWrong) {
  for (const bool heavy : {false, true}) {
    double alarms = 0;
    constexpr int kReports = 20;
    for (int trial = 0; trial < kReports; ++trial) {
      FleetHistory fleet;
      fleet.heavy = heavy;
      alarms += static_cast<double>(
          history::analyse(fleet.make(static_cast<std::uint64_t>(trial) + 1), {.false_alarms = 1})
              .alarms.size());
    }
    EXPECT_LE(alarms / kReports, heavy ? 3 : 1.5) << "heavy tails: " << heavy;
  }
}

/// One GPU in a fleet computes other bits than all others: no noise is in that, whatever the
/// number's size.
TEST(FleetStatistics, bitsAreEqualOrSomebodyIsWrong) {
  const std::string name =
      "gpu.burn/bits of gemm bf16 random (n 16384, seed 1, cuBLASLt 130100)@gpu";
  const auto fleet = [&name](int nodes, int wrong, double other) {
    std::vector<lifecycle::MeasuredSet> sets;
    for (int n = 0; n < nodes; ++n)
      for (int run = 0; run < 2; ++run) {
        sets.push_back({WallTime(std::chrono::hours(24 * run) + std::chrono::seconds(n)),
                        NodeName("n" + std::to_string(n)),
                        "gate.burn-in",
                        "hgx, H100",
                        "r1",
                        {}});
        for (int gpu = 0; gpu < 8; ++gpu)
          sets.back().numbers[name + std::to_string(gpu)] =
              n < wrong && gpu == 3 ? other + n : 123456789012345.0;
      }
    std::sort(sets.begin(), sets.end(), [](const auto& x, const auto& y) { return x.at < y.at; });
    return history::analyse(sets, {});
  };
  EXPECT_TRUE(fleet(20, 0, 0).alarms.empty());
  const auto one = fleet(20, 1, 123456789012346.0);
  ASSERT_EQ(one.alarms.size(), 1u);
  EXPECT_EQ(one.alarms[0].kind, AlarmKind::Bits);
  EXPECT_EQ(one.alarms[0].subject, "n0@gpu3");
  EXPECT_EQ(one.alarms[0].others, 159u);
  EXPECT_EQ(one.comparisons, 0u) << "it takes nothing of the budget of false alarms";
  EXPECT_THAT(report::sentence(one.alarms[0]),
              HasSubstr("n0@gpu3 computes other bits than 159 others"));
  EXPECT_THAT(report::toHtml(one, {}), HasSubstr("n0@gpu3"));
  EXPECT_THAT(report::toJunit(one, {}), HasSubstr("failures=\"1\""));
  std::vector<lifecycle::MeasuredSet> two;
  for (int n = 0; n < 2; ++n)
    two.push_back({WallTime{}, NodeName("n" + std::to_string(n)), "g", "s", "", {{name + "0", n}}});
  const auto undecided = history::analyse(two, {});
  ASSERT_EQ(undecided.alarms.size(), 2u) << "one of two is wrong, and nobody knows which";
  EXPECT_THAT(report::sentence(undecided.alarms[0]), HasSubstr("do not agree"));
}

TEST(FleetStatistics, findsASlowNodeARackADeviceAndADrift) {
  FleetHistory fleet;
  fleet.fault = [](int node, int metric, int run) {
    if (node == 77 && metric == 3) return 0.90;
    if (node / 16 == 5 && metric == 4)
      return 0.97;  // a rack that is slow as one, none of its nodes by much
    if (node == 200 && metric == 6)
      return run >= 4 ? 0.97 : 1;  // within what is usual, but it was better
    return 1.0;
  };
  const auto statistics = history::analyse(fleet.make(9), {});
  const auto nodes = of(statistics, AlarmKind::Node), racks = of(statistics, AlarmKind::Rack),
             drifts = of(statistics, AlarmKind::Drift);
  ASSERT_FALSE(nodes.empty());
  EXPECT_EQ(nodes.front().subject, FleetHistory::node(77));
  EXPECT_EQ(nodes.front().metric, FleetHistory::metric(3));
  EXPECT_NEAR(nodes.front().change(), -0.10, 0.03);
  ASSERT_EQ(racks.size(), 1u);
  EXPECT_EQ(racks.front().subject, FleetHistory::rack(5));
  ASSERT_FALSE(drifts.empty());
  EXPECT_EQ(drifts.front().subject, FleetHistory::node(200));
  EXPECT_LE(statistics.alarms.size(), 6u);
}

TEST(FleetStatistics, whatMovesAllIsTheFleetsDriftAndNobodysOwn) {
  FleetHistory fleet;
  fleet.fault = [](int, int metric, int run) { return metric == 2 && run >= 4 ? 0.97 : 1.0; };
  const auto statistics = history::analyse(fleet.make(4), {});
  ASSERT_EQ(of(statistics, AlarmKind::FleetDrift).size(), 1u);
  EXPECT_EQ(of(statistics, AlarmKind::FleetDrift).front().metric, FleetHistory::metric(2));
  EXPECT_LE(of(statistics, AlarmKind::Drift).size(), 1u);
}

TEST(FleetStatistics, comparesOneRailWithTheOthers) {
  std::vector<lifecycle::MeasuredSet> sets;
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(390, 2);
  for (int node = 0; node < 64; ++node) {
    sets.push_back({WallTime(std::chrono::seconds(node)),
                    NodeName(FleetHistory::node(node)),
                    "isolate",
                    "p",
                    FleetHistory::rack(node / 16),
                    {}});
    for (int rail = 0; rail < 8; ++rail)
      sets.back().numbers[fmt::format("isolate/pair_gbits@mlx5_{}", rail)] =
          normal(random) * (rail == 6 ? 0.985 : 1);
  }
  const auto statistics = history::analyse(sets, {});
  ASSERT_EQ(statistics.groups.size(), 1u);
  EXPECT_EQ(statistics.groups[0].latest.size(), 512u);
  ASSERT_EQ(of(statistics, AlarmKind::Device).size(), 1u);
  EXPECT_EQ(of(statistics, AlarmKind::Device).front().subject, "mlx5_6");
}

TEST(FleetStatistics, knowsTheBadSideByTheUnit) {
  using history::Better;
  EXPECT_EQ(history::betterOf("rdma.pair/rdma_write_gbits"), Better::Higher);
  EXPECT_EQ(history::betterOf("gpu.gemm/bf16_tflops@3"), Better::Higher);
  EXPECT_EQ(history::betterOf("fio/latency_us"), Better::Lower);
  EXPECT_EQ(history::betterOf("gpu/temperature_c"), Better::Lower);
  EXPECT_EQ(history::betterOf("anything"), Better::Unknown);
  FleetHistory fleet;
  fleet.fault = [](int node, int, int) {
    return node == 9 ? 1.2 : 1.0;
  };  // faster than all: no alarm
  for (const auto& alarm : history::analyse(fleet.make(2), {}).alarms)
    EXPECT_NE(alarm.subject, FleetHistory::node(9));
}

TEST(FleetStatistics, fewNodesAreShownNotEvaluated) {
  FleetHistory fleet;
  fleet.nodes = 4;
  fleet.fault = [](int node, int, int) { return node == 1 ? 0.2 : 1.0; };
  const auto statistics = history::analyse(fleet.make(1), {});
  EXPECT_TRUE(statistics.alarms.empty());
  for (const auto& group : statistics.groups) EXPECT_FALSE(group.evaluated);
  report::Subject subject{"hall-2", FleetHistory().from, std::nullopt};
  EXPECT_THAT(report::toJunit(statistics, subject), HasSubstr("skipped=\"4\""));  // not passed
}

TEST(FleetStatistics, equalValuesAccuseNobodyByTheLastDigit) {
  FleetHistory fleet;
  fleet.spread = fleet.noise = 0;
  fleet.fault = [](int node, int, int) { return node == 3 ? 0.9999 : 1.0; };
  EXPECT_TRUE(history::analyse(fleet.make(1), {}).alarms.empty());
}

TEST(FleetStatistics, sigmasForIsTheNormalQuantile) {
  EXPECT_NEAR(history::sigmasFor(0.5), 0, 1e-9);
  EXPECT_NEAR(history::sigmasFor(0.0227501), 2, 1e-4);
  EXPECT_NEAR(history::sigmasFor(2.8665e-7), 5, 1e-3);
}

}  // namespace
}  // namespace muster::validate
