// SPDX-License-Identifier: Apache-2.0
// Firmware that the BMC does not reach: what a component's `device` says about who installs it.
// Pure.
//
//   nic:MT_0000000838          NVIDIA NICs with this PSID, by mstflint
//   nvme:SAMSUNG MZQL2*        NVMe drives whose model fits the glob, by nvme-cli
//   fwupd:b585990a-003e-…      devices with this GUID, by fwupd
//
// Everything else ("iana:…", "pci:…", "uuid:…") names who a PLDM package for the BMC must be for.
#pragma once

#include "inventory/model/firmware.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace muster::inventory {

struct InBandDevice {
  std::string_view
      way;  ///< "mstflint", "nvme", "fwupd": as the agent names them (wire/device_firmware.h)
  std::string match;  ///< PSID, model glob, GUID
};

/// Nullopt: its firmware goes by the BMC.
inline std::optional<InBandDevice> inBandDevice(const FirmwareComponent& component) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kWays{
      {{"nic:", "mstflint"}, {"nvme:", "nvme"}, {"fwupd:", "fwupd"}}};
  for (const auto& [prefix, way] : kWays)
    if (component.device.starts_with(prefix))
      return InBandDevice{way, component.device.substr(prefix.size())};
  return std::nullopt;
}

inline bool isInBand(const FirmwareComponent& component) {
  return inBandDevice(component).has_value();
}

}  // namespace muster::inventory
