// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/nccl_tests.h"

#include "base/json_input.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

namespace muster::collective {
namespace {

using nlohmann::json;

constexpr std::size_t kColumns =
    13;  ///< size count type redop root, then twice time algbw busbw #wrong
constexpr double kUnitTolerance =
    0.25;  ///< of algbw against size and time: they are printed with two or three digits
constexpr double kSmallestChecked = 1.0;  ///< GB/s: below it two digits say too little
constexpr std::string_view kOutOfBounds = "# Out of bounds values",
                           kAverage = "# Avg bus bandwidth";

std::unexpected<Error> corrupt(std::string text) {
  return fail(ErrorCode::Corrupt, std::move(text));
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

/// "N/A" means that the data was not checked.
std::optional<long> wrongCount(std::string_view text) {
  const auto value = number(text);
  return value && *value >= 0 ? std::optional(static_cast<long>(*value)) : std::nullopt;
}

Result<void> evaluate(const TestRow& row, const Measured& seen) {
  if (row.bytes == 0) return {};
  if (!(seen.microseconds > 0) || !(seen.busbw_gbytes_per_s > 0) || !(seen.algbw_gbytes_per_s > 0))
    return corrupt(fmt::format("{} bytes: a time or bandwidth of zero", row.bytes));
  const double implied = static_cast<double>(row.bytes) * 1e-3 / seen.microseconds;
  if (implied >= kSmallestChecked &&
      std::abs(implied - seen.algbw_gbytes_per_s) > kUnitTolerance * implied)
    return corrupt(
        fmt::format("{} bytes in {} us are {:.3g} GB/s, but {} are printed: another unit?",
                    row.bytes, seen.microseconds, implied, seen.algbw_gbytes_per_s));
  return {};
}

Result<TestRow> rowOf(const std::vector<std::string>& words, bool& checked) {
  const auto bytes = number(words[0]);
  if (!bytes || *bytes < 0) return corrupt("a row does not begin with a size: " + words[0]);
  TestRow row{static_cast<std::uint64_t>(*bytes), {}, {}};
  for (std::size_t half = 0; half < 2; ++half) {
    auto& to = half == 0 ? row.out_of_place : row.in_place;
    const auto at = 5 + 4 * half;
    const auto time = number(words[at]), algbw = number(words[at + 1]),
               busbw = number(words[at + 2]);
    if (!time || !algbw || !busbw)
      return corrupt(fmt::format("the row of {} bytes holds no finite numbers: {} {} {}", words[0],
                                 words[at], words[at + 1], words[at + 2]));
    const auto wrong = wrongCount(words[at + 3]);
    checked = checked && wrong.has_value();
    to = {*time, *algbw, *busbw, wrong.value_or(0)};
    TRY_OK(evaluate(row, to));
  }
  return row;
}

Result<NcclTest> parseText(std::string_view output) {
  NcclTest test;
  test.checked = true;
  bool head = false, bounds = false, average = false;
  std::istringstream lines{std::string(output)};
  for (std::string line; std::getline(lines, line);) {
    if (line.find("time   algbw   busbw") != std::string::npos ||
        (line.find("algbw") != std::string::npos && line.find("busbw") != std::string::npos))
      head = true;
    if (line.find("(us)") != std::string::npos && line.find("(GB/s)") == std::string::npos)
      return corrupt("the table is not in GB/s");
    if (const auto at = line.find(kOutOfBounds); at != std::string::npos) {
      std::istringstream rest(line.substr(at + kOutOfBounds.size()));
      std::string colon, count, word;
      rest >> colon >> count >> word;
      const auto value = number(count);
      if (!value || (word != "OK" && word != "FAILED")) return corrupt("cannot read: " + line);
      test.out_of_bounds = std::max(static_cast<long>(*value), word == "OK" ? 0L : 1L);
      bounds = true;
    }
    if (const auto at = line.find(kAverage); at != std::string::npos) {
      std::istringstream rest(line.substr(at + kAverage.size()));
      std::string colon, text;
      rest >> colon >> text;
      const auto value = number(text);
      if (!value || !(*value > 0))
        return corrupt("the average bandwidth is no number above zero: " + line);
      test.average_busbw = *value, average = true;
    }
    std::istringstream row(line);
    std::vector<std::string> words;
    for (std::string word; row >> word;) words.push_back(word);
    if (!head || words.size() != kColumns || words[0].empty() ||
        !std::isdigit(static_cast<unsigned char>(words[0][0]))) {
      if (head && !words.empty() && std::isdigit(static_cast<unsigned char>(words[0][0])))
        return corrupt("a row of another shape: " + line);
      continue;
    }
    TRY(read, rowOf(words, test.checked));
    test.rows.push_back(read);
  }
  if (!head || test.rows.empty()) return corrupt("there is no table of results");
  if (!bounds || !average)
    return corrupt("the footer is missing: the program did not come to its end");
  return test;
}

Result<Measured> measuredOf(const json& from, bool& checked) {
  Measured out;
  const auto take = [&from](const char* key, double& to) {
    const auto value = from.find(key);
    if (value == from.end() || !value->is_number() || !std::isfinite(value->get<double>()))
      return false;
    to = value->get<double>();
    return true;
  };
  if (!from.is_object() || !take("time", out.microseconds) ||
      !take("alg_bw", out.algbw_gbytes_per_s) || !take("bus_bw", out.busbw_gbytes_per_s))
    return corrupt("a result has no finite time, alg_bw and bus_bw");
  const auto wrong = from.find("nwrong");
  double count = 0;
  if (wrong != from.end() && wrong->is_number())
    count = wrong->get<double>();
  else if (wrong != from.end() && wrong->is_string() && number(wrong->get<std::string>()))
    count = *number(wrong->get<std::string>());
  else
    checked = false;
  out.wrong = static_cast<long>(count);
  return out;
}

Result<NcclTest> parseJson(const json& root) {
  NcclTest test;
  test.checked = true;
  if (!root.contains("results") || !root["results"].is_array() || root["results"].empty())
    return corrupt("there are no results");
  for (const auto& each : root["results"]) {
    if (!each.is_object() || !each.contains("size") || !each["size"].is_number_unsigned())
      return corrupt("a result has no size");
    TestRow row{each["size"].get<std::uint64_t>(), {}, {}};
    TRY(out, measuredOf(each.value("out_of_place", json()), test.checked));
    TRY(in, measuredOf(each.value("in_place", json()), test.checked));
    row.out_of_place = out, row.in_place = in;
    TRY_OK(evaluate(row, out));
    TRY_OK(evaluate(row, in));
    test.rows.push_back(row);
  }
  const auto bounds = root.value("out_of_bounds", json::object());
  if (!bounds.is_object() || !bounds.contains("count") || !bounds["count"].is_number())
    return corrupt("there is no out_of_bounds count");
  test.out_of_bounds = std::max(bounds["count"].get<long>(), bounds.value("okay", false) ? 0L : 1L);
  const auto average = root.value("average_bus_bandwidth", json::object());
  if (!average.is_object() || !average.contains("bandwidth") || !average["bandwidth"].is_number() ||
      !(average["bandwidth"].get<double>() > 0))
    return corrupt("there is no average_bus_bandwidth");
  test.average_busbw = average["bandwidth"].get<double>();
  return test;
}

}  // namespace

double NcclTest::bestBusbw() const {
  const TestRow* largest = nullptr;
  for (const auto& row : rows)
    if (!largest || row.bytes >= largest->bytes) largest = &row;
  return largest ? std::min(largest->out_of_place.busbw_gbytes_per_s,
                            largest->in_place.busbw_gbytes_per_s)
                 : 0;
}

Result<NcclTest> parseNcclTests(std::string_view output) {
  const auto first = output.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return corrupt("it printed nothing");
  if (output[first] != '{') return parseText(output);
  const auto root = jsonOrNone(output, kToolJson);
  if (!root.is_object()) return corrupt("its JSON cannot be read: cut off?");
  return parseJson(root);
}

}  // namespace muster::collective
