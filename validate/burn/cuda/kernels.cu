// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cuda/kernels.h"

#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>

namespace muster::burn::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxBlocks = 1 << 16;
constexpr int kProbeRounds = 256;

int blocksFor(std::uint64_t count) {
  return static_cast<int>(
      std::clamp<std::uint64_t>((count + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

__device__ std::uint64_t firstIndex() {
  return static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ std::uint64_t stride() { return static_cast<std::uint64_t>(gridDim.x) * blockDim.x; }
__device__ int thisUnit() {
  unsigned unit;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(unit));
  return static_cast<int>(unit) % kMaxUnits;
}

__global__ void fillOperandsKernel(Dtype dtype, OperandRule rule, void* to, std::uint64_t count) {
  for (auto i = firstIndex(); i < count; i += stride())
    store(dtype, to, i, encode(dtype, rule.at(i)));
}

__global__ void countWrongOperandsKernel(Dtype dtype, OperandRule rule, const void* from,
                                         std::uint64_t count, unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (auto i = firstIndex(); i < count; i += stride())
    mine += load(dtype, from, i) != encode(dtype, rule.at(i));
  if (mine) atomicAdd(wrong, mine);
}

__global__ void fillWeightsKernel(std::uint64_t seed, std::uint64_t* to, int count) {
  for (auto i = firstIndex(); i < static_cast<std::uint64_t>(count); i += stride())
    to[i] = weight(seed, i);
}

/// One block a tile. Addition mod 2⁶⁴ has no order, so atomics keep the sum exact.
struct Sum {
  unsigned long long sum;
  unsigned odd;
};
template <OutputKind kKind, bool kBits>
__device__ void sumTile(const Output& out, int tile, Sum* shared) {
  if (threadIdx.x == 0) *shared = {0, 0};
  __syncthreads();
  const int side = out.n / kTile, row = tile / side * kTile + static_cast<int>(threadIdx.x) % kTile,
            column = tile % side * kTile;
  unsigned long long sum = 0;
  unsigned odd = 0;
#pragma unroll 8
  for (int j = static_cast<int>(threadIdx.x) / kTile; j < kTile; j += kThreads / kTile) {
    const auto value = outputAt(kKind, out.c, static_cast<std::uint64_t>(column + j) * out.n + row);
    if (!kBits) odd += value.odd;
    sum += out.column_weights[column + j] *
           (kBits ? value.bits : static_cast<std::uint64_t>(value.whole));
  }
  atomicAdd(&shared->sum, sum * out.row_weights[row]);
  if (odd) atomicAdd(&shared->odd, odd);
  __syncthreads();
}
__device__ void sumTileOf(const Output& out, int tile, Sum* shared) {
  if (out.over_bits) {
    if (out.kind == OutputKind::Double)
      sumTile<OutputKind::Double, true>(out, tile, shared);
    else if (out.kind == OutputKind::Float)
      sumTile<OutputKind::Float, true>(out, tile, shared);
    else if (out.kind == OutputKind::Half)
      sumTile<OutputKind::Half, true>(out, tile, shared);
    else
      sumTile<OutputKind::Int32, true>(out, tile, shared);
  } else {
    if (out.kind == OutputKind::Double)
      sumTile<OutputKind::Double, false>(out, tile, shared);
    else if (out.kind == OutputKind::Float)
      sumTile<OutputKind::Float, false>(out, tile, shared);
    else if (out.kind == OutputKind::Half)
      sumTile<OutputKind::Half, false>(out, tile, shared);
    else
      sumTile<OutputKind::Int32, false>(out, tile, shared);
  }
}

__global__ void tileSumsKernel(Output out, std::uint64_t* sums) {
  __shared__ Sum shared;
  const int tile = static_cast<int>(blockIdx.x);
  sumTileOf(out, tile, &shared);
  if (threadIdx.x == 0) sums[tile] = shared.sum;
}

__global__ void checkTilesKernel(Output out, const std::uint64_t* golden,
                                 unsigned long long product, TileReport* report) {
  __shared__ Sum shared;
  __shared__ unsigned long long place;
  const int tile = static_cast<int>(blockIdx.x), side = out.n / kTile;
  sumTileOf(out, tile, &shared);
  if (shared.odd == 0 && shared.sum == golden[tile]) return;
  if (threadIdx.x == 0) {
    place = atomicAdd(&report->bad, 1ULL);
    if (place < kFirstBad) report->first[place] = {tile, thisUnit(), product, shared.odd};
  }
  __syncthreads();
  if (place != 0) return;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kTile; i += kThreads) {
    const int row = tile / side * kTile + i / kTile, column = tile % side * kTile + i % kTile;
    report->values[i] =
        outputAt(out.kind, out.c, static_cast<std::uint64_t>(column) * out.n + row).number;
  }
}

__global__ void sideSumsKernel(Output out, double* rows, double* columns) {
  const int side = out.n / kTile, tile = static_cast<int>(blockIdx.x),
            thread = static_cast<int>(threadIdx.x);
  const int first_row = tile / side * kTile, first_column = tile % side * kTile;
  double sum = 0;
  for (int k = 0; k < kTile; ++k) {
    const int row = thread < kTile ? first_row + thread : first_row + k,
              column = thread < kTile ? first_column + k : first_column + thread - kTile;
    sum += outputAt(out.kind, out.c, static_cast<std::uint64_t>(column) * out.n + row).number;
  }
  if (thread < kTile)
    rows[static_cast<std::uint64_t>(first_row + thread) * side + tile % side] = sum;
  else
    columns[static_cast<std::uint64_t>(tile / side) * out.n + first_column + thread - kTile] = sum;
}

/// Words 2·at and 2·at + 1 as they are without inversion. Two draws of the same seed are one
/// multiplication apart.
template <Pattern kPattern>
__device__ void twoWords(std::uint64_t at, std::uint64_t seed, std::uint64_t (&words)[2]) {
  if (kPattern == Pattern::Random) {
    const std::uint64_t first = seed + (2 * at + 1) * kDrawStep;
    words[0] = mix(first), words[1] = mix(first + kDrawStep);
  } else {
    for (int half = 0; half < 2; ++half)
      words[half] = patternWord(kPattern, false, 2 * at + half, seed);
  }
}

/// Two words a thread: 16-byte accesses. `count` is even. A step reads and writes one pattern,
/// inverted or not, so each word is made once.
template <Pattern kPattern, bool kReads, bool kWrites>
__global__ void walkKernel(Walk walk, ulonglong2* pairs, std::uint64_t count, std::uint64_t seed,
                           WordReport* report) {
  const std::uint64_t all = count / 2, read_mask = walk.read.inverse ? ~0ULL : 0,
                      write_mask = walk.write.inverse ? ~0ULL : 0;
  for (auto i = firstIndex(); i < all; i += stride()) {
    const auto at = walk.downwards ? all - 1 - i : i;
    std::uint64_t made[2];
    twoWords<kPattern>(at, seed, made);
    if (kReads) {
      const auto seen = pairs[at];
      const unsigned long long words[2] = {seen.x, seen.y};
      for (int half = 0; half < 2; ++half) {
        const auto expected = made[half] ^ read_mask;
        if (words[half] == expected) continue;
        const auto place = atomicAdd(&report->wrong, 1ULL);
        if (place < kFirstBad) report->first[place] = {2 * at + half, expected, words[half]};
      }
    }
    if (kWrites) pairs[at] = {made[0] ^ write_mask, made[1] ^ write_mask};
  }
}

template <Pattern kPattern>
void walkPattern(cudaStream_t stream, const Walk& walk, std::uint64_t* words, std::uint64_t count,
                 std::uint64_t seed, WordReport* report) {
  const auto launch = walk.reads && walk.writes ? walkKernel<kPattern, true, true>
                      : walk.reads              ? walkKernel<kPattern, true, false>
                                                : walkKernel<kPattern, false, true>;
  launch<<<blocksFor(count / 2), kThreads, 0, stream>>>(walk, reinterpret_cast<ulonglong2*>(words),
                                                        count, seed, report);
}

__global__ void blockCrcsKernel(const std::uint64_t* words, std::uint64_t count,
                                std::uint32_t* crcs) {
  const std::uint64_t blocks = (count + kCopyBlockWords - 1) / kCopyBlockWords;
  for (auto block = firstIndex(); block < blocks; block += stride()) {
    std::uint32_t crc = 0;
    for (auto i = block * kCopyBlockWords; i < count && i < (block + 1) * kCopyBlockWords; ++i)
      crc = crcWord(crc, words[i]);
    crcs[block] = crc;
  }
}

/// One warp a block. Tensor cores against integer units of the same SM.
__global__ void probeKernel(std::uint64_t seed, UnitReport* report) {
  namespace wmma = nvcuda::wmma;
  constexpr int kEdge = 16, kLimit = 31;
  __shared__ __half a[kEdge * kEdge], b[kEdge * kEdge];
  __shared__ float c[kEdge * kEdge];
  const int unit = thisUnit();
  for (int round = 0; round < kProbeRounds; ++round) {
    const auto from =
        (static_cast<std::uint64_t>(blockIdx.x) * kProbeRounds + round) * kEdge * kEdge;
    for (int i = static_cast<int>(threadIdx.x); i < kEdge * kEdge; i += 32)
      a[i] = __int2half_rn(static_cast<int>(integerOperand(streamA(seed), from + i, kLimit))),
      b[i] = __int2half_rn(static_cast<int>(integerOperand(streamB(seed), from + i, kLimit)));
    __syncwarp();
    wmma::fragment<wmma::matrix_a, kEdge, kEdge, kEdge, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, kEdge, kEdge, kEdge, __half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, kEdge, kEdge, kEdge, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(left, a, kEdge);
    wmma::load_matrix_sync(right, b, kEdge);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, kEdge, wmma::mem_row_major);
    __syncwarp();
    int wrong = 0;
    for (int i = static_cast<int>(threadIdx.x); i < kEdge * kEdge; i += 32) {
      std::int64_t exact = 0;
      for (int k = 0; k < kEdge; ++k)
        exact += integerOperand(streamA(seed), from + i / kEdge * kEdge + k, kLimit) *
                 integerOperand(streamB(seed), from + i % kEdge * kEdge + k, kLimit);
      wrong |= !(c[i] == static_cast<float>(exact));
    }
    const bool bad = __any_sync(0xffffffffu, wrong);
    if (threadIdx.x == 0) {
      atomicAdd(&report->products[unit], 1ULL);
      if (bad) atomicAdd(&report->wrong[unit], 1ULL);
    }
    __syncwarp();
  }
}

__global__ void flipBitKernel(unsigned char* at, int bytes, int bit) {
  bit %= bytes * 8;
  at[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
}
__global__ void setNanKernel(unsigned char* at, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = i == bytes - 1 ? 0x7f : 0xff;
}

}  // namespace

void fillOperands(cudaStream_t stream, Dtype dtype, OperandRule rule, void* to,
                  std::uint64_t count) {
  fillOperandsKernel<<<blocksFor(count), kThreads, 0, stream>>>(dtype, rule, to, count);
}
void countWrongOperands(cudaStream_t stream, Dtype dtype, OperandRule rule, const void* from,
                        std::uint64_t count, unsigned long long* wrong) {
  countWrongOperandsKernel<<<blocksFor(count), kThreads, 0, stream>>>(dtype, rule, from, count,
                                                                      wrong);
}
void fillWeights(cudaStream_t stream, std::uint64_t seed, std::uint64_t* to, int count) {
  fillWeightsKernel<<<blocksFor(static_cast<std::uint64_t>(count)), kThreads, 0, stream>>>(seed, to,
                                                                                           count);
}
void tileSums(cudaStream_t stream, const Output& out, std::uint64_t* sums) {
  tileSumsKernel<<<out.n / kTile*(out.n / kTile), kThreads, 0, stream>>>(out, sums);
}
void checkTiles(cudaStream_t stream, const Output& out, const std::uint64_t* golden,
                unsigned long long product, TileReport* report) {
  checkTilesKernel<<<out.n / kTile*(out.n / kTile), kThreads, 0, stream>>>(out, golden, product,
                                                                           report);
}
void sideSums(cudaStream_t stream, const Output& out, double* rows, double* columns) {
  sideSumsKernel<<<out.n / kTile*(out.n / kTile), kThreads, 0, stream>>>(out, rows, columns);
}
void walkMemory(cudaStream_t stream, const Walk& walk, std::uint64_t* words, std::uint64_t count,
                std::uint64_t seed, WordReport* report) {
  switch (walk.reads ? walk.read.pattern : walk.write.pattern) {
    case Pattern::Zeros:
      return walkPattern<Pattern::Zeros>(stream, walk, words, count, seed, report);
    case Pattern::Checkerboard:
      return walkPattern<Pattern::Checkerboard>(stream, walk, words, count, seed, report);
    case Pattern::Address:
      return walkPattern<Pattern::Address>(stream, walk, words, count, seed, report);
    case Pattern::WalkingOne:
      return walkPattern<Pattern::WalkingOne>(stream, walk, words, count, seed, report);
    case Pattern::Random:
      return walkPattern<Pattern::Random>(stream, walk, words, count, seed, report);
  }
}
void blockCrcs(cudaStream_t stream, const std::uint64_t* words, std::uint64_t count,
               std::uint32_t* crcs) {
  blockCrcsKernel<<<blocksFor((count + kCopyBlockWords - 1) / kCopyBlockWords), kThreads, 0,
                    stream>>>(words, count, crcs);
}
void probeUnits(cudaStream_t stream, std::uint64_t seed, int blocks, UnitReport* report) {
  probeKernel<<<blocks, 32, 0, stream>>>(seed, report);
}
void flipBit(cudaStream_t stream, void* at, int bytes, int bit) {
  flipBitKernel<<<1, 1, 0, stream>>>(static_cast<unsigned char*>(at), bytes, bit);
}
void setNan(cudaStream_t stream, void* at, int bytes) {
  setNanKernel<<<1, 1, 0, stream>>>(static_cast<unsigned char*>(at), bytes);
}

}  // namespace muster::burn::cuda
