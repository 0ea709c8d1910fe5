// SPDX-License-Identifier: Apache-2.0
// Launches of the kernels of kernels.hip, by their names.
#pragma once

#include "validate/burn/gpu/kernels.h"
#include "validate/burn/hip/code_objects.h"

namespace muster::burn::hip {

class HipKernels final : public gpu::Kernels {
 public:
  explicit HipKernels(const HipApi& hip);

  Result<void> fillOperands(gpu::StreamHandle, gpu::Encoding, gpu::OperandRule, void* to,
                            std::uint64_t count) override;
  Result<void> countWrongOperands(gpu::StreamHandle, gpu::Encoding, gpu::OperandRule,
                                  const void* from, std::uint64_t count,
                                  unsigned long long* wrong) override;
  Result<void> fillScales(gpu::StreamHandle, const gpu::ScaleRule&, std::uint8_t* to) override;
  Result<void> countWrongScales(gpu::StreamHandle, const gpu::ScaleRule&, const std::uint8_t* from,
                                unsigned long long* wrong) override;
  Result<void> fillWeights(gpu::StreamHandle, std::uint64_t seed, std::uint64_t* to,
                           int count) override;
  Result<void> tileSums(gpu::StreamHandle, const gpu::Output&, std::uint64_t* sums) override;
  Result<void> checkTiles(gpu::StreamHandle, const gpu::Output&, const std::uint64_t* golden,
                          unsigned long long product, gpu::TileReport* report) override;
  Result<void> sideSums(gpu::StreamHandle, const gpu::Output&, double* rows,
                        double* columns) override;
  Result<void> walkMemory(gpu::StreamHandle, const gpu::Walk&, std::uint64_t* words,
                          std::uint64_t count, std::uint64_t seed,
                          gpu::WordReport* report) override;
  Result<void> blockCrcs(gpu::StreamHandle, const std::uint64_t* words, std::uint64_t count,
                         std::uint32_t* crcs) override;
  Result<void> probeUnits(gpu::StreamHandle, std::uint64_t seed, int blocks,
                          gpu::UnitReport* report) override;
  Result<void> probeShared(gpu::StreamHandle, const gpu::CacheProbe&, int blocks,
                           gpu::CacheReport* report) override;
  Result<void> probeL1(gpu::StreamHandle, const gpu::CacheProbe&, int blocks, std::uint64_t* to,
                       gpu::CacheReport* report) override;
  Result<void> flipBit(gpu::StreamHandle, void* at, int bytes, int bit) override;
  Result<void> setNan(gpu::StreamHandle, void* at, int bytes) override;

 private:
  CodeObjects code_;
};

}  // namespace muster::burn::hip
