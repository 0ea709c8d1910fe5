// SPDX-License-Identifier: Apache-2.0
// The kernels of products whose A is sparse: of four neighbours along k two are kept, and the
// matrix unit selects what they multiply of B by their places. One block a tile of C, its eight
// warps two by four; a step of k lies in shared memory while the next one is under way.
#pragma once

#include "validate/burn/gpu/kernel_bodies.h"

namespace muster::burn::gpu {

// One instruction multiplies 16 rows of A by 8 columns of B over 32 values of k.
inline constexpr int kRowsEach = 16, kColumnsEach = 8, kDepthEach = 32;
inline constexpr int kStep = 64;  ///< of k at a time
inline constexpr int kWarpRows = 64, kWarpColumns = 32;
inline constexpr int kRowFragments = kWarpRows / kRowsEach,
                     kColumnFragments = kWarpColumns / kColumnsEach;
static_assert(kTile / kWarpRows * (kTile / kWarpColumns) * 32 == kThreads);

// In words of two BF16. Four words between lines: lanes of a warp then read 32 different banks.
inline constexpr int kWordsOfA = kStep / 4, kWordsOfB = kStep / 2, kBetweenLines = 4;
inline constexpr int kLineOfA = kWordsOfA + kBetweenLines, kLineOfB = kWordsOfB + kBetweenLines;
inline constexpr int kWordsOfPlaces = kStep / 4 / kGroupsPerWord;

using FourWords = Vector<std::uint32_t>;

struct SparseStep {
  alignas(kVectorBytes) std::uint32_t a[kTile * kLineOfA];
  alignas(kVectorBytes) std::uint32_t b[kTile * kLineOfB];
  std::uint32_t places[kTile * kWordsOfPlaces];
};
/// What one thread brings of a step.
struct SparseLoads {
  static constexpr int kOfA = kTile * kWordsOfA / FourWords::kCount / kThreads,
                       kOfB = kTile * kWordsOfB / FourWords::kCount / kThreads;
  FourWords a[kOfA], b[kOfB];
  std::uint32_t places;
};
static_assert(SparseLoads::kOfA * kThreads * FourWords::kCount == kTile * kWordsOfA);
static_assert(SparseLoads::kOfB * kThreads * FourWords::kCount == kTile * kWordsOfB);
static_assert(kTile * kWordsOfPlaces == kThreads);

struct TilePlace {
  int row, column;  ///< of its first value
};
/// Eight rows of tiles at a time, column by column: blocks that run together share what they read.
GPU_DEVICE TilePlace sparseTileOf(int block, int side) {
  constexpr int kTogether = 8;
  const int first = block / (kTogether * side) * kTogether;
  const int rows = side - first < kTogether ? side - first : kTogether;
  const int within = block - first * side;
  return {(first + within % rows) * kTile, within / rows * kTile};
}

GPU_DEVICE void loadSparseStep(const SparseFactors& factors, const TilePlace& tile, int k,
                               SparseLoads& loads) {
  const int thread = threadIndex();
  const auto n = static_cast<std::uint64_t>(factors.n), from = static_cast<std::uint64_t>(k);
  const auto* a = static_cast<const std::uint32_t*>(factors.a);
  const auto* b = static_cast<const std::uint32_t*>(factors.b);
  constexpr int kLoadsOfA = kWordsOfA / FourWords::kCount,
                kLoadsOfB = kWordsOfB / FourWords::kCount;
#pragma unroll
  for (int i = 0; i < SparseLoads::kOfA; ++i) {
    const int at = i * kThreads + thread;
    const auto row = static_cast<std::uint64_t>(tile.row + at / kLoadsOfA);
    loads.a[i] = *reinterpret_cast<const FourWords*>(a + row * (n / 4) + from / 4 +
                                                     at % kLoadsOfA * FourWords::kCount);
  }
#pragma unroll
  for (int i = 0; i < SparseLoads::kOfB; ++i) {
    const int at = i * kThreads + thread;
    const auto column = static_cast<std::uint64_t>(tile.column + at / kLoadsOfB);
    loads.b[i] = *reinterpret_cast<const FourWords*>(b + column * (n / 2) + from / 2 +
                                                     at % kLoadsOfB * FourWords::kCount);
  }
  const auto row = static_cast<std::uint64_t>(tile.row + thread / kWordsOfPlaces);
  loads.places = factors.places[row * (n / kDepthEach) + from / kDepthEach +
                                static_cast<std::uint64_t>(thread % kWordsOfPlaces)];
}

GPU_DEVICE void storeSparseStep(const SparseLoads& loads, SparseStep& step) {
  const int thread = threadIndex();
  constexpr int kLoadsOfA = kWordsOfA / FourWords::kCount,
                kLoadsOfB = kWordsOfB / FourWords::kCount;
#pragma unroll
  for (int i = 0; i < SparseLoads::kOfA; ++i) {
    const int at = i * kThreads + thread;
    *reinterpret_cast<FourWords*>(step.a + at / kLoadsOfA * kLineOfA +
                                  at % kLoadsOfA * FourWords::kCount) = loads.a[i];
  }
#pragma unroll
  for (int i = 0; i < SparseLoads::kOfB; ++i) {
    const int at = i * kThreads + thread;
    *reinterpret_cast<FourWords*>(step.b + at / kLoadsOfB * kLineOfB +
                                  at % kLoadsOfB * FourWords::kCount) = loads.b[i];
  }
  step.places[thread] = loads.places;
}

/// Which lane has what. Source: PTX ISA, fragments and metadata of sparse mma.m16n8k32 with .bf16
struct SparseLane {
  int first_row, first_column;  ///< of its warp, within the tile
  int group, within;            ///< four lanes are a group
};
GPU_DEVICE SparseLane sparseLane() {
  const int warp = threadIndex() / 32, lane = threadIndex() % 32;
  constexpr int kWarpsBeside = kTile / kWarpColumns;
  return {warp / kWarpsBeside * kWarpRows, warp % kWarpsBeside * kWarpColumns, lane / 4, lane % 4};
}

/// Of the two lanes of a group that are asked: the places of row `group` in the low half, of the
/// eighth row after it in the high half, over 16 values of k each.
GPU_DEVICE std::uint32_t placesOf(const SparseStep& step, int row, int half, int within) {
  const int shift = within % 2 * 16;
  const std::uint32_t upper = step.places[row * kWordsOfPlaces + half] >> shift,
                      lower = step.places[(row + 8) * kWordsOfPlaces + half] >> shift;
  return (upper & 0xffff) | lower << 16;
}

GPU_DEVICE void multiplySparseStep(const SparseStep& step, const SparseLane& lane,
                                   float (&sums)[kRowFragments][kColumnFragments][4]) {
#pragma unroll
  for (int half = 0; half < kStep / kDepthEach; ++half) {
    std::uint32_t b[kColumnFragments][4];
#pragma unroll
    for (int j = 0; j < kColumnFragments; ++j) {
      const std::uint32_t* line = step.b +
                                  (lane.first_column + j * kColumnsEach + lane.group) * kLineOfB +
                                  half * (kDepthEach / 2) + lane.within;
#pragma unroll
      for (int part = 0; part < 4; ++part) b[j][part] = line[part * 4];
    }
#pragma unroll
    for (int i = 0; i < kRowFragments; ++i) {
      const int row = lane.first_row + i * kRowsEach + lane.group;
      const std::uint32_t* upper = step.a + row * kLineOfA + half * (kDepthEach / 4) + lane.within;
      const std::uint32_t* lower = upper + 8 * kLineOfA;
      const std::uint32_t a[4] = {upper[0], lower[0], upper[4], lower[4]};
      const std::uint32_t places = placesOf(step, row, half, lane.within);
#pragma unroll
      for (int j = 0; j < kColumnFragments; ++j)
        multiplySparseFragment(sums[i][j], a, b[j], places);
    }
  }
}

GPU_DEVICE void multiplySparseBody(const SparseFactors& factors) {
  GPU_SHARED SparseStep step;
  const TilePlace tile = sparseTileOf(blockIndex(), factors.n / kTile);
  const SparseLane lane = sparseLane();
  float sums[kRowFragments][kColumnFragments][4] = {};
  SparseLoads loads;
  loadSparseStep(factors, tile, 0, loads);
  for (int k = 0; k < factors.n; k += kStep) {
    storeSparseStep(loads, step);
    meet();
    if (k + kStep < factors.n) loadSparseStep(factors, tile, k + kStep, loads);
    multiplySparseStep(step, lane, sums);
    meet();
  }
#pragma unroll
  for (int i = 0; i < kRowFragments; ++i)
#pragma unroll
    for (int j = 0; j < kColumnFragments; ++j)
#pragma unroll
      for (int value = 0; value < 4; ++value) {
        const int row = tile.row + lane.first_row + i * kRowsEach + lane.group + (value / 2) * 8;
        const int column =
            tile.column + lane.first_column + j * kColumnsEach + lane.within * 2 + value % 2;
        factors
            .c[static_cast<std::uint64_t>(column) * static_cast<std::uint64_t>(factors.n) + row] =
            sums[i][j][value];
      }
}

GPU_DEVICE void fillPlacesBody(const OperandRule& rule, std::uint32_t* to, std::uint64_t words) {
  for (auto i = firstIndex(); i < words; i += gridSize()) to[i] = keptPlacesWord(rule.stream, i);
}
GPU_DEVICE void countWrongPlacesBody(const OperandRule& rule, const std::uint32_t* from,
                                     std::uint64_t words, unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (auto i = firstIndex(); i < words; i += gridSize())
    mine += from[i] != keptPlacesWord(rule.stream, i);
  if (mine) addTo(wrong, mine);
}

}  // namespace muster::burn::gpu
