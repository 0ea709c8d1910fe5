// SPDX-License-Identifier: Apache-2.0
#include "base/control_signs.h"

#include "base/utf8.h"

#include <cstddef>

namespace muster {
namespace {

bool isControlSign(char32_t value) {
  return value < 0x20 || (0x7F <= value && value <= 0x9F) || (0x2028 <= value && value <= 0x202E) ||
         (0x2066 <= value && value <= 0x2069);
}

}  // namespace

bool hasControlSigns(std::string_view text, bool lines) {
  for (std::size_t at = 0; at < text.size();) {
    const auto point = codePointAt(text, at);
    const bool is_of_lines =
        lines && (point.value == U'\n' || point.value == U'\r' || point.value == U'\t');
    if (point.valid && !is_of_lines && isControlSign(point.value)) return true;
    at += point.bytes;
  }
  return false;
}

}  // namespace muster
