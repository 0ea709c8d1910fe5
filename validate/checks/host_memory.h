// Memory pattern test of the host.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace muster::validate {

struct MemoryReport {
  std::uint64_t bytes_written = 0;  ///< over all passes
  std::uint64_t wrong_words = 0;
  int passes = 0;                   ///< patterns completed over the whole region
  int patterns = 0;                 ///< patterns that there are
  std::string first_error;          ///< pattern, offset, expected, seen
};

/// Solid, checkerboard, address-in-address, moving inversions and seeded random over `words`, each written and read
/// back whole before the next. Stops after the pattern during which the limit passed; at least one is done.
/// `disturb` (tests and the self-test): called after each write with the region, may change it.
MemoryReport runMemoryPatterns(std::span<std::uint64_t> words, std::uint64_t seed, std::chrono::milliseconds limit,
                               void (*disturb)(std::span<std::uint64_t>) = nullptr);

}  // namespace muster::validate
