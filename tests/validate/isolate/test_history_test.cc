// SPDX-License-Identifier: Apache-2.0
// Isolation on a physical model that shares nothing with it: congestion, drift, faults that come
// and go, nodes that die, fleets that are mostly slow. Short; `./run bench isolate` runs a thousand
// each.
#include "validate/isolate/test_history.h"
#include "tests/validate/physical_fabric.h"
#include "validate/isolate/evidence.h"
#include "validate/isolate/upper_mode.h"

#include <gtest/gtest.h>

namespace muster::validate::isolate {
namespace {

using test::PhysicalFabric;

void makeSmall(PhysicalFabric& fabric) {
  fabric.leaves = 8, fabric.hosts_per_leaf = 16, fabric.uplinks = 16;
}

bool isNamed(const Verdict& verdict, int node) {
  return std::any_of(verdict.culprits.begin(), verdict.culprits.end(), [node](const auto& culprit) {
    return (culprit.kind == CulpritKind::Node || culprit.kind == CulpritKind::Nic) &&
           culprit.a == node;
  });
}
bool isCleared(const Verdict& verdict, int node) {
  return std::count(verdict.cleared.begin(), verdict.cleared.end(), node) > 0;
}
bool hasPassed(const Verdict& verdict) {
  return verdict.culprits.empty() && verdict.unclear.empty();
}

TEST(IsolateUpperMode, theHealthyAreFoundHoweverFewTheyAre) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (const double healthy : {1.0, 0.5, 0.25, 0.09}) {
    std::vector<double> rates;
    for (int i = 0; i < 512; ++i)
      rates.push_back((i < healthy * 512 ? 390 : 312) * (1 + 0.005 * normal(random)));
    EXPECT_NEAR(upperMode(rates), 390, 2) << healthy;
  }
}

TEST(IsolateUpperMode, luckyOutliersAreNoMode) {
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  std::vector<double> rates{480, 470, 455, 440};
  for (int i = 0; i < 512; ++i) rates.push_back(390 * (1 + 0.005 * normal(random)));
  EXPECT_NEAR(upperMode(rates), 390, 1);
}

TEST(IsolateUpperMode, oneRateAloneIsItself) {
  std::vector<double> rates{10};
  EXPECT_EQ(upperMode(rates), 10);
}

/// Against sums by hand: Beta(1, 1) makes every count equally likely.
TEST(IsolateHistory, fewTestsSayLittleOfTheBackground) {
  const Background even{.bad = 0, .tests = 0, .prior_bad = 1, .prior_tests = 2};
  EXPECT_NEAR(even.tail(1, 4), 0.8, 1e-9);
  EXPECT_NEAR(even.tail(4, 4), 0.2, 1e-9);
  EXPECT_EQ(even.tail(0, 4), 1);
  EXPECT_EQ(even.tail(5, 4), 0);
  // With many tests it is the binomial: 1 − 0.97¹⁰ = 0.2626.
  const Background many{.bad = 30'000, .tests = 1'000'000};
  EXPECT_NEAR(many.tail(1, 10), 0.2626, 1e-3);
  // Nothing was bad, in few and in many tests: two of sixteen mean more in the second case.
  EXPECT_GT((Background{.tests = 30}.tail(2, 16)), 100 * (Background{.tests = 8'000}.tail(2, 16)));
}

TEST(IsolateWild, mostOfTheFleetSlowNeverPasses) {
  for (const bool groups : {false, true})
    for (int trial = 0; trial < 8; ++trial) {
      PhysicalFabric fabric(static_cast<std::uint64_t>(trial) + 1);
      makeSmall(fabric);
      const double share = 0.3 + 0.05 * trial;
      const auto bad = fabric.pick(static_cast<int>(share * fabric.hosts()));
      for (const int host : bad) fabric.slow(host, trial % 2 ? 0.5 : 0.8);
      const auto verdict =
          fabric.isolated({.groups = groups, .seed = static_cast<std::uint64_t>(trial)});
      EXPECT_FALSE(hasPassed(verdict)) << share;
      for (const int host : bad) EXPECT_FALSE(isCleared(verdict, host)) << share << ' ' << host;
    }
}

/// What was wrong: two clusters that lie a twentieth apart were taken for one that is wide, and
/// then slow nodes for noise that stays.
TEST(IsolateWild, aThirdThatLacksATwentiethNeverPasses) {
  for (const bool groups : {false, true})
    for (int trial = 0; trial < 12; ++trial) {
      PhysicalFabric fabric(static_cast<std::uint64_t>(trial) + 2100);
      makeSmall(fabric);
      fabric.leaves = 8, fabric.hosts_per_leaf = 32, fabric.host_spread = 0.003;
      const double share = 0.3 + 0.1 * (trial % 3);
      const auto bad = fabric.pick(static_cast<int>(share * fabric.hosts()));
      for (const int host : bad) fabric.slow(host, 0.95);
      const auto verdict =
          fabric.isolated({.groups = groups, .seed = static_cast<std::uint64_t>(trial)});
      EXPECT_FALSE(hasPassed(verdict)) << trial;
      for (const int host : bad) EXPECT_FALSE(isCleared(verdict, host)) << trial << ' ' << host;
    }
}

/// What was wrong: of two leaves of which one is slow all that crosses them is slow, and was the
/// measure of itself; slow nodes were "good in every test".
TEST(IsolateWild, aSlowLeafOfTwoIsNotGoodBecauseAllThatCrossesIsSlow) {
  for (const bool groups : {false, true})
    for (int trial = 0; trial < 20; ++trial) {
      PhysicalFabric fabric(static_cast<std::uint64_t>(trial) + 100);
      fabric.leaves = 2, fabric.hosts_per_leaf = 4, fabric.uplinks = 4, fabric.white = 0.03;
      for (int host = 0; host < 4; ++host) fabric.slow(host, 0.25);
      const auto verdict = fabric.isolated(
          {.groups = groups, .tolerance = 0.05, .seed = static_cast<std::uint64_t>(trial)});
      EXPECT_FALSE(hasPassed(verdict)) << trial;
      for (int host = 0; host < 4; ++host) {
        EXPECT_FALSE(isCleared(verdict, host)) << trial << ' ' << host;
        EXPECT_EQ(std::ranges::count(verdict.good, host), 0) << trial << ' ' << host;
      }
      for (const auto& culprit : verdict.culprits) {  // said: "reaches 100 %, confidence 0 %"
        EXPECT_LT(culprit.reached, 0.4) << trial << ' ' << toString(culprit.kind);
        EXPECT_GT(culprit.confidence, 0.9) << trial << ' ' << toString(culprit.kind);
      }
    }
}

TEST(IsolateWild, aFleetOfWhichFewAreHealthyIsUnclear) {
  PhysicalFabric fabric(31);
  makeSmall(fabric);
  for (const int host : fabric.pick(fabric.hosts() * 9 / 10)) fabric.slow(host, 0.8);
  const auto verdict = fabric.isolated({.groups = false});
  EXPECT_FALSE(hasPassed(verdict));
  EXPECT_TRUE(verdict.cleared.empty());
}

TEST(IsolateWild, noiseThatNoHealthyNetworkHasClearsNobody) {
  PhysicalFabric fabric(32);
  makeSmall(fabric);
  fabric.white = 0.08;
  const auto verdict = fabric.isolated({});
  EXPECT_TRUE(verdict.culprits.empty());
  EXPECT_TRUE(verdict.cleared.empty());
  ASSERT_FALSE(verdict.unclear.empty());
  EXPECT_EQ(verdict.unclear[0].a, -1);
}

TEST(IsolateWild, congestionAccusesNobody) {
  for (const bool groups : {false, true})
    for (int trial = 0; trial < 6; ++trial) {
      PhysicalFabric fabric(static_cast<std::uint64_t>(trial) + 100);
      makeSmall(fabric);
      (trial % 2 ? fabric.struck : fabric.busy) = trial < 4 ? 0.03 : 0.1;
      const auto verdict =
          fabric.isolated({.groups = groups, .seed = static_cast<std::uint64_t>(trial)});
      EXPECT_TRUE(verdict.culprits.empty()) << trial;
      // A tenth is about where the run ends as no measure.
      const bool no_measure = !verdict.unclear.empty() && verdict.unclear.front().a < 0;
      if (trial < 4 || !no_measure) EXPECT_GT(verdict.cleared.size(), 100u) << trial;
    }
}

TEST(IsolateWild, hostsThatDriftAccuseNobody) {
  for (int trial = 0; trial < 6; ++trial) {
    PhysicalFabric fabric(static_cast<std::uint64_t>(trial) + 200);
    makeSmall(fabric);
    (trial % 3 == 2 ? fabric.leaf_drift : fabric.drift) = 0.01;
    fabric.drift_memory = trial % 2 ? 0.8 : 0.99;
    EXPECT_TRUE(fabric.isolated({.groups = trial < 3, .seed = static_cast<std::uint64_t>(trial)})
                    .culprits.empty())
        << trial;
  }
}

TEST(IsolateWild, aFaultThatComesAndGoesIsNotCleared) {
  int named = 0, intermittent = 0;
  constexpr int kTrials = 20;
  for (int trial = 0; trial < kTrials; ++trial) {
    PhysicalFabric fabric(static_cast<std::uint64_t>(trial) + 300);
    makeSmall(fabric);
    const int bad = *fabric.pick(1).begin();
    fabric.flaky(bad, 0.3, trial % 2 ? 0.5 : 0, false);
    const auto verdict =
        fabric.isolated({.groups = trial % 2 == 0, .seed = static_cast<std::uint64_t>(trial)});
    EXPECT_FALSE(isCleared(verdict, bad)) << trial;
    named += isNamed(verdict, bad);
    for (const auto& culprit : verdict.culprits) {
      EXPECT_EQ(culprit.a, bad) << trial;
      intermittent += culprit.bad > 0;  // who happens to be bad in each test looks like any other
    }
  }
  EXPECT_GE(named,
            kTrials * 8 / 10);  // of a thousand nodes 90 % (bench): few say less of congestion
  EXPECT_GE(intermittent, named - 3);
}

// What was wrong: with collectives a node was cleared by hundreds of tests of the same few rounds.
TEST(IsolateWild, aFaultOfWholeRoundsIsSeenWithCollectives) {
  int named = 0, cleared = 0;
  constexpr int kTrials = 30;
  for (int trial = 0; trial < kTrials; ++trial) {
    PhysicalFabric fabric(static_cast<std::uint64_t>(trial) + 900);
    makeSmall(fabric);
    const int bad = *fabric.pick(1).begin();
    fabric.flaky(bad, 0.3, 0.5, true);
    const auto verdict =
        fabric.isolated({.groups = true, .seed = static_cast<std::uint64_t>(trial)});
    named += isNamed(verdict, bad), cleared += isCleared(verdict, bad);
    for (const auto& culprit : verdict.culprits) EXPECT_EQ(culprit.a, bad) << trial;
  }
  EXPECT_GE(named, kTrials * 8 / 10);
  EXPECT_EQ(cleared, 0) << "one of a million runs";
}

TEST(IsolateWild, aNodeThatDiesOnTheWayIsNamedAndNotCleared) {
  for (int trial = 0; trial < 20; ++trial) {
    PhysicalFabric fabric(static_cast<std::uint64_t>(trial) + 400);
    makeSmall(fabric);
    const int bad = *fabric.pick(1).begin();
    fabric.dies(bad, 3 + trial % 5);
    fabric.whole_fails = trial % 4 < 2;
    const auto verdict =
        fabric.isolated({.groups = trial % 2 == 0, .seed = static_cast<std::uint64_t>(trial)});
    EXPECT_TRUE(isNamed(verdict, bad)) << trial;
    EXPECT_EQ(verdict.culprits.size(), 1u) << trial;
    EXPECT_FALSE(isCleared(verdict, bad)) << trial;
  }
}

/// Three nodes: either one is named, or it is unclear; never both, and nobody slow is cleared.
// What was wrong: its last tests were all with one node, the pair of them was named, and both were
// good.
TEST(IsolateWild, aNodeThatBecomesSlowLateIsNotGood) {
  int named = 0;
  constexpr int kTrials = 120;
  for (int trial = 0; trial < kTrials; ++trial) {
    IsolateWorld world(static_cast<std::uint64_t>(trial) + 900);
    world.leaves = 2, world.nodes_per_leaf = 4, world.spines = 4, world.rails = 1 + trial % 2;
    const int slow = trial % 8, from = 6 + trial % 10;  // a run of good nodes ends with round 16
    Isolation isolation(world.layout(), {.groups = false,
                                         .end_rounds = roundsOf(Proof::Good),
                                         .seed = static_cast<std::uint64_t>(trial)});
    while (const auto round = isolation.next()) {
      if (round->number == from) world.slowNode(slow, 0.61);
      isolation.learn(world.run(*round));
    }
    const auto verdict = isolation.verdict();
    ASSERT_GE(verdict.rounds, from) << trial;
    EXPECT_EQ(std::ranges::count(verdict.good, slow) + std::ranges::count(verdict.cleared, slow), 0)
        << trial << ": slow from round " << from << " of " << verdict.rounds;
    for (const auto& culprit : verdict.culprits)
      EXPECT_TRUE((culprit.kind == CulpritKind::Node || culprit.kind == CulpritKind::Nic) &&
                  culprit.a == slow)
          << trial << ' ' << toString(culprit.kind) << ' ' << culprit.a << ' ' << culprit.b;
    named += !verdict.culprits.empty();
  }
  EXPECT_GE(named, kTrials * 9 / 10);
}

TEST(IsolateWild, threeNodesAreDecidedOrUnclear) {
  for (int trial = 0; trial < 60; ++trial) {
    PhysicalFabric fabric(static_cast<std::uint64_t>(trial) + 500);
    fabric.leaves = 1, fabric.hosts_per_leaf = 3;
    const int bad = trial % 3;
    if (trial % 4) fabric.slow(bad, 0.8);
    const auto verdict =
        fabric.isolated({.groups = trial % 2 == 0, .seed = static_cast<std::uint64_t>(trial)});
    if (trial % 4 == 0) {
      EXPECT_TRUE(verdict.culprits.empty()) << trial;
      continue;
    }
    EXPECT_NE(verdict.culprits.empty(), verdict.unclear.empty()) << trial;
    EXPECT_FALSE(isCleared(verdict, bad)) << trial;
    for (const auto& culprit : verdict.culprits) EXPECT_EQ(culprit.a, bad) << trial;
  }
}

// What was wrong: eight nodes measure no background that would make one bad test suspicious, rows
// of their all-to-alls were not looked at, and one good repetition cleared a pair. A node that was
// bad in three of ten rounds ended as good in one of thirty such runs over TCP.
TEST(IsolateWild, aFaultThatComesAndGoesIsNotGoodAmongFew) {
  int named = 0, passed = 0, healthy = 0;
  constexpr int kTrials = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    for (const bool is_flaky : {true, false}) {
      PhysicalFabric fabric(static_cast<std::uint64_t>(trial) + 1'300);
      fabric.leaves = 2, fabric.hosts_per_leaf = 4;
      fabric.white = 0.01, fabric.short_factor = 1;
      fabric.tail_chance = 0.2, fabric.tail_loss = 0.05;
      const int bad = *fabric.pick(1).begin();
      if (is_flaky) fabric.flaky(bad, 0.3, trial % 2 ? 0.7 : 0.3, true);
      const auto verdict = fabric.isolated({.tolerance = 0.05,
                                            .end_rounds = roundsOf(Proof::Good),
                                            .seed = static_cast<std::uint64_t>(trial)});
      if (!is_flaky) {
        healthy += hasPassed(verdict);
        continue;
      }
      named += isNamed(verdict, bad);
      passed += hasPassed(verdict);
    }
  }
  EXPECT_LE(passed, 4) << "1.4 are expected of 0.47 %";
  EXPECT_GE(named, kTrials * 8 / 10);
  EXPECT_GE(healthy, kTrials * 9 / 10) << "and who is well still passes";
}

/// Hosts whose stacks stall: what theSlowNodeIsNamed… meets on two busy cores.
TEST(IsolateWild, sixBusyHostsNameNoWrongPair) {
  int wrong = 0;
  constexpr int kTrials = 100;
  for (int trial = 0; trial < kTrials; ++trial) {
    PhysicalFabric fabric(static_cast<std::uint64_t>(trial) + 600);
    fabric.leaves = 2, fabric.hosts_per_leaf = 3;
    fabric.white = 0.02, fabric.short_factor = 1, fabric.tail_chance = 0.1, fabric.tail_loss = 0.2;
    const int bad = *fabric.pick(1).begin();
    fabric.slow(bad, 0.25);
    const auto verdict =
        fabric.isolated({.tolerance = 0.05, .seed = static_cast<std::uint64_t>(trial)});
    EXPECT_TRUE(isNamed(verdict, bad)) << trial;
    wrong += static_cast<int>(verdict.culprits.size()) - isNamed(verdict, bad);
  }
  EXPECT_LE(wrong, 3);
}

}  // namespace
}  // namespace muster::validate::isolate
