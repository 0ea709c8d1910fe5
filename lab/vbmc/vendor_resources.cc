// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/vendor_resources.h"

#include "base/io/crypto.h"
#include "lab/vbmc/firmware_file.h"
#include "lab/vbmc/resource_parts.h"

#include <algorithm>
#include <cctype>

namespace muster::lab::vbmc {

namespace {

/// A GUID, as HPE has it: by it fwupd knows devices.
std::string softwareIdOf(const std::string& name) {
  auto id = io::sha256Hex(name).substr(0, 32);
  for (const std::size_t dash : {8, 13, 18, 23}) id.insert(dash, "-");
  return id;
}

const std::string kAdapters = kChassis + "/chassis/NetworkAdapters";
const std::string kSupplies = kChassis + "/chassis/PowerSubsystem/PowerSupplies";
constexpr double kInletCelsius = 24, kIdleWatts = 600;
constexpr int kStatusUnavailable = 503;

/// The chassis of a root of trust: "HGX_FW_ERoT_FPGA_0" → "HGX_ERoT_FPGA_0".
std::string rootOfTrust(std::string_view component) {
  std::string id(component);
  if (const auto at = id.find("FW_"); at != std::string::npos) id.erase(at, 3);
  return id;
}

json sensor(const std::string& path, const std::string& name, const std::string& type,
            const std::string& unit, double reading, double critical) {
  json result = head(path, "Sensor.v1_2_0.Sensor", name);
  result["ReadingType"] = type;
  result["ReadingUnits"] = unit;
  result["Reading"] = reading;
  result["Status"] = healthy();
  result["Thresholds"]["UpperCritical"]["Reading"] = critical;
  return result;
}

/// A line of the log: "2026-11-25T10:00:00Z [Warning] a fan is slow".
json logEntry(const std::string& line, std::size_t number) {
  const auto space = line.find(' ');
  json entry =
      head(fmt::format("{}/Entries/{}", kSel, number), "LogEntry.v1_9_0.LogEntry", "Log Entry");
  entry["EntryType"] = "SEL";
  entry["Created"] = line.substr(0, space);
  auto words = line.substr(space + 1);
  const auto end = words.starts_with('[') ? words.find("] ") : std::string::npos;
  entry["Severity"] = end == std::string::npos ? "OK" : words.substr(1, end - 1);
  entry["Message"] = end == std::string::npos ? std::move(words) : words.substr(end + 2);
  return entry;
}

}  // namespace

nlohmann::json VendorResources::updateServiceResource() const {
  const auto path = kRoot + "/UpdateService";
  json result = head(path, "UpdateService.v1_8_1.UpdateService", "Update Service");
  result["ServiceEnabled"] = true;
  result["Status"] = healthy();
  result["MaxImageSizeBytes"] = bmc_.options.max_image_bytes;
  result["FirmwareInventory"] = linkTo(kInventory);
  if (bmc_.options.vendor_profile->takes == Takes::Push) {
    result["HttpPushUri"] = kInventory;
  } else if (bmc_.options.vendor_profile->takes == Takes::Multipart &&
             bmc_.behaviour.flash_state.empty()) {
    result["MultipartHttpPushUri"] = kUpload;
  } else if (bmc_.options.vendor_profile->takes == Takes::Multipart) {
    result["HttpPushUri"] = kIloUpload;
    const auto& task = bmc_.tasks.empty() ? UpdateTask{} : bmc_.tasks.rbegin()->second;
    putAt(result, bmc_.behaviour.flash_state,
          {{"State", bmc_.flash_state}, {"FlashProgressPercent", task.percent}});
  }
  result["Actions"] = json::object();  // sushy insists
  if (bmc_.behaviour.goes_back == GoesBack::ByPreviousMember ||
      bmc_.options.vendor_profile->takes == Takes::Fetch)
    result["Actions"]["#UpdateService.SimpleUpdate"] = {{"target", kSimpleUpdate}};
  if (bmc_.behaviour.two_phase)
    result["Actions"]["#UpdateService.StartUpdate"] = {
        {"target", path + "/Actions/UpdateService.StartUpdate"}};
  if (!bmc_.behaviour.commit_action.empty())
    putAt(result, bmc_.behaviour.commit_action,
          {{"target", path + "/Actions/Oem/NvidiaUpdateService.CommitImage"},
           {"@Redfish.ActionInfo", path + "/Oem/Nvidia/CommitImageActionInfo"}});
  return result;
}

nlohmann::json VendorResources::managerResource() const {
  json result = head(kManager, "Manager.v1_11_0.Manager", "Virtual BMC");
  const auto own = bmc_.state.slots.find(std::string(bmc_.options.vendor_profile->bmc));
  result["ManagerType"] = "BMC";
  result["FirmwareVersion"] = own == bmc_.state.slots.end() ? "" : own->second.version;
  if (bmc_.behaviour.goes_back == GoesBack::ByActiveImage) {
    result["Links"]["ActiveSoftwareImage"] = linkTo(kInventory + "/" + own->first);
    result["Links"]["SoftwareImages"] = json::array({linkTo(kInventory + "/" + own->first)});
    if (!own->second.previous_version.empty())
      result["Links"]["SoftwareImages"].push_back(
          linkTo(kInventory + "/" + own->first + std::string(kPreviousImage)));
  }
  result["Status"] = healthy();
  result["NetworkProtocol"] = linkTo(kManager + "/NetworkProtocol");
  result["Links"]["ManagerForServers"] = json::array({linkTo(kSystem)});
  json types = bmc_.behaviour.manager_reset.empty() ? json{"GracefulRestart", "ForceRestart"}
                                                    : json::array({bmc_.behaviour.manager_reset});
  result["Actions"]["#Manager.Reset"] = {{"target", kManager + "/Actions/Manager.Reset"},
                                         {"ResetType@Redfish.AllowableValues", std::move(types)}};
  if (bmc_.options.vendor_profile->certificates == CertificateMethod::HpeHttpsCert)
    result["Oem"]["Hpe"]["Links"]["SecurityService"] = linkTo(kHpeSecurity);
  if (bmc_.behaviour.jobs) result["Links"]["Oem"]["Dell"]["Jobs"] = linkTo(kJobs);
  if (!bmc_.options.identity.bmc_mac.empty())
    result["EthernetInterfaces"] = linkTo(kManager + "/EthernetInterfaces");
  return result;
}

std::optional<nlohmann::json> VendorResources::firmwareMember(const std::string& path,
                                                              const std::string& id,
                                                              bool on) const {
  const auto ids = bmc_.inventoryIds();
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) return std::nullopt;
  if (const auto ready = bmc_.ready.find(id); ready != bmc_.ready.end()) {
    const auto header = readFirmwareHeader(*ready->second.image);
    json result = head(path, "SoftwareInventory.v1_3_0.SoftwareInventory", header->component);
    result["Version"] = header->version;
    result["Updateable"] = true;
    return result;
  }
  const auto name = bmc_.slotOf(id);
  const auto& slot = bmc_.state.slots.at(name);
  const bool baseboard = name.starts_with("HGX_");
  if (baseboard && ((bmc_.options.vendor_profile->baseboard_needs_host && !on) ||
                    bmc_.clock.steady() < bmc_.baseboard_silent_until))
    return errorInPlace(kStatusUnavailable, "Ami.1.0.HMCCommuicationFailed",
                        "The baseboard does not answer.");
  const bool previous = bmc_.isPrevious(id);
  json result = head(path, "SoftwareInventory.v1_3_0.SoftwareInventory", name);
  result["Version"] = previous ? slot.previous_version : slot.broken ? "" : slot.version;
  result["SoftwareId"] = softwareIdOf(name);
  result["Updateable"] = !previous;
  if (!previous &&
      (name == bmc_.options.vendor_profile->bios || name == bmc_.options.vendor_profile->bmc))
    result["RelatedItem"] =
        json::array({linkTo(name == bmc_.options.vendor_profile->bmc ? kManager : kBios)});
  result["Status"] = healthy();
  if (slot.broken && !previous) result["Status"] = {{"State", "Disabled"}, {"Health", "Critical"}};
  if (!previous && bmc_.writing == name && bmc_.behaviour.staged_state == "Stopping")
    result["Status"]["State"] = "Updating";
  result["Oem"]["Muster"] = {
      {"StagedVersion", slot.staged_version}, {"Uploads", slot.uploads}, {"Flashes", slot.flashes}};
  return result;
}

