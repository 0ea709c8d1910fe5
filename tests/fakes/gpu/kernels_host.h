// SPDX-License-Identifier: Apache-2.0
// What the kernels do, on the host: the same values, one after the other. For the runtimes of the
// tests.
#pragma once

#include "validate/burn/gpu/kernel_types.h"

namespace muster::test::kernels {

void fillOperands(burn::gpu::Encoding, burn::gpu::OperandRule, void* to, std::uint64_t count);
void countWrongOperands(burn::gpu::Encoding, burn::gpu::OperandRule, const void* from,
                        std::uint64_t count, unsigned long long* wrong);
void fillScales(const burn::gpu::ScaleRule&, std::uint8_t* to);
void countWrongScales(const burn::gpu::ScaleRule&, const std::uint8_t* from,
                      unsigned long long* wrong);
void fillPlaces(const burn::gpu::OperandRule&, std::uint32_t* to, std::uint64_t words);
void countWrongPlaces(const burn::gpu::OperandRule&, const std::uint32_t* from, std::uint64_t words,
                      unsigned long long* wrong);
/// By the definition: kept values are put at their places, all else is zero.
void multiplySparse(const burn::gpu::SparseFactors&);
void fillWeights(std::uint64_t seed, std::uint64_t* to, int count);
void tileSums(const burn::gpu::Output&, std::uint64_t* sums);
void checkTiles(const burn::gpu::Output&, const std::uint64_t* golden, unsigned long long product,
                burn::gpu::TileReport* report);
void sideSums(const burn::gpu::Output&, double* rows, double* columns);
void walkMemory(const burn::gpu::Walk&, std::uint64_t* words, std::uint64_t count,
                std::uint64_t seed, burn::gpu::WordReport* report);
void blockCrcs(const std::uint64_t* words, std::uint64_t count, std::uint32_t* crcs);
void probeUnits(int blocks, burn::gpu::UnitReport* report);
/// Without a cache between: `words` of each block are its own.
void probeCache(const burn::gpu::CacheProbe&, int blocks, burn::gpu::CacheReport* report);
void flipBit(void* at, int bytes, int bit);
void setNan(void* at, int bytes);

}  // namespace muster::test::kernels
