// SPDX-License-Identifier: Apache-2.0
// Fleet statistics: what is wrong is found, and the budget of false alarms is kept.
#include "validate/history/statistics.h"
#include "tests/validate/fleet_history.h"
#include "validate/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

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

/// A fleet of 32 nodes, one metric: `days` daily values of each, by (node, day before today).
std::vector<lifecycle::MeasuredSet> days(int count, const std::string& metric,
                                         const std::function<double(int, int)>& value) {
  std::vector<lifecycle::MeasuredSet> out;
  for (int day = count - 1; day >= 0; --day)
    for (int node = 0; node < 32; ++node)
      out.push_back({FleetHistory().from - std::chrono::hours(24 * day),
                     NodeName(FleetHistory::node(node)),
                     "gate.burn-in",
                     "hgx, H100",
                     FleetHistory::rack(node / 8),
                     {{metric, value(node, day)}}});
  return out;
}

struct Noise {
  std::mt19937_64 random{11};
  std::normal_distribution<double> normal{700, 5};
  double operator()() { return normal(random); }
};

/// A median of all is typical of neither half.
TEST(FleetStatistics, halfOfAFleetThatIsSlowIsNotLikeItsPeers) {
  for (const double share : {0.5, 0.1, 0.9})
    for (const int slow : {16, 20, 24, 29}) {
      Noise noise;
      const auto statistics =
          history::analyse(days(1, "gpu.burn/gemm_tflops@0",
                                [&](int node, int) { return noise() * (node < slow ? share : 1); }),
                           {});
      const auto found = of(statistics, AlarmKind::Populations);
      ASSERT_EQ(found.size(), 1u) << share << ' ' << slow;
      EXPECT_EQ(found[0].members.size(), static_cast<std::size_t>(slow));
      EXPECT_EQ(found[0].others, static_cast<std::size_t>(32 - slow));
      EXPECT_NEAR(found[0].change(), share - 1, 0.02);
      EXPECT_LE(statistics.alarms.size(), 3u) << "one by chance is in the budget";
      EXPECT_THAT(report::sentence(found[0]), HasSubstr(fmt::format("gpu[00000-000{}]", slow - 1)));
      const auto junit = report::toJunit(statistics, {});
      int failures = 0;
      for (auto at = junit.find("type=\"populations\""); at != junit.npos;
           at = junit.find("type=\"populations\"", at + 1))
        ++failures;
      EXPECT_EQ(failures, slow + 1) << "each node of the worse part, and the SKU";
    }
}

/// Rates in three places: with the median of all, nobody was far from what is typical.
TEST(FleetStatistics, threePlacesAreNotLikeEachOther) {
  struct Case {
    std::vector<double> shares;  ///< of the best, one for each quarter of 32 nodes
    std::size_t worse;
  };
  for (const auto& [shares, worse] :
       {Case{{1, 1, 0.9, 0.8}, 16}, Case{{1, 0.75, 0.5, 0.5}, 24}, Case{{1, 1, 1, 0.9}, 8}}) {
    Noise noise;
    const auto statistics = history::analyse(
        days(1, "gpu.burn/gemm_tflops@0",
             [&](int node, int) { return noise() * shares[static_cast<std::size_t>(node / 8)]; }),
        {});
    const auto found = of(statistics, AlarmKind::Populations);
    ASSERT_EQ(found.size(), 1u) << worse;
    EXPECT_EQ(found[0].members.size(), worse);
    EXPECT_LE(statistics.alarms.size(), 3u) << "one by chance is in the budget";
  }
}

/// A few between two halves hid both.
TEST(FleetStatistics, aFewBetweenTwoHalvesHideNeither) {
  Noise noise;
  const auto statistics =
      history::analyse(days(1, "gpu.burn/gemm_tflops@0",
                            [&](int node, int) {
                              return noise() * (node < 14 ? 0.875 : node < 17 ? 0.9375 : 1);
                            }),
                       {});
  const auto found = of(statistics, AlarmKind::Populations);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].members.size(), 17u);
}

