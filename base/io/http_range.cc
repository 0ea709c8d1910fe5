// SPDX-License-Identifier: Apache-2.0
#include "base/io/http_range.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace muster::io {

RangeKind rangeOf(const std::string& field, std::uint64_t size, Piece& piece) {
  piece = {0, size};
  std::string_view text = field;
  if (!text.starts_with("bytes=") || text.find(',') != std::string_view::npos)
    return RangeKind::Whole;
  text.remove_prefix(6);
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return RangeKind::Whole;
  const auto number = [](std::string_view digits, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  const bool has_first = dash > 0;
  const bool has_last = dash + 1 < text.size();
  if ((has_first && !number(text.substr(0, dash), first)) ||
      (has_last && !number(text.substr(dash + 1), last)))
    return RangeKind::Whole;
  if (!has_first && !has_last) return RangeKind::Whole;
  if (!has_first) {
    if (last == 0 || size == 0) return RangeKind::Unsatisfiable;
    piece = {size - std::min(last, size), std::min(last, size)};
    return RangeKind::Part;
  }
  if (has_last && last < first) return RangeKind::Whole;
  if (first >= size) return RangeKind::Unsatisfiable;
  const auto end = has_last ? std::min(last, size - 1) : size - 1;
  piece = {first, end - first + 1};
  return RangeKind::Part;
}

}  // namespace muster::io
