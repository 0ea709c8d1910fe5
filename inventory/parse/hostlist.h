// SPDX-License-Identifier: Apache-2.0
// Hostlists: "gpu[001-128,200],login1" ↔ names. Padding is kept, several ranges in one name
// multiply.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::inventory {

inline constexpr std::size_t kMaxHostlistNames = 1'000'000;

/// Errors: InvalidInput with the column of the mistake in the text
Result<std::vector<std::string>> expandHostlist(std::string_view text);
/// The shortest usual spelling: {"gpu001","gpu002","gpu004"} → "gpu[001-002,004]".
std::string foldHostlist(std::vector<std::string> names);
/// Natural order: gpu2 before gpu10.
bool naturalLess(std::string_view a, std::string_view b);

}  // namespace muster::inventory
