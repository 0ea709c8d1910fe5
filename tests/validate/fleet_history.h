// SPDX-License-Identifier: Apache-2.0
// A simulated fleet's measurements: nodes of one SKU in racks, metrics with noise, whatever is
// wrong put in by the test.
#pragma once

#include "lifecycle/store/measurements.h"

#include <fmt/format.h>

#include <functional>
#include <random>

namespace muster::test {

struct FleetHistory {
  int nodes = 512, nodes_in_rack = 16, metrics = 10, runs = 6;
  double spread = 0.01;  ///< of nodes around the typical value
  double noise = 0.003;  ///< of one measurement
  bool heavy = false;    ///< tails of Student's t with four degrees instead of normal ones
  WallTime from = WallTime(std::chrono::hours(24) * 20'000);
  /// What a value is multiplied with: (node, metric, run) → factor.
  std::function<double(int, int, int)> fault = [](int, int, int) { return 1.0; };

  static std::string node(int number) { return fmt::format("gpu{:05}", number); }
  static std::string rack(int number) { return fmt::format("r{:03}", number); }
  static std::string metric(int number) { return fmt::format("check{:02}/rate_gbits", number); }

  std::vector<lifecycle::MeasuredSet> make(std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::student_t_distribution<double> student(4);
    const auto draw = [&] { return heavy ? student(random) / std::sqrt(2.0) : normal(random); };
    std::vector<double> own(static_cast<std::size_t>(nodes) * static_cast<std::size_t>(metrics));
    for (auto& each : own) each = 1 + spread * draw();
    std::vector<lifecycle::MeasuredSet> out;
    for (int run = 0; run < runs; ++run)
      for (int n = 0; n < nodes; ++n) {
        out.push_back({from + std::chrono::hours(24 * 7) * run + std::chrono::seconds(n),
                       NodeName(node(n)),
                       "gate.burn-in",
                       "hgx, H100",
                       rack(n / nodes_in_rack),
                       {}});
        for (int m = 0; m < metrics; ++m)
          out.back().numbers[metric(m)] = 100.0 * (m + 1) *
                                          own[static_cast<std::size_t>(n * metrics + m)] *
                                          (1 + noise * draw()) * fault(n, m, run);
      }
    return out;
  }
};

}  // namespace muster::test
