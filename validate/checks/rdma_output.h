// SPDX-License-Identifier: Apache-2.0
// perftest's output, read strictly.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace muster::validate {

struct WriteBandwidth {
  long iterations = 0;
  double peak_gbits = 0, average_gbits = 0;
};

/// The row of `message_bytes` in the table of ib_write_bw --report_gbits.
/// Errors: Corrupt when there is no such table, no such row, or a value is not a finite positive
/// number
Result<WriteBandwidth> parseWriteBandwidth(std::string_view output, int message_bytes);

std::string lastLine(std::string_view text);

}  // namespace muster::validate
