// Source: ROCm's documentation of amd-smi (6.x: a list; 7.x: {"gpu_data": a list}).
#include "validate/checks/amd.h"

#include "validate/checks/catalogue.h"

#include <fmt/ranges.h>

#include <map>

namespace muster::validate {
namespace {

using nlohmann::json;
constexpr double kHotC = 100;   ///< AMD Instinct MI300X: throttling begins at 105 °C on the hottest spot

Result<std::map<int, json>> byGpu(std::string_view text, const char* what) {
  auto root = json::parse(text, nullptr, false);
  if (root.is_object() && root.contains("gpu_data")) root = root["gpu_data"];
  if (!root.is_array()) return fail(ErrorCode::Corrupt, fmt::format("amd-smi {} printed no list of GPUs", what));
  std::map<int, json> gpus;
  for (auto& gpu : root) {
    if (!gpu.is_object() || !gpu.contains("gpu") || !gpu["gpu"].is_number_integer()) return fail(ErrorCode::Corrupt, fmt::format("amd-smi {} lists something without a GPU's number", what));
    gpus[gpu["gpu"].get<int>()] = gpu;
  }
  return gpus;
}

/// A number, or {"value": number, "unit": …}; "N/A" and all else: nothing.
std::optional<double> valueOf(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return std::nullopt;
  const auto& value = object[key].is_object() && object[key].contains("value") ? object[key]["value"] : object[key];
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string textOf(const json& object, const char* group, const char* key) {
  const auto inner = object.value(group, json::object());
  return inner.is_object() && inner.contains(key) && inner[key].is_string() ? inner[key].get<std::string>() : "";
}

}  // namespace

Result<std::vector<AmdGpu>> parseAmdSmi(std::string_view static_json, std::string_view metric_json) {
  TRY(parts, byGpu(static_json, "static"));
  TRY(metrics, byGpu(metric_json, "metric"));
  std::vector<AmdGpu> gpus;
  for (const auto& [number, part] : parts) {
    const auto metric = metrics.find(number);
    if (metric == metrics.end()) return fail(ErrorCode::Corrupt, fmt::format("amd-smi metric does not speak of GPU {}", number));
    AmdGpu gpu{textOf(part, "asic", "market_name"), textOf(part, "asic", "asic_serial"), textOf(part, "bus", "bdf"), {}, {}, {}};
    const auto ecc = metric->second.value("ecc", json::object());
    if (const auto count = valueOf(ecc, "total_correctable_count")) gpu.ecc_correctable = static_cast<std::uint64_t>(*count);
    if (const auto count = valueOf(ecc, "total_uncorrectable_count")) gpu.ecc_uncorrectable = static_cast<std::uint64_t>(*count);
    gpu.hotspot_c = valueOf(metric->second.value("temperature", json::object()), "hotspot");
    gpus.push_back(std::move(gpu));
  }
  if (gpus.size() != metrics.size()) return fail(ErrorCode::Corrupt, "amd-smi static and metric do not name the same GPUs");
  return gpus;
}

Verdict checkGpuAmd(const nlohmann::json& params, const Host& host) {
  const auto count = params.value("count", 0);
  const auto model = params.value("model", "");
  std::string said[2];
  const std::vector<std::string> words[2] = {{"static", "--asic", "--bus", "--json"}, {"metric", "--ecc", "--temperature", "--json"}};
  for (int i = 0; i < 2; ++i) {
    io::Command command;
    command.program = "amd-smi", command.args = words[i];
    const auto done = host.run(command);
    if (!done) return noData(done.error().str());
    if (done->code != 0) return noData(fmt::format("amd-smi {} ended with {}: {}", words[i][0], done->code, done->err.substr(0, 300)));
    said[i] = done->out;
  }
  const auto gpus = parseAmdSmi(said[0], said[1]);
  if (!gpus) return noData(gpus.error().str());
  if (gpus->empty()) return noData("amd-smi sees no GPU");
  std::vector<std::string> wrong;
  bool unknown = false;
  Verdict verdict;
  verdict.evidence = json::array();
  if (count && gpus->size() != static_cast<std::size_t>(count)) wrong.push_back(fmt::format("{} GPUs seen, {} expected", gpus->size(), count));
  for (const auto& gpu : *gpus) {
    const auto name = fmt::format("GPU {} (serial {})", gpu.pci, gpu.serial);
    verdict.evidence.push_back({{"model", gpu.model}, {"serial", gpu.serial}, {"pci", gpu.pci}});
    unknown = unknown || !gpu.ecc_uncorrectable || !gpu.hotspot_c;
    if (gpu.model.find(model) == std::string::npos) wrong.push_back(fmt::format("{} is '{}', expected '{}'", name, gpu.model, model));
    if (gpu.ecc_uncorrectable.value_or(0)) wrong.push_back(fmt::format("{} counts {} uncorrectable errors", name, *gpu.ecc_uncorrectable));
    if (gpu.hotspot_c && !(*gpu.hotspot_c < kHotC)) wrong.push_back(fmt::format("{} is at {} °C", name, *gpu.hotspot_c));
  }
  verdict.status = !wrong.empty() ? agent::CheckStatus::Fail : unknown ? agent::CheckStatus::NoData : agent::CheckStatus::Pass;
  verdict.text = !wrong.empty() ? fmt::format("{}", fmt::join(wrong, "; ")) : unknown ? "amd-smi gives no ECC counts or temperatures" : fmt::format("{} GPUs, no uncorrectable error", gpus->size());
  verdict.values = {{"gpus", static_cast<double>(gpus->size())}};
  return verdict;
}

}  // namespace muster::validate
