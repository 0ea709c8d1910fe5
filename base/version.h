// SPDX-License-Identifier: Apache-2.0
// The version of everything that is built from this tree.
#pragma once

#include <string_view>

namespace muster {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace muster