TEST(FleetStatistics, ratesThatAreSpreadOutAreNobodysPeers) {
  const auto spread = [](double least) {
    return history::analyse(
        days(1, "rdma.pair/pair_gbits",
             [&](int node, int) { return 400 * (least + (1 - least) * node / 31); }),
        {});
  };
  const auto wide = spread(0.5);
  const auto found = of(wide, AlarmKind::Spread);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(report::sentence(found[0]), HasSubstr("nobody is like his peers there"));
  EXPECT_THAT(report::toJunit(wide, {}), HasSubstr("type=\"spread\""));
  for (const auto& node : wide.nodes) EXPECT_FALSE(node.compared) << "skipped, not passed";
  EXPECT_TRUE(of(spread(0.9), AlarmKind::Spread).empty());
}

TEST(FleetStatistics, aNodeIsComparedWithTheHalfThatItIsIn) {
  Noise noise;
  const auto statistics = history::analyse(
      days(1, "gpu.burn/gemm_tflops@0",
           [&](int node, int) { return noise() * (node < 16 ? 0.5 : 1) * (node == 3 ? 0.5 : 1); }),
      {});
  EXPECT_EQ(of(statistics, AlarmKind::Populations).size(), 1u);
  const auto nodes = of(statistics, AlarmKind::Node);
  ASSERT_FALSE(nodes.empty());
  EXPECT_EQ(nodes[0].subject, FleetHistory::node(3) + "@0");
  EXPECT_LE(nodes.size(), 2u) << "one by chance is in the budget";
}

TEST(FleetStatistics, aSeriesThatFellAgainAndAgainIsSaidToHaveDoneSo) {
  const auto fleet = [](const std::function<bool(int)>& is_bad) {
    Noise noise;
    return history::analyse(
        days(21, "gpu.burn/gemm_tflops@0",
             [&](int node, int day) { return noise() * (node == 4 && is_bad(day) ? 0.8 : 1); }),
        {});
  };
  const auto odd = of(fleet([](int day) { return day % 2 == 1; }), AlarmKind::Intermittent);
  ASSERT_EQ(odd.size(), 1u);
  EXPECT_EQ(odd[0].subject, FleetHistory::node(4) + "@0");
  EXPECT_EQ(odd[0].others, 10u);
  EXPECT_THAT(report::sentence(odd[0]), HasSubstr("fell 10 times"));
  EXPECT_TRUE(of(fleet([](int day) { return day >= 10; }), AlarmKind::Intermittent).empty())
      << "it was bad, and was repaired";
  EXPECT_TRUE(of(fleet([](int day) { return day == 7; }), AlarmKind::Intermittent).empty());
  for (int trial = 0; trial < 20; ++trial) {
    Noise noise;
    noise.random.seed(static_cast<std::uint64_t>(trial) + 1);
    const auto healthy = history::analyse(
        days(60, "gpu.burn/gemm_tflops@0", [&noise](int, int) { return noise(); }), {});
    EXPECT_TRUE(of(healthy, AlarmKind::Intermittent).empty()) << "noise of a long past " << trial;
  }
}

/// A day on which all were slow is nobody's own fall.
TEST(FleetStatistics, daysOnWhichAllAreSlowAreNobodysOwn) {
  Noise noise;
  const auto statistics =
      history::analyse(days(21, "gpu.burn/gemm_tflops@0",
                            [&](int, int day) { return noise() * (day % 5 == 2 ? 0.8 : 1); }),
                       {});
  EXPECT_TRUE(of(statistics, AlarmKind::Intermittent).empty());
}

