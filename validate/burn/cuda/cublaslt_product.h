// SPDX-License-Identifier: Apache-2.0
// One product by cuBLASLt.
#pragma once

#include "validate/burn/cuda/cuda_codes.h"
#include "validate/burn/device_types.h"
#include "validate/burn/gpu/product.h"

namespace muster::burn::cuda {

/// Scales of blocks came with cuBLAS 12.8.
inline constexpr bool kHasScales = CUBLAS_VERSION >= 120800;

/// Errors: Internal when the library has no algorithm for this format; Unavailable (memory)
Result<std::unique_ptr<gpu::Product>> makeCublasLtProduct(cublasLtHandle_t handle, Dtype dtype,
                                                          int n);

}  // namespace muster::burn::cuda
