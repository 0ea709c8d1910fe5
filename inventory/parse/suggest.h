// SPDX-License-Identifier: Apache-2.0
// "Did you mean …": the nearest of some words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::inventory {

/// The word that a typing mistake would turn into `wrong`, or empty when none is near. Case, '-',
/// '_' and spaces count little.
std::string nearest(std::string_view wrong, const std::vector<std::string_view>& words);
/// "did you mean X?", or else "known: a, b, c".
std::string didYouMean(std::string_view wrong, const std::vector<std::string_view>& words);

}  // namespace muster::inventory
