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
  json root = {{"components", components},
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
