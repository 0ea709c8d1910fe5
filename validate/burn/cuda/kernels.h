// SPDX-License-Identifier: Apache-2.0
// The kernels' launches by CUDA (kernels.cu). In the tests kernels_host.cc does the same on the
// host, so that everything above this line runs without a GPU.
#pragma once

#include "validate/burn/gpu/kernel_types.h"

#include <cuda_runtime_api.h>

namespace muster::burn::cuda {

void fillOperands(cudaStream_t, gpu::Encoding, gpu::OperandRule, void* to, std::uint64_t count);
void countWrongOperands(cudaStream_t, gpu::Encoding, gpu::OperandRule, const void* from,
                        std::uint64_t count, unsigned long long* wrong);
void fillScales(cudaStream_t, const gpu::ScaleRule&, std::uint8_t* to);
void countWrongScales(cudaStream_t, const gpu::ScaleRule&, const std::uint8_t* from,
                      unsigned long long* wrong);
void fillPlaces(cudaStream_t, const gpu::OperandRule&, std::uint32_t* to, std::uint64_t words);
void countWrongPlaces(cudaStream_t, const gpu::OperandRule&, const std::uint32_t* from,
                      std::uint64_t words, unsigned long long* wrong);
void multiplySparse(cudaStream_t, const gpu::SparseFactors&);
void fillWeights(cudaStream_t, std::uint64_t seed, std::uint64_t* to, int count);
void tileSums(cudaStream_t, const gpu::Output&, std::uint64_t* sums);
void checkTiles(cudaStream_t, const gpu::Output&, const std::uint64_t* golden,
                unsigned long long product, gpu::TileReport* report);
void sideSums(cudaStream_t, const gpu::Output&, double* rows, double* columns);
void walkMemory(cudaStream_t, const gpu::Walk&, std::uint64_t* words, std::uint64_t count,
                std::uint64_t seed, gpu::WordReport* report);
void blockCrcs(cudaStream_t, const std::uint64_t* words, std::uint64_t count, std::uint32_t* crcs);
void probeUnits(cudaStream_t, std::uint64_t seed, int blocks, gpu::UnitReport* report);
void probeShared(cudaStream_t, const gpu::CacheProbe&, int blocks, gpu::CacheReport* report);
void probeL1(cudaStream_t, const gpu::CacheProbe&, int blocks, std::uint64_t* to,
             gpu::CacheReport* report);
void flipBit(cudaStream_t, void* at, int bytes, int bit);
void setNan(cudaStream_t, void* at, int bytes);

}  // namespace muster::burn::cuda