nlohmann::json VendorResources::biosResource(bool settings) const {
  json result =
      head(settings ? kBios + "/Settings" : kBios, "Bios.v1_2_0.Bios", "BIOS Configuration");
  result["Attributes"] = json::object();
  for (const auto& [name, value] : settings ? bmc_.state.staged_bios : bmc_.state.bios)
    result["Attributes"][name] = value;
  if (!settings)
    result["@Redfish.Settings"] = {{"@odata.type", "#Settings.v1_3_0.Settings"},
                                   {"SettingsObject", linkTo(kBios + "/Settings")}};
  if (!settings && bmc_.options.vendor_profile->bios_by_job)
    result["@Redfish.Settings"]["SupportedApplyTimes"] = {"OnReset", "AtMaintenanceWindowStart",
                                                          "InMaintenanceWindowOnReset"};
  return result;
}

/// What holds the whole machine; it says which one it is where the system does not.
nlohmann::json VendorResources::enclosingChassis(const std::string& path) const {
  json result = head(path, "Chassis.v1_15_0.Chassis", "Chassis");
  result["ChassisType"] = bmc_.behaviour.system_says_identity ? "RackMount" : "Shelf";
  result["Status"] = healthy();
  result["Sensors"] = linkTo(path + "/Sensors");
  result["PowerSubsystem"] = linkTo(path + "/PowerSubsystem");
  result["NetworkAdapters"] = linkTo(kAdapters);
  result["Links"]["ComputerSystems"] = json::array({linkTo(kSystem)});
  result["Links"]["ManagedBy"] = json::array({linkTo(kManager)});
  if (!bmc_.behaviour.system_says_identity) {
    result["Manufacturer"] = bmc_.options.vendor_profile->manufacturer;
    result["Model"] = bmc_.options.vendor_profile->model;
    result["SerialNumber"] = bmc_.options.identity.serial;
  }
  return result;
}

