// SPDX-License-Identifier: Apache-2.0
// How kernels are spread over threads, for those who launch them and for the kernels themselves.
#pragma once

#include <cstdint>

namespace muster::burn::gpu {

inline constexpr int kThreads = 256;  ///< of a block, but for probes
inline constexpr int kInFlight = 4;   ///< loads of a thread before it looks at the first

/// Blocks that a loop over so many things is spread over.
inline int blocksFor(std::uint64_t count) {
  constexpr std::uint64_t kMaxBlocks = 1 << 16;
  const auto blocks = (count + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < 1 ? 1 : blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

}  // namespace muster::burn::gpu
