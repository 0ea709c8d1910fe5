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
  } first[kFirstBad];
};
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
/// What is read and what is written are one pattern, inverted or not.
struct Walk {
  bool downwards, reads, writes;
  MemoryWord read, write;
};

}  // namespace muster::burn::gpu
