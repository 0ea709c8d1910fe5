// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/storage_service.h"

#include "base/json_input.h"
#include "lab/vbmc/resource_names.h"
#include "lab/vbmc/resource_parts.h"

#include <algorithm>

namespace muster::lab::vbmc {

namespace {

constexpr const char* kApply = "@Redfish.OperationApplyTime";

/// What a level needs. Source: DSP0268 Volume.RAIDType
bool canHave(std::string_view level, std::size_t drives) {
  if (level == "RAID0") return drives >= 1;
  if (level == "RAID1") return drives == 2;
  if (level == "RAID5") return drives >= 3;
  if (level == "RAID6") return drives >= 4;
  return level == "RAID10" && drives >= 4 && drives % 2 == 0;
}

}  // namespace

std::string StorageService::collectionPath() const { return kSystem + "/Storage"; }
std::string StorageService::storage() const {
  return collectionPath() + "/" + std::string(bmc_.behaviour.raid.controller);
}
bool StorageService::isCollection(const std::string& path) const {
  return there() && path == volumes();
}
bool StorageService::isVolume(const std::string& path) const {
  return there() && volumeAt(path) != nullptr;
}

std::vector<std::string> StorageService::driveIds() const {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < bmc_.options.raid_drives.size(); ++i)
    ids.push_back(std::string(bmc_.behaviour.raid.drive_prefix) + std::to_string(i) +
                  std::string(bmc_.behaviour.raid.drive_suffix));
  return ids;
}

const Volume* StorageService::volumeAt(const std::string& path) const {
  if (!path.starts_with(volumes() + "/")) return nullptr;
  const auto id = path.substr(volumes().size() + 1);
  const auto found = std::ranges::find(bmc_.state.volumes, id, &Volume::id);
  return found == bmc_.state.volumes.end() ? nullptr : &*found;
}

std::optional<nlohmann::json> StorageService::resource(const std::string& path) const {
  if (!there()) return std::nullopt;
  const auto& raid = bmc_.behaviour.raid;
  if (path == collectionPath())
    return collection(path, "StorageCollection", {std::string(raid.controller)});
  if (path == storage()) return storageResource();
  if (path == storage() + "/Controllers")
    return collection(path, "StorageControllerCollection", {"0"});
  if (path == storage() + "/Controllers/0") return controllerResource(path);
  if (path == volumes()) {
    std::vector<std::string> ids;
    for (const auto& volume : bmc_.state.volumes) ids.push_back(volume.id);
    json result = collection(path, "VolumeCollection", ids);
    if (raid.capabilities)
      result["@Redfish.CollectionCapabilities"]["Capabilities"] = {
          {{"CapabilitiesObject", linkTo(path + "/Capabilities")}, {"UseCase", "VolumeCreation"}}};
    if (!raid.apply_time.empty())
      result["@Redfish.OperationApplyTimeSupport"]["SupportedValues"] = {raid.apply_time};
    return result;
  }
  if (path == volumes() + "/Capabilities" && raid.capabilities) return capabilities(path);
  if (const auto* volume = volumeAt(path)) return volumeResource(path, *volume);
  const auto ids = driveIds();
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (path == storage() + "/Drives/" + ids[i]) return driveResource(path, i);
  return std::nullopt;
}

nlohmann::json StorageService::storageResource() const {
  json result = head(storage(), "Storage.v1_12_0.Storage", std::string(bmc_.behaviour.raid.name));
  result["Controllers"] = linkTo(storage() + "/Controllers");
  result["Drives"] = json::array();
  for (const auto& id : driveIds()) result["Drives"].push_back(linkTo(storage() + "/Drives/" + id));
  result["Drives@odata.count"] = bmc_.options.raid_drives.size();
  result["Status"] = healthy();
  result["Volumes"] = linkTo(volumes());
  return result;
}

nlohmann::json StorageService::controllerResource(const std::string& path) const {
  json result = head(path, "StorageController.v1_5_0.StorageController",
                     std::string(bmc_.behaviour.raid.name));
  result["SupportedRAIDTypes"] = bmc_.behaviour.raid.levels;
  result["Status"] = healthy();
  return result;
}

