// SPDX-License-Identifier: Apache-2.0
// Checks over NVML. A value that NVML does not offer is no data, and no data is no pass.
#include "lifecycle/model/facet.h"
#include "validate/checks/check_row.h"
#include "validate/checks/expectations.h"
#include "validate/checks/gpu_snapshot.h"

namespace muster::validate {
namespace {

// Sources: DCGM's limit of remapped rows; NVIDIA's "Dynamic Page Retirement" for GPUs before row
// remapping.
constexpr unsigned kMaxRemappedRows = 512, kMaxRetiredPages = 60;

}  // namespace

nlohmann::json identityOf(const wire::Gpu& gpu) {
  return {{"model", gpu.model},
          {"serial", gpu.serial},
          {"uuid", gpu.uuid},
          {"pci", gpu.pci},
          {"vbios", gpu.vbios}};
}

Result<GpuSnapshot> readGpus() {
  TRY(nvml, Nvml::open());
  TRY(gpus, nvml.gpus());
  TRY(driver, nvml.driverVersion());
  const auto cuda = nvml.cudaVersion();
  return GpuSnapshot{std::move(gpus), std::move(driver),
                     cuda ? std::optional(*cuda) : std::nullopt};
}

Verdict everyGpu(const GpuSnapshot& look, const std::function<Verdict(const GpuHealth&)>& evaluate,
                 std::string_view good) {
  if (look.gpus.empty()) return noData("NVML sees no GPU");
  Verdict worst = pass(fmt::format("{} GPUs: {}", look.gpus.size(), good));
  worst.evidence = nlohmann::json::array();
  for (std::size_t at = 0; at < look.gpus.size(); ++at) {
    const auto& gpu = look.gpus[at];
    const Verdict verdict = evaluate(gpu);
    auto row = identityOf(gpu.identity);
    row["seen"] = verdict.text;
    worst.evidence.push_back(std::move(row));
    for (const auto& [key, value] : verdict.values)
      worst.values[fmt::format("gpu{}.{}", at, key)] = value;
    if (verdict.status == wire::CheckStatus::Pass) continue;
    const std::string words =
        fmt::format("GPU {} (serial {}): {}", gpu.identity.pci, gpu.identity.serial, verdict.text);
    worst.text = worst.status == wire::CheckStatus::Pass ? words : worst.text + "; " + words;
    if (worst.status != wire::CheckStatus::Fail) worst.status = verdict.status;
  }
  return worst;
}

Verdict everyGpu(const std::function<Verdict(const GpuHealth&)>& evaluate, std::string_view good) {
  const auto look = readGpus();
  return look ? everyGpu(*look, evaluate, good) : noData(look.error().str());
}

Verdict checkGpuCount(const nlohmann::json& params, const Host&) {
  const auto expected = params.at("count").get<std::size_t>();
  const auto seen = readGpus();
  if (!seen) return noData(seen.error().str());
  const auto words = fmt::format("{} GPUs seen, {} expected", seen->gpus.size(), expected);
  Verdict verdict = seen->gpus.size() == expected ? pass(words) : failed(words);
  verdict.values["gpus"] = static_cast<double>(seen->gpus.size());
  verdict.evidence = nlohmann::json::array();
  for (const auto& gpu : seen->gpus) verdict.evidence.push_back(identityOf(gpu.identity));
  return verdict;
}

Verdict checkGpuModel(const nlohmann::json& params, const Host&) {
  const auto model = params.at("model").get<std::string>();
  return everyGpu(
      [&](const GpuHealth& gpu) {
        return namesModel(gpu.identity.model, model)
                   ? pass(gpu.identity.model)
                   : failed(fmt::format("is '{}', expected '{}'", gpu.identity.model, model));
      },
      model);
}

Verdict checkGpuDriver(const nlohmann::json& params, const Host&) {
  const auto wanted = params.at("driver").get<std::string>();
  const auto seen = readGpus();
  if (!seen) return noData(seen.error().str());
  const auto words = fmt::format("driver {} runs, {} wanted", seen->driver, wanted);
  return lifecycle::matches(wanted, seen->driver) ? pass(words) : failed(words);
}

Verdict checkGpuEcc(const nlohmann::json&, const Host&) {
  return everyGpu(
      [](const GpuHealth& gpu) {
        if (gpu.ecc_enabled == false) return failed("ECC is off");  // then NVML counts nothing
        if (!gpu.ecc_enabled || !gpu.ecc_uncorrected_volatile || !gpu.ecc_uncorrected_aggregate)
          return noData("NVML gives no ECC state");
        if (*gpu.ecc_uncorrected_volatile)
          return failed(
              fmt::format("{} uncorrected errors since the driver was loaded, {} in its life",
                          *gpu.ecc_uncorrected_volatile, *gpu.ecc_uncorrected_aggregate));
        return pass(
            fmt::format("ECC on, {} uncorrected in its life", *gpu.ecc_uncorrected_aggregate));
      },
      "ECC on, no uncorrected error since the driver was loaded");
}

Verdict evaluateRemap(const GpuHealth& gpu) {
  if (!gpu.remapped) return noData("NVML gives no row remapping state");
  if (gpu.remapped->failure) return failed("a row could not be remapped");
  if (gpu.remapped->pending) return failed("a row remapping is pending until the next reset");
  const auto rows = gpu.remapped->correctable + gpu.remapped->uncorrectable;
  auto verdict = rows < kMaxRemappedRows
                     ? pass(fmt::format("{} rows remapped", rows))
                     : failed(fmt::format("{} rows remapped: it has no more", rows));
  verdict.values["remapped_rows"] = rows;
  return verdict;
}

Verdict evaluateRetired(const GpuHealth& gpu) {
  if (!gpu.retired && gpu.remapped) return pass("rows are remapped instead");
  if (!gpu.retired) return noData("NVML gives neither page retirement nor row remapping");
  if (gpu.retired->pending) return failed("a page retirement is pending until the next reset");
  const auto pages = gpu.retired->single_bit + gpu.retired->double_bit;
  auto verdict = pages < kMaxRetiredPages
                     ? pass(fmt::format("{} pages retired", pages))
                     : failed(fmt::format("{} pages retired: NVIDIA replaces a GPU from {} on",
                                          pages, kMaxRetiredPages));
  verdict.values["retired_pages"] = pages;
  return verdict;
}

Verdict checkGpuRemap(const nlohmann::json&, const Host&) {
  return everyGpu(evaluateRemap, "no row remapping pending or failed");
}
Verdict checkGpuRetired(const nlohmann::json&, const Host&) {
  return everyGpu(evaluateRetired, "no page retirement pending");
}

Verdict checkGpuVbios(const nlohmann::json& params, const Host&) {
  const auto look = readGpus();
  if (!look) return noData(look.error().str());
  const auto wanted = params.value("vbios", "");
  std::map<std::string, std::string> first;  // by model: the gate's, or that of the first GPU
  for (const auto& gpu : look->gpus)
    first.emplace(gpu.identity.model, wanted.empty() ? gpu.identity.vbios : wanted);
  return everyGpu(
      *look,
      [&](const GpuHealth& gpu) {
        if (gpu.identity.vbios.empty()) return noData("NVML gives no VBIOS version");
        if (!lifecycle::matches(first.at(gpu.identity.model), gpu.identity.vbios))
          return failed(fmt::format("VBIOS {}, expected {}", gpu.identity.vbios,
                                    first.at(gpu.identity.model)));
        if (gpu.inforom_valid == false) return failed("its InfoROM is corrupt");
        return pass(gpu.identity.vbios +
                    (gpu.inforom_valid ? "" : ", InfoROM not checked: this NVML cannot"));
      },
      "one VBIOS, no corrupt InfoROM");
}

Verdict checkGpuStack(const nlohmann::json& params, const Host& host) {
  const auto look = readGpus();
  if (!look) return noData(look.error().str());
  const double least = params.value("min_cuda", 0.0);
  if (!look->cuda) return noData("NVML does not say which CUDA the driver runs");
  const double cuda = *look->cuda / 1000 + *look->cuda % 1000 / 10 * 0.1;
  if (!(cuda >= least))
    return failed(fmt::format("driver {} runs CUDA {:.1f} at most, {:.1f} is wanted", look->driver,
                              cuda, least));
  const auto module = host.line("sys/module/nvidia/version");
  if (!module.empty() && module != look->driver)
    return failed(fmt::format("the kernel's module is {}, the library {}", module, look->driver));
  std::string manager;
  io::Command ask;
  ask.program = "nv-fabricmanager", ask.args = {"--version"};
  if (const auto said = host.run(ask); said && said->code == 0) manager = said->out;
  const bool has_fabric = std::any_of(look->gpus.begin(), look->gpus.end(),
                                      [](const auto& gpu) { return gpu.fabric.has_value(); });
  if (has_fabric && manager.empty())
    return noData(
        "the GPUs are of an NVSwitch fabric, but nv-fabricmanager does not say its version");
  if (!manager.empty() && manager.find(look->driver) == std::string::npos)
    return failed(fmt::format("Fabric Manager is '{}', the driver {}",
                              manager.substr(0, manager.find('\n')), look->driver));
  return pass(fmt::format("driver {}, CUDA {:.1f}{}", look->driver, cuda,
                          manager.empty() ? "" : ", Fabric Manager of the same version"));
}

}  // namespace muster::validate
