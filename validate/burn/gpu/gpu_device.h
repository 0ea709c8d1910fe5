// SPDX-License-Identifier: Apache-2.0
// The GPUs of one vendor's runtime as burn devices.
#pragma once

#include "validate/burn/gpu/backend.h"

namespace muster::burn::gpu {

/// Every GPU that the runtime sees. Errors: NotFound (none, no driver), Internal
Result<Devices> openGpus(std::shared_ptr<Backend> runtime);

}  // namespace muster::burn::gpu
