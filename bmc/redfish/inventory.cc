// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/inventory.h"

#include "bmc/redfish/boot.h"
#include "bmc/redfish/identity.h"

#include <algorithm>
#include <set>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxInterfaces = 64;
constexpr std::size_t kMaxChassis = 128;
constexpr std::size_t kMaxAdapters = 64;  ///< of one chassis
constexpr std::size_t kMaxBootOptions = 128;
constexpr std::size_t kMaxLinkedChassis = 8;

// Of a survey, which meets machines that nobody has declared.
constexpr std::size_t kMaxSurveyedSystems = 8;
constexpr std::size_t kMaxProcessors = 64;
constexpr std::size_t kMaxSurveyedChassis = 64;
constexpr std::size_t kMaxSurveyedAdapters = 32;
constexpr std::size_t kMaxPorts = 32;
constexpr std::size_t kMaxPcieDevices = 256;
constexpr std::size_t kMaxAdapterMacs = 512;  ///< each new one is compared with all

void addMac(std::vector<std::string>& macs, const std::string& text) {
  const auto mac = Mac::parse(text);
  if (mac && *mac != Mac() && std::find(macs.begin(), macs.end(), mac->str()) == macs.end())
    macs.push_back(mac->str());
}

bool isGpu(const Json& processor) {
  if (textAt(processor, "Status/State") == "Absent") return false;
  const auto type = textAt(processor, "ProcessorType");
  if (type == "GPU") return true;
  return type == "Accelerator" &&
         textAt(processor, "Manufacturer").find("NVIDIA") != std::string::npos;
}

/// By the slot's name: a PCIe device says no more of what it is for.
bool looksLikeGpu(const Json& device) {
  const auto id = textAt(device, "Id");
  return id.size() > 3 && id.starts_with("GPU") && textAt(device, "Status/State") != "Absent" &&
         !textAt(device, "Model").empty();
}

}  // namespace

Async<std::vector<std::string>> RedfishInventory::macs(std::string collection) {
  std::vector<std::string> found;
  if (collection.empty()) co_return found;
  CO_TRY(interfaces, co_await resources_.members(collection, kMaxInterfaces));
  if (!interfaces.unread.empty())
    co_return fail(interfaces.unread.front()
                       .why);  // a part of the list would say that the others are not there
  for (const Member& nic : interfaces.found) {
    for (std::string_view field : {"PermanentMACAddress", "MACAddress"}) {
      auto mac = Mac::parse(textAt(nic.json, field));
      if (mac && std::find(found.begin(), found.end(), mac->str()) == found.end())
        found.push_back(mac->str());
    }
  }
  co_return found;
}

/// Only what can be booted from: a NIC without an option stands nowhere.
Async<std::vector<std::string>> RedfishInventory::bootMacs(std::string collection) {
  std::vector<Json> options;
  if (collection.empty()) co_return macsOfBootOptions(options);
  CO_TRY(found,
         co_await resources_.members(collection, kMaxBootOptions, RedfishSession::kRequestTimeout,
                                     RedfishResources::Want::Expanded));
  for (Member& option : found.found) options.push_back(std::move(option.json));
  co_return macsOfBootOptions(options);
}

/// The chassis that the system names, and, where none of them encloses it, those that say they hold
/// it: a GB200 names its BMC's card and not its tray (capture). Parts count only where the system
/// names them.
Async<std::vector<ReportedIdentity>> RedfishInventory::reportedByChassis(Json system) {
  CO_TRY(at, co_await resources_.uris());
  if (const auto* known = reported_by_chassis_.get(resources_)) co_return *known;
  std::vector<ReportedIdentity> out;
  bool enclosed = false;
  auto named = linksAt(system, "Links/Chassis");
  if (named.size() > kMaxLinkedChassis) named.resize(kMaxLinkedChassis);
  for (const auto& uri : named) {
    auto chassis = co_await resources_.session().get(uri);
    if (!chassis && chassis.error().code() == ErrorCode::NotFound) continue;
    if (!chassis) co_return fail(std::move(chassis.error()));
    out.push_back(chassisIdentity(uri, chassis->body, at.system));
    enclosed =
        enclosed || (out.back().place == IdentityPlace::Chassis && !out.back().serial.empty());
  }
  if (!enclosed) {
    auto all = co_await resources_.members(at.chassis, kMaxChassis, RedfishSession::kRequestTimeout,
                                           RedfishResources::Want::Expanded);
    if (!all && all.error().code() != ErrorCode::NotFound) co_return fail(std::move(all.error()));
    for (const Member& box : all ? all->found : std::vector<Member>()) {
      const auto holds = linksAt(box.json, "Links/ComputerSystems");
      const auto is = [](const std::string& uri) {
        return [&uri](const std::string& link) { return sameResource(link, uri); };
      };
      if (std::ranges::none_of(holds, is(at.system)) || std::ranges::any_of(named, is(box.uri)))
        continue;
      if (auto seen = chassisIdentity(box.uri, box.json, at.system);
          seen.place == IdentityPlace::Chassis)
        out.push_back(std::move(seen));
    }
  }
  reported_by_chassis_.set(resources_, out);
  co_return out;
}

