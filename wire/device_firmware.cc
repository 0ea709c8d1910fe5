// SPDX-License-Identifier: Apache-2.0
#include "wire/device_firmware.h"

#include "base/json_output.h"
#include "wire/json_reader.h"
#include "wire/messages.h"

#include <fnmatch.h>

#include <algorithm>

namespace muster::wire {
namespace {

constexpr std::size_t kMaxUrlBytes = 2048;
constexpr std::size_t kSha256Chars = 64;

bool isWay(std::string_view text) { return text == kMstflint || text == kNvme || text == kFwupd; }

}  // namespace

bool fits(const DeviceVersion& device, std::string_view way, std::string_view match) {
  if (device.way != way || match.empty()) return false;
  const std::string pattern(match);
  return std::any_of(device.keys.begin(), device.keys.end(), [&pattern](const std::string& key) {
    return ::fnmatch(pattern.c_str(), key.c_str(), FNM_CASEFOLD | FNM_NOESCAPE) == 0;
  });
}

std::string toJson(const DeviceFirmware& firmware) {
  auto devices = nlohmann::json::array();
  for (const auto& device : firmware.devices)
    devices.push_back({{"way", device.way},
                       {"id", device.id},
                       {"model", device.model},
                       {"keys", device.keys},
                       {"version", device.version},
                       {"pending", device.pending}});
  const nlohmann::json out{{"devices", std::move(devices)}, {"troubles", firmware.troubles}};
  return jsonText(out);
}

Result<DeviceFirmware> parseDeviceFirmware(std::string_view text) {
  TRY(object, parseObject(text, kMaxResultBytes, "device firmware"));
  JsonReader reader(object, "firmware");
  DeviceFirmware out;
  for (const auto& entry : reader.array("devices", kMaxFirmwareDevices)) {
    JsonReader each(entry, "device");
    DeviceVersion device;
    device.way = each.text("way", kMaxNameBytes);
    device.id = each.text("id", kMaxNameBytes);
    device.model = each.text("model", kMaxNameBytes, true);
    device.keys = readTexts(each, "keys", kMaxFirmwareKeys, kMaxNameBytes);
    device.version = each.text("version", kMaxNameBytes);
    device.pending = each.text("pending", kMaxNameBytes, true);
    TRY_OK(each.finish());
    out.devices.push_back(std::move(device));
  }
  out.troubles = readTextMap(reader, "troubles", kMaxFirmwareKeys, true);
  TRY_OK(reader.finish());
  return out;
}

std::string toJson(const FirmwareTask& task) {
  return jsonText(nlohmann::json{{"way", task.way},
                                 {"match", task.match},
                                 {"version", task.version},
                                 {"url", task.url},
                                 {"sha256", task.sha256}});
}

Result<FirmwareTask> parseFirmwareTask(std::string_view text) {
  TRY(object, parseObject(text, kMaxResultBytes, "firmware task"));
  JsonReader reader(object, "params");
  FirmwareTask task;
  task.way = reader.text("way", kMaxNameBytes);
  task.match = reader.text("match", kMaxNameBytes);
  task.version = reader.text("version", kMaxNameBytes);
  task.url = reader.text("url", kMaxUrlBytes);
  task.sha256 = reader.text("sha256", kSha256Chars);
  if (!isWay(task.way)) reader.wrong("way", "must be mstflint, nvme or fwupd");
  if (task.match.empty()) reader.wrong("match", "names no device");
  if (task.version.empty()) reader.wrong("version", "is empty");
  if (task.sha256.size() != kSha256Chars ||
      task.sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
    reader.wrong("sha256", "must be a SHA-256 in hex");
  if (!task.url.starts_with("http://") && !task.url.starts_with("https://"))
    reader.wrong("url", "must be http or https");
  TRY_OK(reader.finish());
  return task;
}

}  // namespace muster::wire
