// SPDX-License-Identifier: Apache-2.0
// RCCL on AMD GPUs: librccl and HIP's runtime are loaded when they are asked for.
#pragma once

#include "validate/collective/transports.h"

namespace muster::collective {

/// Errors: NotFound (no ROCm, no GPU: each with what to do), Corrupt (of another version)
Result<NcclFound> openRccl();

}  // namespace muster::collective
