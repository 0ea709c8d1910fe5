// SPDX-License-Identifier: Apache-2.0
// Attacks that are known to succeed, each with what is missing. They are run and reported, but do
// not fail the suite. One that was refused says so: then its line goes.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace muster::attack {

struct KnownOpen {
  std::string_view attack, missing;
};

inline constexpr std::array<KnownOpen, 0> kKnownOpen{};

bool isKnownOpen(std::string_view attack);
/// Checks an attack's outcome: `what` says what was seen.
void expectRefused(std::string_view attack, bool refused, const std::string& what);

}  // namespace muster::attack
