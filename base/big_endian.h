// SPDX-License-Identifier: Apache-2.0
// Whole numbers as bytes, the highest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// The lowest `bytes` (at most 8) of the value.
inline std::string bigEndian(std::uint64_t value, std::size_t bytes) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i)
    out[i] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
  return out;
}

/// Of at most 8 bytes.
inline std::uint64_t fromBigEndian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const unsigned char c : bytes) value = value << 8 | c;
  return value;
}

}  // namespace muster
