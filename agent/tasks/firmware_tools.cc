// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/firmware_tools.h"

#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "base/utf8.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::agent {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kAskLimit{60}, kBurnLimit{1200}, kDownloadLimit{600},
    kCommitLimit{300}, kInstallLimit{1800};
constexpr std::size_t kQuotedBytes = 300;
constexpr std::size_t kFirmwareLogBytes = 512, kSlotBytes = 8, kSlots = 7;
/// FwupdUpdateState: what waits for a reboot.
constexpr int kPending = 1, kNeedsReboot = 4;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() &&
         (std::isspace(static_cast<unsigned char>(text.front())) || text.front() == '\0'))
    text.remove_prefix(1);
  while (!text.empty() &&
         (std::isspace(static_cast<unsigned char>(text.back())) || text.back() == '\0'))
    text.remove_suffix(1);
  return text;
}

/// Calls `take` with key and value of each "key: value".
template <class Take>
void eachPair(std::string_view text, Take take) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const auto colon = line.find(':'); colon != std::string_view::npos)
      take(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  }
}

std::unexpected<Error> notUnderstood(std::string_view program, std::string_view text) {
  return fail(ErrorCode::Corrupt,
              fmt::format("the output of {} was not understood: {}", program,
                          text.empty() ? "nothing" : std::string(cutToBytes(text, kQuotedBytes))));
}

/// "Devices" of what fwupdtool prints; an object "Error" says that there are none, or why.
Result<json> fwupdList(std::string_view text) {
  const auto root = jsonOrNone(text, kToolJson);
  if (!root.is_object()) return notUnderstood("fwupdtool", text);
  if (const auto found = root.find("Devices"); found != root.end() && found->is_array())
    return json(*found);
  const auto error = root.find("Error");
  if (error == root.end() || !error->is_object()) return notUnderstood("fwupdtool", text);
  constexpr int kNothingToDo = 9;  // FWUPD_ERROR_NOTHING_TO_DO: no device
  if (error->value("Code", 0) == kNothingToDo) return json::array();
  return fail(ErrorCode::Internal, "fwupdtool: " + textOf(*error, "Message"));
}

}  // namespace

ToolCall mstflintQuery(const std::string& pci) {
  return {"mstflint", {"-d", pci, "query"}, kAskLimit};
}
ToolCall mstflintQueryImage(const std::filesystem::path& image) {
  return {"mstflint", {"-i", image.string(), "query"}, kAskLimit};
}
ToolCall mstflintBurn(const std::string& pci, const std::filesystem::path& image) {
  return {"mstflint", {"-d", pci, "-i", image.string(), "-y", "burn"}, kBurnLimit};
}

Result<MstflintInfo> parseMstflint(std::string_view text) {
  MstflintInfo info;
  eachPair(text, [&info](std::string_view key, std::string_view value) {
    if (key == "PSID") info.psid = value;
    if (key == "FW Version") info.version = value;
    if (key == "FW Version(Running)") info.running = value;
  });
  if (info.version.empty() || info.psid.empty() || info.psid == "N/A")
    return notUnderstood("mstflint query", text);
  return info;
}

ToolCall nvmeFirmwareLog(const std::string& controller) {
  return {"nvme", {"fw-log", "/dev/" + controller, "--raw-binary"}, kAskLimit};
}
ToolCall nvmeDownload(const std::string& controller, const std::filesystem::path& image) {
  return {"nvme", {"fw-download", "/dev/" + controller, "--fw=" + image.string()}, kDownloadLimit};
}
ToolCall nvmeCommit(const std::string& controller) {
  return {"nvme", {"fw-commit", "/dev/" + controller, "--slot=0", "--action=1"}, kCommitLimit};
}

/// Byte 0: bits 0-2 the slot that runs, bits 4-6 the slot of the next reset (0: the same). From
/// byte 8: seven revisions of eight letters.
Result<std::string> nvmePending(std::string_view page) {
  if (page.size() < kFirmwareLogBytes)
    return fail(ErrorCode::Corrupt, fmt::format("nvme fw-log gave {} bytes, the page has {}",
                                                page.size(), kFirmwareLogBytes));
  const auto slots = static_cast<unsigned char>(page.front());
  const std::size_t runs = slots & 7, next = slots >> 4 & 7;
  if (runs == 0 || runs > kSlots || next > kSlots)
    return fail(ErrorCode::Corrupt,
                fmt::format("nvme fw-log names the slots {} and {}", runs, next));
  if (next == 0 || next == runs) return std::string();
  return std::string(trimmed(page.substr(next * kSlotBytes, kSlotBytes)));
}

ToolCall fwupdDevices() { return {"fwupdtool", {"get-devices", "--json"}, kAskLimit}; }
ToolCall fwupdHistory() { return {"fwupdtool", {"get-history", "--json"}, kAskLimit}; }
ToolCall fwupdDetails(const std::filesystem::path& cabinet) {
  return {"fwupdtool", {"get-details", cabinet.string()}, kAskLimit};
}
ToolCall fwupdInstall(const std::filesystem::path& cabinet, const std::string& device) {
  return {"fwupdtool",
          {"install", cabinet.string(), device, "--no-reboot-check", "--assume-yes", "--json"},
          kInstallLimit};
}

Result<std::vector<wire::DeviceVersion>> parseFwupd(std::string_view devices,
                                                    std::string_view history) {
  TRY(listed, fwupdList(devices));
  std::map<std::string, std::string> waits;
  if (!trimmed(history).empty()) {
    TRY(past, fwupdList(history));
    for (const auto& device : past) {
      const auto state = device.is_object() ? device.find("UpdateState") : device.end();
      if (!device.is_object() || state == device.end() || !state->is_number_integer()) continue;
      const auto releases = device.find("Releases");
      if (releases == device.end() || !releases->is_array() || releases->empty()) continue;
      if (*state == kPending || *state == kNeedsReboot)
        waits[textOf(device, "DeviceId")] = textOf(releases->front(), "Version");
    }
  }
  std::vector<wire::DeviceVersion> out;
  for (const auto& device : listed) {
    wire::DeviceVersion found{std::string(wire::kFwupd), textOf(device, "DeviceId"),
                              textOf(device, "Name"),    {},
                              textOf(device, "Version"), {}};
    if (found.id.empty()) return notUnderstood("fwupdtool get-devices", jsonText(device));
    const auto guids = device.find("Guid");
    if (found.version.empty() || guids == device.end() || !guids->is_array())
      continue;  // of such there are many that nobody can update
    for (const auto& guid : *guids)
      if (guid.is_string() && found.keys.size() < wire::kMaxFirmwareKeys)
        found.keys.push_back(guid.get<std::string>());
    if (const auto pending = waits.find(found.id);
        pending != waits.end() && pending->second != found.version)
      found.pending = pending->second;
    if (out.size() < wire::kMaxFirmwareDevices) out.push_back(std::move(found));
  }
  return out;
}

/// A tree for people; the program has no JSON here. Its "New version" stands below each device that
/// the cabinet is for.
Result<std::vector<std::string>> parseFwupdDetails(std::string_view text) {
  std::vector<std::string> versions;
  eachPair(text, [&versions](std::string_view key, std::string_view value) {
    if (key.ends_with("New version") &&
        std::find(versions.begin(), versions.end(), value) == versions.end())
      versions.emplace_back(value);
  });
  if (versions.empty()) return notUnderstood("fwupdtool get-details", text);
  return versions;
}

}  // namespace muster::agent
