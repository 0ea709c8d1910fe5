// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/resources.h"

#include "lab/vbmc/messages.h"
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
    if (vendor_profile.certificates != CertificateMethod::HpeHttpsCert ||
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

nlohmann::json taskResource(const UpdateTask& task) {
  json result =
      head(kTasks + "/" + task.id, "Task.v1_5_1.Task", "Firmware update of " + task.component);
  result["TaskState"] = task.state;
  result["TaskStatus"] = task.status;
  result["PercentComplete"] = task.percent;
  result["Payload"] = {{"TargetUri", kUpload}, {"HttpOperation", "POST"}};
  if (!task.volumes_uri.empty()) {
    result["Name"] = "Volume work";
    result["Payload"]["TargetUri"] = task.volumes_uri;
  }
  result["Messages"] = json::array();
  for (auto& [id, text] : task.messages)
    result["Messages"].push_back(
        messageJson(id, text, task.status == "OK" ? "OK" : "Critical", "None."));
  if (!task.job.empty()) result["Messages"][0]["MessageArgs"] = {kJobs + "/" + task.job};
  return result;
}

std::optional<nlohmann::json> Resources::find(const std::string& path, bool on) const {
  if (path == "/redfish") return json{{"v1", kRoot + "/"}};
  if (path == kRoot) return serviceRoot(bmc_.options.identity, *bmc_.options.vendor_profile);
  if (path == kRoot + "/Systems") return collection(path, "ComputerSystemCollection", {"system"});
  if (path == kSystem) return systemResource(on);
  if (path == kSystem + "/ResetActionInfo")
    return resetActionInfo(path, {bmc_.options.vendor_profile->resets.begin(),
                                  bmc_.options.vendor_profile->resets.end()});
  if (path == kRoot + "/Managers") return collection(path, "ManagerCollection", {"bmc"});
  if (path == kManager) {
    auto manager = vendor_.managerResource();
    if (!bmc_.behaviour.drives_of_system && !parts_.media.collectionPath().empty())
      manager["VirtualMedia"] = linkTo(parts_.media.collectionPath());
    return manager;
  }
  if (path == kRoot + "/SessionService") return sessionService(bmc_.guard);
  if (path == kSessions)
    return collection(path, "SessionCollection", keysOf(bmc_.guard.sessions()));
  if (path.starts_with(kRoot + "/AccountService")) return parts_.accounts.resource(path);
  if (path == kRoot + "/UpdateService") return vendor_.updateServiceResource();
  if (path == kInventory)
    return collection(path, "SoftwareInventoryCollection", bmc_.inventoryIds());
  if (path == kRoot + "/TaskService") return taskService();
  if (path.starts_with(kTasks)) return taskAt(path);
  if (auto found = vendor_.resource(path)) {
    if (path == kChassis + "/chassis") parts_.boot.showLed(*found, LedOwner::Chassis);
    return found;
  }
  if (auto found = parts_.boot.resource(path)) return found;
  if (auto found = parts_.media.resource(path)) return found;
  if (auto found = parts_.trust.resource(path)) return found;
  if (auto found = parts_.events.resource(path)) return found;
  if (auto found = parts_.storage.resource(path)) return found;
  const auto slash = path.rfind('/');
  const auto parent = path.substr(0, slash), id = path.substr(slash + 1);
  if (auto session = bmc_.guard.sessions().find(id);
      parent == kSessions && session != bmc_.guard.sessions().end())
    return sessionResource(path, session->second);
  if (parent == kInventory) return vendor_.firmwareMember(path, id, on);
  return deviceAt(path);
}

std::optional<nlohmann::json> Resources::taskAt(const std::string& path) const {
  if (path == kTasks) {
    std::vector<std::string> ids;
    for (const auto& [id, task] : bmc_.tasks)
      if (isShown(task)) ids.push_back(id);
    return collection(path, "TaskCollection", ids);
  }
  if (!path.starts_with(kTasks + "/")) return std::nullopt;
  const auto task = bmc_.tasks.find(path.substr(kTasks.size() + 1));
  if (task == bmc_.tasks.end() || !isShown(task->second)) return std::nullopt;
  return taskResource(task->second);
}

std::optional<nlohmann::json> Resources::deviceAt(const std::string& path) const {
  const auto slash = path.rfind('/');
  const auto parent = path.substr(0, slash), id = path.substr(slash + 1);
  const auto& bmc_mac = bmc_.options.identity.bmc_mac;
  if (path == kManager + "/EthernetInterfaces" && !bmc_mac.empty())
    return collection(path, "EthernetInterfaceCollection", {"eth0"});
  if (path == kManager + "/EthernetInterfaces/eth0" && !bmc_mac.empty())
    return nicResource(path, bmc_mac);
  std::map<std::string, std::string> gpus;
  for (std::size_t index = 0; index < bmc_.options.identity.gpu_models.size(); ++index)
    gpus[fmt::format("GPU{}", index)] = bmc_.options.identity.gpu_models[index];
  if (path == kSystem + "/Processors" && !gpus.empty())
    return collection(path, "ProcessorCollection", keysOf(gpus));
  if (auto gpu = gpus.find(id); parent == kSystem + "/Processors" && gpu != gpus.end())
    return gpuResource(path, gpu->second, bmc_.options.identity.serial + "-" + id);
  auto nics = kSystem + "/EthernetInterfaces";
  auto& macs = bmc_.options.identity.macs;
  std::map<std::string, std::string> by_id;
  for (std::size_t index = 0; index < macs.size(); ++index)
    by_id[fmt::format("nic{}", index)] = macs[index];
  if (!bmc_.behaviour.system_says_identity) return std::nullopt;
  if (path == nics) return collection(path, "EthernetInterfaceCollection", keysOf(by_id));
  if (auto nic = by_id.find(id); parent == nics && nic != by_id.end())
    return nicResource(path, nic->second);
  return std::nullopt;
}

nlohmann::json Resources::systemResource(bool on) const {
  auto& identity = bmc_.options.identity;
  json result = head(kSystem, "ComputerSystem.v1_13_1.ComputerSystem", identity.node);
  result["SystemType"] = "Physical";
  result["HostName"] = identity.node;
  const bool plain = bmc_.options.vendor_profile == &vendorProfiles().front();
  if (bmc_.behaviour.system_says_identity) {
    result["Manufacturer"] =
        plain ? identity.manufacturer : std::string(bmc_.options.vendor_profile->manufacturer);
    result["Model"] = plain ? identity.model : std::string(bmc_.options.vendor_profile->model);
    result["SerialNumber"] = identity.serial;
  } else {
    result.erase("HostName");
  }
  result["UUID"] = identity.uuid;
  result["PowerState"] = on ? "On" : "Off";
  if (bmc_.behaviour.system_says_identity)
    if (const auto bios = bmc_.state.slots.find(std::string(bmc_.options.vendor_profile->bios));
        bios != bmc_.state.slots.end())
      result["BiosVersion"] = bios->second.version;
  result["Status"] = healthy();
  result["Boot"] = parts_.boot.bootObject(false);
  parts_.boot.showLed(result, LedOwner::System);
  if (bmc_.behaviour.system_links_drives)
    result["VirtualMedia"] = linkTo(parts_.media.collectionPath());
  if (bmc_.behaviour.override_on_settings)
    result["@Redfish.Settings"] = {{"@odata.type", "#Settings.v1_3_0.Settings"},
                                   {"SettingsObject", linkTo(kSystemSettings)}};
  if (const auto& serial = bmc_.options.serial)
    result["SerialConsole"]["SSH"] = {{"ServiceEnabled", true},
                                      {"Port", serial->ssh_port},
                                      {"SharedWithManagerCLI", !serial->command.empty()},
                                      {"ConsoleEntryCommand", serial->command}};
  if (bmc_.behaviour.dell_system_id != 0)
    result["Oem"]["Dell"]["DellSystem"] = {{"@odata.type", "#DellSystem.v1_3_0.DellSystem"},
                                           {"SystemID", bmc_.behaviour.dell_system_id}};
  const auto& cut = bmc_.behaviour.cut;
  if (parts_.storage.there()) result["Storage"] = linkTo(parts_.storage.collectionPath());
  result["Bios"] = linkTo(kBios);
  result["LogServices"] = linkTo(kSystem + "/LogServices");
  const auto named =
      cut.owner == StandbyCut::Owner::Chassis ? std::string(cut.chassis) : std::string("chassis");
  result["Links"]["Chassis"] = json::array({linkTo(kChassis + "/" + named)});
  if (cut.owner == StandbyCut::Owner::System)
    putAt(result, cut.action,
          {{"target",
            kSystem + "/Actions/Oem/" + std::string(cut.action.substr(cut.action.find('#') + 1))},
           {"ResetType@Redfish.AllowableValues", {cut.value}}});
  if (bmc_.behaviour.system_says_identity)
    result["EthernetInterfaces"] = linkTo(kSystem + "/EthernetInterfaces");
  if (!identity.gpu_models.empty()) result["Processors"] = linkTo(kSystem + "/Processors");
  result["Links"]["ManagedBy"] = json::array({linkTo(kManager)});
  result["Actions"]["#ComputerSystem.Reset"] = {
      {"target", kSystem + "/Actions/ComputerSystem.Reset"},
      {"@Redfish.ActionInfo", kSystem + "/ResetActionInfo"}};
  return result;
}

/// iDRAC's tasks vanish when they have ended; their Jobs stay.
bool Resources::isShown(const UpdateTask& task) const {
  const bool ended = task.state == "Completed" || task.state == "Exception";
  return task.young_reads >= 0 && !(ended && !bmc_.behaviour.keeps_finished_tasks);
}

}  // namespace muster::lab::vbmc
