// SPDX-License-Identifier: Apache-2.0
// One JSON object a line, over a connected socket: how the service and its units talk
// (docs/adr/0343, docs/adr/0360).
#pragma once

#include "base/result.h"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstddef>
#include <string>

namespace muster::io {

/// Reads lines of a descriptor that somebody else owns.
class LineReader {
 public:
  LineReader(int fd, std::size_t max_line_bytes) : fd_(fd), max_line_bytes_(max_line_bytes) {}

  /// The next line, without its end. Looks once when `until` has passed already.
  /// Errors: Timeout, Unavailable (the other side is gone), InvalidInput (too long)
  Result<std::string> next(std::chrono::steady_clock::time_point until);
  Result<std::string> next(std::chrono::milliseconds limit) {
    return next(std::chrono::steady_clock::now() + limit);
  }

 private:
  int fd_;
  std::size_t max_line_bytes_;
  std::string rest_;
  std::size_t looked_ = 0;  ///< of rest_: no line ends before it
};

/// Errors: Timeout (nobody reads), Unavailable (the connection has ended)
Result<void> sendJsonLine(int fd, const nlohmann::json& value, std::chrono::milliseconds limit);

/// The code that `toString` has given a word; Internal for any other.
ErrorCode errorCodeOf(std::string_view word);

}  // namespace muster::io
