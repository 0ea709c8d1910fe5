// SPDX-License-Identifier: Apache-2.0
// Fault isolation by simulation: 1,024 nodes, 0.5 % noise, rounds counted, accusations checked
// against what was bad. bench_isolate TRIALS PART… runs some parts: planning, many, links, slow;
// under unfriendly conditions pairs, groups, rounds, large.
#include "bench/bench.h"
#include "bench/isolate_wild.h"
#include "tests/validate/isolate_world.h"

#include <vector>

namespace muster::bench {
namespace {

using test::IsolateWorld;
using validate::isolate::CulpritKind;

struct Tally {
  int trials = 0, most_rounds = 0, bad = 0, missed = 0, wrong = 0, unclear = 0;
  void add(const validate::isolate::Verdict& verdict, const test::Score& score, int bad_now) {
    ++trials;
    most_rounds = std::max(most_rounds, verdict.rounds);
    bad += bad_now, missed += score.missed, wrong += score.wrong, unclear += score.unclear;
  }
};

Tally slowNodes(int trials, int most, double low, double high, int rails = 1) {
  Tally tally;
  for (int trial = 0; trial < trials; ++trial) {
    IsolateWorld world(static_cast<std::uint64_t>(trial) + 1);
    world.rails = rails;
    const auto bad = world.some(1 + trial % most, world.nodes());
    for (const int node : bad) world.slowNode(node, 1 - world.between(low, high));
    const auto verdict = world.isolated({.seed = static_cast<std::uint64_t>(trial) + 1});
    tally.add(verdict, test::scoreNodes(verdict, bad), static_cast<int>(bad.size()));
  }
  return tally;
}

void benchSlow(Report& report, int trials) {
  const auto clear = slowNodes(trials, 8, 0.05, 0.10);
  report.record({.name = fmt::format("{} trials, 1-8 nodes 5-10 % slow: falsely accused", trials),
                 .value = static_cast<double>(clear.wrong),
                 .unit = "parts",
                 .bar = 0});
  report.record({.name = fmt::format("… missed, of {}", clear.bad),
                 .value = static_cast<double>(clear.missed),
                 .unit = "nodes",
                 .bar = 0});
  report.record({.name = "… rounds at most",
                 .value = static_cast<double>(clear.most_rounds),
                 .unit = "rounds"});
  const auto faint = slowNodes(trials, 8, 0.03, 0.03);
  report.record(
      {.name = fmt::format("{} trials, 1-8 nodes 3 % slow: missed, of {}", trials, faint.bad),
       .value = 100.0 * faint.missed / faint.bad,
       .unit = "%",
       .bar = 0.5});
  report.record(
      {.name = "… falsely accused", .value = static_cast<double>(faint.wrong), .unit = "parts"});
  const auto fainter = slowNodes(trials / 4, 8, 0.02, 0.02);
  report.record({.name = fmt::format("{} trials, 2 % slow: missed, of {} (below what is promised)",
                                     trials / 4, fainter.bad),
                 .value = 100.0 * fainter.missed / fainter.bad,
                 .unit = "%"});
}

void benchMany(Report& report, int trials) {
  Tally tally;
  for (int trial = 0; trial < trials; ++trial) {
    IsolateWorld world(static_cast<std::uint64_t>(trial) + 10'000);
    const auto bad = world.some(64 - trial % 8, world.nodes());
    for (const int node : bad)
      world.slowNode(node, world.between(0, 1) < 0.3 ? 0 : 1 - world.between(0.05, 0.5));
    const auto verdict = world.isolated({.seed = static_cast<std::uint64_t>(trial) + 1});
    tally.add(verdict, test::scoreNodes(verdict, bad), static_cast<int>(bad.size()));
  }
  report.record(
      {.name = fmt::format(
           "{} trials, 57-64 nodes dead or slow: rounds at most (round robin: 1,023)", trials),
       .value = static_cast<double>(tally.most_rounds),
       .unit = "rounds",
       .bar = 9});
  report.record({.name = fmt::format("… missed, of {}", tally.bad),
                 .value = static_cast<double>(tally.missed),
                 .unit = "nodes"});
  report.record(
      {.name = "… falsely accused", .value = static_cast<double>(tally.wrong), .unit = "parts"});
}

template <class Break>
void benchWays(Report& report, const std::string& what, int trials, bool routes_known,
               Break&& break_and_name) {
  int most = 0, unnamed = 0;
  for (int trial = 0; trial < trials; ++trial) {
    IsolateWorld world(static_cast<std::uint64_t>(trial) + 20'000);
    world.routes_known = routes_known;
    const auto named = break_and_name(world);
    const auto verdict = world.isolated({.seed = static_cast<std::uint64_t>(trial) + 1});
    most = std::max(most, verdict.rounds);
    unnamed += !named(verdict);
  }
  report.record({.name = fmt::format("{} trials, {}: rounds at most", trials, what),
                 .value = static_cast<double>(most),
                 .unit = "rounds",
                 .bar = 14});
  report.record({.name = "… not named exactly",
                 .value = static_cast<double>(unnamed),
                 .unit = "trials",
                 .bar = 0});
}

void benchLinks(Report& report, int trials) {
  const auto cable = [](IsolateWorld& world) {
    const int leaf = world.some(1, world.leaves)[0], spine = world.some(1, world.spines)[0];
    world.slowCable(world.cable(leaf, spine, 0),
                    world.between(0, 1) < 0.3 ? 0 : world.between(0.3, 0.8));
    return
        [leaf, id = world.cable(leaf, spine, 0), known = world.routes_known](const auto& verdict) {
          return known ? test::names(verdict, CulpritKind::Cable, id)
                       : test::names(verdict, CulpritKind::Uplinks, leaf);
        };
  };
  benchWays(report, "one cable between switches dead or at 30-80 %, routes known", trials, true,
            cable);
  benchWays(report, "the same, routes not known: the leaf whose uplinks are bad", trials, false,
            cable);
  const auto pair = [](IsolateWorld& world) {
    const auto two = world.some(2, world.nodes());
    world.slowPair(two[0], two[1], 0, world.between(0, 1) < 0.3 ? 0 : world.between(0.3, 0.8));
    return [two](const auto& verdict) {
      return test::names(verdict, CulpritKind::Pair, two[0], two[1]);
    };
  };
  benchWays(report, "two nodes that do not get on (dead or at 30-80 %), routes known", trials, true,
            pair);
  benchWays(report, "the same, routes not known", trials, false, pair);
}

void benchPlanning(Report& report) {
  IsolateWorld world(1);
  world.leaves = 128, world.rails = 8, world.leaves_per_pod = 8;
  for (const int node : world.some(64, world.nodes())) world.slowNode(node, 0.9);
  validate::isolate::Isolation isolation(world.layout(), {});
  double longest_ms = 0;
  int rounds = 0;
  for (;;) {
    const auto begin = std::chrono::steady_clock::now();
    const auto round = isolation.next();
    longest_ms =
        std::max(longest_ms,
                 std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
                     .count());
    if (!round) break;
    ++rounds;
    isolation.learn(world.run(*round));
  }
  report.record(
      {.name = fmt::format(
           "planning a round for 4,096 nodes × 8 rails, 64 faulty; the longest of {}", rounds),
       .value = longest_ms,
       .unit = "ms",
       .bar = 50});
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  using namespace muster::bench;
  constexpr std::string_view kCongestion = "congestion:";
  const int trials = argc > 1 ? std::atoi(argv[1]) : 1'000;
  const std::vector<std::string> parts(argv + std::min(argc, 2), argv + argc);
  const auto asked = [&parts](std::string_view part) {
    return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  Report report("isolate");
  if (asked("planning")) benchPlanning(report);
  if (asked("many")) benchMany(report, trials / 5);
  if (asked("links")) benchLinks(report, trials / 5);
  if (asked("slow")) benchSlow(report, trials);
  if (asked("pairs")) benchWild(report, Size::Pairs1024, trials);
  for (const auto& part : parts)  // parts of "pairs": "congestion", or "congestion:leaves"
    if (part.starts_with("congestion"))
      benchCongestion(report, Size::Pairs1024, trials,
                      std::string_view(part).substr(std::min(part.size(), kCongestion.size())));
  if (asked("groups")) benchWild(report, Size::Groups256, trials);
  if (asked("rounds")) benchWholeRounds(report, trials);
  if (asked("large")) benchLarge(report, trials / 10);
  return report.exitCode();
}
