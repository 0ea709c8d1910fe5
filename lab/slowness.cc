// SPDX-License-Identifier: Apache-2.0
#include "lab/slowness.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

namespace muster::lab {
namespace {

constexpr double kWorkSeconds = 0.05;

double threadCpuSeconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace

double slowness(unsigned threads) {
  std::vector<double> factors(std::max(1u, threads), 1.0);
  {
    std::vector<std::jthread> workers;
    for (auto& factor : factors)
      workers.emplace_back([&factor] {
        const auto began = std::chrono::steady_clock::now();
        const double first = threadCpuSeconds();
        while (threadCpuSeconds() - first < kWorkSeconds) {
        }
        factor = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() /
                 kWorkSeconds;
      });
  }
  return std::clamp(*std::max_element(factors.begin(), factors.end()), 1.0, kMostSlowness);
}

}  // namespace muster::lab
