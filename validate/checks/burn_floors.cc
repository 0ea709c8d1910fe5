// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/burn_floors.h"

#include "validate/checks/expectations.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace muster::validate {
namespace {

constexpr std::string_view kToPeer = "copy_device_to_", kCopyRate = "_gbytes_per_s",
                           kToHost = "copy_device_to_host_gbytes_per_s";
constexpr std::size_t kSwitchedGpus = 8;  ///< floors are of boards where every pair has all links
constexpr double kShareOfPairAlone =
    0.75;  ///< own choice: every GPU sends and receives at once here, and floors are of one pair

bool isBetweenGpus(std::string_view value) {
  return value.starts_with(kToPeer) && value != kToHost && value.ends_with(kCopyRate);
}

}  // namespace

std::vector<std::string> burnFloors(const std::string& model, const std::string& stages) {
  struct Row {
    std::string_view key, value, stage;
  };
  static constexpr Row kRows[] = {
      {"gemm_bf16_min_gflops", "gemm_bf16_gflops", "gemm"},
      {"gemm_fp8_min_gflops", "gemm_fp8_gflops", "gemm"},
      {"gemm_tf32_min_gflops", "gemm_tf32_gflops", "gemm"},
      {"hbm_min_gbytes_per_s", "memory_copy_gbytes_per_s", "memory"},
      {"h2d_min_gbytes_per_s", "copy_host_to_device_gbytes_per_s", "copy"},
      {"d2h_min_gbytes_per_s", "copy_device_to_host_gbytes_per_s", "copy"}};
  std::vector<std::string> floors;
  if (const auto* sku = Skus::builtIn().find(model))
    for (const auto& row : kRows)
      if (const auto known = sku->expect.find(std::string(row.key));
          known != sku->expect.end() &&
          fmt::format(",{},", stages).find(fmt::format(",{},", row.stage)) != std::string::npos)
        floors.push_back(fmt::format("{}={}", row.value, known->second.value));
  return floors;
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
