// SPDX-License-Identifier: Apache-2.0
// One look at all GPUs by NVML, and a verdict over all of them.
#pragma once

#include "validate/checks/check_row.h"
#include "validate/checks/nvml.h"

#include <functional>

namespace muster::validate {

struct GpuSnapshot {
  std::vector<GpuHealth> gpus;
  std::string driver;
  std::optional<int> cuda;  ///< 13000: 13.0
};
Result<GpuSnapshot> readGpus();
nlohmann::json identityOf(const wire::Gpu& gpu);

/// Asks `evaluate` about each GPU; the worst answer is the verdict, each bad one is named with its
/// serial. No GPU at all is no data.
Verdict everyGpu(const GpuSnapshot& look, const std::function<Verdict(const GpuHealth&)>& evaluate,
                 std::string_view good);
/// The same after a look of its own.
Verdict everyGpu(const std::function<Verdict(const GpuHealth&)>& evaluate, std::string_view good);

Verdict evaluateRemap(const GpuHealth& gpu);
Verdict evaluateRetired(const GpuHealth& gpu);

}  // namespace muster::validate
