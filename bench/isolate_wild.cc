// SPDX-License-Identifier: Apache-2.0
#include "bench/isolate_wild.h"

#include "tests/validate/physical_fabric.h"

#include <functional>

namespace muster::bench {
namespace {

using test::PhysicalFabric;
using validate::isolate::CulpritKind;

constexpr int kNamedBy = 16;  ///< rounds, of the issue's bar

struct Tally {
  int trials = 0, bad = 0, named = 0, in_time = 0, cleared = 0, wrong = 0, passed = 0,
      most_rounds = 0;
  double wrong_confidence = 0;
  double perRun(double count) const { return count / trials; }
};

/// Makes a fabric unfriendly; gives the hosts that are bad.
using Break = std::function<std::set<int>(PhysicalFabric&, int trial)>;

std::string nameOf(Size size) {
  return size == Size::Pairs1024   ? "pairs only, 1,024 nodes"
         : size == Size::Groups256 ? "collectives, 256 nodes"
                                   : "collectives, 1,024 nodes";
}

/// The bad hosts that a verdict names, and what else it accuses.
struct Named {
  std::set<int> hosts;
  int wrong = 0;
  double wrong_confidence = 0;
};

Named namedBy(const validate::isolate::Verdict& verdict, const std::set<int>& bad,
              int hosts_per_leaf) {
  Named out;
  for (const auto& culprit : verdict.culprits) {
    const bool of_node = culprit.kind == CulpritKind::Node || culprit.kind == CulpritKind::Nic;
    std::set<int> of_leaf;
    for (const int host : bad)
      if (culprit.kind == CulpritKind::Leaf && host / hosts_per_leaf == culprit.a)
        of_leaf.insert(host);
    if (of_node && bad.contains(culprit.a)) {
      out.hosts.insert(culprit.a);
    } else if (2 * static_cast<int>(of_leaf.size()) > hosts_per_leaf) {
      out.hosts.insert(of_leaf.begin(), of_leaf.end());  // most of its hosts
    } else if (culprit.kind != CulpritKind::Fleet) {
      ++out.wrong;
      out.wrong_confidence += culprit.confidence;
    }
  }
  return out;
}

Tally run(Size size, int trials, const Break& breaks) {
  Tally tally;
  for (int trial = 0; trial < trials; ++trial) {
    const auto seed = static_cast<std::uint64_t>(trial);
    PhysicalFabric fabric(7'000'003 + 31 * seed);
    if (size == Size::Groups256) fabric.leaves = 8;
    const auto bad = breaks(fabric, trial);
    std::optional<Named> early;
    const auto verdict =
        fabric.isolated({.groups = size != Size::Pairs1024, .seed = 97 * seed + 5},
                        [&](int round, const auto& isolation) {
                          if (round == kNamedBy && bad.size() == 1)
                            early = namedBy(isolation.verdict(), bad, fabric.hosts_per_leaf);
                        });
    const auto named = namedBy(verdict, bad, fabric.hosts_per_leaf);
    tally.wrong += named.wrong, tally.wrong_confidence += named.wrong_confidence;
    ++tally.trials;
    tally.bad += static_cast<int>(bad.size()), tally.named += static_cast<int>(named.hosts.size());
    tally.in_time += static_cast<int>((early ? *early : named).hosts.size());
    for (const int node : verdict.cleared) tally.cleared += bad.contains(node);
    tally.passed += verdict.culprits.empty() && verdict.unclear.empty();
    tally.most_rounds = std::max(tally.most_rounds, verdict.rounds);
  }
  return tally;
}

void recordWrong(Report& report, const Tally& tally, std::optional<double> bar) {
  report.record({.name = tally.wrong
                             ? fmt::format("… falsely accused a run (their confidence {:.3f})",
                                           tally.wrong_confidence / tally.wrong)
                             : "… falsely accused a run",
                 .value = tally.perRun(tally.wrong),
                 .unit = "parts",
                 .bar = bar});
}

void benchNamed(Report& report, const std::string& what, Size size, int trials, double least,
                const Break& breaks) {
  const auto tally = run(size, trials, breaks);
  report.record({.name = fmt::format("{} trials, {}, {}: named by round {}, of {}", trials,
                                     nameOf(size), what, kNamedBy, tally.bad),
                 .value = 100.0 * tally.in_time / tally.bad,
                 .unit = "%",
                 .bar = least,
                 .direction = Bar::AtLeast});
  report.record(
      {.name = "… named at the end", .value = 100.0 * tally.named / tally.bad, .unit = "%"});
  report.record({.name = "… cleared",
                 .value = static_cast<double>(tally.cleared),
                 .unit = "nodes",
                 .bar = 0});
  recordWrong(report, tally, {});
  report.record({.name = "… rounds at most",
                 .value = static_cast<double>(tally.most_rounds),
                 .unit = "rounds"});
}

void benchSlowFleet(Report& report, Size size, int trials) {
  const auto tally = run(size, trials, [](auto& fabric, int trial) {
    const double share = fabric.uniform(0.3, 0.7), rate = fabric.uniform(0.5, 0.9);
    const auto bad = fabric.pick(static_cast<int>(share * fabric.hosts()));
    for (const int host : bad) fabric.slow(host, trial % 3 ? rate : fabric.uniform(0.5, 0.95));
    return bad;
  });
  report.record(
      {.name = fmt::format("{} trials, {}, 30-70 % of the fleet at 50-95 %: passed (exit 0)",
                           trials, nameOf(size)),
       .value = static_cast<double>(tally.passed),
       .unit = "runs",
       .bar = 0});
  report.record({.name = fmt::format("… of {} slow nodes cleared", tally.bad),
                 .value = 100.0 * tally.cleared / tally.bad,
                 .unit = "%"});
  recordWrong(report, tally, {});
}

}  // namespace

namespace {

/// A fleet without a fault, on a network that is not friendly.
struct NoFault {
  std::string_view row;  ///< its name on the command line
  const char* what;
  std::optional<double> bar;
  void (*change)(PhysicalFabric&, int trial);
};
constexpr NoFault kNoFaults[] = {
    {"struck", "3 % of all tests struck", 0.05, [](auto& fabric, int) { fabric.struck = 0.03; }},
    {"traffic", "background traffic on cables that hits 3 % of the tests across leaves", 0.05,
     [](auto& fabric, int) { fabric.busy = 0.015; }},
    {"hosts", "hosts that drift by 1 % (memory 0.8 to 0.99 a round)", 0,
     [](auto& fabric, int trial) {
       fabric.drift = 0.01, fabric.drift_memory = trial % 2 ? 0.99 : 0.8;
     }},
    {"leaves", "leaves that drift by 1 % together", 0,
     [](auto& fabric, int) { fabric.leaf_drift = 0.01; }},
    {"tenth", "10 % of all tests struck", {}, [](auto& fabric, int) { fabric.struck = 0.1; }},
};

}  // namespace

void benchCongestion(Report& report, Size size, int trials, std::string_view row) {
  for (const auto& each : kNoFaults) {
    if (!row.empty() && each.row != row) continue;
    const auto tally = run(size, trials, [&each](auto& fabric, int trial) {
      each.change(fabric, trial);
      return std::set<int>{};
    });
    report.record(
        {.name = fmt::format("{} trials, {}, {}: rounds at most", trials, nameOf(size), each.what),
         .value = static_cast<double>(tally.most_rounds),
         .unit = "rounds"});
    recordWrong(report, tally, each.bar);
  }
}

void benchWholeRounds(Report& report, int trials) {
  for (const auto size : {Size::Pairs1024, Size::Groups256})
    benchNamed(report, "a node bad in 30 % of the rounds, all through them", size, trials, 90,
               [](auto& fabric, int) {
                 auto bad = fabric.pick(1);
                 fabric.flaky(*bad.begin(), 0.3, 0.5, true);
                 return bad;
               });
}

void benchWild(Report& report, Size size, int trials) {
  benchNamed(report, "a node bad in 30 % of its tests", size, trials, 90,
             [](auto& fabric, int trial) {
               auto bad = fabric.pick(1);
               fabric.flaky(*bad.begin(), 0.3, trial % 4 ? 0.5 : 0, false);
               return bad;
             });
  benchNamed(report, "a node that dies in round 3-7", size, trials, 99,
             [](auto& fabric, int trial) {
               auto bad = fabric.pick(1);
               fabric.dies(*bad.begin(), 3 + trial % 5);
               fabric.whole_fails = trial % 2 == 0;
               return bad;
             });
  benchSlowFleet(report, size, trials);
  benchCongestion(report, size, trials);
}

void benchLarge(Report& report, int trials) { benchCongestion(report, Size::Groups1024, trials); }

}  // namespace muster::bench
