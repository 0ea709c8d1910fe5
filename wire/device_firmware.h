// SPDX-License-Identifier: Apache-2.0
// Firmware of devices that only their own machine reaches: what the agent sees, and what it is told
// to install.
//
//   ListFirmware     params {"ways": ["mstflint", …]}   result {"devices":
//   [{"way","id","model","keys","version","pending"}], "troubles": {way: why}} InstallFirmware
//   params {"way","match","version","url","sha256"}   result {"written": [id], "had": [id]}
//
// An installation writes the image into every device that fits and neither runs nor holds that
// version; it activates nothing. So the same order twice writes once, and a reboot that comes too
// early does no harm.
#pragma once

#include "base/result.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

inline constexpr std::string_view kMstflint = "mstflint", kNvme = "nvme", kFwupd = "fwupd";
inline constexpr std::size_t kMaxFirmwareDevices = 512;
inline constexpr std::size_t kMaxFirmwareKeys = 32;

struct DeviceVersion {
  std::string way, id;  ///< id: PCI address, controller ("nvme0"), fwupd's device id
  std::string model;
  std::vector<std::string> keys;  ///< what it is chosen by: PSID, model, GUIDs
  std::string version;            ///< that runs
  std::string pending;            ///< that will run after the next reset or reboot; empty: the same
};

struct DeviceFirmware {
  std::vector<DeviceVersion> devices;
  std::map<std::string, std::string>
      troubles;  ///< by way: why its devices (or some of them) could not be read
};

struct FirmwareTask {
  std::string way, match, version, url, sha256;
};

/// Whether a device is one of those: the way is right, and one of its keys fits (case does not
/// matter, `*` and `?` are wild).
bool fits(const DeviceVersion& device, std::string_view way, std::string_view match);

std::string toJson(const DeviceFirmware&);
Result<DeviceFirmware> parseDeviceFirmware(std::string_view text);
std::string toJson(const FirmwareTask&);
/// Errors: InvalidInput (way, digest and URL are looked at too)
Result<FirmwareTask> parseFirmwareTask(std::string_view text);

}  // namespace muster::wire
