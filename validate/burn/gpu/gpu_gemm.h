// SPDX-License-Identifier: Apache-2.0
// Products on one GPU, each tile of each checked on the GPU while the next product is under way.
#pragma once

#include "validate/burn/gpu/backend.h"
#include "validate/burn/gpu/handles.h"

namespace muster::burn::gpu {

/// Errors: InvalidInput (size), Unavailable (memory), Internal
Result<std::unique_ptr<GemmWork>> makeGpuGemm(Backend& runtime, const GemmPlan& plan, int device,
                                              Float8 float8, std::optional<Fault> fault);

}  // namespace muster::burn::gpu
