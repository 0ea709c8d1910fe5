// SPDX-License-Identifier: Apache-2.0
// The kernels of inputs and their check, for every vendor.
#pragma once

#include "validate/burn/gpu/device_code.h"
#include "validate/collective/element_values.h"

namespace muster::collective {

GPU_DEVICE std::uint64_t firstValue() {
  return static_cast<std::uint64_t>(burn::gpu::blockIndex()) *
             static_cast<std::uint64_t>(burn::gpu::blockSize()) +
         static_cast<std::uint64_t>(burn::gpu::threadIndex());
}

GPU_DEVICE void fillBody(float* to, std::uint64_t count, std::uint64_t seed, int rank) {
  for (auto i = firstValue(); i < count; i += burn::gpu::gridSize())
    to[i] = inputValue(seed, rank, i);
}

GPU_DEVICE void checkBody(const float* from, std::uint64_t count, const OutputRule& rule,
                          unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (auto i = firstValue(); i < count; i += burn::gpu::gridSize())
    mine +=
        !(from[i] == outputValue(rule.operation, rule.seed, rule.rank, rule.ranks, rule.count, i));
  if (mine) burn::gpu::addTo(wrong, mine);
}

}  // namespace muster::collective