TEST(FleetStatistics, aTimeThatIsStillToComeCountsNowhere) {
  Noise noise;
  auto sets = days(5, "gpu.burn/gemm_tflops@0",
                   [&](int node, int) { return noise() * (node == 4 ? 0.5 : 1); });
  const auto now = sets.back().at + std::chrono::minutes(1);
  sets.push_back(sets[4]);
  sets.back().at = now + std::chrono::hours(24 * 3'000);
  sets.back().numbers.begin()->second = 700;
  const auto statistics = history::analyse(sets, {.now = now});
  EXPECT_EQ(statistics.from_future, 1u);
  ASSERT_EQ(of(statistics, AlarmKind::Node).size(), 1u);
  EXPECT_THAT(report::leftOutText(statistics), HasSubstr("1 measurements of a time"));
  EXPECT_EQ(statistics.to, sets[sets.size() - 2].at);
}

/// In a healthy fleet errors are 0, and there is no share of nothing.
TEST(FleetStatistics, whereOthersCountNothingAThousandIsAnAlarm) {
  for (const auto* metric : {"rdma.links/symbol_errors@mlx5_0", "gpu.ecc/corrected_errors@0"}) {
    const auto fleet = [&](double errors) {
      return history::analyse(
          days(1, metric, [&](int node, int) { return node == 4 ? errors : 0.0; }), {});
    };
    const auto found = of(fleet(1'000), AlarmKind::Node);
    ASSERT_EQ(found.size(), 1u) << metric;
    EXPECT_THAT(report::sentence(found[0]), HasSubstr("1000 above what is typical"));
    EXPECT_TRUE(fleet(1).alarms.empty()) << "one of them is no scale";
    EXPECT_TRUE(fleet(0).alarms.empty());
  }
  const auto ber = history::analyse(days(1, "gpu.nvlink-ber/effective_ber@0",
                                         [](int node, int) { return node == 4 ? 1e-9 : 0.0; }),
                                    {});
  EXPECT_EQ(of(ber, AlarmKind::Node).size(), 1u);
}

TEST(FleetStatistics, aFleetsDriftHasItsRealSizeAndItsNodes) {
  const auto fleet = [](int part) {
    Noise noise;
    return history::analyse(
        days(21, "gpu.burn/gemm_tflops@0",
             [&](int node, int day) { return noise() * (day < 2 && node < part ? 0.8 : 1); }),
        {});
  };
  const auto all = of(fleet(32), AlarmKind::FleetDrift);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NEAR(all[0].change(), -0.2, 0.01);
  EXPECT_THAT(report::sentence(all[0]), HasSubstr("hgx, H100 as a whole has drifted"));
  const auto half = of(fleet(16), AlarmKind::FleetDrift);
  ASSERT_EQ(half.size(), 1u);
  EXPECT_EQ(half[0].members.size(), 16u);
  EXPECT_EQ(half[0].others, 16u);
  EXPECT_NEAR(half[0].change(), -0.2, 0.01);
  EXPECT_THAT(report::sentence(half[0]), HasSubstr("gpu[00000-00015] of hgx, H100 have drifted"));
}

/// Whoever has no number was not compared, and has passed nothing.
TEST(FleetStatistics, whatIsNoNumberIsNoPass) {
  for (const double none : {std::nan(""), HUGE_VAL}) {
    Noise noise;
    const auto statistics =
        history::analyse(days(1, "gpu.burn/gemm_tflops@0",
                              [&](int node, int) { return node == 4 ? none : noise(); }),
                         {});
    EXPECT_EQ(statistics.no_numbers, 1u);
    EXPECT_EQ(statistics.nodes.size(), 32u);
    EXPECT_THAT(report::leftOutText(statistics), HasSubstr("1 values that are no numbers"));
    EXPECT_THAT(report::toJunit(statistics, {}), HasSubstr("skipped=\"1\""));
  }
}

TEST(FleetStatistics, saysWhatItHasNotEvaluated) {
  FleetHistory fleet;
  fleet.nodes = 4;
  const auto statistics = history::analyse(fleet.make(1), {});
  EXPECT_EQ(statistics.not_evaluated, 10u);
  const auto zeros = history::analyse(
      days(1, "gpu.burn/hbm_gb_s@0", [](int node, int) { return node == 4 ? -5.0 : 0.0; }), {});
  EXPECT_EQ(zeros.comparisons, 0u);
  EXPECT_THAT(report::leftOutText(statistics), HasSubstr("10 of 10 metrics"));
  fleet.nodes = 32;
  EXPECT_EQ(report::leftOutText(history::analyse(fleet.make(1), {})), "");
}

}  // namespace
}  // namespace muster::validate
