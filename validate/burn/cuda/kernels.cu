// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cuda/kernels.h"

#include "validate/burn/gpu/sparse_bodies.h"

namespace muster::burn::cuda {
namespace {

using namespace gpu;

GPU_KERNEL fillOperandsKernel(Encoding encoding, OperandRule rule, void* to, std::uint64_t count) {
  fillOperandsBody(encoding, rule, to, count);
}
GPU_KERNEL countWrongOperandsKernel(Encoding encoding, OperandRule rule, const void* from,
                                    std::uint64_t count, unsigned long long* wrong) {
  countWrongOperandsBody(encoding, rule, from, count, wrong);
}
GPU_KERNEL fillScalesKernel(ScaleRule rule, std::uint8_t* to) { fillScalesBody(rule, to); }
GPU_KERNEL countWrongScalesKernel(ScaleRule rule, const std::uint8_t* from,
                                  unsigned long long* wrong) {
  countWrongScalesBody(rule, from, wrong);
}
GPU_KERNEL fillPlacesKernel(OperandRule rule, std::uint32_t* to, std::uint64_t words) {
  fillPlacesBody(rule, to, words);
}
GPU_KERNEL countWrongPlacesKernel(OperandRule rule, const std::uint32_t* from, std::uint64_t words,
                                  unsigned long long* wrong) {
  countWrongPlacesBody(rule, from, words, wrong);
}
GPU_KERNEL multiplySparseKernel(SparseFactors factors) { multiplySparseBody(factors); }
GPU_KERNEL fillWeightsKernel(std::uint64_t seed, std::uint64_t* to, int count) {
  fillWeightsBody(seed, to, count);
}
GPU_KERNEL tileSumsKernel(Output out, std::uint64_t* sums) { tileSumsBody(out, sums); }
GPU_KERNEL checkTilesKernel(Output out, const std::uint64_t* golden, unsigned long long product,
                            TileReport* report) {
  checkTilesBody(out, golden, product, report);
}
GPU_KERNEL sideSumsKernel(Output out, double* rows, double* columns) {
  sideSumsBody(out, rows, columns);
}
template <Pattern kPattern, bool kReads, bool kWrites>
GPU_KERNEL walkKernel(Walk walk, TwoWords* pairs, std::uint64_t count, std::uint64_t seed,
                      WordReport* report) {
  walkBody<kPattern, kReads, kWrites>(walk, pairs, count, seed, report);
}
GPU_KERNEL blockCrcsKernel(const std::uint64_t* words, std::uint64_t count, std::uint32_t* crcs) {
  blockCrcsBody(words, count, crcs);
}
GPU_KERNEL probeKernel(std::uint64_t seed, UnitReport* report) { probeBody(seed, report); }
GPU_KERNEL probeSharedKernel(CacheProbe probe, CacheReport* report) {
  probeCacheBody(probe, sharedWords(), report);
}
GPU_KERNEL probeL1Kernel(CacheProbe probe, std::uint64_t* to, CacheReport* report) {
  probeCacheBody(probe, to + static_cast<std::uint64_t>(blockIndex()) * probe.words, report);
}
GPU_KERNEL flipBitKernel(unsigned char* at, int bytes, int bit) { flipBitBody(at, bytes, bit); }
GPU_KERNEL setNanKernel(unsigned char* at, int bytes) { setNanBody(at, bytes); }

template <Pattern kPattern>
void walkPattern(cudaStream_t stream, const Walk& walk, std::uint64_t* words, std::uint64_t count,
                 std::uint64_t seed, WordReport* report) {
  const auto launch = walk.reads && walk.writes ? walkKernel<kPattern, true, true>
                      : walk.reads              ? walkKernel<kPattern, true, false>
                                                : walkKernel<kPattern, false, true>;
  launch<<<blocksFor(count / 2 / kInFlight), kThreads, 0, stream>>>(
      walk, reinterpret_cast<TwoWords*>(words), count, seed, report);
}

int tilesOf(const Output& out) { return out.n / kTile * (out.n / kTile); }

}  // namespace

void fillOperands(cudaStream_t stream, Encoding encoding, OperandRule rule, void* to,
                  std::uint64_t count) {
  fillOperandsKernel<<<blocksFor(count), kThreads, 0, stream>>>(encoding, rule, to, count);
}
void countWrongOperands(cudaStream_t stream, Encoding encoding, OperandRule rule, const void* from,
                        std::uint64_t count, unsigned long long* wrong) {
  countWrongOperandsKernel<<<blocksFor(count), kThreads, 0, stream>>>(encoding, rule, from, count,
                                                                      wrong);
}
void fillScales(cudaStream_t stream, const ScaleRule& rule, std::uint8_t* to) {
  fillScalesKernel<<<blocksFor(rule.count()), kThreads, 0, stream>>>(rule, to);
}
void countWrongScales(cudaStream_t stream, const ScaleRule& rule, const std::uint8_t* from,
                      unsigned long long* wrong) {
  countWrongScalesKernel<<<blocksFor(rule.count()), kThreads, 0, stream>>>(rule, from, wrong);
}
void fillPlaces(cudaStream_t stream, const OperandRule& rule, std::uint32_t* to,
                std::uint64_t words) {
  fillPlacesKernel<<<blocksFor(words), kThreads, 0, stream>>>(rule, to, words);
}
void countWrongPlaces(cudaStream_t stream, const OperandRule& rule, const std::uint32_t* from,
                      std::uint64_t words, unsigned long long* wrong) {
  countWrongPlacesKernel<<<blocksFor(words), kThreads, 0, stream>>>(rule, from, words, wrong);
}
void multiplySparse(cudaStream_t stream, const SparseFactors& factors) {
  const int side = factors.n / kTile;
  multiplySparseKernel<<<side * side, kThreads, 0, stream>>>(factors);
}
void fillWeights(cudaStream_t stream, std::uint64_t seed, std::uint64_t* to, int count) {
  fillWeightsKernel<<<blocksFor(static_cast<std::uint64_t>(count)), kThreads, 0, stream>>>(seed, to,
                                                                                           count);
}
void tileSums(cudaStream_t stream, const Output& out, std::uint64_t* sums) {
  tileSumsKernel<<<tilesOf(out), kThreads, 0, stream>>>(out, sums);
}
void checkTiles(cudaStream_t stream, const Output& out, const std::uint64_t* golden,
                unsigned long long product, TileReport* report) {
  checkTilesKernel<<<tilesOf(out), kThreads, 0, stream>>>(out, golden, product, report);
}
void sideSums(cudaStream_t stream, const Output& out, double* rows, double* columns) {
  sideSumsKernel<<<tilesOf(out), kThreads, 0, stream>>>(out, rows, columns);
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
  probeKernel<<<blocks, kLanes, kProbeSharedBytes, stream>>>(seed, report);
}
void probeShared(cudaStream_t stream, const CacheProbe& probe, int blocks, CacheReport* report) {
  const int bytes = probe.words * static_cast<int>(sizeof(std::uint64_t));
  cudaFuncSetAttribute(probeSharedKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  probeSharedKernel<<<blocks, kThreads, bytes, stream>>>(probe, report);
}
void probeL1(cudaStream_t stream, const CacheProbe& probe, int blocks, std::uint64_t* to,
             CacheReport* report) {
  probeL1Kernel<<<blocks, kThreads, kProbeSharedBytes, stream>>>(probe, to, report);
}
void flipBit(cudaStream_t stream, void* at, int bytes, int bit) {
  flipBitKernel<<<1, 1, 0, stream>>>(static_cast<unsigned char*>(at), bytes, bit);
}
void setNan(cudaStream_t stream, void* at, int bytes) {
  setNanKernel<<<1, 1, 0, stream>>>(static_cast<unsigned char*>(at), bytes);
}

}  // namespace muster::burn::cuda
