// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/expectations.h"

#include "base/embedded.h"
#include "base/json_input.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <set>

namespace muster::validate {

std::span<const EmbeddedFile> skuFiles();

namespace {

/// What a number of this key can be at all; the unit is the end of the key.
struct KeyRow {
  std::string_view key;
  double least, most;
  std::string_view peak;  ///< key of the peak that a floor is a share of
};
constexpr KeyRow kKeys[] = {
    {"hbm_peak_gbytes_per_s", 500, 30000, ""},
    {"hbm_min_gbytes_per_s", 300, 30000, "hbm_peak_gbytes_per_s"},
    {"nvlinks", 1, 36, ""},
    {"pcie_generation", 3, 7, ""},
    {"pcie_width", 1, 16, ""},
    {"h2d_min_gbytes_per_s", 5, 250, ""},
    {"d2h_min_gbytes_per_s", 5, 250, ""},
    {"gemm_bf16_peak_gflops", 1e5, 2e7, ""},
    {"gemm_bf16_min_gflops", 5e4, 2e7, "gemm_bf16_peak_gflops"},
    {"gemm_tf32_peak_gflops", 5e4, 5e6, ""},
    {"gemm_tf32_min_gflops", 3e4, 5e6, "gemm_tf32_peak_gflops"},
    {"p2p_min_gbytes_per_s", 10, 2000, ""},
    {"gemm_fp8_peak_gflops", 1e5, 4e7, ""},
    {"gemm_fp8_min_gflops", 5e4, 4e7, "gemm_fp8_peak_gflops"},
    {"power_limit_watts", 100, 3000, ""},
    {"nccl_min_busbw_gbytes_per_s", 10, 3000, ""},
    {"gdr_min_gbits_per_s", 10, 2000, ""},
};
constexpr double kLeastShareOfPeak = 1.0 / 3;
constexpr double kSpreads = 4, kLeastMargin = 0.05, kSpreadOfDeviation = 1.4826;

const KeyRow* rowOf(std::string_view key) {
  const auto row = std::find_if(std::begin(kKeys), std::end(kKeys),
                                [key](const auto& each) { return each.key == key; });
  return row == std::end(kKeys) ? nullptr : row;
}

void evaluate(const Sku& sku, std::vector<std::string>& wrong) {
  for (const auto& [key, expected] : sku.expect) {
    const auto* row = rowOf(key);
    if (!row) {
      wrong.push_back(fmt::format("{}: {} is no key that is known", sku.name, key));
      continue;
    }
    if (expected.source.empty())
      wrong.push_back(fmt::format("{}: {} has no source", sku.name, key));
    if (!(expected.value >= row->least && expected.value <= row->most))
      wrong.push_back(fmt::format("{}: {} = {} is not between {} and {}: another unit?", sku.name,
                                  key, expected.value, row->least, row->most));
    if (row->peak.empty()) continue;
    const auto peak = sku.expect.find(std::string(row->peak));
    if (peak == sku.expect.end())
      wrong.push_back(fmt::format("{}: {} has no {} beside it", sku.name, key, row->peak));
    else if (!(expected.value <= peak->second.value &&
               expected.value >= kLeastShareOfPeak * peak->second.value))
      wrong.push_back(fmt::format("{}: {} = {} is not between a third of {} and all of it ({})",
                                  sku.name, key, expected.value, row->peak, peak->second.value));
  }
}

double middle(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  if (values.size() % 2 == 1) return *half;
  return (*half + *std::max_element(values.begin(), half)) / 2;
}

}  // namespace

Result<Skus> Skus::parse(std::string_view text) {
  const auto json = jsonOrNone(text, kFileJson);
  if (json.is_discarded() || json.value("format", "") != "muster-skus/1")
    return fail(ErrorCode::InvalidInput, "this is no table of the format muster-skus/1");
  Skus skus;
  std::vector<std::string> wrong;
  std::set<std::string> claimed;
  try {
    for (const auto& entry : json.at("skus")) {
      Sku sku{entry.at("name").get<std::string>(),
              entry.at("match").get<std::vector<std::string>>(),
              {}};
      for (const auto& [key, expected] : entry.at("expect").items())
        sku.expect[key] = {expected.at("value").get<double>(), expected.value("source", "")};
      for (const auto& part : sku.match)
        if (part.empty() || !claimed.insert(part).second)
          wrong.push_back(
              fmt::format("{}: \"{}\" is empty or claimed by another entry", sku.name, part));
      evaluate(sku, wrong);
      skus.skus_.push_back(std::move(sku));
    }
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorCode::InvalidInput,
                fmt::format("the table of SKUs cannot be read: {}", error.what()));
  }
  if (!wrong.empty())
    return fail(ErrorCode::InvalidInput,
                fmt::format("the table of SKUs makes no sense: {}", fmt::join(wrong, "; ")));
  return skus;
}

const Skus& Skus::builtIn() {
  static const Skus skus = [] {
    auto read = parse(skuFiles().front().content);
    if (!read) {
      std::cerr << read.error().str() << std::endl;
      std::abort();
    }
    return std::move(*read);
  }();
  return skus;
}

bool namesModel(std::string_view model, std::string_view words) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (auto at = model.find(words); !words.empty() && at != model.npos;
       at = model.find(words, at + 1)) {
    const auto end = at + words.size();
    if ((at == 0 || !is_letter(model[at - 1])) && (end == model.size() || !is_letter(model[end])))
      return true;
  }
  return false;
}

namespace {

/// "H200" is also in "NVIDIA H200 NVL", which is another board with other limits.
bool isNamed(std::string_view model, std::string_view part) {
  constexpr std::string_view kPcieBoard = " NVL";
  return namesModel(model, part) &&
         model.substr(model.find(part) + part.size()).find(kPcieBoard) == std::string_view::npos;
}

}  // namespace

const Sku* Skus::find(std::string_view model) const {
  const Sku* best = nullptr;
  std::size_t length = 0;
  for (const auto& sku : skus_)
    for (const auto& part : sku.match)
      if (part.size() > length && isNamed(model, part)) best = &sku, length = part.size();
  return best;
}

std::optional<Baseline> baselineFrom(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value) || value <= 0; });
  if (values.size() < kLeastSamples) return std::nullopt;
  Baseline baseline;
  baseline.samples = values.size();
  baseline.median = middle(values);
  for (auto& value : values) value = std::abs(value - baseline.median);
  baseline.spread = kSpreadOfDeviation * middle(values);
  baseline.floor =
      baseline.median - std::max(kSpreads * baseline.spread, kLeastMargin * baseline.median);
  return baseline;
}

}  // namespace muster::validate
