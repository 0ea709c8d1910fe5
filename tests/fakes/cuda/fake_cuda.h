// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime and a cuBLASLt on the host, for the host logic of muster-burn's CUDA back end:
// memory is memory, streams run at once, products are made by definition. It keeps count of what
// was taken, so that a test can see what was not given back.
#pragma once

#include <cstdint>

namespace muster::test {

struct FakeCuda {
  int gpus = 1;
  int major = 9;                         ///< compute capability
  std::uint64_t free_bytes = 64u << 20;  ///< what cudaMalloc gives in all
  std::uint64_t taken = 0;               ///< bytes in use
  int handles = 0;                       ///< streams, events, layouts, … in use
  int products = 0;                      ///< made so far
  bool no_algorithm = false;
  int slow_algorithm =
      0;  ///< 1 or 2: which of the two that work is slow; their sums differ in the last bits
  int last_algorithm = 0;  ///< that made a product
  int busy_queries = 0;    ///< a stream is through at every so-and-so-many-and-first query
  bool stalled = false;    ///< streams never come to their end
  bool lost = false;       ///< the context is lost: queries say so
};
FakeCuda& fakeCuda();

}  // namespace muster::test
