// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/tool_command.h"

#include "base/json_output.h"
#include "validate/checks/checks.h"
#include "validate/checks/nvml.h"
#include "wire/health.h"
#include "wire/messages.h"
#include "wire/task_params.h"

#include <iostream>
#include <iterator>

namespace muster::agent {
namespace {

Result<std::string> driverVersion() { return validate::nvmlDriverVersion(); }

Result<std::string> gpus() {
  TRY(found, validate::listGpus());
  wire::Hardware hardware;
  hardware.gpus = found;
  return toJson(hardware);
}

constexpr std::size_t kPciBytes =
    12;  ///< "0000:18:00.0", as the kernel writes it; NVML's domain has eight digits
constexpr std::uint64_t kHardwareThrottle = 0x8 | 0x40 | 0x80;  ///< slowdown, thermal, power brake

void add(wire::HealthReport& report, const char* id, const validate::GpuHealth& gpu,
         std::uint64_t count, std::string text) {
  const auto& pci = gpu.identity.pci;
  report.symptoms.push_back({id, pci.size() > kPciBytes ? pci.substr(pci.size() - kPciBytes) : pci,
                             count, std::move(text)});
}

void look(wire::HealthReport& report, const validate::GpuHealth& gpu) {
  if (gpu.ecc_enabled && !*gpu.ecc_enabled) add(report, "gpu.ecc-off", gpu, 1, "ECC is off");
  if (const auto errors = gpu.ecc_uncorrected_volatile.value_or(0))
    add(report, "gpu.ecc-uncorrected", gpu, errors,
        fmt::format("{} uncorrected errors since the driver was loaded", errors));
  if (gpu.remapped) {
    const auto rows = gpu.remapped->correctable + gpu.remapped->uncorrectable;
    if (gpu.remapped->failure)
      add(report, "gpu.remap-failure", gpu, 1, "a row could not be remapped");
    if (gpu.remapped->pending)
      add(report, "gpu.remap-pending", gpu, 1, "a row is remapped at the next reset");
    if (rows > 0)
      add(report, "gpu.rows-remapped", gpu, rows, fmt::format("{} rows are remapped", rows));
  }
  if (const auto reasons = gpu.throttle_reasons.value_or(0) & kHardwareThrottle)
    add(report, "gpu.throttled", gpu, 1,
        fmt::format("held back by the hardware, reasons {:#x}", reasons));
  if (const auto down = gpu.nvlinks_down.value_or(0))
    add(report, "gpu.nvlink-down", gpu, down,
        fmt::format("{} of its NVLinks are down while others are up", down));
  if (const auto replays = gpu.pcie_replays.value_or(0))
    add(report, "gpu.pcie-replays", gpu, replays, fmt::format("{} PCIe replays", replays));
}

/// A node without the library has no GPU that could be watched; every other trouble is told as it
/// is.
Result<std::string> gpuHealth() {
  wire::HealthReport report;
  auto nvml = validate::Nvml::open();
  auto gpus = nvml ? nvml->gpus() : Result<std::vector<validate::GpuHealth>>(fail(nvml.error()));
  if (!gpus)
    report.sources["gpu"] = gpus.error().code() == ErrorCode::NotFound
                                ? std::string(wire::kSourceAbsent)
                                : gpus.error().str();
  if (gpus) {
    report.sources["gpu"] = std::string(wire::kSourceOk);
    report.sources["gpus"] = std::to_string(gpus->size());
    for (const auto& gpu : *gpus) look(report, gpu);
  }
  return toJson(report);
}

/// Which NVLink domain the node's GPUs are in, when all of them are in one and well.
Result<std::string> nvlinkDomain() {
  constexpr unsigned kRegistered = 3;
  TRY(nvml, validate::Nvml::open());
  TRY(gpus, nvml.gpus());
  std::string domain;
  for (const auto& gpu : gpus) {
    const auto& pci = gpu.identity.pci;
    if (!gpu.fabric) return "none: " + pci + " has no NVLink fabric";
    if (gpu.fabric->state != kRegistered || gpu.fabric->status != 0)
      return fmt::format("none: {} is not registered (state {}, status {})", pci, gpu.fabric->state,
                         gpu.fabric->status);
    if (const auto trouble = validate::fabricTroubleOf(gpu.fabric->health_mask); !trouble.empty())
      return fmt::format("none: {}: {}", pci, trouble);
    const auto own = fmt::format("{}.{}", gpu.fabric->cluster_uuid, gpu.fabric->clique);
    if (!domain.empty() && own != domain)
      return fmt::format("none: {} is in {}, others are in {}", pci, own, domain);
    domain = own;
  }
  return domain.empty() ? std::string("none: no GPU") : domain;
}

std::string input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

Result<std::string> checks() {
  TRY(params, wire::parseRunChecksParams(input()));
  std::vector<validate::CheckRequest> requests;
  for (const auto& order : params.checks) {
    validate::CheckRequest request;
    request.id = order.id;
    request.params = jsonText(order.params);
    if (order.deadline.count() > 0) request.deadline = order.deadline;
    requests.push_back(std::move(request));
  }
  return toJson(validate::runChecks(requests));
}

Result<std::string> rdmaPair() {
  return toJson(std::vector<wire::CheckResult>{validate::runRdmaPair(input())});
}

}  // namespace

int runToolCommand(const std::string& name) {
  const std::map<std::string, Result<std::string> (*)()> tools = {
      {"nvml-driver", driverVersion},  {"gpus", gpus},     {"gpu-health", gpuHealth},
      {"nvlink-domain", nvlinkDomain}, {"checks", checks}, {"rdma-pair", rdmaPair}};
  auto tool = tools.find(name);
  if (tool == tools.end()) {
    std::cerr << "no such tool: " << name << "\n";
    return 2;
  }
  auto out = tool->second();
  if (!out) {
    std::cerr << out.error().str() << "\n";
    return 1;
  }
  std::cout << *out << std::endl;
  return 0;
}

}  // namespace muster::agent
