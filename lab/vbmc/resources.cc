// What the virtual BMC shows: every resource that GET answers.
#include "lab/vbmc/messages.h"
#include "lab/vbmc/redfish_service.h"

namespace muster::lab::vbmc {

namespace {

using nlohmann::json;

json head(const std::string& path, const std::string& type, const std::string& name) {
  auto slash = path.rfind('/');
  return {{"@odata.id", path}, {"@odata.type", "#" + type}, {"Id", path.substr(slash + 1)}, {"Name", name}};
}

json collection(const std::string& path, const std::string& type, const std::vector<std::string>& members) {
  json result = head(path, type + "." + type, type);
  result["Members"] = json::array();
  for (auto& member : members) result["Members"].push_back(linkTo(path + "/" + member));
  result["Members@odata.count"] = members.size();
  return result;
}

template <class Map>
std::vector<std::string> keysOf(const Map& map) {
  std::vector<std::string> keys;
  for (auto& entry : map) keys.push_back(entry.first);
  return keys;
}

json healthy() { return {{"State", "Enabled"}, {"Health", "OK"}}; }

json resetActionInfo(const std::string& path, std::vector<std::string> values) {
  json result = head(path, "ActionInfo.v1_1_2.ActionInfo", "Reset Action Info");
  result["Parameters"] =
      json::array({{{"Name", "ResetType"}, {"Required", true}, {"DataType", "String"}, {"AllowableValues", std::move(values)}}});
  return result;
}

json serviceRoot(const Identity& identity) {
  json result = head(kRoot, "ServiceRoot.v1_9_0.ServiceRoot", "Root Service");
  result["Id"] = "RootService";
  result["RedfishVersion"] = "1.11.0";
  result["UUID"] = identity.uuid;
  result["Vendor"] = identity.manufacturer;
  for (auto name : {"Systems", "Managers", "SessionService", "AccountService", "UpdateService"}) result[name] = linkTo(kRoot + "/" + name);
  result["Tasks"] = linkTo(kRoot + "/TaskService");
  result["Links"]["Sessions"] = linkTo(kSessions);
  return result;
}

json updateService(std::size_t max_image_bytes) {
  json result = head(kRoot + "/UpdateService", "UpdateService.v1_8_1.UpdateService", "Update Service");
  result["ServiceEnabled"] = true;
  result["Status"] = healthy();
  result["MultipartHttpPushUri"] = kUpload;
  result["MaxImageSizeBytes"] = max_image_bytes;
  result["FirmwareInventory"] = linkTo(kInventory);
  return result;
}

json sessionService(const LoginGuard& guard) {
  json result = head(kRoot + "/SessionService", "SessionService.v1_1_8.SessionService", "Session Service");
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
  json result = head(kRoot + "/AccountService", "AccountService.v1_7_2.AccountService", "Account Service");
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

json managerResource(const BmcState& state) {
  json result = head(kManager, "Manager.v1_11_0.Manager", "Virtual BMC");
  result["ManagerType"] = "BMC";
  result["FirmwareVersion"] = state.slots.contains("BMC") ? state.slots.at("BMC").version : "";
  result["Status"] = healthy();
  result["Links"]["ManagerForServers"] = json::array({linkTo(kSystem)});
  result["Actions"]["#Manager.Reset"] = {{"target", kManager + "/Actions/Manager.Reset"},
                                         {"ResetType@Redfish.AllowableValues", {"GracefulRestart", "ForceRestart"}}};
  return result;
}

json firmwareResource(const std::string& path, const Slot& slot) {
  json result = head(path, "SoftwareInventory.v1_3_0.SoftwareInventory", "Firmware");
  result["Version"] = slot.version;
  result["SoftwareId"] = result["Id"];
  result["Updateable"] = true;
  result["Status"] = healthy();
  result["Oem"]["Muster"] = {{"StagedVersion", slot.staged_version}, {"Uploads", slot.uploads}, {"Flashes", slot.flashes}};
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
  if (path == kRoot) return serviceRoot(options_.identity);
  if (path == kRoot + "/Systems") return collection(path, "ComputerSystemCollection", {"system"});
  if (path == kSystem) return systemResource(on);
  if (path == kSystem + "/ResetActionInfo")
    return resetActionInfo(path, {"On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle"});
  if (path == kRoot + "/Managers") return collection(path, "ManagerCollection", {"bmc"});
  if (path == kManager) {
    auto manager = managerResource(state_);
    if (!options_.identity.bmc_mac.empty()) manager["EthernetInterfaces"] = linkTo(kManager + "/EthernetInterfaces");
    return manager;
  }
  if (path == kRoot + "/SessionService") return sessionService(guard_);
  if (path == kSessions) return collection(path, "SessionCollection", keysOf(guard_.sessions()));
  if (path == kRoot + "/AccountService") return accountService(guard_);
  if (path == kRoot + "/AccountService/Accounts") return collection(path, "ManagerAccountCollection", {"1"});
  if (path == kAccount) return accountResource();
  if (path == kRoot + "/UpdateService") return updateService(options_.max_image_bytes);
  if (path == kInventory) return collection(path, "SoftwareInventoryCollection", keysOf(state_.slots));
  if (path == kRoot + "/TaskService") return taskService();
  if (path == kTasks) return collection(path, "TaskCollection", keysOf(tasks_));

  auto slash = path.rfind('/');
  auto parent = path.substr(0, slash), id = path.substr(slash + 1);
  if (auto session = guard_.sessions().find(id); parent == kSessions && session != guard_.sessions().end())
    return sessionResource(path, session->second);
  if (auto slot = state_.slots.find(id); parent == kInventory && slot != state_.slots.end()) return firmwareResource(path, slot->second);
  if (auto task = tasks_.find(id); parent == kTasks && task != tasks_.end()) return taskResource(task->second);
  const auto& bmc_mac = options_.identity.bmc_mac;
  if (path == kManager + "/EthernetInterfaces" && !bmc_mac.empty()) return collection(path, "EthernetInterfaceCollection", {"eth0"});
  if (path == kManager + "/EthernetInterfaces/eth0" && !bmc_mac.empty()) return nicResource(path, bmc_mac);
  std::map<std::string, std::string> gpus;
  for (std::size_t index = 0; index < options_.identity.gpu_models.size(); ++index) gpus[fmt::format("GPU{}", index)] = options_.identity.gpu_models[index];
  if (path == kSystem + "/Processors" && !gpus.empty()) return collection(path, "ProcessorCollection", keysOf(gpus));
  if (auto gpu = gpus.find(id); parent == kSystem + "/Processors" && gpu != gpus.end())
    return gpuResource(path, gpu->second, options_.identity.serial + "-" + id);
  auto nics = kSystem + "/EthernetInterfaces";
  auto& macs = options_.identity.macs;
  std::map<std::string, std::string> by_id;
  for (std::size_t index = 0; index < macs.size(); ++index) by_id[fmt::format("nic{}", index)] = macs[index];
  if (path == nics) return collection(path, "EthernetInterfaceCollection", keysOf(by_id));
  if (auto nic = by_id.find(id); parent == nics && nic != by_id.end()) return nicResource(path, nic->second);
  return std::nullopt;
}

nlohmann::json RedfishService::systemResource(bool on) const {
  auto& identity = options_.identity;
  json result = head(kSystem, "ComputerSystem.v1_13_1.ComputerSystem", identity.node);
  result["SystemType"] = "Physical";
  result["HostName"] = identity.node;
  result["Manufacturer"] = identity.manufacturer;
  result["Model"] = identity.model;
  result["SerialNumber"] = identity.serial;
  result["UUID"] = identity.uuid;
  result["PowerState"] = on ? "On" : "Off";
  result["BiosVersion"] = state_.slots.contains("BIOS") ? state_.slots.at("BIOS").version : "";
  result["Status"] = healthy();
  result["Boot"] = {{"BootSourceOverrideEnabled", state_.boot_once == "None" ? "Disabled" : "Once"},
                    {"BootSourceOverrideTarget", state_.boot_once},
                    {"BootSourceOverrideTarget@Redfish.AllowableValues", {"None", "Pxe", "Hdd"}},
                    {"BootSourceOverrideEnabled@Redfish.AllowableValues", {"Once", "Disabled"}}};
  result["EthernetInterfaces"] = linkTo(kSystem + "/EthernetInterfaces");
  if (!identity.gpu_models.empty()) result["Processors"] = linkTo(kSystem + "/Processors");
  result["Links"]["ManagedBy"] = json::array({linkTo(kManager)});
  result["Actions"]["#ComputerSystem.Reset"] = {{"target", kSystem + "/Actions/ComputerSystem.Reset"},
                                                {"@Redfish.ActionInfo", kSystem + "/ResetActionInfo"}};
  return result;
}

nlohmann::json RedfishService::taskResource(const UpdateTask& task) const {
  json result = head(kTasks + "/" + task.id, "Task.v1_5_1.Task", "Firmware update of " + task.component);
  result["TaskState"] = task.state;
  result["TaskStatus"] = task.status;
  result["PercentComplete"] = task.percent;
  result["Messages"] = json::array();
  for (auto& [id, text] : task.messages)
    result["Messages"].push_back(messageJson(id, text, task.status == "OK" ? "OK" : "Critical", "None."));
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
