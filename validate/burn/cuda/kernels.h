// SPDX-License-Identifier: Apache-2.0
// What runs on the GPU besides cuBLASLt: one function a kernel, launched on a stream. kernels.cu
// does it on the device; in the tests kernels_host.cc does the same on the host, so that everything
// above this line runs without a GPU.
#pragma once

#include "validate/burn/float_formats.h"

#include <cuda_runtime_api.h>

namespace muster::burn::cuda {

inline constexpr int kFirstBad = 8;
inline constexpr int kMaxUnits = 1024;

/// Filled on the device; zeroed before a round.
struct TileReport {
  unsigned long long bad = 0;
  struct Row {
    int tile, unit;
    unsigned long long product;
    unsigned odd;
  } first[kFirstBad];
  double values[kTile * kTile];  ///< of the first bad tile
};
struct WordReport {
  unsigned long long wrong = 0;
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

void fillOperands(cudaStream_t, Dtype, OperandRule, void* to, std::uint64_t count);
void countWrongOperands(cudaStream_t, Dtype, OperandRule, const void* from, std::uint64_t count,
                        unsigned long long* wrong);
void fillWeights(cudaStream_t, std::uint64_t seed, std::uint64_t* to, int count);
void tileSums(cudaStream_t, const Output&, std::uint64_t* sums);
void checkTiles(cudaStream_t, const Output&, const std::uint64_t* golden,
                unsigned long long product, TileReport* report);
void sideSums(cudaStream_t, const Output&, double* rows, double* columns);
void walkMemory(cudaStream_t, const Walk&, std::uint64_t* words, std::uint64_t count,
                std::uint64_t seed, WordReport* report);
void blockCrcs(cudaStream_t, const std::uint64_t* words, std::uint64_t count, std::uint32_t* crcs);
/// A product of 16×16×16 on every unit, many times, compared with integers.
void probeUnits(cudaStream_t, std::uint64_t seed, int blocks, UnitReport* report);
/// Self-test: changes one value.
void flipBit(cudaStream_t, void* at, int bytes, int bit);
void setNan(cudaStream_t, void* at, int bytes);

}  // namespace muster::burn::cuda
