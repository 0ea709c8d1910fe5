// SPDX-License-Identifier: Apache-2.0
// What runs on the GPU besides products: one function a kernel, launched on a stream. CUDA's are in
// cuda/kernels.cu, HIP's in hip/kernels.hip; both are made of kernel_bodies.h.
#pragma once

#include "validate/burn/gpu/gpu_handle_types.h"
#include "validate/burn/gpu/kernel_types.h"

#include "base/result.h"

namespace muster::burn::gpu {

/// Each returns when its kernel is launched. Errors: Internal, with the kernel's name
class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual Result<void> fillOperands(StreamHandle, Encoding, OperandRule, void* to,
                                    std::uint64_t count) = 0;
  virtual Result<void> countWrongOperands(StreamHandle, Encoding, OperandRule, const void* from,
                                          std::uint64_t count, unsigned long long* wrong) = 0;
  virtual Result<void> fillScales(StreamHandle, const ScaleRule&, std::uint8_t* to) = 0;
  virtual Result<void> countWrongScales(StreamHandle, const ScaleRule&, const std::uint8_t* from,
                                        unsigned long long* wrong) = 0;
  /// Sparse operands and their product: where the matrix units of a vendor are known to have it.
  virtual Result<void> fillPlaces(StreamHandle, const OperandRule&, std::uint32_t*,
                                  std::uint64_t /*words*/) {
    return noSparse();
  }
  virtual Result<void> countWrongPlaces(StreamHandle, const OperandRule&, const std::uint32_t*,
                                        std::uint64_t /*words*/, unsigned long long* /*wrong*/) {
    return noSparse();
  }
  virtual Result<void> multiplySparse(StreamHandle, const SparseFactors&) { return noSparse(); }
  virtual Result<void> fillWeights(StreamHandle, std::uint64_t seed, std::uint64_t* to,
                                   int count) = 0;
  virtual Result<void> tileSums(StreamHandle, const Output&, std::uint64_t* sums) = 0;
  virtual Result<void> checkTiles(StreamHandle, const Output&, const std::uint64_t* golden,
                                  unsigned long long product, TileReport* report) = 0;
  virtual Result<void> sideSums(StreamHandle, const Output&, double* rows, double* columns) = 0;
  virtual Result<void> walkMemory(StreamHandle, const Walk&, std::uint64_t* words,
                                  std::uint64_t count, std::uint64_t seed, WordReport* report) = 0;
  virtual Result<void> blockCrcs(StreamHandle, const std::uint64_t* words, std::uint64_t count,
                                 std::uint32_t* crcs) = 0;
  /// A product of 16×16×16 on every unit, many times, compared with integers.
  virtual Result<void> probeUnits(StreamHandle, std::uint64_t seed, int blocks,
                                  UnitReport* report) = 0;
  /// Patterns in shared memory, of which each block takes `words` words.
  virtual Result<void> probeShared(StreamHandle, const CacheProbe&, int blocks,
                                   CacheReport* report) = 0;
  /// Patterns that stay in L1; `to`: `words` words a block.
  virtual Result<void> probeL1(StreamHandle, const CacheProbe&, int blocks, std::uint64_t* to,
                               CacheReport* report) = 0;
  /// Self-test: changes one value.
  virtual Result<void> flipBit(StreamHandle, void* at, int bytes, int bit) = 0;
  virtual Result<void> setNan(StreamHandle, void* at, int bytes) = 0;

 private:
  static Result<void> noSparse() {
    return fail(ErrorCode::Internal, "there are no kernels of sparse products for this GPU");
  }
};

}  // namespace muster::burn::gpu
