// SPDX-License-Identifier: Apache-2.0
// PCI devices as sysfs shows them: where they hang, and what their configuration space says.
#pragma once

#include "validate/checks/host.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

struct PciDevice {
  std::string address;  ///< "0000:18:00.0"
  std::vector<std::string>
      path;  ///< from the root complex down to itself: "pci0000:16", "0000:16:01.0", …
  int numa_node = -1;
};

/// GPUs and other accelerators (classes 0x0302, 0x12, and 0x0300 of NVIDIA and AMD).
std::vector<PciDevice> gpusOnPci(const Host& host);
/// Devices behind /sys/class/infiniband, each once, with the name of the first of its RDMA devices.
std::vector<std::pair<std::string, PciDevice>> rdmaOnPci(const Host& host);

/// NVMe controllers that are on PCI, "nvme0".
std::vector<std::pair<std::string, PciDevice>> nvmeOnPci(const Host& host);

/// How many of its ancestors another device shares.
std::size_t commonDepth(const PciDevice& a, const PciDevice& b);

/// What the ACS control register of a bridge redirects; nullopt: it has none. `config`: its
/// configuration space. Source: PCI Express Base Specification, 7.7.11 (extended capability
/// 0x000D). Errors: Denied when only the first 256 bytes can be read
Result<std::optional<std::uint16_t>> acsControl(std::string_view config);

}  // namespace muster::validate
