// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/bmc_state.h"

#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"

#include <nlohmann/json.hpp>

namespace muster::lab::vbmc {

using nlohmann::json;

BmcState BmcState::fresh(const VendorProfile& vendor_profile) {
  BmcState state;
  for (const auto& row : vendor_profile.components)
    state.slots[std::string(row.name)].version = row.version;
  state.bios = {{"BootMode", "Uefi"},
                {"LogicalProc", "Enabled"},
                {"PowerCycleRequest", "None"},
                {"SriovGlobalEnable", "Disabled"},
                {"WorkloadProfile", "Balanced"}};
  return state;
}

Result<BmcState> BmcState::load(const std::filesystem::path& file,
                                const VendorProfile& vendor_profile) {
  std::error_code gone;
  if (!std::filesystem::exists(file, gone)) return fresh(vendor_profile);
  TRY(text, io::readFile(file));
  auto root = jsonOrNone(text, kKeptJson);
  try {
    BmcState state = fresh(vendor_profile);
    for (auto& [name, slot] : root.at("components").items())
      state.slots[name] = {slot.at("version"), slot.at("staged"),  slot.value("previous", ""),
                           slot.at("uploads"), slot.at("flashes"), slot.value("broken", false)};
    state.boot_once = root.at("boot_once");
    state.boot_lasts = root.value("boot_lasts", false);
    state.boot_uri = root.value("boot_uri", "");
    state.account_salt = root.value("account_salt", "");
    state.account_sha256 = root.value("account_sha256", "");
    state.failed_logins = root.at("failed_logins");
    state.starts = root.at("starts");
    state.tasks = root.at("tasks");
    state.ac_cycles = root.value("ac_cycles", 0u);
    state.bios = root.value("bios", state.bios);
    state.staged_bios = root.value("staged_bios", state.staged_bios);
    state.bios_job = root.value("bios_job", false);
    state.violations = root.value("violations", state.violations);
    state.log = root.value("log", state.log);
    state.boot_order = root.value("boot_order", state.boot_order);
    state.staged_boot_order = root.value("staged_boot_order", state.staged_boot_order);
    state.boot_disabled = root.value("boot_disabled", state.boot_disabled);
    state.locating = root.value("locating", false);
    for (const auto& [drive, medium] : root.value("media", json::object()).items())
      state.media[drive] = {medium.at("image"), medium.at("write_protected")};
    for (const auto& volume : root.value("volumes", json::array()))
      state.volumes.push_back(
          {volume.at("id"), volume.at("name"), volume.at("level"), volume.at("drives")});
    state.volume_ids = root.value("volume_ids", 0u);
    state.volume_orders = root.value("volume_orders", 0u);
    for (const auto& [id, account] : root.value("accounts", json::object()).items())
      state.accounts[id] = {account.at("name"), account.at("salt"), account.at("sha256"),
                            account.at("role"), account.at("enabled")};
    return state;
  } catch (const json::exception& problem) {
    return fail(ErrorCode::Corrupt,
                fmt::format("{} is not a virtual BMC's state: {}", file.string(), problem.what()));
  }
}

Result<void> BmcState::save(const std::filesystem::path& file) const {
  json components = json::object();
  for (auto& [name, slot] : slots)
    components[name] = {{"version", slot.version},           {"staged", slot.staged_version},
                        {"previous", slot.previous_version}, {"uploads", slot.uploads},
                        {"flashes", slot.flashes},           {"broken", slot.broken}};
  json drives = json::object(), others = json::object();
  for (const auto& [drive, medium] : media)
    drives[drive] = {{"image", medium.image}, {"write_protected", medium.write_protected}};
  for (const auto& [id, account] : accounts)
    others[id] = {{"name", account.username},
                  {"salt", account.salt},
                  {"sha256", account.password_sha256},
                  {"role", account.role},
                  {"enabled", account.enabled}};
  json raid = json::array();
  for (const auto& volume : volumes)
    raid.push_back({{"id", volume.id},
                    {"name", volume.name},
                    {"level", volume.level},
                    {"drives", volume.drives}});
  json root = {{"components", components},
               {"volumes", raid},
               {"volume_ids", volume_ids},
               {"volume_orders", volume_orders},
               {"boot_order", boot_order},
               {"staged_boot_order", staged_boot_order},
               {"boot_disabled", boot_disabled},
               {"locating", locating},
               {"media", drives},
               {"accounts", others},
               {"boot_once", boot_once},
               {"failed_logins", failed_logins},
               {"starts", starts},
               {"tasks", tasks},
               {"boot_lasts", boot_lasts},
               {"boot_uri", boot_uri},
               {"account_salt", account_salt},
               {"account_sha256", account_sha256},
               {"ac_cycles", ac_cycles},
               {"bios", bios},
               {"staged_bios", staged_bios},
               {"bios_job", bios_job},
               {"violations", violations},
               {"log", log}};
  return io::writeFileAtomic(file, jsonText(root, 2) + "\n", 0600);
}

}  // namespace muster::lab::vbmc
