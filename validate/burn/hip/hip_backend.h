// SPDX-License-Identifier: Apache-2.0
// AMD Instinct GPUs as burn devices. The libraries of ROCm are found when it is asked for.
#pragma once

#include "base/result.h"

#include <memory>
#include <vector>

namespace muster::burn {
class Device;
namespace hip {

/// Errors: NotFound (no ROCm, no GPU, no kernels for this GPU: each with what to do), Corrupt (ROCm
/// of another version)
Result<std::vector<std::unique_ptr<Device>>> openHip();

}  // namespace hip
}  // namespace muster::burn
