// SPDX-License-Identifier: Apache-2.0
// The lines of a small text file that somebody else has written, checked one by one.
#pragma once

#include "base/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace muster {

struct LineLimits {
  std::size_t lines = 0;
  std::size_t line_bytes = 0;
};

/// Calls `see` with each line of plain ASCII without a backslash, which programs read as a line
/// that goes on; it answers what is wrong with it, or nothing. The last line may lack its end.
/// Errors: InvalidInput, with the line's number
template <class See>
Result<void> checkLines(std::string_view text, LineLimits limits, See see) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '\\'; };
  std::size_t number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::string why;
    if (++number > limits.lines)
      why = "too many lines";
    else if (line.size() > limits.line_bytes)
      why = fmt::format("more than {} bytes", limits.line_bytes);
    else if (!std::ranges::all_of(line, is_plain))
      why = "no plain text";
    else
      why = see(line);
    if (!why.empty()) return fail(ErrorCode::InvalidInput, fmt::format("line {}: {}", number, why));
  }
  return {};
}

}  // namespace muster
