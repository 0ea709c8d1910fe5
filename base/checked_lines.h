// SPDX-License-Identifier: Apache-2.0
// The lines of a small text file that somebody else has written, checked one by one.
#pragma once

#include "base/printable.h"
#include "base/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
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

/// Of a configuration with an option a line, and a value behind `divider`: only options of
/// `allowed` (rows with a member `option`) whose value is fine; `is_fine` gets the row and the
/// value, if there is one. Lines that begin with "# " say nothing. Answers the options that are
/// there. Errors: InvalidInput, with the line's number
template <class Rows, class IsFine>
Result<std::set<std::string_view>> checkOptions(std::string_view text, LineLimits limits,
                                                char divider, const Rows& allowed, IsFine is_fine) {
  std::set<std::string_view> seen;
  TRY_OK(checkLines(text, limits, [&](std::string_view line) -> std::string {
    if (line.starts_with("# ")) return {};
    const auto end = line.find(divider);
    const auto option = line.substr(0, end);
    const auto row =
        std::ranges::find_if(allowed, [option](const auto& each) { return each.option == option; });
    if (row == allowed.end())
      return fmt::format("option \"{}\" is none that this unit takes", printable(option));
    seen.insert(option);
    const auto value =
        end == std::string_view::npos ? std::nullopt : std::optional(line.substr(end + 1));
    if (is_fine(*row, value)) return {};
    return fmt::format("option {} has a value that this unit does not take", option);
  }));
  return seen;
}

}  // namespace muster
