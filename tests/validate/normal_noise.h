// SPDX-License-Identifier: Apache-2.0
// Standard normal numbers for simulations, by Marsaglia's polar method: number for number what
// libstdc++'s std::normal_distribution makes of the same generator, whose generate_canonical takes
// two logarithms of long double for every number; they were a sixth of all time of the bench.
#pragma once

#include <cmath>
#include <random>
#include <utility>

namespace muster::test {

class NormalNoise {
 public:
  double operator()(std::mt19937_64& random) {
    if (std::exchange(has_kept_, false)) return kept_;
    double x = 0, y = 0, square = 0;
    do {
      x = 2 * unit(random) - 1, y = 2 * unit(random) - 1;
      square = x * x + y * y;
    } while (square > 1 || square == 0);
    const double scale = std::sqrt(-2 * std::log(square) / square);
    has_kept_ = true, kept_ = x * scale;
    return y * scale;
  }

 private:
  static double unit(std::mt19937_64& random) {
    const double value = static_cast<double>(random()) * 0x1p-64;
    return value < 1 ? value : 1 - 0x1p-53;
  }

  bool has_kept_ = false;
  double kept_ = 0;
};

}  // namespace muster::test
