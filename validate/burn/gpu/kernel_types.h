// SPDX-License-Identifier: Apache-2.0
// What kernels are told and what they answer; the same bytes on host and device.
#pragma once

#include "validate/burn/gpu/float_formats.h"

namespace muster::burn::gpu {

inline constexpr int kFirstBad = 8;
inline constexpr int kMaxUnits = 1024;
inline constexpr int kProbeBlocksPerUnit = 8;
/// Each probing block takes so much shared memory that fewer than kProbeBlocksPerUnit fit into a
/// unit: so every unit gets one. Source: 64 KiB a CU (CDNA 3) to 228 KiB an SM (Hopper)
inline constexpr int kProbeSharedBytes = 40 << 10;

/// Filled on the device; zeroed before a round.
struct TileReport {
  unsigned long long bad;
  struct Row {
    int tile, unit;
    unsigned long long product;
    unsigned odd;
  } first[kFirstBad];
  double values[kTile * kTile];  ///< of the first bad tile
};
struct WordReport {
  unsigned long long wrong;
  struct Row {
    unsigned long long index, expected, seen;
    int unit;  ///< that read it
  } first[kFirstBad];
};
/// Of caches that each unit has for itself.
struct CacheReport {
  WordReport bad;
  unsigned long long words[kMaxUnits];  ///< read, by unit
};
/// What a block does in its unit's cache.
struct CacheProbe {
  std::uint64_t seed;
  int words;                ///< of a block
  std::int64_t fault_word;  ///< self-test: changed in block 0 after it was written; -1: none
  int fault_bit;
};
/// Of a block, 4 KiB: what is L1 beside the shared memory of all blocks of a unit holds all of
/// them. Source: 16 KiB a CU (CDNA 2), 28 KiB an SM at its least (Ampere, Hopper)
inline constexpr int kL1Words = 512;
struct UnitReport {
  unsigned long long products[kMaxUnits], wrong[kMaxUnits];
};
/// C is column-major, n × n; the golden's tiles are row-major.
struct Output {
  const void* c;
  OutputKind kind;
  bool over_bits;  ///< checksums over bits (random data) instead of whole numbers
  int n;
  const std::uint64_t* row_weights;
  const std::uint64_t* column_weights;
};
/// The scales of an n × n operand.
struct ScaleRule {
  OperandRule operand;
  ScaleEncoding encoding;
  ScaleLayout layout;
  int n;
  MUSTER_HD std::uint64_t blocksPerRow() const {
    return static_cast<std::uint64_t>(n / operand.scale_block);
  }
  MUSTER_HD std::uint64_t count() const { return static_cast<std::uint64_t>(n) * blocksPerRow(); }
  /// Of scale `number`, counted row by row.
  MUSTER_HD std::uint8_t at(std::uint64_t number) const {
    return encodeScale(encoding,
                       operand.exponent(number * static_cast<std::uint64_t>(operand.scale_block)));
  }
  MUSTER_HD std::uint64_t place(std::uint64_t number) const {
    return scalePlace(layout, number / blocksPerRow(), number % blocksPerRow(), blocksPerRow());
  }
};
/// A product of n × n whose A is sparse: kept values, and their places in words of eight groups,
/// row by row; B with k fastest, C column-major.
struct SparseFactors {
  const void* a;
  const std::uint32_t* places;
  const void* b;
  float* c;
  int n;
};
/// What is read and what is written are one pattern, inverted or not.
struct Walk {
  bool downwards, reads, writes;
  MemoryWord read, write;
};

}  // namespace muster::burn::gpu