/// In the order of IdentityPlace. Chassis are asked only where the system leaves something open.
Async<std::vector<ReportedIdentity>> RedfishInventory::reported(Json system) {
  CO_TRY(at, co_await resources_.uris());
  std::vector<ReportedIdentity> out{systemIdentity(at.system, system)};
  if (out.front().serial.empty() || out.front().model.empty() || out.front().manufacturer.empty()) {
    CO_TRY(boxes, co_await reportedByChassis(std::move(system)));
    for (auto& box : boxes) out.push_back(std::move(box));
  }
  for (const auto& each : resources_.reportedByBmc()) out.push_back(each);
  std::erase_if(out, [](const ReportedIdentity& each) { return each.isEmpty(); });
  std::ranges::stable_sort(out, {}, &ReportedIdentity::place);
  co_return out;
}

/// As old as kReadHolds at most, while nothing was written since.
Async<SystemInfo> RedfishInventory::system() {
  CO_TRY(reply, co_await resources_.cachedSystem());
  const Json& json = reply->body;
  if (!macs_) {
    auto seen = co_await macs(linkAt(json, "EthernetInterfaces"));
    if (seen && !seen->empty()) macs_ = std::move(*seen);  // else: asked again the next time
  }
  if (!macs_ && !boot_macs_) {
    auto seen = co_await bootMacs(linkAt(json, "Boot/BootOptions"));
    if (seen && !seen->empty()) boot_macs_ = std::move(*seen);
  }
  SystemInfo info;
  info.power = powerStateOf(json);
  CO_TRY(reported, co_await this->reported(json));
  const auto first = [&](std::string ReportedIdentity::* member) {
    const auto* found = firstWith(reported, member);
    return found ? found->*member : std::string();
  };
  info.manufacturer = first(&ReportedIdentity::manufacturer);
  info.model = first(&ReportedIdentity::model);
  info.serial = first(&ReportedIdentity::serial);
  if (const auto* found = firstWith(reported, &ReportedIdentity::serial))
    info.serial_place = found->place;
  info.reported = std::move(reported);
  info.uuid = textAt(json, "UUID");
  info.macs = macs_.value_or(std::vector<std::string>());
  info.boot_macs = boot_macs_.value_or(std::vector<std::string>());
  info.boot_override = bootOverrideOf(json);
  co_return info;
}

/// Hardly older than its answer, while nothing was written and no task looked at since.
Async<std::vector<FirmwareItem>> RedfishInventory::firmware() {
  CO_TRY(inventory, co_await firmware_.cached());
  co_return std::move(inventory.items);
}

// ---- what comes up behind the BMC

Async<std::vector<DeviceState>> RedfishInventory::devicesNotReady() {
  CO_TRY(system, co_await resources_.readSystem());
  if (powerStateOf(system->body) == PowerState::Off) co_return std::vector<DeviceState>();
  co_return co_await lateAdapters();
}

Async<std::vector<DeviceState>> RedfishInventory::lateAdapters() {
  std::vector<DeviceState> out;
  CO_TRY(at, co_await resources_.uris());
  const auto* known = adapters_.get(resources_);
  auto collections = known ? *known : std::vector<std::string>();
  if (!known) {
    CO_TRY(chassis, co_await resources_.members(at.chassis, kMaxChassis));
    for (const Member& box : chassis.found)
      if (auto link = linkAt(box.json, "NetworkAdapters"); !link.empty())
        collections.push_back(std::move(link));
    if (chassis.unread.empty())
      adapters_.set(resources_, collections);  // else: asked again the next time
  }
  for (const auto& collection : collections) {
    const auto adapters = co_await resources_.members(
        collection, kMaxAdapters, at.quirks.inventory_read, RedfishResources::Want::Expanded);
    if (!adapters && adapters.error().code() == ErrorCode::NotFound)
      continue;  // linked and not there
    if (!adapters) co_return fail(adapters.error());
    for (const Member& adapter : adapters->found)
      if (const auto state = textAt(adapter.json, "Status/State");
          state == kStarting || state == kUpdating)
        out.push_back({lastSegment(adapter.uri), state});
    for (const Members::Unread& adapter : adapters->unread)
      out.push_back({lastSegment(adapter.uri), "unreadable"});
  }
  co_return out;
}

