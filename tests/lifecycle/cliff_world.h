// SPDX-License-Identifier: Apache-2.0
// A simulated management network: BMCs answer in the same time while few are asked at once; past a
// point each further request makes all of them slower than the one before gained, and far past it
// requests fail. An event queue in virtual time, no threads.
#pragma once

#include "lifecycle/executor/adaptive_limit.h"

#include <cmath>
#include <functional>
#include <queue>
#include <random>

namespace muster::test {

struct CliffWorld {
  double knee = 80;         ///< requests at once that it bears
  double base_s = 0.3;      ///< mean time of an answer below it
  double slope = 5;         ///< at twice the knee an answer takes 1 + slope times as long
  double fails_beyond = 3;  ///< times the knee, from where on half of all requests fail
  double jitter = 0.5;      ///< an answer takes (1 ± jitter) times the mean

  double meanSeconds(std::size_t under_way) const {
    const double over = std::max(0.0, static_cast<double>(under_way) / knee - 1);
    return base_s * (1 + slope * over);
  }
  bool fails(std::size_t under_way, std::mt19937& random) const {
    return static_cast<double>(under_way) > fails_beyond * knee && random() % 2 == 0;
  }
};

struct CliffRun {
  double good_per_s = 0;
  std::size_t last_limit = 0;
};

/// Endless demand meets the world through as many places as `limit` says. `ended` hears of every
/// end; `world` may change with the number of operations that have ended.
inline CliffRun runCliff(
    const std::function<const CliffWorld&(int ended)>& world, int operations, unsigned seed,
    const std::function<std::size_t()>& limit,
    const std::function<void(lifecycle::AdaptiveLimit::Time, bool good)>& ended) {
  struct Request {
    double ends_s;
    bool good;
    bool operator<(const Request& other) const { return ends_s > other.ends_s; }
  };
  std::mt19937 random(seed);
  std::priority_queue<Request> under_way;
  double now_s = 1;
  int good = 0;
  for (int done = 0; done < operations; ++done) {
    const auto& present = world(done);
    while (under_way.size() < limit()) {
      const auto count = under_way.size() + 1;
      const double factor =
          1 +
          present.jitter *
              (2 * static_cast<double>(random()) / static_cast<double>(std::mt19937::max()) - 1);
      under_way.push({now_s + present.meanSeconds(count) * factor, !present.fails(count, random)});
    }
    const auto request = under_way.top();
    under_way.pop();
    now_s = request.ends_s;
    good += request.good ? 1 : 0;
    ended(lifecycle::AdaptiveLimit::Time(
              std::chrono::nanoseconds(static_cast<std::int64_t>(now_s * 1e9))),
          request.good);
  }
  return {good / (now_s - 1), limit()};
}

inline double rateOfFixed(const CliffWorld& world, std::size_t places, int operations,
                          unsigned seed) {
  return runCliff([&](int) -> const CliffWorld& { return world; }, operations, seed,
                  [places] { return places; }, [](auto, bool) {})
      .good_per_s;
}

/// The best of fixed settings a few percent apart, up to `ceiling`.
inline std::pair<double, std::size_t> bestFixed(const CliffWorld& world, std::size_t ceiling,
                                                int operations, unsigned seed) {
  std::pair<double, std::size_t> best{0, 0};
  for (std::size_t places = 1; places <= ceiling; places += 1 + places / 20)
    best = std::max(best, {rateOfFixed(world, places, operations, seed), places});
  return best;
}

inline CliffRun runTuned(const CliffWorld& world, lifecycle::AdaptiveLimit::Bounds bounds,
                         int operations, unsigned seed) {
  lifecycle::AdaptiveLimit limit(bounds);
  return runCliff([&](int) -> const CliffWorld& { return world; }, operations, seed,
                  [&] { return limit.limit(); },
                  [&](auto now, bool good) { limit.ended(now, good, true); });
}

}  // namespace muster::test
