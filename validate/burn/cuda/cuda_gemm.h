// SPDX-License-Identifier: Apache-2.0
// Products on one GPU, each tile of each checked on the GPU while the next product is under way.
#pragma once

#include "validate/burn/cuda/handles.h"
#include "validate/burn/device.h"

namespace muster::burn::cuda {

/// The calling thread has chosen its device. Errors: InvalidInput (size), Unavailable (memory),
/// Internal
Result<std::unique_ptr<GemmWork>> makeCudaGemm(const GemmPlan& plan, int device,
                                               cublasLtHandle_t handle, std::optional<Fault> fault);

}  // namespace muster::burn::cuda
