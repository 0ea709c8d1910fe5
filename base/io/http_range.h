// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: which part of a file a Range field asks for.
#pragma once

#include <cstdint>
#include <string>

namespace muster::io {

struct Piece {
  std::uint64_t offset = 0, length = 0;
};
enum class RangeKind { Whole, Part, Unsatisfiable };

/// One "bytes=" range. Several ranges, other units and malformed fields are ignored, as RFC 9110
/// allows.
RangeKind rangeOf(const std::string& field, std::uint64_t size, Piece& piece);

}  // namespace muster::io
