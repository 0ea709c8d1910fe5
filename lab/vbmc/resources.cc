// SPDX-License-Identifier: Apache-2.0
// What the virtual BMC shows: every resource that GET answers.
#include "lab/vbmc/messages.h"
#include "lab/vbmc/redfish_service.h"
#include "lab/vbmc/resource_parts.h"

namespace muster::lab::vbmc {

namespace {

json serviceRoot(const Identity& identity, const VendorProfile& vendor_profile) {
  json result = head(kRoot, "ServiceRoot.v1_9_0.ServiceRoot", "Root Service");
  result["Id"] = "RootService";
  result["RedfishVersion"] = "1.11.0";
  result["UUID"] = identity.uuid;
  if (vendor_profile.names_vendor) result["Vendor"] = vendor_profile.vendor;
  if (const auto product = vendor_profile.behaviour().product; !product.empty())
    result["Product"] = product;
  else
    result["Oem"][std::string(vendor_profile.vendor)] = json::object();
  result["ProtocolFeaturesSupported"]["ExpandQuery"] = {{"NoLinks", true},
                                                        {"Levels", true},
                                                        {"MaxLevels", 1},
                                                        {"ExpandAll", false},
                                                        {"Links", false}};
  for (auto name : {"Systems", "Managers", "Chassis", "SessionService", "AccountService",
                    "UpdateService", "CertificateService", "EventService"})
    if (vendor_profile.certificates != CertificateWay::HpeHttpsCert ||
        std::string_view(name) != "CertificateService")
      result[name] = linkTo(kRoot + "/" + name);
  result["Tasks"] = linkTo(kRoot + "/TaskService");
  result["Links"]["Sessions"] = linkTo(kSessions);
  return result;
}

json sessionService(const LoginGuard& guard) {
  json result =
      head(kRoot + "/SessionService", "SessionService.v1_1_8.SessionService", "Session Service");
  result["ServiceEnabled"] = true;
  result["SessionTimeout"] = guard.limits().session_idle.count();
  result["Sessions"] = linkTo(kSessions);
  return result;
}

json sessionResource(const std::string& path, const Session& session) {
  json result = head(path, "Session.v1_3_0.Session", "User Session");
  result["UserName"] = session.username;
  return result;
}

json accountService(const LoginGuard& guard) {
  json result =
      head(kRoot + "/AccountService", "AccountService.v1_7_2.AccountService", "Account Service");
  result["AccountLockoutThreshold"] = guard.limits().lockout_threshold;
  result["AccountLockoutDuration"] = guard.limits().lockout_duration.count();
  result["Accounts"] = linkTo(kRoot + "/AccountService/Accounts");
  return result;
}

json gpuResource(const std::string& path, const std::string& model, const std::string& serial) {
  json result = head(path, "Processor.v1_13_0.Processor", "GPU");
  result["ProcessorType"] = "GPU";
  result["Model"] = model;
  result["SerialNumber"] = serial;
  result["Status"] = healthy();
  return result;
}

json taskService() {
  json result = head(kRoot + "/TaskService", "TaskService.v1_1_6.TaskService", "Task Service");
  result["ServiceEnabled"] = true;
  result["Tasks"] = linkTo(kTasks);
  return result;
}

json nicResource(const std::string& path, const std::string& mac) {
  json result = head(path, "EthernetInterface.v1_6_3.EthernetInterface", "Network Interface");
  result["MACAddress"] = mac;
  result["PermanentMACAddress"] = mac;
  result["Status"] = healthy();
  return result;
}

}  // namespace

std::optional<nlohmann::json> RedfishService::resource(const std::string& path, bool on) const {
  if (path == "/redfish") return json{{"v1", kRoot + "/"}};
  if (path == kRoot) return serviceRoot(options_.identity, *options_.vendor_profile);
  if (path == kRoot + "/Systems") return collection(path, "ComputerSystemCollection", {"system"});
  if (path == kSystem) return systemResource(on);
  if (path == kSystem + "/ResetActionInfo")
    return resetActionInfo(
        path, {options_.vendor_profile->resets.begin(), options_.vendor_profile->resets.end()});
  if (path == kRoot + "/Managers") return collection(path, "ManagerCollection", {"bmc"});
  if (path == kManager) return managerResource();
  if (path == kRoot + "/SessionService") return sessionService(guard_);
  if (path == kSessions) return collection(path, "SessionCollection", keysOf(guard_.sessions()));
  if (path == kRoot + "/AccountService") return accountService(guard_);
  if (path == kRoot + "/AccountService/Accounts")
    return collection(path, "ManagerAccountCollection", {"1"});
  if (path == kAccount) return accountResource();
  if (path == kRoot + "/UpdateService") return updateServiceResource();
  if (path == kInventory) return collection(path, "SoftwareInventoryCollection", inventoryIds());
  if (path == kRoot + "/TaskService") return taskService();
  if (path == kTasks) {
    std::vector<std::string> ids;
    for (const auto& [id, task] : tasks_)
      if (isShown(task)) ids.push_back(id);
    return collection(path, "TaskCollection", ids);
  }
  if (auto found = vendorResource(path, on)) return found;
  if (auto found = trustResource(path)) return found;
  if (auto found = eventResource(path)) return found;

  auto slash = path.rfind('/');
  auto parent = path.substr(0, slash), id = path.substr(slash + 1);
  if (auto session = guard_.sessions().find(id);
      parent == kSessions && session != guard_.sessions().end())
    return sessionResource(path, session->second);
  if (parent == kInventory) return firmwareMember(path, id, on);
  if (auto task = tasks_.find(id);
      parent == kTasks && task != tasks_.end() && isShown(task->second))
    return taskResource(task->second);
  const auto& bmc_mac = options_.identity.bmc_mac;
  if (path == kManager + "/EthernetInterfaces" && !bmc_mac.empty())
    return collection(path, "EthernetInterfaceCollection", {"eth0"});
  if (path == kManager + "/EthernetInterfaces/eth0" && !bmc_mac.empty())
    return nicResource(path, bmc_mac);
  std::map<std::string, std::string> gpus;
  for (std::size_t index = 0; index < options_.identity.gpu_models.size(); ++index)
    gpus[fmt::format("GPU{}", index)] = options_.identity.gpu_models[index];
  if (path == kSystem + "/Processors" && !gpus.empty())
    return collection(path, "ProcessorCollection", keysOf(gpus));
  if (auto gpu = gpus.find(id); parent == kSystem + "/Processors" && gpu != gpus.end())
    return gpuResource(path, gpu->second, options_.identity.serial + "-" + id);
  auto nics = kSystem + "/EthernetInterfaces";
  auto& macs = options_.identity.macs;
  std::map<std::string, std::string> by_id;
  for (std::size_t index = 0; index < macs.size(); ++index)
    by_id[fmt::format("nic{}", index)] = macs[index];
  if (!behaviour_.system_says_identity) return std::nullopt;
  if (path == nics) return collection(path, "EthernetInterfaceCollection", keysOf(by_id));
  if (auto nic = by_id.find(id); parent == nics && nic != by_id.end())
    return nicResource(path, nic->second);
  return std::nullopt;
}

nlohmann::json RedfishService::systemResource(bool on) const {
  auto& identity = options_.identity;
  json result = head(kSystem, "ComputerSystem.v1_13_1.ComputerSystem", identity.node);
  result["SystemType"] = "Physical";
  result["HostName"] = identity.node;
  const bool plain = options_.vendor_profile == &vendorProfiles().front();
  if (behaviour_.system_says_identity) {
    result["Manufacturer"] =
        plain ? identity.manufacturer : std::string(options_.vendor_profile->manufacturer);
    result["Model"] = plain ? identity.model : std::string(options_.vendor_profile->model);
    result["SerialNumber"] = identity.serial;
  } else {
    result.erase("HostName");
  }
  result["UUID"] = identity.uuid;
  result["PowerState"] = on ? "On" : "Off";
  if (behaviour_.system_says_identity)
    result["BiosVersion"] = state_.slots.contains("BIOS") ? state_.slots.at("BIOS").version : "";
  result["Status"] = healthy();
  result["Boot"] = {
      {"BootSourceOverrideEnabled", state_.boot_once == "None" ? "Disabled"
                                    : state_.boot_lasts        ? "Continuous"
                                                               : "Once"},
      {"BootSourceOverrideTarget", state_.boot_once},
      {"HttpBootUri", state_.boot_uri},
      {"BootSourceOverrideTarget@Redfish.AllowableValues", {"None", "Pxe", "Hdd", "UefiHttp"}},
      {"BootSourceOverrideEnabled@Redfish.AllowableValues", {"Once", "Continuous", "Disabled"}}};
  if (behaviour_.boot_mode) result["Boot"]["BootSourceOverrideMode"] = "UEFI";
  if (behaviour_.override_on_settings)
    result["@Redfish.Settings"] = {{"@odata.type", "#Settings.v1_3_0.Settings"},
                                   {"SettingsObject", linkTo(kSystemSettings)}};
  if (const auto& serial = options_.serial)
    result["SerialConsole"]["SSH"] = {{"ServiceEnabled", true},
                                      {"Port", serial->ssh_port},
                                      {"SharedWithManagerCLI", !serial->command.empty()},
                                      {"ConsoleEntryCommand", serial->command}};
  const auto& cut = behaviour_.cut;
  result["Bios"] = linkTo(kBios);
  result["LogServices"] = linkTo(kSystem + "/LogServices");
  const auto& named =
      cut.owner == StandbyCut::Owner::Chassis ? std::string(cut.chassis) : "chassis";
  result["Links"]["Chassis"] = json::array({linkTo(kChassis + "/" + named)});
  if (cut.owner == StandbyCut::Owner::System)
    putAt(result, cut.action,
          {{"target",
            kSystem + "/Actions/Oem/" + std::string(cut.action.substr(cut.action.find('#') + 1))},
           {"ResetType@Redfish.AllowableValues", {cut.value}}});
  if (behaviour_.system_says_identity)
    result["EthernetInterfaces"] = linkTo(kSystem + "/EthernetInterfaces");
  else
    result["Boot"]["BootOptions"] = linkTo(kBootOptions);
  if (!identity.gpu_models.empty()) result["Processors"] = linkTo(kSystem + "/Processors");
  result["Links"]["ManagedBy"] = json::array({linkTo(kManager)});
  result["Actions"]["#ComputerSystem.Reset"] = {
      {"target", kSystem + "/Actions/ComputerSystem.Reset"},
      {"@Redfish.ActionInfo", kSystem + "/ResetActionInfo"}};
  return result;
}

/// iDRAC's tasks vanish when they have ended; their Jobs stay.
bool RedfishService::isShown(const UpdateTask& task) const {
  const bool ended = task.state == "Completed" || task.state == "Exception";
  return task.young_reads >= 0 && !(ended && !behaviour_.keeps_finished_tasks);
}

nlohmann::json RedfishService::taskResource(const UpdateTask& task) const {
  json result =
      head(kTasks + "/" + task.id, "Task.v1_5_1.Task", "Firmware update of " + task.component);
  result["TaskState"] = task.state;
  result["TaskStatus"] = task.status;
  result["PercentComplete"] = task.percent;
  result["Payload"] = {{"TargetUri", kUpload}, {"HttpOperation", "POST"}};
  result["Messages"] = json::array();
  for (auto& [id, text] : task.messages)
    result["Messages"].push_back(
        messageJson(id, text, task.status == "OK" ? "OK" : "Critical", "None."));
  if (!task.job.empty()) result["Messages"][0]["MessageArgs"] = {kJobs + "/" + task.job};
  return result;
}

nlohmann::json RedfishService::accountResource() const {
  json result = head(kAccount, "ManagerAccount.v1_6_2.ManagerAccount", "User Account");
  result["UserName"] = guard_.username();
  result["RoleId"] = "Administrator";
  result["Enabled"] = true;
  result["Locked"] = guard_.locked();
  result["Oem"]["Muster"]["FailedLogins"] = guard_.failedLogins();
  return result;
}

}  // namespace muster::lab::vbmc
