// SPDX-License-Identifier: Apache-2.0
// Text as code points: reading one, repairing bytes that are none, cutting without breaking one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

inline constexpr std::string_view kReplacement =
    "\xEF\xBF\xBD";  ///< U+FFFD stands for bytes that are no UTF-8

/// "UTF-16" or "UTF-32", by the byte order mark that the text begins with; empty: neither. Both are
/// what editors and shells of Windows write unasked, and no text of muster's is either.
std::string_view wideEncodingOf(std::string_view text);

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;  ///< how many it takes in the text; 1 for a byte that begins nothing
  bool valid = false;
  bool cut = false;  ///< not valid because the text ends within it; more bytes may complete it
};

/// The code point that begins at `at`, which must be inside the text. Overlong forms, surrogates
/// and values above U+10FFFF are not valid.
CodePoint codePointAt(std::string_view text, std::size_t at);

/// The text with U+FFFD in the place of each byte that is no UTF-8.
std::string validUtf8(std::string_view text);

/// The longest beginning of the text that has at most so many bytes and ends with a whole code
/// point.
std::string_view cutToBytes(std::string_view text, std::size_t max_bytes);

/// The same, with "…" behind it when something was cut; the sign is not counted.
std::string shortened(std::string_view text, std::size_t max_bytes);

/// Appends the code point as UTF-8.
void appendUtf8(std::string& out, char32_t value);

}  // namespace muster
