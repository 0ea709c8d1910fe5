// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/general_info.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace muster::fabric {
namespace {

constexpr std::size_t kDeviceId = 10, kShort = 41, kPsid = 56, kPsidBytes = 16,
                      kWide = 76;  // where they begin
constexpr unsigned kInfiniScale3 = 0xb924;

unsigned long wideAt(const VendorData& data, std::size_t at, std::size_t bytes) {
  unsigned long value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | data[at + i];
  return value;
}

std::string textAt(const VendorData& data, std::size_t at, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes && std::isgraph(data[at + i]); ++i)
    text += static_cast<char>(data[at + i]);
  return text;
}

}  // namespace

std::optional<GeneralInfo> readGeneralInfo(const VendorData& data) {
  const bool is_short = wideAt(data, kDeviceId, 2) == kInfiniScale3;
  const std::size_t from = is_short ? kShort : kWide, bytes = is_short ? 1 : 4;
  std::array<unsigned long, 3> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = wideAt(data, from + i * bytes, bytes);
  constexpr unsigned long kMost = 65535;  // more is no version but something else
  if (std::all_of(numbers.begin(), numbers.end(), [](auto number) { return number == 0; }) ||
      *std::max_element(numbers.begin(), numbers.end()) > kMost)
    return std::nullopt;
  return GeneralInfo{std::to_string(numbers[0]) + "." + std::to_string(numbers[1]) + "." +
                         std::to_string(numbers[2]),
                     textAt(data, kPsid, kPsidBytes)};
}

}  // namespace muster::fabric
