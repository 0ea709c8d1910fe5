// SPDX-License-Identifier: Apache-2.0
// The host's processors and memory as a burn device: a lane a core, each pinned, each with products
// and a slice of memory of its own.
#pragma once

#include "validate/burn/device.h"

#include <filesystem>

namespace muster::burn {

/// `threads` 0: all that this process may run on. `root`: where /sys is, for the sensors.
std::unique_ptr<Device> makeCpuDevice(int threads = 0, std::filesystem::path root = "/");

}  // namespace muster::burn
