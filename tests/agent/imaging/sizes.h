// SPDX-License-Identifier: Apache-2.0
// Units of disks and images in the tests of this folder.
#pragma once

#include <cstdint>

namespace muster::agent {

inline constexpr std::uint64_t kGib = 1ull << 30;

}  // namespace muster::agent