std::optional<nlohmann::json> VendorResources::chassisResource(const std::string& path) const {
  std::vector<std::string> ids = {"chassis"};
  const bool aux = bmc_.behaviour.cut.owner == StandbyCut::Owner::Chassis;
  if (aux) ids.emplace_back(bmc_.behaviour.cut.chassis);
  std::map<std::string, std::string> roots_of_trust;
  for (const auto& row : bmc_.options.vendor_profile->components)
    if (bmc_.behaviour.copies_in_background && row.copies)
      roots_of_trust[rootOfTrust(row.name)] = std::string(row.name);
  for (const auto& [id, component] : roots_of_trust) ids.push_back(id);
  if (path == kChassis) return collection(path, "ChassisCollection", ids);
  const auto id = path.substr(path.rfind('/') + 1);
  if (path == kChassis + "/chassis") return enclosingChassis(path);
  if (path.starts_with(kAdapters)) return adapterResource(path);
  if (path == kSupplies) return collection(path, "PowerSupplyCollection", {"PSU1", "PSU2"});
  if (path == kSupplies.substr(0, kSupplies.rfind('/'))) {
    json result = head(path, "PowerSubsystem.v1_1_0.PowerSubsystem", "Power Subsystem");
    result["PowerSupplies"] = linkTo(kSupplies);
    return result;
  }
  if (path == kSupplies + "/PSU1" || path == kSupplies + "/PSU2") {
    json result = head(path, "PowerSupply.v1_3_0.PowerSupply", path.substr(path.rfind('/') + 1));
    result["Status"] = healthy();
    return result;
  }
  if (path == kChassis + "/chassis/Sensors")
    return collection(path, "SensorCollection", {"inlet", "power"});
  if (path == kChassis + "/chassis/Sensors/inlet")
    return sensor(path, "Inlet", "Temperature", "Cel", kInletCelsius, 45);
  if (path == kChassis + "/chassis/Sensors/power")
    return sensor(path, "Total Power", "Power", "W", kIdleWatts, 12'000);
  if (path != kChassis + "/" + id || std::find(ids.begin(), ids.end(), id) == ids.end())
    return std::nullopt;
  json result = head(path, "Chassis.v1_15_0.Chassis", id);
  result["ChassisType"] = "Component";
  result["Status"] = healthy();
  if (roots_of_trust.contains(id))
    result["Oem"]["Nvidia"] = {
        {"AutomaticBackgroundCopyEnabled", true},
        {"BackgroundCopyStatus", bmc_.copying(roots_of_trust.at(id)) ? "InProgress" : "Completed"}};
  if (aux && id == bmc_.behaviour.cut.chassis) {
    const auto action = bmc_.behaviour.cut.action;
    putAt(result, action,
          {{"target", path + "/Actions/Oem/" + std::string(action.substr(action.find('#') + 1))}});
    result["Manufacturer"] = bmc_.options.vendor_profile->manufacturer;
    result["Model"] = bmc_.options.vendor_profile->model;
    result["SerialNumber"] = bmc_.options.identity.serial + "-BMC";
    result["Links"]["ComputerSystems"] = json::array({linkTo(kSystem)});
    result["Links"]["ManagedBy"] = json::array({linkTo(kManager)});
  }
  return result;
}

std::optional<nlohmann::json> VendorResources::adapterResource(const std::string& path) const {
  if (path == kAdapters) return collection(path, "NetworkAdapterCollection", {"NIC1"});
  if (path != kAdapters + "/NIC1") return std::nullopt;
  json result = head(path, "NetworkAdapter.v1_5_0.NetworkAdapter", "Network Adapter");
  result["Status"] = healthy();
  if (bmc_.adapter_starting) result["Status"] = {{"State", "Starting"}};
  return result;
}

std::optional<nlohmann::json> VendorResources::resource(const std::string& path) const {
  if (path == kBios) return biosResource(false);
  if (path == kBios + "/Settings") return biosResource(true);
  if (path.starts_with(kChassis)) return chassisResource(path);
  if (path == kSystem + "/LogServices") return collection(path, "LogServiceCollection", {"SEL"});
  if (path == kSel) {
    json result = head(path, "LogService.v1_2_0.LogService", "System Event Log");
    result["LogEntryType"] = "SEL";
    result["Entries"] = linkTo(kSel + "/Entries");
    return result;
  }
  if (path == kSel + "/Entries") {
    json result = collection(path, "LogEntryCollection", {});
    for (std::size_t i = 0; i < bmc_.state.log.size(); ++i)
      result["Members"].push_back(logEntry(bmc_.state.log[i], i + 1));
    result["Members@odata.count"] = bmc_.state.log.size();
    return result;
  }
  if (path.starts_with(kSel + "/Entries/")) {
    for (std::size_t i = 0; i < bmc_.state.log.size(); ++i)
      if (auto entry = logEntry(bmc_.state.log[i], i + 1); entry["@odata.id"] == path) return entry;
    return std::nullopt;
  }
  if (path == kJobs) {
    std::vector<std::string> ids;
    for (const auto& [task_id, task] : bmc_.tasks)
      if (!task.job.empty() && task.young_reads == 0) ids.push_back(task.job);
    return collection(path, "DellJobCollection", ids);
  }
  if (!path.starts_with(kJobs + "/")) return std::nullopt;
  const auto id = path.substr(kJobs.size() + 1);
  for (const auto& [task_id, task] : bmc_.tasks) {
    if (task.job != id || task.young_reads != 0) continue;
    json result = head(path, "DellJob.v1_3_0.DellJob", "Firmware Update");
    result["JobState"] = task.state == "Exception" ? "Failed" : task.state;
    result["JobType"] = "FirmwareUpdate";
    if (!task.volumes_uri.empty()) {
      result["Name"] = "Configure: RAID";
      result["JobType"] = "RAIDConfiguration";
      if (task.state == "Starting") result["JobState"] = "Scheduled";
    }
    result["PercentComplete"] = task.percent;
    result["Message"] = task.messages.empty() ? "" : task.messages.back().second;
    return result;
  }
  return std::nullopt;
}

}  // namespace muster::lab::vbmc
