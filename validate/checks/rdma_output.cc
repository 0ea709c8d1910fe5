// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/rdma_output.h"

#include "validate/checks/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>
#include <vector>

namespace muster::validate {

namespace {

/// No port of today has so much: eight lanes of the fastest generation.
constexpr double kMostGbits = 10'000;
/// The rate of messages says the bandwidth a second time, with fewer digits.
constexpr double kMostContradiction = 0.05, kRateDigits = 0.0005;

std::vector<std::string> wordsOf(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(std::move(word));
  return out;
}

/// "99% percentile[usec]" and "BW peak[Gb/sec]" are columns of two words.
std::vector<std::string> columnsOf(const std::string& heading) {
  std::vector<std::string> out;
  for (auto& word : wordsOf(heading)) {
    if (!out.empty() && (out.back().ends_with('%') || out.back() == "BW"))
      out.back() += word;
    else
      out.push_back(std::move(word));
  }
  return out;
}

using Row = std::map<std::string, double>;  ///< by column

Result<Row> valuesOf(const std::vector<std::string>& columns, const std::vector<std::string>& row) {
  if (row.size() != columns.size())
    return fail(ErrorCode::Corrupt,
                fmt::format("a row of {} values under {} columns", row.size(), columns.size()));
  Row out;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto value = numberIn(row[i]);
    if (!value || *value < 0)
      return fail(ErrorCode::Corrupt, fmt::format("{} is \"{}\"", columns[i], row[i]));
    if (!out.emplace(columns[i], *value).second)
      return fail(ErrorCode::Corrupt, fmt::format("the column {} is there twice", columns[i]));
  }
  return out;
}

/// A table of perftest: what it must be of, and what it must hold.
struct Table {
  int message_bytes = 0;
  long iterations = 0;
  std::vector<std::string_view> needed;  ///< columns
  std::string_view otherwise;            ///< why a column may be missing
};

/// What perftest prints when a message was lost or refused, and goes on.
constexpr std::array kFaultWords{"Completion with error", "Failed", "Couldn't", "Unable to"};

bool tellsOfAFault(std::string_view line) {
  return std::ranges::any_of(kFaultWords, [line](const char* word) { return line.contains(word); });
}

/// The only row of the only table. Errors: Corrupt
Result<Row> onlyRow(std::string_view output, const Table& table) {
  std::istringstream lines{std::string(output)};
  std::vector<std::string> columns;
  std::optional<Row> found;
  for (std::string line; std::getline(lines, line);) {
    if (tellsOfAFault(line)) return fail(ErrorCode::Corrupt, "it says: " + lastLine(line));
    if (line.find("#bytes") != std::string::npos) {
      if (!columns.empty())
        return fail(ErrorCode::Corrupt, "two tables, of which nobody knows whose they are");
      columns = columnsOf(line);
      if (line.find("cycles") != std::string::npos)
        return fail(ErrorCode::Corrupt, "the table is in cycles (-C), not in microseconds");
      for (const auto& needed : table.needed)
        if (std::ranges::find(columns, needed) == columns.end())
          return fail(ErrorCode::Corrupt,
                      fmt::format("the table has no column {} ({})", needed, table.otherwise));
      continue;
    }
    const auto row = wordsOf(line);
    // Between heading and row stand rules and warnings of the processor's frequency.
    if (columns.empty() || row.empty() ||
        row.front().find_first_not_of("0123456789") != std::string::npos)
      continue;
    TRY(values, valuesOf(columns, row));
    if (row.front() != std::to_string(table.message_bytes))
      return fail(ErrorCode::Corrupt,
                  fmt::format("a row of {} bytes, {} were sent", row.front(), table.message_bytes));
    if (found) return fail(ErrorCode::Corrupt, "two rows of one size");
    if (static_cast<long>(values.at("#iterations")) != table.iterations)
      return fail(ErrorCode::Corrupt, fmt::format("{} iterations, {} were asked for",
                                                  values.at("#iterations"), table.iterations));
    found = std::move(values);
  }
  if (columns.empty()) return fail(ErrorCode::Corrupt, "it printed no table");
  if (!found) return fail(ErrorCode::Corrupt, "its table has no row: it did not come to its end");
  return *found;
}

/// "Device : mlx5_0" stands in a line with others, the title alone.
Result<void> requireTest(std::string_view output, std::string_view title, std::string_view device) {
  std::istringstream lines{std::string(output)};
  for (std::string line; std::getline(lines, line);) {
    const auto words = wordsOf(line);
    if (words.size() > 1 && words.back() == "Test" &&
        fmt::format("{}", fmt::join(words, " ")) != title)
      return fail(ErrorCode::Corrupt, fmt::format("this is another test: {}", lastLine(line)));
    for (std::size_t i = 0; i + 2 < words.size(); ++i)
      if (words[i] == "Device" && words[i + 1] == ":" && words[i + 2] != device)
        return fail(ErrorCode::Corrupt,
                    fmt::format("it ran on {}, not on {}", words[i + 2], device));
  }
  return {};
}

Result<WriteBandwidth> bandwidthIn(std::string_view output, std::string_view device,
                                   int message_bytes, long iterations) {
  TRY_OK(requireTest(output, "RDMA_Write BW Test", device));
  constexpr std::string_view kPeak = "BWpeak[Gb/sec]", kAverage = "BWaverage[Gb/sec]";
  TRY(row, onlyRow(output, {message_bytes,
                            iterations,
                            {"#bytes", "#iterations", kPeak, kAverage},
                            "it did not report in Gb/sec"}));
  WriteBandwidth out{iterations, row.at(std::string(kPeak)), row.at(std::string(kAverage))};
  const auto refuse = [&row](std::string_view why) {
    std::vector<std::string> values;
    for (const auto& [column, value] : row) values.push_back(fmt::format("{} {}", column, value));
    return fail(ErrorCode::Corrupt, fmt::format("{}: {}", why, fmt::join(values, ", ")));
  };
  if (!(out.average_gbits > 0) || out.average_gbits > kMostGbits)
    return refuse("a bandwidth that is none");
  // Of many iterations perftest takes no peak, and prints 0.
  if (out.peak_gbits > 0 && out.peak_gbits < out.average_gbits)
    return refuse("its values contradict each other");
  if (const auto rate = row.find("MsgRate[Mpps]"); rate != row.end()) {
    const double gbits_of_one = message_bytes * 8 / 1e3;  // a million messages a second
    if (std::abs(rate->second * gbits_of_one - out.average_gbits) >
        kMostContradiction * out.average_gbits + kRateDigits * gbits_of_one)
      return refuse("its values contradict each other");
  }
  return out;
}

Result<WriteLatency> latencyIn(std::string_view output, int message_bytes, long iterations) {
  TRY(row,
      onlyRow(output, {message_bytes,
                       iterations,
                       {"#bytes", "#iterations", "t_min[usec]", "t_max[usec]", "t_typical[usec]"},
                       "a run by time, -D, has no median"}));
  WriteLatency out{.iterations = iterations,
                   .least_us = row.at("t_min[usec]"),
                   .most_us = row.at("t_max[usec]"),
                   .typical_us = row.at("t_typical[usec]")};
  const auto average = row.find("t_avg[usec]");
  out.average_us = average != row.end() ? average->second : out.typical_us;  // releases before 5
  if (const auto p99 = row.find("99%percentile[usec]"); p99 != row.end()) out.p99_us = p99->second;
  const bool orders = out.least_us > 0 && out.least_us <= out.typical_us &&
                      out.typical_us <= out.most_us && out.least_us <= out.average_us &&
                      out.average_us <= out.most_us && out.p99_us.value_or(0) <= out.most_us;
  if (!orders)
    return fail(ErrorCode::Corrupt,
                fmt::format("its values contradict each other: least {}, typical {}, average {}, "
                            "most {}",
                            out.least_us, out.typical_us, out.average_us, out.most_us));
  return out;
}

/// With the program's name before the reason.
template <class Value>
Result<Value> named(std::string_view program, Result<Value> read) {
  if (read) return read;
  return fail(read.error().code(), fmt::format("{}: {}", program, read.error().text()));
}

}  // namespace

Result<WriteBandwidth> parseWriteBandwidth(std::string_view output, std::string_view device,
                                           int message_bytes, long iterations) {
  return named("ib_write_bw", bandwidthIn(output, device, message_bytes, iterations));
}

Result<WriteLatency> parseWriteLatency(std::string_view output, int message_bytes,
                                       long iterations) {
  return named("ib_write_lat", latencyIn(output, message_bytes, iterations));
}

std::string lastLine(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const auto start = text.rfind('\n');
  return std::string(start == std::string_view::npos ? text : text.substr(start + 1));
}

}  // namespace muster::validate
