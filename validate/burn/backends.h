// SPDX-License-Identifier: Apache-2.0
// Which devices there are. CUDA comes as a file of its own beside the program, so that hosts
// without its libraries need none; HIP is in the program and finds ROCm's libraries when it is
// asked for.
#pragma once

#include "validate/burn/device.h"

#include <filesystem>

namespace muster::burn {

inline constexpr const char* kCudaFile = "libmuster-burn-cuda.so";
inline constexpr const char* kCudaEntry = "muster_burn_open_cuda";
/// What the file exports. Fills `devices`, or answers an error.
using OpenCuda = void (*)(Devices& devices, Result<void>& answer);

/// kind: "cpu", "cuda", "hip", or "gpu": that of the GPUs that the PCI bus has. Errors:
/// InvalidInput (no such kind), NotFound (no CUDA file, no library that it needs, no GPU)
Result<Devices> openDevices(const std::string& kind, int threads,
                            const std::filesystem::path& folder_of_program);

/// "cuda" or "hip", by who made the GPUs. `devices`: /sys/bus/pci/devices. Errors: NotFound (none),
/// InvalidInput (GPUs of both)
Result<std::string> backendOf(const std::filesystem::path& devices);

}  // namespace muster::burn