nlohmann::json StorageService::driveResource(const std::string& path, std::size_t index) const {
  const auto& drive = bmc_.options.raid_drives[index];
  json result = head(path, "Drive.v1_14_0.Drive", "Drive");
  result["CapacityBytes"] = drive.size_bytes;
  result["SerialNumber"] = drive.serial;
  result["MediaType"] = "SSD";
  result["HotspareType"] = drive.spare ? "Global" : "None";
  result["FailurePredicted"] = false;
  result["Status"] = healthy();
  if (!drive.healthy) result["Status"]["Health"] = "Critical";
  result["Links"]["Volumes"] = json::array();
  bool used = false;
  for (const auto& volume : bmc_.state.volumes)
    if (std::ranges::find(volume.drives, path.substr(path.rfind('/') + 1)) != volume.drives.end()) {
      result["Links"]["Volumes"].push_back(linkTo(volumes() + "/" + volume.id));
      used = true;
    }
  if (bmc_.behaviour.raid.dell)
    result["Oem"]["Dell"]["DellPhysicalDisk"]["RaidStatus"] = used ? "Online" : "Ready";
  return result;
}

nlohmann::json StorageService::volumeResource(const std::string& path, const Volume& volume) const {
  json result = head(path, "Volume.v1_6_2.Volume", volume.name);
  result["RAIDType"] = volume.level.empty() ? json(nullptr) : json(volume.level);
  if (volume.level.empty()) result["VolumeType"] = "RawDevice";
  if (bmc_.behaviour.raid.capabilities) result["DisplayName"] = volume.name;
  result["Status"] = healthy();
  result["Operations"] = json::array();
  result["Links"]["Drives"] = json::array();
  for (const auto& id : volume.drives)
    result["Links"]["Drives"].push_back(linkTo(storage() + "/Drives/" + id));
  result["Links"]["Drives@odata.count"] = volume.drives.size();
  result["Identifiers"] =
      json::array({{{"DurableName", "600508B1-001C-0000-0000-" +
                                        std::string(12 - volume.id.size(), '0') + volume.id},
                    {"DurableNameFormat", "UUID"}}});
  return result;
}

nlohmann::json StorageService::capabilities(const std::string& path) const {
  json result = head(path, "Volume.v1_6_2.Volume", "Capabilities for the volume collection");
  result["RAIDType@Redfish.RequiredOnCreate"] = true;
  result["RAIDType@Redfish.AllowableValues"] = bmc_.behaviour.raid.levels;
  result["DisplayName@Redfish.OptionalOnCreate"] = true;
  result["Links@Redfish.RequiredOnCreate"] = true;
  result["Links"]["Drives@Redfish.RequiredOnCreate"] = true;
  return result;
}

/// Why a body makes no volume; else it is read into `wanted`.
std::optional<io::ServerResponse> StorageService::refuse(const nlohmann::json& body,
                                                         Volume& wanted) const {
  const auto& raid = bmc_.behaviour.raid;
  const auto bad = [](const std::string& id, const std::string& words) {
    return std::optional(redfishError(400, "Base.1.8." + id, words));
  };
  if (!body.is_object()) return bad("MalformedJSON", "The body is no object.");
  for (const auto& [key, value] : body.items()) {
    const bool known = key == "RAIDType" || key == "Links" ||
                       (key == "DisplayName" && raid.capabilities) ||
                       (key == kApply && !raid.apply_time.empty());
    if (!known) return bad("PropertyUnknown", "The property " + key + " is not known.");
  }
  if (body.contains(kApply) && body[kApply] != raid.apply_time)
    return bad("PropertyValueNotInList", "The apply time is not supported.");
  if (!body.contains("RAIDType") || !body["RAIDType"].is_string())
    return bad("PropertyMissing", "RAIDType is missing.");
  wanted.level = body["RAIDType"];
  if (std::ranges::find(raid.levels, wanted.level) == raid.levels.end())
    return bad("PropertyValueNotInList", "RAIDType is not supported.");
  wanted.name = body.value("DisplayName", "Virtual Disk " + wanted.id);
  const auto links = body.value(json::json_pointer("/Links/Drives"), json::array());
  const auto ids = driveIds();
  for (const auto& link : links) {
    const auto uri = link.is_object() ? link.value("@odata.id", "") : std::string();
    const auto id = uri.substr(uri.rfind('/') + 1);
    if (uri != storage() + "/Drives/" + id || std::ranges::find(ids, id) == ids.end())
      return bad("ResourceMissingAtURI", "There is no drive at " + uri + ".");
    for (const auto& other : bmc_.state.volumes)
      if (std::ranges::find(other.drives, id) != other.drives.end())
        return std::optional(redfishError(409, "Base.1.8.ResourceInUse",
                                          "The drive " + id + " is of volume " + other.id + "."));
    wanted.drives.push_back(id);
  }
  if (!canHave(wanted.level, wanted.drives.size()))
    return bad("PropertyValueError", "The number of drives does not fit the level.");
  return std::nullopt;
}

