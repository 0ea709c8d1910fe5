// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/rdma_output.h"

#include "validate/checks/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <vector>

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

namespace {

std::vector<std::string> wordsOf(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(std::move(word));
  return out;
}

/// "99% percentile[usec]" is one column of two words.
std::vector<std::string> columnsOf(const std::string& heading) {
  std::vector<std::string> out;
  for (auto& word : wordsOf(heading)) {
    if (!out.empty() && out.back().ends_with('%'))
      out.back() += word;
    else
      out.push_back(std::move(word));
  }
  return out;
}

Result<WriteLatency> latencyIn(const std::vector<std::string>& columns,
                               const std::vector<std::string>& row) {
  WriteLatency out;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto value = numberIn(row[i]);
    if (!value || *value < 0)
      return fail(ErrorCode::Corrupt, fmt::format("{} is \"{}\"", columns[i], row[i]));
    if (!seen.insert(columns[i]).second)
      return fail(ErrorCode::Corrupt, fmt::format("the column {} is there twice", columns[i]));
    if (columns[i] == "#iterations") out.iterations = static_cast<long>(*value);
    if (columns[i] == "t_min[usec]") out.least_us = *value;
    if (columns[i] == "t_max[usec]") out.most_us = *value;
    if (columns[i] == "t_typical[usec]") out.typical_us = *value;
    if (columns[i] == "t_avg[usec]") out.average_us = *value;
    if (columns[i] == "99%percentile[usec]") out.p99_us = *value;
  }
  if (!seen.contains("t_avg[usec]")) out.average_us = out.typical_us;  // releases before 5
  const bool orders = out.least_us > 0 && out.least_us <= out.typical_us &&
                      out.typical_us <= out.most_us && out.least_us <= out.average_us &&
                      out.average_us <= out.most_us && out.p99_us.value_or(0) <= out.most_us;
  if (!orders)
    return fail(ErrorCode::Corrupt,
                "its values contradict each other: " + fmt::format("{}", fmt::join(row, " ")));
  return out;
}

}  // namespace

Result<WriteLatency> parseWriteLatency(std::string_view output, int message_bytes,
                                       long iterations) {
  const auto corrupt = [](std::string why) {
    return fail(ErrorCode::Corrupt, "ib_write_lat: " + std::move(why));
  };
  std::istringstream lines{std::string(output)};
  std::vector<std::string> columns;
  std::optional<WriteLatency> found;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("#bytes") != std::string::npos) {
      if (!columns.empty()) return corrupt("two tables, of which nobody knows whose they are");
      columns = columnsOf(line);
      if (line.find("cycles") != std::string::npos)
        return corrupt("the table is in cycles (-C), not in microseconds");
      for (const char* needed :
           {"#bytes", "#iterations", "t_min[usec]", "t_max[usec]", "t_typical[usec]"})
        if (std::find(columns.begin(), columns.end(), needed) == columns.end())
          return corrupt(
              fmt::format("the table has no column {} (a run by time, -D, has no median)", needed));
      continue;
    }
    const auto row = wordsOf(line);
    // Between heading and row stand rules and warnings of the processor's frequency.
    if (columns.empty() || row.empty() ||
        row.front().find_first_not_of("0123456789") != std::string::npos)
      continue;
    if (row.size() != columns.size())
      return corrupt(
          fmt::format("a row of {} values under {} columns", row.size(), columns.size()));
    if (row.front() != std::to_string(message_bytes))
      return corrupt(fmt::format("a row of {} bytes, {} were sent", row.front(), message_bytes));
    if (found) return corrupt("two rows of one size");
    auto read = latencyIn(columns, row);
    if (!read) return corrupt(read.error().str());
    if (read->iterations != iterations)
      return corrupt(fmt::format("{} iterations, {} were asked for", read->iterations, iterations));
    found = *read;
  }
  if (columns.empty()) return corrupt("it printed no table");
  if (!found) return corrupt("its table has no row: it did not come to its end");
  return *found;
}

std::string lastLine(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const auto start = text.rfind('\n');
  return std::string(start == std::string_view::npos ? text : text.substr(start + 1));
}

}  // namespace muster::validate
