// SPDX-License-Identifier: Apache-2.0
// How many lines a cause may write that anybody can bring about: so many a minute, then how many
// were left out.
#pragma once

#include "base/log.h"

#include <chrono>
#include <cstddef>
#include <string_view>

namespace muster {

/// For one thread. A member of whoever writes the lines.
class LogLimit {
 public:
  static constexpr std::size_t kLinesPerInterval = 60;
  static constexpr std::chrono::seconds kInterval{60};

  /// May another line be written now? The first of an interval says how many of the last one were
  /// not.
  bool mayWrite(std::string_view area,
                std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
    if (now - began_ >= kInterval) {
      if (left_out_ > 0)
        logWarning(area, "{} more lines like the last ones were not written", left_out_);
      began_ = now;
      lines_ = left_out_ = 0;
    }
    if (lines_ < kLinesPerInterval) return ++lines_ > 0;
    ++left_out_;
    return false;
  }

 private:
  std::chrono::steady_clock::time_point began_{};
  std::size_t lines_ = 0, left_out_ = 0;
};

}  // namespace muster
