// SPDX-License-Identifier: Apache-2.0
#include "bmc/machine_identity.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace muster::bmc {
namespace {

constexpr std::array<std::string_view, 5> kWords = {"system", "chassis", "part", "manager",
                                                    "service"};

// Seen on many makers' machines, compared in lower case; the last ones in captures of NVIDIA's.
constexpr std::array<std::string_view, 15> kNoSerials = {"",
                                                         "none",
                                                         "n/a",
                                                         "not specified",
                                                         "not available",
                                                         "default string",
                                                         "0123456789",
                                                         "123456789",
                                                         "system serial number",
                                                         "chassis serial number",
                                                         "to be filled by o.e.m.",
                                                         "empty",
                                                         "na",
                                                         "null",
                                                         "cpldserialnumber"};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank(" \t\r\n\0", 5);
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace

std::string_view word(IdentityPlace place) { return kWords.at(static_cast<std::size_t>(place)); }

bool isRealSerial(std::string_view serial) {
  std::string text(trimmed(serial));
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (std::ranges::find(kNoSerials, text) != kNoSerials.end()) return false;
  return text.find_first_not_of("0 -.x") != std::string::npos;
}

std::string realSerial(std::string_view serial) {
  return isRealSerial(serial) ? std::string(trimmed(serial)) : std::string();
}

bool sameText(std::string_view a, std::string_view b) { return trimmed(a) == trimmed(b); }

const ReportedIdentity* firstWith(const std::vector<ReportedIdentity>& reported,
                                  std::string ReportedIdentity::* member) {
  const ReportedIdentity* best = nullptr;
  for (const auto& each : reported)
    if (!(each.*member).empty() && (!best || each.place < best->place)) best = &each;
  return best;
}

}  // namespace muster::bmc
