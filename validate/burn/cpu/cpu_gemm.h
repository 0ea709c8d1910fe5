// SPDX-License-Identifier: Apache-2.0
// Products on the host: operands shared, an output a lane, every tile checked by the lane that made
// it.
#pragma once

#include "validate/burn/device.h"

namespace muster::burn::cpu {

/// Errors: InvalidInput for a format or a size that the host has not
Result<std::unique_ptr<GemmWork>> makeCpuGemm(const GemmPlan& plan, std::vector<int> cpus,
                                              std::optional<Fault> fault);

}  // namespace muster::burn::cpu
