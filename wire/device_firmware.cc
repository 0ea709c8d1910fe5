// SPDX-License-Identifier: Apache-2.0
#include "wire/device_firmware.h"

#include "wire/fields.h"
#include "wire/messages.h"

#include <fnmatch.h>

#include <algorithm>

namespace muster::wire {
namespace {

constexpr std::size_t kMaxUrlBytes = 2048;
constexpr std::size_t kSha256Chars = 64;

constexpr Text kName{kMaxNameBytes};

constexpr auto kWay = [](const std::string& way) -> std::string_view {
  const bool known = way == kMstflint || way == kNvme || way == kFwupd;
  return known ? "" : "must be mstflint, nvme or fwupd";
};
constexpr auto kUrl = [](const std::string& url) -> std::string_view {
  const bool known = url.starts_with("http://") || url.starts_with("https://");
  return known ? "" : "must be http or https";
};
constexpr auto kSha256 = [](const std::string& digest) -> std::string_view {
  const bool right = digest.size() == kSha256Chars &&
                     digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  return right ? "" : "must be a SHA-256 in hex";
};
constexpr auto kNamesOne = [](const std::string& match) -> std::string_view {
  return match.empty() ? "names no device" : "";
};

}  // namespace

template <>
inline constexpr auto kFields<DeviceVersion> =
    std::tuple(field("way", &DeviceVersion::way, kName), field("id", &DeviceVersion::id, kName),
               field("model", &DeviceVersion::model, kName).optional(),
               field("keys", &DeviceVersion::keys, Texts{kMaxFirmwareKeys, kMaxNameBytes}),
               field("version", &DeviceVersion::version, kName),
               field("pending", &DeviceVersion::pending, kName).optional());

template <>
inline constexpr auto kFields<DeviceFirmware> =
    std::tuple(field("devices", &DeviceFirmware::devices, Items{kMaxFirmwareDevices}),
               field("troubles", &DeviceFirmware::troubles, TextMap{kMaxFirmwareKeys}).optional());

template <>
inline constexpr auto kFields<FirmwareTask> =
    std::tuple(field("way", &FirmwareTask::way, kName).checked(kWay),
               field("match", &FirmwareTask::match, kName).checked(kNamesOne),
               field("version", &FirmwareTask::version, kName).checked(kNotEmpty),
               field("url", &FirmwareTask::url, Text{kMaxUrlBytes}).checked(kUrl),
               field("sha256", &FirmwareTask::sha256, Text{kSha256Chars}).checked(kSha256));

bool fits(const DeviceVersion& device, std::string_view way, std::string_view match) {
  if (device.way != way || match.empty()) return false;
  const std::string pattern(match);
  return std::any_of(device.keys.begin(), device.keys.end(), [&pattern](const std::string& key) {
    return ::fnmatch(pattern.c_str(), key.c_str(), FNM_CASEFOLD | FNM_NOESCAPE) == 0;
  });
}

std::string toJson(const DeviceFirmware& firmware) { return printMessage(firmware); }

Result<DeviceFirmware> parseDeviceFirmware(std::string_view text) {
  return parseMessage<DeviceFirmware>(text, kMaxResultBytes, "device firmware", "firmware");
}

std::string toJson(const FirmwareTask& task) { return printMessage(task); }

Result<FirmwareTask> parseFirmwareTask(std::string_view text) {
  return parseMessage<FirmwareTask>(text, kMaxResultBytes, "firmware task", "params");
}

}  // namespace muster::wire
