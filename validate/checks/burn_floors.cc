// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/burn_floors.h"

#include "validate/checks/check_row.h"
#include "validate/checks/expectations.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace muster::validate {
namespace {

constexpr std::string_view kToPeer = "copy_device_to_", kCopyRate = "_gbytes_per_s",
                           kToHost = "copy_device_to_host_gbytes_per_s";
constexpr std::size_t kSwitchedGpus = 8;  ///< floors are of boards where every pair has all links
constexpr double kShareOfPairAlone =
    0.75;  ///< own choice: every GPU sends and receives at once here, and floors are of one pair

constexpr double kShareOfMemory = 0.9, kShareOfRest = 0.8;
constexpr std::size_t kEnoughGpus = 4;

bool isOfMemory(std::string_view value) {
  return value.starts_with("memory_") && value.ends_with(kCopyRate);
}

/// Of the median of the node's GPUs; nothing: this value is not compared.
std::optional<double> shareOfOthers(std::string_view value) {
  const bool of_products =
      value.starts_with("gemm_") && value.ends_with("_gflops") && !value.ends_with("_plain_gflops");
  return of_products || isOfMemory(value) ? std::optional(leastShareOfOthers(value)) : std::nullopt;
}

double medianOf(std::vector<double> rates) {
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

bool isBetweenGpus(std::string_view value) {
  return value.starts_with(kToPeer) && value != kToHost && value.ends_with(kCopyRate);
}

/// Which key of the table is the floor of which value.
struct FloorRow {
  std::string_view key, value, stage;
};
constexpr FloorRow kFloors[] = {
    {"gemm_bf16_min_gflops", "gemm_bf16_gflops", "gemm"},
    {"gemm_fp8_min_gflops", "gemm_fp8_gflops", "gemm"},
    {"gemm_tf32_min_gflops", "gemm_tf32_gflops", "gemm"},
    {"hbm_min_gbytes_per_s", "memory_copy_gbytes_per_s", "memory"},
    {"h2d_min_gbytes_per_s", "copy_host_to_device_gbytes_per_s", "copy"},
    {"d2h_min_gbytes_per_s", "copy_device_to_host_gbytes_per_s", "copy"}};

}  // namespace

double leastShareOfOthers(std::string_view value) {
  return isOfMemory(value) ? kShareOfMemory : kShareOfRest;
}

std::vector<std::string> burnFloors(const std::string& model, const std::string& stages) {
  std::vector<std::string> floors;
  if (const auto* sku = Skus::builtIn().find(model))
    for (const auto& row : kFloors)
      if (const auto known = sku->expect.find(std::string(row.key));
          known != sku->expect.end() &&
          fmt::format(",{},", stages).find(fmt::format(",{},", row.stage)) != std::string::npos)
        floors.push_back(fmt::format("{}={}", row.value, known->second.value));
  return floors;
}

bool hasBurnFloor(const std::string& model, std::string_view value) {
  const auto* sku = Skus::builtIn().find(model);
  if (!sku) return false;
  if (isBetweenGpus(value)) return sku->expect.contains("p2p_min_gbytes_per_s");
  return std::ranges::any_of(kFloors, [&](const FloorRow& row) {
    return row.value == value && sku->expect.contains(std::string(row.key));
  });
}

void compareGpusOfTheNode(Verdict& verdict) {
  std::map<std::string_view, std::map<std::string_view, double>> rates;  // by value, by GPU
  for (const auto& [name, rate] : verdict.values) {
    const auto dot = name.find('.');
    const auto value = std::string_view(name).substr(dot + 1);
    if (dot != std::string::npos && shareOfOthers(value))
      rates[value][std::string_view(name).substr(0, dot)] = rate;
  }
  std::vector<std::string> slow;
  for (const auto& [value, by_gpu] : rates) {
    if (by_gpu.size() < kEnoughGpus) continue;
    std::vector<double> sane;
    for (const auto& [gpu, rate] : by_gpu)
      if (std::isfinite(rate)) sane.push_back(rate);
    const double median = sane.empty() ? 0 : medianOf(sane), share = *shareOfOthers(value);
    for (const auto& [gpu, rate] : by_gpu)
      if (!(rate >= share * median))
        slow.push_back(
            fmt::format("{}.{} is {:.0f}, the GPUs of this node reach {:.0f}: at least "
                        "{} of it is expected",
                        gpu, value, rate, median, share));
  }
  if (slow.empty() || verdict.status != wire::CheckStatus::Pass) return;
  verdict.status = wire::CheckStatus::Fail;
  verdict.text = fmt::format("{}", fmt::join(slow, "; "));
}

void evaluateCopiesAndNameTheRest(Verdict& verdict, const std::string& model, std::size_t gpus,
                                  const std::vector<std::string>& floors) {
  const auto* sku = Skus::builtIn().find(model);
  const Expectation* known = nullptr;
  if (sku && gpus == kSwitchedGpus)
    if (const auto row = sku->expect.find("p2p_min_gbytes_per_s"); row != sku->expect.end())
      known = &row->second;
  const double pair = known ? kShareOfPairAlone * known->value : 0;
  std::set<std::string> without;
  std::vector<std::string> slow;
  for (const auto& [name, rate] : verdict.values) {
    const auto value = std::string_view(name).substr(name.find('.') + 1);
    const bool between = isBetweenGpus(value);
    if (between && pair > 0 && !(rate >= pair))
      slow.push_back(fmt::format("{}: {:.1f} GB/s, expected at least {:.1f} ({} of {} GB/s, {})",
                                 name, rate, pair, kShareOfPairAlone, known->value, known->source));
    const bool is_rate = value.ends_with(kCopyRate) || value.ends_with("_gflops");
    const bool has_floor =
        between ? pair > 0 : std::ranges::any_of(floors, [&](const std::string& floor) {
          return floor.starts_with(value) && floor[value.size()] == '=';
        });
    if (is_rate && !has_floor && !value.ends_with("_plain_gflops"))
      without.insert(between ? "copies between GPUs" : std::string(value));
  }
  if (!slow.empty() && verdict.status == wire::CheckStatus::Pass)
    verdict.status = wire::CheckStatus::Fail,
    verdict.text = fmt::format("{}", fmt::join(slow, "; "));
  if (verdict.status == wire::CheckStatus::Pass && !without.empty() && !floors.empty())
    verdict.text += fmt::format("; no floor, information only: {}", fmt::join(without, ", "));
}

}  // namespace muster::validate