io::ServerResponse StorageService::create(const io::ServerRequest& request) {
  auto body = jsonOrNone(request.body, kRequestJson);
  // Links in a request bear the vendor's names.
  if (body.is_object())
    for (auto& link : body["Links"]["Drives"])
      if (link.is_object() && link.contains("@odata.id") && link["@odata.id"].is_string())
        link["@odata.id"] = bmc_.inside(link["@odata.id"].get<std::string>());
  Volume wanted;
  wanted.id = std::to_string(++bmc_.state.volume_ids);
  if (auto refusal = refuse(body, wanted)) return std::move(*refusal);
  ++bmc_.state.volume_orders;
  Order order;
  order.makes = wanted;
  return take(std::move(order), volumes() + "/" + wanted.id);
}

io::ServerResponse StorageService::remove(const std::string& path) {
  const auto* volume = volumeAt(path);
  if (volume->level.empty())
    return redfishError(400, "Base.1.8.ResourceCannotBeDeleted", "It is a raw device.");
  ++bmc_.state.volume_orders;
  Order order;
  order.deletes = volume->id;
  return take(std::move(order), {});
}

/// Done at once, or a task.
io::ServerResponse StorageService::take(Order order, const std::string& made_at) {
  order.fails_with = std::exchange(fails_with_, {});
  if (!bmc_.behaviour.raid.by_task) {
    if (!order.fails_with.empty())
      return redfishError(500, "Base.1.8.InternalError", order.fails_with);
    carryOut(order);
    if (made_at.empty()) return io::ServerResponse::text(204, "");
    auto shown = *resource(made_at);
    renameOutside(shown, bmc_.behaviour.names);
    auto response = io::ServerResponse::json(201, jsonText(shown));
    response.headers["Location"] = outsideName(made_at, bmc_.behaviour.names);
    return response;
  }
  UpdateTask task;
  task.id = fmt::format("JID_{:012}", ++bmc_.state.tasks);
  task.state = bmc_.behaviour.raid.apply_time == "OnReset" ? "Starting" : "Running";
  task.component = "RAID";
  task.volumes_uri = volumes();
  if (bmc_.behaviour.jobs) {
    task.job = task.id;
    task.messages.emplace_back("IDRAC.2.8.JCP001", "Task successfully scheduled.");
  }
  order.task = task.id;
  order.waits = task.state == "Starting";
  order.until =
      bmc_.clock.steady() + bmc_.options.timings.flash_step * bmc_.options.timings.flash_steps;
  bmc_.tasks[task.id] = task;
  orders_.push_back(std::move(order));
  bmc_.save();
  auto response = io::ServerResponse::json(202, jsonText(linkTo(kTasks + "/" + task.id)));
  response.headers["Location"] = kTasks + "/" + task.id;
  return response;
}

void StorageService::carryOut(const Order& order) {
  if (order.deletes.empty())
    bmc_.state.volumes.push_back(order.makes);
  else
    std::erase_if(bmc_.state.volumes,
                  [&](const Volume& volume) { return volume.id == order.deletes; });
  bmc_.save();
}

void StorageService::end(const std::string& id, const std::string& failure) {
  const auto task = bmc_.tasks.find(id);
  if (task == bmc_.tasks.end()) return;
  task->second.percent = 100;
  task->second.state = failure.empty() ? "Completed" : "Exception";
  task->second.status = failure.empty() ? "OK" : "Critical";
  if (!failure.empty()) task->second.messages.emplace_back("IDRAC.2.8.PR21", failure);
}

void StorageService::tick() {
  for (auto order = orders_.begin(); order != orders_.end();) {
    if (order->waits || bmc_.clock.steady() < order->until) {
      ++order;
      continue;
    }
    if (order->fails_with.empty()) carryOut(*order);
    end(order->task, order->fails_with);
    order = orders_.erase(order);
  }
}

void StorageService::atStart() {
  for (auto& order : orders_) {
    if (!order.waits) continue;
    order.waits = false;
    order.until =
        bmc_.clock.steady() + bmc_.options.timings.flash_step * bmc_.options.timings.flash_steps;
    if (const auto task = bmc_.tasks.find(order.task); task != bmc_.tasks.end())
      task->second.state = "Running";
  }
}

}  // namespace muster::lab::vbmc
