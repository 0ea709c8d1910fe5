// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/pci.h"

#include <algorithm>
#include <set>

namespace muster::validate {
namespace {

constexpr const char* kDevices = "sys/bus/pci/devices";
constexpr std::size_t kPlainConfigBytes = 256, kConfigBytes = 4096;
constexpr std::uint32_t kAcs = 0x000d;
constexpr int kMostCapabilities = 128;

std::optional<PciDevice> deviceAt(const Host& host, const std::filesystem::path& folder) {
  std::error_code error;
  const auto real = std::filesystem::canonical(host.root / folder, error);
  if (error) return std::nullopt;
  PciDevice device;
  device.address = real.filename().string();
  bool inside = false;
  for (const auto& part : real) {
    inside = inside || part.string().starts_with("pci");
    if (inside) device.path.push_back(part.string());
  }
  device.numa_node = static_cast<int>(numberIn(host.line(folder / "numa_node")).value_or(-1));
  return device;
}

std::uint32_t wordAt(std::string_view config, std::size_t at, int bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < bytes; ++i)
    word |= static_cast<std::uint32_t>(
                static_cast<unsigned char>(config[at + static_cast<std::size_t>(i)]))
            << (8 * i);
  return word;
}

}  // namespace

std::vector<PciDevice> gpusOnPci(const Host& host) {
  std::vector<PciDevice> gpus;
  for (const auto& address : host.names(kDevices)) {
    const auto folder = std::filesystem::path(kDevices) / address;
    const auto kind = host.line(folder / "class"), vendor = host.line(folder / "vendor");
    const bool display = kind.starts_with("0x0300") && (vendor == "0x10de" || vendor == "0x1002");
    if (!kind.starts_with("0x0302") && !kind.starts_with("0x12") && !display) continue;
    if (auto device = deviceAt(host, folder)) gpus.push_back(std::move(*device));
  }
  return gpus;
}

std::vector<std::pair<std::string, PciDevice>> rdmaOnPci(const Host& host) {
  std::vector<std::pair<std::string, PciDevice>> nics;
  std::set<std::string> seen;
  for (const auto& name : host.names("sys/class/infiniband"))
    if (auto device =
            deviceAt(host, std::filesystem::path("sys/class/infiniband") / name / "device");
        device && !device->path.empty() && seen.insert(device->address).second)
      nics.emplace_back(name, std::move(*device));
  return nics;
}

std::vector<std::pair<std::string, PciDevice>> nvmeOnPci(const Host& host) {
  std::vector<std::pair<std::string, PciDevice>> disks;
  for (const auto& name : host.names("sys/class/nvme"))
    if (auto device = deviceAt(host, std::filesystem::path("sys/class/nvme") / name / "device");
        device && !device->path.empty())
      disks.emplace_back(name, std::move(*device));
  return disks;
}

std::size_t commonDepth(const PciDevice& a, const PciDevice& b) {
  const auto end = std::mismatch(a.path.begin(), a.path.end(), b.path.begin(), b.path.end());
  return static_cast<std::size_t>(end.first - a.path.begin());
}

Result<std::optional<std::uint16_t>> acsControl(std::string_view config) {
  if (config.size() <= kPlainConfigBytes)
    return fail(
        ErrorCode::Denied,
        fmt::format("only {} bytes of a bridge's configuration can be read", config.size()));
  std::size_t at = kPlainConfigBytes;
  for (int count = 0; count < kMostCapabilities && at >= kPlainConfigBytes &&
                      at + 8 <= std::min(config.size(), kConfigBytes);
       ++count) {
    const auto header = wordAt(config, at, 4);
    if (header == 0 || header == 0xffffffffu) return std::nullopt;
    if ((header & 0xffff) == kAcs) return static_cast<std::uint16_t>(wordAt(config, at + 6, 2));
    at = header >> 20;
  }
  return std::nullopt;
}

}  // namespace muster::validate
