// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/raid_resources.h"

#include "bmc/redfish/reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace muster::bmc {

namespace {

constexpr const char *kImmediate = "Immediate",
                     *kOnReset = "OnReset";  // Settings.OperationApplyTime

/// Of services before Volume 1.3, which know no RAIDType. StripedWithParity is 5 or 6, so it says
/// nothing.
constexpr auto kOldTypes = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"NonRedundant", "RAID0"}, {"Mirrored", "RAID1"}, {"SpannedMirrors", "RAID10"}});

/// States in which a volume is made, deleted or gone.
constexpr auto kUnsettled = std::to_array<std::string_view>(
    {"Starting", "Deferring", "Absent", "UnavailableOffline", "Disabled", "Updating"});

std::uint64_t bytesAt(const Json& json, std::string_view path) {
  const auto value = numberAt(json, path).value_or(0);
  return value > 0 && value < 1e19 ? static_cast<std::uint64_t>(std::llround(value)) : 0;
}

/// "600508B1-001C-…" as the kernel writes a WWN: "0x600508b1001c…"; "": no such identifier.
std::string wwnOf(const Json& resource) {
  const Json* all = find(resource, "Identifiers");
  if (!all || !all->is_array()) return {};
  for (const Json& each : *all) {
    std::string digits;
    for (const char c : textAt(each, "DurableName"))
      if (std::isxdigit(static_cast<unsigned char>(c)))
        digits += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (c != '-' && c != ':' && c != ' ')
        return {};
    if (digits.size() == 16 || digits.size() == 32) return "0x" + digits;
  }
  return {};
}

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

/// Why no volume can be made of a drive. Dell's RaidStatus: its DellPhysicalDisk.
std::string unusableOf(const Json& drive) {
  const auto state = textAt(drive, "Status/State");
  if (state == "Absent" || state == "Disabled" || state == "UnavailableOffline") return state;
  if (textAt(drive, "Status/Health") == "Critical") return "its health is Critical";
  if (boolAt(drive, "FailurePredicted").value_or(false)) return "it says that it will fail";
  const auto spare = textAt(drive, "HotspareType");
  if (!spare.empty() && spare != "None") return fmt::format("it is a spare ({})", spare);
  const auto raid = textAt(drive, "Oem/Dell/DellPhysicalDisk/RaidStatus");
  if (raid == "NonRAID" || raid == "Foreign" || raid == "Failed" || raid == "Blocked")
    return fmt::format("its RaidStatus is {}", raid);
  return {};
}

}  // namespace

std::string plainUri(std::string uri) {
  if (auto path = pathOnly(uri); !path.empty()) uri = std::move(path);
  while (uri.size() > 1 && uri.back() == '/') uri.pop_back();
  return uri;
}

RaidDrive raidDriveOf(const Json& drive, std::string uri) {
  RaidDrive out;
  out.uri = plainUri(std::move(uri));
  out.name = textAt(drive, "Id");
  out.serial = trimmed(textAt(drive, "SerialNumber"));
  out.wwn = wwnOf(drive);
  out.size_bytes = bytesAt(drive, "CapacityBytes");
  out.unusable = unusableOf(drive);
  return out;
}

RaidVolume raidVolumeOf(const Json& volume, std::string uri) {
  RaidVolume out;
  out.uri = plainUri(std::move(uri));
  for (const char* key : {"DisplayName", "Name", "Id"})
    if (out.name.empty()) out.name = textAt(volume, key);
  const auto type = textAt(volume, "VolumeType");
  out.is_raw = type == "RawDevice";
  out.level = textAt(volume, "RAIDType");
  for (const auto& [old, level] : kOldTypes)
    if (out.level.empty() && type == old) out.level = level;
  const auto state = textAt(volume, "Status/State");
  out.is_settled = std::ranges::find(kUnsettled, state) == kUnsettled.end();
  out.size_bytes = bytesAt(volume, "CapacityBytes");
  for (auto& drive : linksAt(volume, "Links/Drives")) out.drives.push_back(plainUri(drive));
  out.wwn = wwnOf(volume);
  return out;
}

std::vector<std::string> raidLevelsOf(const Json& capabilities,
                                      const std::vector<Json>& controllers) {
  auto levels = textsAt(capabilities, "RAIDType@Redfish.AllowableValues");
  if (!levels.empty()) return levels;
  for (const Json& controller : controllers)
    for (auto& level : textsAt(controller, "SupportedRAIDTypes"))
      if (std::ranges::find(levels, level) == levels.end()) levels.push_back(std::move(level));
  return levels;
}

std::string volumeCapabilitiesOf(const Json& collection) {
  const Json* all = find(collection, "@Redfish.CollectionCapabilities/Capabilities");
  if (!all || !all->is_array()) return {};
  for (const Json& each : *all)
    if (textAt(each, "UseCase") == "VolumeCreation") return linkAt(each, "CapabilitiesObject");
  return {};
}

ApplyTime applyTimeOf(const Json& collection) {
  const auto times = textsAt(collection, "@Redfish.OperationApplyTimeSupport/SupportedValues");
  const auto has = [&](const char* time) { return std::ranges::find(times, time) != times.end(); };
  if (has(kImmediate)) return {kImmediate, false};
  if (has(kOnReset)) return {kOnReset, true};
  return {};
}

Json volumeBody(const VolumeOrder& order, const Json& capabilities, const ApplyTime& when) {
  Json body = Json::object();
  body["RAIDType"] = order.level;
  body["Links"]["Drives"] = Json::array();
  for (const auto& drive : order.drives) {
    Json link = Json::object();
    link["@odata.id"] = drive;
    body["Links"]["Drives"].push_back(std::move(link));
  }
  // Some refuse what they do not name themselves.
  for (const char* key : {"DisplayName", "Name"}) {
    const auto says = [&](const char* annotation) {
      return boolAt(capabilities, std::string(key) + annotation).value_or(false);
    };
    if (!says("@Redfish.OptionalOnCreate") && !says("@Redfish.RequiredOnCreate")) continue;
    body[key] = order.name;
    break;
  }
  if (!when.asked.empty()) body["@Redfish.OperationApplyTime"] = when.asked;
  return body;
}

void markHiddenUse(RaidController& controller, const std::vector<Json>& drives) {
  for (std::size_t i = 0; i < drives.size() && i < controller.drives.size(); ++i) {
    auto& drive = controller.drives[i];
    if (!drive.unusable.empty()) continue;
    for (const auto& link : linksAt(drives[i], "Links/Volumes")) {
      const auto volume = std::ranges::find(controller.volumes, plainUri(link), &RaidVolume::uri);
      if (volume == controller.volumes.end())
        drive.unusable = fmt::format("it is of {}, which the controller does not list", link);
      else if (std::ranges::find(volume->drives, drive.uri) == volume->drives.end())
        volume->drives.push_back(drive.uri);
    }
  }
}

}  // namespace muster::bmc
