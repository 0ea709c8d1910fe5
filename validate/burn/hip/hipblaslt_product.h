// SPDX-License-Identifier: Apache-2.0
// One product by hipBLASLt.
#pragma once

#include "validate/burn/device_types.h"
#include "validate/burn/gpu/float_formats.h"
#include "validate/burn/gpu/product.h"
#include "validate/burn/hip/hip_api.h"

namespace muster::burn::hip {

/// The handle is borrowed. Errors: Internal
Result<std::unique_ptr<gpu::Product>> makeHipBlasLtProduct(const HipBlasLtApi& blas,
                                                           BlasHandle handle, Dtype dtype,
                                                           gpu::Float8 float8, int n);

}  // namespace muster::burn::hip
