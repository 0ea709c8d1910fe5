// Verified matrix multiplication on every core of the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <chrono>

namespace muster::validate {

/// Faults that the test injects into itself; a tester that misses one is broken and says so.
enum class GemmFault { None, FlipOutputBit, FlipInputBit, NotANumber };

struct GemmReport {
  double gflops = 0;              ///< sum over threads
  std::uint64_t products = 0;     ///< matrix products that were computed and compared
  std::uint64_t wrong_values = 0;
  std::uint64_t corrupt_inputs = 0;
  std::string first_error;        ///< thread, iteration, row, column, expected and seen
};

/// Multiplies integer-valued matrices whose sums are exact in FP32, so that every output bit is known from a golden
/// computed with integers. Every product is compared bit by bit (a NaN differs), inputs are compared after the last.
/// Shape:  n × n per thread, n a multiple of 16 and at most 4096 (sums stay below 2^24)
/// Units:  duration in milliseconds; at least one product a thread is done however short it is
GemmReport runHostGemm(int n, unsigned threads, std::uint64_t seed, std::chrono::milliseconds duration, GemmFault fault = GemmFault::None);

}  // namespace muster::validate
