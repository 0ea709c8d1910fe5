// SPDX-License-Identifier: Apache-2.0
// The kernels for AMD GPUs: compiled by clang alone, carried in the program as one code object
// an architecture, launched by these names (hip_kernels.cc).
#include "validate/burn/gpu/kernel_bodies.h"

using namespace muster::burn;
using namespace muster::burn::gpu;

GPU_KERNEL fill_operands(Encoding encoding, OperandRule rule, void* to, std::uint64_t count) {
  fillOperandsBody(encoding, rule, to, count);
}
GPU_KERNEL count_wrong_operands(Encoding encoding, OperandRule rule, const void* from,
                                std::uint64_t count, unsigned long long* wrong) {
  countWrongOperandsBody(encoding, rule, from, count, wrong);
}
GPU_KERNEL fill_scales(ScaleRule rule, std::uint8_t* to) { fillScalesBody(rule, to); }
GPU_KERNEL count_wrong_scales(ScaleRule rule, const std::uint8_t* from, unsigned long long* wrong) {
  countWrongScalesBody(rule, from, wrong);
}
GPU_KERNEL fill_weights(std::uint64_t seed, std::uint64_t* to, int count) {
  fillWeightsBody(seed, to, count);
}
GPU_KERNEL tile_sums(Output out, std::uint64_t* sums) { tileSumsBody(out, sums); }
GPU_KERNEL check_tiles(Output out, const std::uint64_t* golden, unsigned long long product,
                       TileReport* report) {
  checkTilesBody(out, golden, product, report);
}
GPU_KERNEL side_sums(Output out, double* rows, double* columns) {
  sideSumsBody(out, rows, columns);
}

#define WALK(NAME, PATTERN, READS, WRITES)                                                  \
  GPU_KERNEL NAME(Walk walk, TwoWords* pairs, std::uint64_t count, std::uint64_t seed,      \
                  WordReport* report) {                                                     \
    walkBody<Pattern::PATTERN, READS, WRITES>(walk, pairs, count, seed, report);            \
  }
#define WALKS(NAME, PATTERN)               \
  WALK(walk_##NAME##_rw, PATTERN, true, true) \
  WALK(walk_##NAME##_r, PATTERN, true, false) \
  WALK(walk_##NAME##_w, PATTERN, false, true)
WALKS(zeros, Zeros)
WALKS(checkerboard, Checkerboard)
WALKS(address, Address)
WALKS(walking_one, WalkingOne)
WALKS(random, Random)

GPU_KERNEL block_crcs(const std::uint64_t* words, std::uint64_t count, std::uint32_t* crcs) {
  blockCrcsBody(words, count, crcs);
}
GPU_KERNEL probe_units(std::uint64_t seed, UnitReport* report) { probeBody(seed, report); }
GPU_KERNEL probe_shared(CacheProbe probe, CacheReport* report) {
  probeCacheBody(probe, sharedWords(), report);
}
GPU_KERNEL probe_l1(CacheProbe probe, std::uint64_t* to, CacheReport* report) {
  probeCacheBody(probe,
                 to + static_cast<std::uint64_t>(blockIndex()) * static_cast<unsigned>(probe.words),
                 report);
}
GPU_KERNEL flip_bit(unsigned char* at, int bytes, int bit) { flipBitBody(at, bytes, bit); }
GPU_KERNEL set_nan(unsigned char* at, int bytes) { setNanBody(at, bytes); }
