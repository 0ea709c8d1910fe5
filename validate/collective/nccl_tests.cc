// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/nccl_tests.h"

#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "base/json_problem.h"
#include "validate/collective/nccl_tests_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>

namespace muster::collective {
namespace {

using nlohmann::json;

std::unexpected<Error> corrupt(std::string text) {
  return fail(ErrorCode::Corrupt, std::move(text));
}

/// Releases before 2.20 print NaN as the text "nan".
Result<Measured> measuredOf(const json& from) {
  Measured out;
  const auto take = [&from](const char* key, double& to) {
    const auto value = from.find(key);
    if (value == from.end() || !value->is_number() || !std::isfinite(value->get<double>()) ||
        value->get<double>() < 0)
      return false;
    to = value->get<double>();
    return true;
  };
  if (from.is_object() && from.contains("cpu_time"))
    return corrupt("the times are of the CPU (-C 1): run it without -C");
  if (!from.is_object() || !take("time", out.microseconds) ||
      !take("alg_bw", out.algbw_gbytes_per_s) || !take("bus_bw", out.busbw_gbytes_per_s))
    return corrupt("a result has no finite time, alg_bw and bus_bw");
  const auto wrong = from.find("nwrong");
  if (wrong == from.end() || wrong->is_null() || *wrong == json("N/A")) return out;
  double count = 0;
  if (!take("nwrong", count)) return corrupt("nwrong is no count");
  out.wrong = static_cast<long>(std::ceil(std::min(count, 1e15)));
  return out;
}

/// A bool, or as 2.17 to 2.20 write it the text "true".
bool isTrue(const json& from, const char* key) {
  const auto value = from.find(key);
  return value != from.end() && (*value == json(true) || *value == json("true"));
}

/// The program lists the first GPU of each of its processes, of which each has as many as `config`
/// says.
std::vector<std::string> devicesOf(const json& root) {
  constexpr std::uint64_t kMostGpus = 1024;
  const auto config = root.value("config", json());
  const auto count = [&config](const char* key) {
    const auto found = config.is_object() ? config.find(key) : config.end();
    return found != config.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 1;
  };
  const auto threads = std::min(count("nthreads"), kMostGpus);
  const auto gpus = std::min(count("ngpus"), kMostGpus) * threads;
  const auto& list = config.is_object() && config.contains("devices") ? config : root;
  std::vector<std::string> devices;
  for (const auto& each : list.value("devices", json::array()))
    for (std::uint64_t i = 0; each.is_object() && i < std::min(gpus, kMostGpus); ++i)
      devices.push_back(textOf(each, "hostname") + " " + textOf(each, "device_hex") +
                        (i ? "+" + std::to_string(i) : ""));
  return devices;
}

/// A run without a failure lists one error that is empty.
bool isError(const json& error) { return !error.is_null() && error != json(""); }

/// The program's path is the first word of its command line.
std::string programOf(const json& root) {
  const auto args = root.find("args");
  if (args == root.end() || !args->is_array() || args->empty() || !args->front().is_string())
    return {};
  const auto path = args->front().get<std::string>();
  return path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
}

Result<TestRow> rowOf(const json& each) {
  if (!each.is_object() || !each.contains("size") || !each["size"].is_number_unsigned())
    return corrupt("a result has no size");
  TestRow row{each["size"].get<std::uint64_t>(), {}, {}};
  const auto take = [&](const char* key, std::optional<Measured>& to) -> Result<void> {
    const auto found = each.find(key);
    if (found == each.end() || found->is_null()) return {};
    TRY(seen, measuredOf(*found));
    TRY_OK(requirePlausible(row.bytes, seen));
    to = seen;
    return {};
  };
  TRY_OK(take("out_of_place", row.out_of_place));
  TRY_OK(take("in_place", row.in_place));
  if (!row.out_of_place && !row.in_place) return corrupt("a result was measured in no placement");
  return row;
}

Result<NcclTest> readJson(const json& root, std::string_view program) {
  NcclTest test;
  test.program = programOf(root), test.devices = devicesOf(root);
  if (test.program.empty()) test.program = program;
  const auto errors = root.find("errors");
  if (errors != root.end() &&
      (errors->is_array() ? std::ranges::any_of(*errors, isError) : isError(*errors)))
    return corrupt("it failed: " + jsonText(*errors).substr(0, 200));
  if (!root.contains("results") || !root["results"].is_array() || root["results"].empty())
    return corrupt("there are no results");
  for (const auto& each : root["results"]) {
    TRY(row, rowOf(each));
    test.rows.push_back(std::move(row));
  }
  const auto bounds = root.value("out_of_bounds", json());
  if (!bounds.is_object() || !bounds.contains("count") || !bounds["count"].is_number())
    return corrupt("there is no out_of_bounds count");
  test.out_of_bounds = std::max(bounds["count"].get<long>(), isTrue(bounds, "okay") ? 0L : 1L);
  const auto average = root.value("average_bus_bandwidth", json());
  if (!average.is_object() || !average.contains("bandwidth") || !average["bandwidth"].is_number() ||
      !(average["bandwidth"].get<double>() > 0))
    return corrupt("there is no average_bus_bandwidth above zero");
  test.average_busbw = average["bandwidth"].get<double>();
  test.checked = allChecked(test.rows, test.program);
  return test;
}

}  // namespace

std::optional<double> messageBytes(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || value < 0) return std::nullopt;
  const auto unit = text.substr(static_cast<std::size_t>(read.ptr - text.data()));
  if (unit.empty()) return value;
  if (unit.size() > 1) return std::nullopt;
  for (const auto& [letter, bytes] : {std::pair('k', 0x1p10), std::pair('m', 0x1p20),
                                      std::pair('g', 0x1p30), std::pair('t', 0x1p40)})
    if (std::tolower(static_cast<unsigned char>(unit[0])) == letter) return value * bytes;
  return std::nullopt;
}

double NcclTest::bestBusbw() const {
  const TestRow* largest = nullptr;
  for (const auto& row : rows)
    if (!largest || row.bytes >= largest->bytes) largest = &row;
  if (!largest) return 0;
  std::optional<double> slower;
  for (const auto& placement : {largest->out_of_place, largest->in_place})
    if (placement && (placement->wrong || !checked))
      slower =
          std::min(slower.value_or(placement->busbw_gbytes_per_s), placement->busbw_gbytes_per_s);
  return slower.value_or(0);
}

std::uint64_t NcclTest::largestBytes() const {
  std::uint64_t largest = 0;
  for (const auto& row : rows) largest = std::max(largest, row.bytes);
  return largest;
}

long NcclTest::wrongValues() const {
  long sum = 0;  // the last line counts the same values again
  for (const auto& row : rows)
    for (const auto& placement : {row.out_of_place, row.in_place})
      if (placement) sum += placement->wrong.value_or(0);
  return std::max(sum, out_of_bounds);
}

std::size_t NcclTest::gpus() const {
  return std::set<std::string>(devices.begin(), devices.end()).size();
}

Result<NcclTest> parseNcclTests(std::string_view output, std::string_view program) {
  const auto first = output.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return corrupt("it printed nothing");
  if (output[first] != '{') return parseNcclTestsText(output, program);
  const auto root = jsonOrNone(output, kToolJson);
  if (!root.is_object()) return corrupt("its JSON cannot be read: cut off?");
  try {
    return readJson(root, program);
  } catch (const json::exception& error) {
    return corrupt(std::string("its JSON has another shape: ") + jsonProblem(error));
  }
}

}  // namespace muster::collective
