// SPDX-License-Identifier: Apache-2.0
// Which devices there are. CUDA comes as a file of its own beside the program, so that hosts
// without its libraries need none.
#pragma once

#include "validate/burn/device.h"

#include <filesystem>

namespace muster::burn {

inline constexpr const char* kCudaFile = "libmuster-burn-cuda.so";
inline constexpr const char* kCudaEntry = "muster_burn_open_cuda";
/// What the file exports. Fills `devices`, or answers an error.
using OpenCuda = void (*)(Devices& devices, Result<void>& answer);

/// kind: "cpu", "cuda". Errors: InvalidInput (no such kind), NotFound (no CUDA file, no library
/// that it needs, no GPU)
Result<Devices> openDevices(const std::string& kind, int threads,
                            const std::filesystem::path& folder_of_program);

}  // namespace muster::burn