Async<std::vector<BackgroundCopy>> RedfishInventory::backgroundCopies() {
  CO_TRY(at, co_await resources_.uris());
  std::vector<BackgroundCopy> out;
  if (at.quirks.background_copies.empty()) co_return out;
  CO_TRY(chassis, co_await resources_.members(at.chassis, kMaxChassis));
  if (!chassis.unread.empty())
    co_return fail(chassis.unread.front().why);  // it may be the one that is copying
  for (const Member& box : chassis.found) {
    const auto status = textAt(box.json, at.quirks.background_copies);
    if (!status.empty())
      out.push_back(
          {textAt(box.json, "Id"), status, status == "InProgress" || status == "Pending"});
  }
  co_return out;
}

// ---- the survey: nothing of it may fail the whole; a BMC that shows no processors still has a
// serial

/// The baseboard of an HGX machine is a system of its own with the GPUs as processors; others hang
/// them under the host.
Async<std::vector<Survey::Gpu>> RedfishInventory::gpus() {
  std::vector<Survey::Gpu> found;
  auto systems = co_await resources_.members("/redfish/v1/Systems", kMaxSurveyedSystems);
  if (!systems) co_return found;
  std::set<std::string> seen;
  for (const Member& system : systems->found) {
    const auto place = linkAt(system.json, "Processors");
    if (place.empty()) continue;
    auto processors = co_await resources_.members(place, kMaxProcessors);
    if (!processors) continue;
    for (const Member& each : processors->found) {
      if (!isGpu(each.json)) continue;
      const auto serial = textAt(each.json, "SerialNumber");
      if (!seen.insert(serial.empty() ? each.uri : serial).second)
        continue;  // shown by the host and by the baseboard
      found.push_back({textAt(each.json, "Model"), serial});
    }
  }
  if (!found.empty()) co_return found;
  co_return co_await gpusOfChassis(std::move(systems->found));
}

/// Supermicro lists the GPUs of its HGX machines only among the chassis' PCIe devices (capture).
Async<std::vector<Survey::Gpu>> RedfishInventory::gpusOfChassis(std::vector<Member> systems) {
  std::vector<Survey::Gpu> found;
  std::size_t seen = 0;
  for (const Member& system : systems) {
    for (const auto& chassis : linksAt(system.json, "Links/Chassis")) {
      if (++seen > kMaxSurveyedChassis) co_return found;
      auto box = co_await resources_.session().get(chassis);
      const auto place = box ? linkAt(box->body, "PCIeDevices") : std::string();
      if (place.empty()) continue;
      auto devices = co_await resources_.members(place, kMaxPcieDevices);
      if (!devices) continue;
      for (const Member& each : devices->found)
        if (looksLikeGpu(each.json))
          found.push_back({textAt(each.json, "Model"), textAt(each.json, "SerialNumber")});
    }
  }
  co_return found;
}

Async<Survey> RedfishInventory::survey() {
  CO_TRY(info, co_await system());
  Survey survey;
  survey.system = std::move(info);
  CO_TRY(at, co_await resources_.uris());

  if (auto manager = co_await resources_.session().get(at.manager)) {
    survey.bmc_version = textAt(manager->body, "FirmwareVersion");
    const auto interfaces = linkAt(manager->body, "EthernetInterfaces");
    if (!interfaces.empty()) {
      if (auto seen = co_await macs(interfaces)) survey.bmc_macs = std::move(*seen);
    }
  }
  if (auto seen = co_await gpus()) survey.gpus = std::move(*seen);
  if (survey.system.macs.empty()) {
    CO_TRY(macs, co_await macsOfAdapters());
    survey.system.macs = std::move(macs);
  }
  if (survey.system.macs.empty()) survey.system.macs = survey.system.boot_macs;
  co_return survey;
}

/// Some BMCs know the NICs only as adapters of a chassis.
Async<std::vector<std::string>> RedfishInventory::macsOfAdapters() {
  std::vector<std::string> macs;
  auto chassis = co_await resources_.members("/redfish/v1/Chassis", kMaxSurveyedChassis);
  if (!chassis) co_return macs;
  for (const Member& box : chassis->found) {
    const auto adapters = linkAt(box.json, "NetworkAdapters");
    if (adapters.empty()) continue;
    auto found = co_await resources_.members(adapters, kMaxSurveyedAdapters);
    if (!found) continue;
    for (const Member& adapter : found->found) {
      auto ports = linkAt(adapter.json, "NetworkDeviceFunctions");
      if (ports.empty()) continue;
      auto functions = co_await resources_.members(ports, kMaxPorts);
      if (!functions) continue;
      for (const Member& function : functions->found)
        for (const char* field : {"Ethernet/PermanentMACAddress", "Ethernet/MACAddress"})
          if (macs.size() < kMaxAdapterMacs) addMac(macs, textAt(function.json, field));
      if (macs.size() == kMaxAdapterMacs) co_return macs;
    }
  }
  co_return macs;
}

}  // namespace muster::bmc
