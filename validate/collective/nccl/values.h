// SPDX-License-Identifier: Apache-2.0
// Inputs and their check, launched by CUDA.
#pragma once

#include "validate/collective/element_values.h"

#include <cuda_runtime_api.h>

namespace muster::collective {

void fillInput(cudaStream_t, float* to, std::uint64_t count, std::uint64_t seed, int rank);
/// Adds to `wrong`; a NaN is wrong.
void countWrongOutput(cudaStream_t, const float* from, std::uint64_t count, OutputRule rule,
                      unsigned long long* wrong);

}  // namespace muster::collective
