// SPDX-License-Identifier: Apache-2.0
// The inner loops of the host's back end, compiled for several instruction sets and chosen when the
// program starts.
#pragma once

#include "validate/burn/arith.h"

#include <cstddef>
#include <cstdint>

namespace muster::burn::cpu {

/// Checksum of one tile; `odd` counts values that are no integer of a sane size: NaN, infinity,
/// fraction. `row_stride` in values.
struct TileSum {
  std::uint64_t sum = 0;
  std::uint32_t odd = 0;
};
TileSum integerSum(const float* tile, std::size_t row_stride, const std::uint64_t* row_weights,
                   const std::uint64_t* column_weights);
TileSum integerSum(const double* tile, std::size_t row_stride, const std::uint64_t* row_weights,
                   const std::uint64_t* column_weights);
/// Over the values' bits, for data whose sums are not exact.
TileSum bitSum(const float* tile, std::size_t row_stride, const std::uint64_t* row_weights,
               const std::uint64_t* column_weights);
TileSum bitSum(const double* tile, std::size_t row_stride, const std::uint64_t* row_weights,
               const std::uint64_t* column_weights);

/// Up to kChunkWords at `words`, the first of which is word `index` of its region. Answers the OR
/// of all differences.
inline constexpr std::size_t kChunkWords = 64;
std::uint64_t differences(const std::uint64_t* words, std::size_t count, Pattern pattern,
                          bool inverse, std::uint64_t index, std::uint64_t seed);
void write(std::uint64_t* words, std::size_t count, Pattern pattern, bool inverse,
           std::uint64_t index, std::uint64_t seed);

/// As crcWord of arith.h, by a table.
std::uint32_t crcOfWord(std::uint32_t crc, std::uint64_t word);

/// Products without a library: C = A·Bᵀ, row-major, k fastest in A and B. n is a multiple of kTile.
void multiply(const float* a, const float* b, float* c, int n);
void multiply(const double* a, const double* b, double* c, int n);

}  // namespace muster::burn::cpu
