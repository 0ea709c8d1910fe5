// SPDX-License-Identifier: Apache-2.0
// What ranks put in and must get out, element by element. Apart from collective.h, because
// compilers of kernels read it too, as C++20.
#pragma once

#include "validate/burn/arith.h"

namespace muster::collective {

/// Pair: two ranks exchange with each other alone, everybody with everybody in turn (`meetings`):
/// the rate of each way of a group.
enum class Operation { AllReduce, AllGather, ReduceScatter, AllToAll, SendRecv, Pair };

/// What element `i` of `rank`'s input is: small, whole, of rank and place. Sums of 2²⁰ ranks are
/// exact in FP32.
MUSTER_HD inline float inputValue(std::uint64_t seed, int rank, std::uint64_t i) {
  return static_cast<float>((burn::draw(seed, i) & 7) + static_cast<unsigned>(rank & 3));
}
/// What element `i` of `rank`'s output must be after the operation; `count`: elements each rank
/// contributes to each (see Shape). Of a Pair `rank` is the other one.
MUSTER_HD inline float outputValue(Operation operation, std::uint64_t seed, int rank, int ranks,
                                   std::uint64_t count, std::uint64_t i) {
  const auto n = static_cast<std::uint64_t>(ranks);
  const auto rest = n % 4, sum_of_ranks = n / 4 * 6 + rest * (rest - 1) / 2;  // Σ (rank & 3)
  switch (operation) {
    case Operation::AllReduce:
      return static_cast<float>(n * (burn::draw(seed, i) & 7) + sum_of_ranks);
    case Operation::AllGather:
      return inputValue(seed, static_cast<int>(i / count), i % count);
    case Operation::ReduceScatter:
      return static_cast<float>(
          n * (burn::draw(seed, static_cast<std::uint64_t>(rank) * count + i) & 7) + sum_of_ranks);
    case Operation::AllToAll:
      return inputValue(seed, static_cast<int>(i / count),
                        static_cast<std::uint64_t>(rank) * count + i % count);
    case Operation::SendRecv:
      return inputValue(seed, (rank + ranks - 1) % ranks, i);
    case Operation::Pair:
      return inputValue(seed, rank, i);
  }
  return -1;
}

/// Which output a rank's is.
struct OutputRule {
  Operation operation;
  std::uint64_t seed;
  int rank, ranks;
  std::uint64_t count;
};
}  // namespace muster::collective
