// SPDX-License-Identifier: Apache-2.0
// The launches of cuda/kernels.h without a GPU: done at once, by the host.
#include "tests/fakes/gpu/kernels_host.h"
#include "validate/burn/cuda/kernels.h"

namespace muster::burn::cuda {

namespace host = test::kernels;

void fillOperands(cudaStream_t, gpu::Encoding encoding, gpu::OperandRule rule, void* to,
                  std::uint64_t count) {
  host::fillOperands(encoding, rule, to, count);
}
void countWrongOperands(cudaStream_t, gpu::Encoding encoding, gpu::OperandRule rule,
                        const void* from, std::uint64_t count, unsigned long long* wrong) {
  host::countWrongOperands(encoding, rule, from, count, wrong);
}
void fillScales(cudaStream_t, const gpu::ScaleRule& rule, std::uint8_t* to) {
  host::fillScales(rule, to);
}
void countWrongScales(cudaStream_t, const gpu::ScaleRule& rule, const std::uint8_t* from,
                      unsigned long long* wrong) {
  host::countWrongScales(rule, from, wrong);
}
void fillPlaces(cudaStream_t, const gpu::OperandRule& rule, std::uint32_t* to,
                std::uint64_t words) {
  host::fillPlaces(rule, to, words);
}
void countWrongPlaces(cudaStream_t, const gpu::OperandRule& rule, const std::uint32_t* from,
                      std::uint64_t words, unsigned long long* wrong) {
  host::countWrongPlaces(rule, from, words, wrong);
}
void multiplySparse(cudaStream_t, const gpu::SparseFactors& factors) {
  host::multiplySparse(factors);
}
void fillWeights(cudaStream_t, std::uint64_t seed, std::uint64_t* to, int count) {
  host::fillWeights(seed, to, count);
}
void tileSums(cudaStream_t, const gpu::Output& out, std::uint64_t* sums) {
  host::tileSums(out, sums);
}
void checkTiles(cudaStream_t, const gpu::Output& out, const std::uint64_t* golden,
                unsigned long long product, gpu::TileReport* report) {
  host::checkTiles(out, golden, product, report);
}
void sideSums(cudaStream_t, const gpu::Output& out, double* rows, double* columns) {
  host::sideSums(out, rows, columns);
}
void walkMemory(cudaStream_t, const gpu::Walk& walk, std::uint64_t* words, std::uint64_t count,
                std::uint64_t seed, gpu::WordReport* report) {
  host::walkMemory(walk, words, count, seed, report);
}
void blockCrcs(cudaStream_t, const std::uint64_t* words, std::uint64_t count, std::uint32_t* crcs) {
  host::blockCrcs(words, count, crcs);
}
void probeUnits(cudaStream_t, std::uint64_t, int blocks, gpu::UnitReport* report) {
  host::probeUnits(blocks, report);
}
void probeShared(cudaStream_t, const gpu::CacheProbe& probe, int blocks, gpu::CacheReport* report) {
  host::probeCache(probe, blocks, report);
}
void probeL1(cudaStream_t, const gpu::CacheProbe& probe, int blocks, std::uint64_t*,
             gpu::CacheReport* report) {
  host::probeCache(probe, blocks, report);
}
void flipBit(cudaStream_t, void* at, int bytes, int bit) { host::flipBit(at, bytes, bit); }
void setNan(cudaStream_t, void* at, int bytes) { host::setNan(at, bytes); }

}  // namespace muster::burn::cuda
