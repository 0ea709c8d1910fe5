// SPDX-License-Identifier: Apache-2.0
// perftest's output, read strictly.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <string_view>

namespace muster::validate {

struct WriteBandwidth {
  long iterations = 0;
  double peak_gbits = 0, average_gbits = 0;
};

/// What ib_write_bw was asked for.
struct WriteTest {
  int message_bytes = 0;
  long iterations = 0;
  std::string_view device;  ///< "mlx5_0"
};
/// The only row of the table of ib_write_bw --report_gbits, its columns found by the table's own
/// heading.
/// Errors: Corrupt when there is no such table or more than one, another unit, another test,
/// device, size or number of iterations, an error of a completion anywhere, or a value that is none
/// or contradicts another. A peak of 0 was not measured
/// Source: perftest's perftest_resources.c (RESULT_FMT_G, print_report_bw)
Result<WriteBandwidth> parseWriteBandwidth(std::string_view output, const WriteTest& asked);

/// One way, as perftest reports it: half of the round trip. Microseconds.
struct WriteLatency {
  long iterations = 0;
  double least_us = 0, most_us = 0, typical_us = 0, average_us = 0;  ///< typical: the median
  std::optional<double> p99_us;  ///< nullopt: this release of perftest prints none
};

/// The only row of the table of ib_write_lat (ib_send_lat, ib_read_lat print the same), its columns
/// found by the table's own heading.
/// Errors: Corrupt when there is no such table or more than one, another unit (-C), a run by time
/// (-D, which has no median), another message size or number of iterations, a value that is none,
/// or values that contradict each other
Result<WriteLatency> parseWriteLatency(std::string_view output, int message_bytes, long iterations);

std::string lastLine(std::string_view text);

}  // namespace muster::validate
