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

namespace {

std::vector<std::string> wordsOf(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(std::move(word));
  return out;
}

/// "99% percentile[usec]" is one column of two words, "BW average[Gb/sec]" is another.
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

/// No link is faster; 99999999 is a column that is not what its heading says.
constexpr double kMostGbits = 10'000;
constexpr std::string_view kIterations = "#iterations", kPeak = "BWpeak[Gb/sec]",
                           kAverage = "BWaverage[Gb/sec]";

Result<WriteBandwidth> bandwidthIn(const std::vector<std::string>& columns,
                                   const std::vector<std::string>& row) {
  WriteBandwidth out;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto value = numberIn(row[i]);
    if (!value || *value < 0)
      return fail(ErrorCode::Corrupt, fmt::format("{} is \"{}\"", columns[i], row[i]));
    if (!seen.insert(columns[i]).second)
      return fail(ErrorCode::Corrupt, fmt::format("the column {} is there twice", columns[i]));
    if (columns[i] == kIterations) out.iterations = static_cast<long>(*value);
    if (columns[i] == kPeak) out.peak_gbits = *value;
    if (columns[i] == kAverage) out.average_gbits = *value;
  }
  if (!(out.average_gbits > 0) || out.average_gbits > kMostGbits)
    return fail(ErrorCode::Corrupt,
                fmt::format("a bandwidth that is none: {} Gb/s", out.average_gbits));
  // Above 20,000 iterations perftest measures no peak, and prints 0.
  constexpr double kRounding = 0.01;
  if (out.peak_gbits > 0 && out.average_gbits > out.peak_gbits * (1 + kRounding))
    return fail(ErrorCode::Corrupt, fmt::format("an average of {} Gb/s above its peak of {}",
                                                out.average_gbits, out.peak_gbits));
  return out;
}

/// What the lines around the table say that is not a one-way write over this device.
std::string anotherTest(const std::string& line, std::string_view device) {
  constexpr std::string_view kTitle = "RDMA_Write BW Test", kDevice = "Device";
  if (line.find("BW Test") != std::string::npos && line.find(kTitle) == std::string::npos)
    return "it is another test: " + line.substr(line.find_first_not_of(' '));
  for (const char* word : {"Completion with error", "Failed status"})
    if (line.find(word) != std::string::npos) return "it met an error: " + line;
  const auto at = line.find(kDevice);
  const auto words =
      at == std::string::npos ? std::vector<std::string>() : wordsOf(line.substr(at));
  if (words.size() == 3 && words[0] == kDevice && words[1] == ":" && words[2] != device)
    return fmt::format("it ran over {} instead of {}", words[2], device);
  return {};
}

}  // namespace

Result<WriteBandwidth> parseWriteBandwidth(std::string_view output, const WriteTest& asked) {
  const auto corrupt = [](std::string why) {
    return fail(ErrorCode::Corrupt, "ib_write_bw: " + std::move(why));
  };
  std::istringstream lines{std::string(output)};
  std::vector<std::string> columns;
  std::optional<WriteBandwidth> found;
  for (std::string line; std::getline(lines, line);) {
    if (auto another = anotherTest(line, asked.device); !another.empty()) return corrupt(another);
    if (line.find("#bytes") != std::string::npos) {
      if (!columns.empty()) return corrupt("two tables, of which nobody knows whose they are");
      columns = columnsOf(line);
      for (const std::string_view needed : {std::string_view("#bytes"), kIterations, kAverage})
        if (std::find(columns.begin(), columns.end(), needed) == columns.end())
          return corrupt(
              fmt::format("the table has no column {}: it did not report in Gb/sec, or "
                          "is of another release",
                          needed));
      continue;
    }
    const auto row = wordsOf(line);
    if (columns.empty() || row.empty() ||
        row.front().find_first_not_of("0123456789") != std::string::npos)
      continue;
    if (row.size() != columns.size())
      return corrupt(
          fmt::format("a row of {} values under {} columns", row.size(), columns.size()));
    if (row.front() != std::to_string(asked.message_bytes))
      return corrupt(
          fmt::format("a row of {} bytes, {} were sent", row.front(), asked.message_bytes));
    if (found) return corrupt("two rows of one size");
    auto read = bandwidthIn(columns, row);
    if (!read) return corrupt(read.error().str());
    if (read->iterations != asked.iterations)
      return corrupt(
          fmt::format("{} iterations, {} were asked for", read->iterations, asked.iterations));
    found = *read;
  }
  if (columns.empty()) return corrupt("it printed no table");
  if (!found) return corrupt("its table has no row: it did not come to its end");
  return *found;
}

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
