// SPDX-License-Identifier: Apache-2.0
// Sources: ROCm's documentation of amd-smi (6.x: a list; 7.x: {"gpu_data": a list}); rocm-smi's
// --json (a card an entry, all values text, names with either case of "Card series"); the kernel's
// amdgpu RAS error counts ("ue: 0", "ce: 3").
#include "validate/checks/amd.h"

#include "base/json_input.h"
#include "base/utf8.h"
#include "validate/checks/check_row.h"
#include "validate/checks/expectations.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace muster::validate {
namespace {

using nlohmann::json;
constexpr double kHotC = 100;  ///< AMD Instinct MI300X: throttling begins at 105 °C on the hottest
                               ///< spot; the memory's limit is our own choice, the same

Result<std::map<int, json>> byGpu(std::string_view text, const char* what) {
  auto limits = kToolJson;
  limits.duplicates = DuplicateKeys::Refused;  // of two counts neither may win
  auto root = jsonOrNone(text, limits);
  if (root.is_object() && root.contains("gpu_data")) root = root["gpu_data"];
  if (!root.is_array())
    return fail(ErrorCode::Corrupt, fmt::format("amd-smi {} printed no list of GPUs", what));
  std::map<int, json> gpus;
  for (auto& gpu : root) {
    if (!gpu.is_object() || !gpu.contains("gpu") || !gpu["gpu"].is_number_integer())
      return fail(ErrorCode::Corrupt,
                  fmt::format("amd-smi {} lists something without a GPU's number", what));
    gpus[gpu["gpu"].get<int>()] = gpu;
  }
  return gpus;
}

/// A number, or {"value": number, "unit": …}; "N/A" and all else: nothing.
std::optional<double> valueOf(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return std::nullopt;
  const auto& value =
      object[key].is_object() && object[key].contains("value") ? object[key]["value"] : object[key];
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

/// The same for what is counted; a number below 0 is no count.
std::optional<std::uint64_t> countOf(const json& object, const char* key) {
  const auto value = valueOf(object, key);
  return value && *value >= 0 && *value < 1e18 ? std::optional(static_cast<std::uint64_t>(*value))
                                               : std::nullopt;
}

std::string textOf(const json& object, const char* group, const char* key) {
  const auto inner = object.value(group, json::object());
  return inner.is_object() && inner.contains(key) && inner[key].is_string()
             ? inner[key].get<std::string>()
             : "";
}

}  // namespace

Result<std::vector<AmdGpu>> parseAmdSmi(std::string_view static_json,
                                        std::string_view metric_json) {
  TRY(parts, byGpu(static_json, "static"));
  TRY(metrics, byGpu(metric_json, "metric"));
  std::vector<AmdGpu> gpus;
  for (const auto& [number, part] : parts) {
    const auto metric = metrics.find(number);
    if (metric == metrics.end())
      return fail(ErrorCode::Corrupt, fmt::format("amd-smi metric does not report GPU {}", number));
    AmdGpu gpu{textOf(part, "asic", "market_name"),
               textOf(part, "asic", "asic_serial"),
               textOf(part, "bus", "bdf"),
               {},
               {},
               {},
               {},
               {}};
    const auto ecc = metric->second.value("ecc", json::object());
    gpu.ecc_correctable = countOf(ecc, "total_correctable_count");
    gpu.ecc_uncorrectable = countOf(ecc, "total_uncorrectable_count");
    gpu.ecc_deferred = countOf(ecc, "total_deferred_count");
    const auto heat = metric->second.value("temperature", json::object());
    gpu.hotspot_c = valueOf(heat, "hotspot"), gpu.memory_c = valueOf(heat, "mem");
    gpus.push_back(std::move(gpu));
  }
  if (gpus.size() != metrics.size())
    return fail(ErrorCode::Corrupt, "amd-smi static and metric do not name the same GPUs");
  return gpus;
}

namespace {

/// The first of these keys that holds text.
std::string firstText(const json& card, std::initializer_list<const char*> keys) {
  for (const auto* key : keys)
    if (card.contains(key) && card[key].is_string() && card[key] != "N/A")
      return card[key].get<std::string>();
  return {};
}

std::optional<std::uint64_t> counterIn(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const auto begin = at + key.size();
  const auto number =
      numberIn(text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin));
  return number && *number >= 0 ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

}  // namespace

Result<std::vector<AmdGpu>> parseRocmSmi(std::string_view text, const Host& host) {
  const auto root = jsonOrNone(text, kToolJson);
  if (!root.is_object()) return fail(ErrorCode::Corrupt, "rocm-smi printed no JSON");
  std::vector<AmdGpu> gpus;
  for (const auto& [name, card] : root.items()) {
    if (!name.starts_with("card")) continue;  // "system" holds the driver's version
    if (!card.is_object())
      return fail(ErrorCode::Corrupt, fmt::format("rocm-smi does not report {}", name));
    AmdGpu gpu{firstText(card, {"Card Series", "Card series", "Device Name"}),
               firstText(card, {"Serial Number"}),
               firstText(card, {"PCI Bus"}),
               {},
               {},
               {},
               {},
               {}};
    std::transform(gpu.pci.begin(), gpu.pci.end(), gpu.pci.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    if (gpu.pci.empty())
      return fail(ErrorCode::Corrupt, fmt::format("rocm-smi does not say where {} is", name));
    gpu.hotspot_c = numberIn(firstText(card, {"Temperature (Sensor junction) (C)"}));
    gpu.memory_c = numberIn(firstText(card, {"Temperature (Sensor memory) (C)"}));
    const auto ras = host.text("sys/bus/pci/devices/" + gpu.pci + "/ras/umc_err_count");
    gpu.ecc_uncorrectable = counterIn(ras, "ue: "), gpu.ecc_correctable = counterIn(ras, "ce: ");
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

namespace {

Result<std::string> said(const Host& host, const char* program, std::vector<std::string> args) {
  io::Command command;
  command.program = program, command.args = std::move(args);
  TRY(done, host.run(command));
  if (done.code != 0)
    return fail(ErrorCode::Unavailable, fmt::format("{} ended with {}: {}", command.str(),
                                                    done.code, cutToBytes(done.err, 300)));
  return done.out;
}

}  // namespace

Result<std::vector<AmdGpu>> lookAtAmd(const Host& host) {
  const auto parts = said(host, "amd-smi", {"static", "--asic", "--bus", "--json"});
  if (!parts && parts.error().code() == ErrorCode::NotFound) {
    TRY(cards, said(host, "rocm-smi",
                    {"--showproductname", "--showserial", "--showbus", "--showtemp", "--json"}));
    return parseRocmSmi(cards, host);
  }
  if (!parts) return fail(parts.error());
  TRY(metrics, said(host, "amd-smi", {"metric", "--ecc", "--temperature", "--json"}));
  return parseAmdSmi(*parts, metrics);
}

Verdict checkGpuAmd(const nlohmann::json& params, const Host& host) {
  const auto count = params.value("count", 0);
  const auto model = params.value("model", "");
  const auto gpus = lookAtAmd(host);
  if (!gpus) return noData(gpus.error().str());
  if (gpus->empty()) return noData("no AMD GPU is seen");
  std::vector<std::string> wrong;
  bool unknown = false;
  Verdict verdict;
  verdict.evidence = json::array();
  if (count && gpus->size() != static_cast<std::size_t>(count))
    wrong.push_back(fmt::format("{} GPUs seen, {} expected", gpus->size(), count));
  for (const auto& gpu : *gpus) {
    const auto name = fmt::format("GPU {} (serial {})", gpu.pci, gpu.serial);
    verdict.evidence.push_back({{"model", gpu.model}, {"serial", gpu.serial}, {"pci", gpu.pci}});
    unknown = unknown || !gpu.ecc_uncorrectable || !gpu.hotspot_c;
    if (!model.empty() && !namesModel(gpu.model, model))
      wrong.push_back(fmt::format("{} is '{}', expected '{}'", name, gpu.model, model));
    if (gpu.ecc_uncorrectable.value_or(0))
      wrong.push_back(
          fmt::format("{} counts {} uncorrectable errors", name, *gpu.ecc_uncorrectable));
    if (gpu.ecc_deferred.value_or(0))
      wrong.push_back(
          fmt::format("{} counts {} deferred errors, which are uncorrectable and not used yet",
                      name, *gpu.ecc_deferred));
    if (gpu.hotspot_c && !(*gpu.hotspot_c < kHotC))
      wrong.push_back(fmt::format("{} is at {} °C", name, *gpu.hotspot_c));
    if (gpu.memory_c && !(*gpu.memory_c < kHotC))
      wrong.push_back(fmt::format("{}: its memory is at {} °C", name, *gpu.memory_c));
  }
  verdict.status = !wrong.empty() ? wire::CheckStatus::Fail
                   : unknown      ? wire::CheckStatus::NoData
                                  : wire::CheckStatus::Pass;
  verdict.text = !wrong.empty() ? fmt::format("{}", fmt::join(wrong, "; "))
                 : unknown      ? "ECC counts or temperatures are not reported"
                                : fmt::format("{} GPUs, no uncorrectable error", gpus->size());
  verdict.values = {{"gpus", static_cast<double>(gpus->size())}};
  return verdict;
}

}  // namespace muster::validate
