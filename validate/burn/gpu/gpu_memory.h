// SPDX-License-Identifier: Apache-2.0
// HBM patterns and copies of one GPU.
#pragma once

#include "validate/burn/gpu/backend.h"
#include "validate/burn/gpu/handles.h"

namespace muster::burn::gpu {

Result<std::unique_ptr<MemoryWork>> makeGpuMemory(Backend& runtime, std::uint64_t bytes, int device,
                                                  std::optional<Fault> fault);

enum class CopyDirection { HostToDevice, DeviceToHost, DeviceToPeer };
/// Seeded data over the way, a CRC of every block at its end compared with what the seed says.
/// `peer`: device number, for DeviceToPeer; `node`: the host's memory that is near
Result<CopyRound> copyOver(Backend& runtime, CopyDirection direction, int device, int peer,
                           std::optional<int> node, std::uint64_t bytes, std::uint64_t seed,
                           std::optional<Fault> fault);

}  // namespace muster::burn::gpu
