// SPDX-License-Identifier: Apache-2.0
// Memory steps and copies on the host.
#pragma once

#include "validate/burn/device.h"

namespace muster::burn::cpu {

/// `bytes` of fresh memory, touched by the lanes that will test it. Errors: Unavailable when there
/// is not so much
Result<std::unique_ptr<MemoryWork>> makeCpuMemory(std::uint64_t bytes, std::vector<int> cpus,
                                                  std::optional<Fault> fault);

/// Copies seeded data from one buffer to another and compares a CRC of every block.
Result<CopyRound> copyMemory(std::uint64_t bytes, std::uint64_t seed, const std::vector<int>& cpus,
                             std::optional<Fault> fault);

}  // namespace muster::burn::cpu
