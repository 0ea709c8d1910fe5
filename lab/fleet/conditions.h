// SPDX-License-Identifier: Apache-2.0
// What the simulated world is like: how long things take, and how often they fail. One seed, the
// same world.
#pragma once

#include <chrono>
#include <random>

namespace muster::lab::fleet {

using Random = std::mt19937_64;

/// Between `least` and `most`, most often near the lower end, with a tail: a log-normal cut off at
/// both.
struct Delay {
  std::chrono::milliseconds least{0};
  std::chrono::milliseconds most{0};

  std::chrono::milliseconds draw(Random& random) const {
    if (most <= least) return least;
    std::lognormal_distribution<double> tail(0.0, 0.75);
    constexpr double kUnit = 0.2;  // of the range, at the median
    const double share = std::min(1.0, kUnit * tail(random));
    return least + std::chrono::milliseconds(
                       static_cast<long>(share * static_cast<double>((most - least).count())));
  }
};

struct Conditions {
  Delay redfish;            ///< from a request to its answer
  double redfish_busy = 0;  ///< share of requests that are answered 503
  Delay boot;               ///< from power-on to the first call of the agent
  double boot_lost = 0;     ///< share of boots after which nobody calls
  Delay task;               ///< of the agent
  double task_fails = 0;    ///< share of tasks
  Delay flash_step;
  Delay bmc_reset;
  unsigned long seed = 1;

  /// Redfish 100–500 ms, boot 120 s, as metal has it.
  static Conditions real() {
    using namespace std::chrono_literals;
    return {{100ms, 500ms}, 0.002, {110s, 120s}, 0, {500ms, 3s}, 0, {150ms, 300ms}, {20s, 30s}, 1};
  }
};

inline bool happens(double share, Random& random) {
  return share > 0 && std::uniform_real_distribution<double>()(random) < share;
}

}  // namespace muster::lab::fleet
