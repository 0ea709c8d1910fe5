// Checks over NVML. A value that NVML does not offer is no data, and no data is no pass.
#include "lifecycle/facet.h"
#include "validate/checks/catalogue.h"
#include "validate/checks/nvml.h"

namespace muster::validate {
namespace {

// nvmlClocksThrottleReason…; a GPU in good health may show idle, application clocks, software power cap, sync boost, display.
constexpr std::uint64_t kHwSlowdown = 0x8, kSwThermal = 0x20, kHwThermal = 0x40, kHwPowerBrake = 0x80;
constexpr std::uint64_t kBadThrottle = kHwSlowdown | kSwThermal | kHwThermal | kHwPowerBrake;

nlohmann::json identityOf(const agent::Gpu& gpu) {
  return {{"model", gpu.model}, {"serial", gpu.serial}, {"uuid", gpu.uuid}, {"pci", gpu.pci}, {"vbios", gpu.vbios}};
}

struct Seen {
  std::vector<GpuHealth> gpus;
  std::string driver;
};

Result<Seen> look() {
  TRY(nvml, Nvml::open());
  TRY(gpus, nvml.gpus());
  TRY(driver, nvml.driverVersion());
  return Seen{std::move(gpus), std::move(driver)};
}

/// Runs `judge` on every GPU; it answers what is wrong, or nothing. No GPU at all is no data.
Verdict everyGpu(const std::function<Verdict(const GpuHealth&)>& judge, std::string_view good) {
  const auto seen = look();
  if (!seen) return noData(seen.error().str());
  if (seen->gpus.empty()) return noData("NVML sees no GPU");
  Verdict worst = pass(fmt::format("{} GPUs: {}", seen->gpus.size(), good));
  worst.evidence = nlohmann::json::array();
  for (const auto& gpu : seen->gpus) {
    const Verdict verdict = judge(gpu);
    auto row = identityOf(gpu.identity);
    row["seen"] = verdict.text;
    worst.evidence.push_back(std::move(row));
    if (verdict.status == agent::CheckStatus::Pass) continue;
    const std::string words = fmt::format("GPU {} (serial {}): {}", gpu.identity.pci, gpu.identity.serial, verdict.text);
    worst.text = worst.status == agent::CheckStatus::Pass ? words : worst.text + "; " + words;
    if (worst.status != agent::CheckStatus::Fail) worst.status = verdict.status;
  }
  return worst;
}

}  // namespace

Verdict checkGpuCount(const nlohmann::json& params) {
  const auto expected = params.at("count").get<std::size_t>();
  const auto seen = look();
  if (!seen) return noData(seen.error().str());
  const auto words = fmt::format("{} GPUs seen, {} expected", seen->gpus.size(), expected);
  Verdict verdict = seen->gpus.size() == expected ? pass(words) : failed(words);
  verdict.values["gpus"] = static_cast<double>(seen->gpus.size());
  verdict.evidence = nlohmann::json::array();
  for (const auto& gpu : seen->gpus) verdict.evidence.push_back(identityOf(gpu.identity));
  return verdict;
}

Verdict checkGpuModel(const nlohmann::json& params) {
  const auto model = params.at("model").get<std::string>();
  return everyGpu(
      [&](const GpuHealth& gpu) {
        return gpu.identity.model.find(model) != std::string::npos ? pass(gpu.identity.model)
                                                                   : failed(fmt::format("is '{}', expected '{}'", gpu.identity.model, model));
      },
      model);
}

Verdict checkGpuDriver(const nlohmann::json& params) {
  const auto wanted = params.at("driver").get<std::string>();
  const auto seen = look();
  if (!seen) return noData(seen.error().str());
  const auto words = fmt::format("driver {} runs, {} wanted", seen->driver, wanted);
  return lifecycle::matches(wanted, seen->driver) ? pass(words) : failed(words);
}

Verdict checkGpuEcc(const nlohmann::json&) {
  return everyGpu(
      [](const GpuHealth& gpu) {
        if (!gpu.ecc_enabled || !gpu.ecc_uncorrected_volatile || !gpu.ecc_uncorrected_aggregate) return noData("NVML gives no ECC state");
        if (!*gpu.ecc_enabled) return failed("ECC is off");
        if (*gpu.ecc_uncorrected_volatile)
          return failed(fmt::format("{} uncorrected errors since the driver was loaded, {} in its life", *gpu.ecc_uncorrected_volatile,
                                    *gpu.ecc_uncorrected_aggregate));
        return pass(fmt::format("ECC on, {} uncorrected in its life", *gpu.ecc_uncorrected_aggregate));
      },
      "ECC on, no uncorrected error");
}

Verdict checkGpuRemap(const nlohmann::json&) {
  return everyGpu(
      [](const GpuHealth& gpu) {
        if (!gpu.remapped) return noData("NVML gives no row remapping state");
        if (gpu.remapped->failure) return failed("a row could not be remapped");
        if (gpu.remapped->pending) return failed("a row remapping is pending until the next reset");
        return pass(fmt::format("{} rows remapped", gpu.remapped->correctable + gpu.remapped->uncorrectable));
      },
      "no row remapping pending or failed");
}

Verdict checkGpuThrottle(const nlohmann::json&) {
  return everyGpu(
      [](const GpuHealth& gpu) {
        if (!gpu.throttle_reasons) return noData("NVML gives no throttle reasons");
        if (const auto bad = *gpu.throttle_reasons & kBadThrottle)
          return failed(fmt::format("held back, reasons {:#x} (of {:#x}) at {} °C", bad, *gpu.throttle_reasons, gpu.temperature_c.value_or(0)));
        return pass(fmt::format("reasons {:#x}", *gpu.throttle_reasons));
      },
      "not held back");
}

}  // namespace muster::validate
