// SPDX-License-Identifier: Apache-2.0
// A budget that tunes itself beside the best fixed one, found by a sweep in the same run, on
// simulated BMCs with a latency cliff.
#include "bench/lifecycle_bench.h"
#include "tests/lifecycle/cliff_world.h"

namespace muster::bench {

void benchBudgets(Report& report) {
  constexpr double kShareOfBest = 0.9;
  for (const double knee : {20.0, 80.0, 400.0}) {
    test::CliffWorld world;
    world.knee = knee;
    const int operations = static_cast<int>(knee * 1'000);  // 300 s of work, its beginning included
    const auto [best, places] = test::bestFixed(world, 1'000, operations / 10, 1);
    const auto tuned = test::runTuned(world, {1, 4, 1'024}, operations, 1);
    report.record(
        {.name = fmt::format(
             "budget: BMCs that bear {:.0f} at once; best fixed setting {}, tuned ends at {}", knee,
             places, tuned.last_limit),
         .value = tuned.good_per_s,
         .unit = "requests/s",
         .bar = kShareOfBest * best,
         .direction = Bar::AtLeast,
         .versus = best});
    report.record(
        {.name = fmt::format("… the same BMCs with a fixed setting of {:.0f}", 2 * knee),
         .value = test::rateOfFixed(world, static_cast<std::size_t>(2 * knee), operations / 10, 1),
         .unit = "requests/s",
         .versus = best});
  }
}

}  // namespace muster::bench
