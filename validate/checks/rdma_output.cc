// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/rdma_output.h"

#include <cmath>
#include <sstream>

namespace muster::validate {

Result<WriteBandwidth> parseWriteBandwidth(std::string_view output, int message_bytes) {
  std::istringstream lines{std::string(output)};
  bool in_table = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("#bytes") != std::string::npos) {
      if (line.find("Gb/sec") == std::string::npos)
        return fail(ErrorCode::Corrupt, "ib_write_bw did not report in Gb/sec");
      in_table = true;
      continue;
    }
    if (!in_table) continue;
    std::istringstream row(line);
    int bytes = 0;
    WriteBandwidth rate;
    if (!(row >> bytes) || bytes != message_bytes) continue;
    if (!(row >> rate.iterations >> rate.peak_gbits >> rate.average_gbits))
      return fail(ErrorCode::Corrupt, "cannot read ib_write_bw's row: " + line);
    if (!std::isfinite(rate.average_gbits) || rate.average_gbits <= 0)
      return fail(ErrorCode::Corrupt, "ib_write_bw reports a bandwidth that is none: " + line);
    return rate;
  }
  return fail(ErrorCode::Corrupt, in_table ? "ib_write_bw's table has no row for the message size"
                                           : "ib_write_bw printed no table");
}

std::string lastLine(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const auto start = text.rfind('\n');
  return std::string(start == std::string_view::npos ? text : text.substr(start + 1));
}

}  // namespace muster::validate
