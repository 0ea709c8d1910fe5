// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/hip/hip_kernels.h"

#include "base/embedded.h"
#include "validate/burn/gpu/launch_shapes.h"
#include "validate/burn/hip/hip_calls.h"

namespace muster::burn::hip {

std::span<const EmbeddedFile> burnCodeObjects();  ///< cmake/hip.cmake

namespace {

constexpr unsigned kWavefront = 64;

Shape over(std::uint64_t count) {
  return {static_cast<unsigned>(gpu::blocksFor(count)), gpu::kThreads, 0};
}
Shape overTiles(const gpu::Output& out) {
  const int side = out.n / kTile;
  return {static_cast<unsigned>(side * side), gpu::kThreads, 0};
}

/// By pattern and by what is done: read and write, read, write.
const char* nameOf(const gpu::Walk& walk) {
  static constexpr const char* kNames[][3] = {
      {"walk_zeros_rw", "walk_zeros_r", "walk_zeros_w"},
      {"walk_checkerboard_rw", "walk_checkerboard_r", "walk_checkerboard_w"},
      {"walk_address_rw", "walk_address_r", "walk_address_w"},
      {"walk_walking_one_rw", "walk_walking_one_r", "walk_walking_one_w"},
      {"walk_random_rw", "walk_random_r", "walk_random_w"}};
  const auto pattern = walk.reads ? walk.read.pattern : walk.write.pattern;
  return kNames[static_cast<std::size_t>(pattern)][walk.reads && walk.writes ? 0
                                                   : walk.reads              ? 1
                                                                             : 2];
}

}  // namespace

HipKernels::HipKernels(const HipApi& hip) : code_(hip, burnCodeObjects()) {}

Result<void> HipKernels::fillOperands(gpu::StreamHandle stream, gpu::Encoding encoding,
                                      gpu::OperandRule rule, void* to, std::uint64_t count) {
  return code_.launch("fill_operands", over(count), own(stream), encoding, rule, to, count);
}
Result<void> HipKernels::countWrongOperands(gpu::StreamHandle stream, gpu::Encoding encoding,
                                            gpu::OperandRule rule, const void* from,
                                            std::uint64_t count, unsigned long long* wrong) {
  return code_.launch("count_wrong_operands", over(count), own(stream), encoding, rule, from, count,
                      wrong);
}
Result<void> HipKernels::fillScales(gpu::StreamHandle stream, const gpu::ScaleRule& rule,
                                    std::uint8_t* to) {
  return code_.launch("fill_scales", over(rule.count()), own(stream), rule, to);
}
Result<void> HipKernels::countWrongScales(gpu::StreamHandle stream, const gpu::ScaleRule& rule,
                                          const std::uint8_t* from, unsigned long long* wrong) {
  return code_.launch("count_wrong_scales", over(rule.count()), own(stream), rule, from, wrong);
}
Result<void> HipKernels::fillWeights(gpu::StreamHandle stream, std::uint64_t seed,
                                     std::uint64_t* to, int count) {
  return code_.launch("fill_weights", over(static_cast<std::uint64_t>(count)), own(stream), seed,
                      to, count);
}
Result<void> HipKernels::tileSums(gpu::StreamHandle stream, const gpu::Output& out,
                                  std::uint64_t* sums) {
  return code_.launch("tile_sums", overTiles(out), own(stream), out, sums);
}
Result<void> HipKernels::checkTiles(gpu::StreamHandle stream, const gpu::Output& out,
                                    const std::uint64_t* golden, unsigned long long product,
                                    gpu::TileReport* report) {
  return code_.launch("check_tiles", overTiles(out), own(stream), out, golden, product, report);
}
Result<void> HipKernels::sideSums(gpu::StreamHandle stream, const gpu::Output& out, double* rows,
                                  double* columns) {
  return code_.launch("side_sums", overTiles(out), own(stream), out, rows, columns);
}
Result<void> HipKernels::walkMemory(gpu::StreamHandle stream, const gpu::Walk& walk,
                                    std::uint64_t* words, std::uint64_t count, std::uint64_t seed,
                                    gpu::WordReport* report) {
  return code_.launch(nameOf(walk), over(count / 2 / gpu::kInFlight), own(stream), walk, words,
                      count, seed, report);
}
Result<void> HipKernels::blockCrcs(gpu::StreamHandle stream, const std::uint64_t* words,
                                   std::uint64_t count, std::uint32_t* crcs) {
  return code_.launch("block_crcs", over((count + kCopyBlockWords - 1) / kCopyBlockWords),
                      own(stream), words, count, crcs);
}
Result<void> HipKernels::probeUnits(gpu::StreamHandle stream, std::uint64_t seed, int blocks,
                                    gpu::UnitReport* report) {
  return code_.launch("probe_units",
                      {static_cast<unsigned>(blocks), kWavefront, gpu::kProbeSharedBytes},
                      own(stream), seed, report);
}
Result<void> HipKernels::probeShared(gpu::StreamHandle stream, const gpu::CacheProbe& probe,
                                     int blocks, gpu::CacheReport* report) {
  const auto bytes = static_cast<unsigned>(probe.words) * sizeof(std::uint64_t);
  return code_.launch("probe_shared",
                      {static_cast<unsigned>(blocks), gpu::kThreads, static_cast<unsigned>(bytes)},
                      own(stream), probe, report);
}
Result<void> HipKernels::probeL1(gpu::StreamHandle stream, const gpu::CacheProbe& probe, int blocks,
                                 std::uint64_t* to, gpu::CacheReport* report) {
  return code_.launch("probe_l1",
                      {static_cast<unsigned>(blocks), gpu::kThreads, gpu::kProbeSharedBytes},
                      own(stream), probe, to, report);
}
Result<void> HipKernels::flipBit(gpu::StreamHandle stream, void* at, int bytes, int bit) {
  return code_.launch("flip_bit", {}, own(stream), at, bytes, bit);
}
Result<void> HipKernels::setNan(gpu::StreamHandle stream, void* at, int bytes) {
  return code_.launch("set_nan", {}, own(stream), at, bytes);
}

}  // namespace muster::burn::hip
