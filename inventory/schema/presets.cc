// SPDX-License-Identifier: Apache-2.0
#include "inventory/schema/presets.h"

#include "inventory/model/drivers.h"

#include <algorithm>
#include <vector>

namespace muster::inventory {

namespace {

// Package names are those of the vendor's own archives (CUDA and DOCA for Debian, Ubuntu, RHEL);
// where a distribution calls them otherwise, `packages` of the driver is written out instead of a
// preset.
const std::vector<Preset>& rows() {
  static const std::vector<Preset> kRows = {
      {.name = "persistenced",
       .doc = "nvidia-persistenced keeps the driver's state while no job holds a GPU.",
       .packages = {"nvidia-persistenced"},
       .services = {"nvidia-persistenced"}},
      {.name = "fabric-manager",
       .doc = "NVSwitch Fabric Manager, of the driver's version exactly. Write its package with "
              "its pin.",
       .services = {"nvidia-fabricmanager"},
       .verify = {{"fabricmanager.match", "yes"}}},
      {.name = "fabric-manager-nvlink5",
       .doc = "The same with NVLink 5 (HGX B200, B300): Fabric Manager starts the NVLink subnet "
              "manager, nvlsm, which reaches the switches by ib_umad.",
       .packages = {"nvlsm"},
       .modules = {"ib_umad"},
       .services = {"nvidia-fabricmanager"},
       .verify = {{"fabricmanager.match", "yes"}}},
      {.name = "imex",
       .doc =
           "IMEX of NVLink domains over several nodes (NVL72): its service, and channel 0, which "
           "the driver does not make by itself. Write its package with its pin.",
       .services = {"nvidia-imex"},
       .module_options = {{"nvidia", {{"NVreg_CreateImexChannel0", "1"}}}},
       .verify = {{"service.nvidia-imex", "active"}}},
      {.name = "peermem",
       .doc = "GPUDirect RDMA by nvidia-peermem.",
       .modules = {"nvidia_peermem"}},
      {.name = "gdrcopy",
       .doc = "GDRCopy: its module and library.",
       .packages = {"gdrdrv-dkms", "libgdrapi"},
       .modules = {"gdrdrv"}},
      {.name = "doca-ofed",
       .doc = "NVIDIA's RDMA stack (formerly MLNX_OFED).",
       .packages = {"doca-ofed"},
       .modules = {"mlx5_core", "mlx5_ib", "ib_uverbs"},
       .services = {"openibd"}},
      {.name = "iommu-passthrough",
       .doc = "DMA of the host's own devices bypasses the IOMMU.",
       .kernel_args = {"iommu=pt"}},
      {.name = "iommu-off", .doc = "No IOMMU at all (Intel).", .kernel_args = {"intel_iommu=off"}},
      {.name = "numa-balancing-off",
       .doc = "The kernel does not move pages between NUMA nodes.",
       .sysctl = {{"kernel.numa_balancing", "0"}}},
      {.name = "hugepages-transparent",
       .doc = "Transparent huge pages for everything.",
       .kernel_args = {"transparent_hugepage=always"}},
      {.name = "pci-realloc-off",
       .doc = "Firmware's PCI resources stand.",
       .kernel_args = {"pci=realloc=off"}},
      {.name = "rdma-memory",
       .doc = "NVIDIA's module lets peer memory be mapped without the MMIO trap.",
       .module_options = {{"nvidia", {{"NVreg_RegistryDwords", "PeerMappingOverride=1"}}}}},
  };
  return kRows;
}

void addMissing(std::vector<std::string>& to, const std::vector<std::string>& from) {
  auto name = [](const std::string& text) { return text.substr(0, text.find('=')); };
  for (const auto& item : from)
    if (std::none_of(to.begin(), to.end(),
                     [&](const auto& has) { return has == item || name(has) == item; }))
      to.push_back(item);
}

}  // namespace

std::span<const Preset> presets() { return rows(); }

const Preset* findPreset(std::string_view name) {
  const auto found = std::find_if(rows().begin(), rows().end(),
                                  [&](const Preset& row) { return row.name == name; });
  return found == rows().end() ? nullptr : &*found;
}

void applyPreset(Driver& driver, const Preset& preset) {
  addMissing(driver.packages, preset.packages);
  addMissing(driver.modules, preset.modules);
  addMissing(driver.services, preset.services);
  for (const auto& argument : preset.kernel_args)
    if (std::find(driver.kernel_args.begin(), driver.kernel_args.end(), argument) ==
        driver.kernel_args.end())
      driver.kernel_args.push_back(argument);
  for (const auto& [module, options] : preset.module_options)
    for (const auto& [key, value] : options) driver.module_options[module].emplace(key, value);
  for (const auto& [key, value] : preset.sysctl) driver.sysctl.emplace(key, value);
  for (const auto& [probe, glob] : preset.verify) driver.verify.emplace(probe, glob);
}

std::map<std::string, std::string> impliedProbes(const Driver& driver) {
  std::map<std::string, std::string> probes;
  if (!driver.kernel.empty()) probes["kernel"] = driver.kernel;
  if (!driver.preset.empty())
    for (const auto& module : driver.modules) probes["module." + module] = "loaded";
  for (const auto& service : driver.services) probes["service." + service] = "active";
  if (driver.host && !driver.host->serial_console.empty())
    probes["service.serial-getty@" + driver.host->serial_console] = "active";
  if (driver.build != ModuleBuild::Packaged)
    for (const auto& module : driver.modules)
      probes["module-file." + module] = driver.build == ModuleBuild::Dkms ? "dkms" : "packaged";
  return probes;
}

std::string upstreamVersion(std::string_view version) {
  if (const auto colon = version.find(':'); colon != std::string_view::npos)
    version.remove_prefix(colon + 1);
  return std::string(version.substr(0, version.find('-')));
}

}  // namespace muster::inventory
