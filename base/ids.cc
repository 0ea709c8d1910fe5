// SPDX-License-Identifier: Apache-2.0
#include "base/ids.h"

#include <fmt/format.h>

#include <optional>

namespace muster {

namespace {

std::optional<int> hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// Where separators stand in the accepted spellings; empty when the text is none of them.
bool separatorsFit(std::string_view text) {
  const auto all = [&](std::size_t step, char separator) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool here = i % (step + 1) == step;
      if (here != (text[i] == separator)) return false;
    }
    return true;
  };
  switch (text.size()) {
    case 12:
      return true;
    case 14:
      return all(4, '.');
    case 17:
      return all(2, ':') || all(2, '-');
    default:
      return false;
  }
}

}  // namespace

Result<Mac> Mac::parse(std::string_view text) {
  const auto bad = [&] {
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("\"{}\" is not an Ethernet address; write it as aa:bb:cc:dd:ee:ff", text));
  };
  if (!separatorsFit(text)) return bad();
  Mac mac;
  std::size_t digits = 0;
  for (const char c : text) {
    const auto digit = hexDigit(c);
    if (!digit) {
      if (text.size() != 12 && (c == ':' || c == '-' || c == '.')) continue;
      return bad();
    }
    auto& byte = mac.bytes_[digits / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | *digit);
    ++digits;
  }
  if (digits != 12) return bad();
  return mac;
}

std::string Mac::str() const {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", bytes_[0], bytes_[1], bytes_[2],
                     bytes_[3], bytes_[4], bytes_[5]);
}

}  // namespace muster
