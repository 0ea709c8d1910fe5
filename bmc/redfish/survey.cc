// SPDX-License-Identifier: Apache-2.0
// The survey: what a machine is, for whoever meets it first. Nothing of it may fail the whole: a
// BMC that shows no processors still has a serial.
#include "bmc/redfish/redfish_bmc.h"

#include <algorithm>
#include <set>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxSystems = 8;
constexpr std::size_t kMaxProcessors = 64;
constexpr std::size_t kMaxChassis = 64;
constexpr std::size_t kMaxAdapters = 32;
constexpr std::size_t kMaxPorts = 32;
constexpr std::size_t kMaxPcieDevices = 256;

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

/// The baseboard of an HGX machine is a system of its own with the GPUs as processors; others hang
/// them under the host.
Async<std::vector<Survey::Gpu>> RedfishBmc::gpus() {
  std::vector<Survey::Gpu> found;
  auto systems =
      co_await members("/redfish/v1/Systems", kMaxSystems, RedfishSession::kRequestTimeout);
  if (!systems) co_return found;
  std::set<std::string> seen;
  for (const Member& system : systems->found) {
    const auto place = linkAt(system.json, "Processors");
    if (place.empty()) continue;
    auto processors = co_await members(place, kMaxProcessors, RedfishSession::kRequestTimeout);
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
  // Supermicro lists the GPUs of its HGX machines only among the chassis' PCIe devices (capture).
  for (const Member& system : systems->found) {
    for (const auto& chassis : linksAt(system.json, "Links/Chassis")) {
      auto box = co_await session_->get(chassis);
      const auto place = box ? linkAt(box->body, "PCIeDevices") : std::string();
      if (place.empty()) continue;
      auto devices = co_await members(place, kMaxPcieDevices, RedfishSession::kRequestTimeout);
      if (!devices) continue;
      for (const Member& each : devices->found)
        if (looksLikeGpu(each.json))
          found.push_back({textAt(each.json, "Model"), textAt(each.json, "SerialNumber")});
    }
  }
  co_return found;
}

Async<Survey> RedfishBmc::survey() {
  CO_TRY(info, co_await system());
  Survey survey;
  survey.system = std::move(info);
  CO_TRY(at, co_await places());

  if (auto manager = co_await session_->get(at.manager)) {
    survey.bmc_version = textAt(manager->body, "FirmwareVersion");
    const auto interfaces = linkAt(manager->body, "EthernetInterfaces");
    if (!interfaces.empty()) {
      if (auto seen = co_await macs(interfaces)) survey.bmc_macs = std::move(*seen);
    }
  }
  if (auto seen = co_await gpus()) survey.gpus = std::move(*seen);
  if (!survey.system.macs.empty()) co_return survey;

  // Some BMCs know the NICs only as adapters of a chassis.
  auto chassis =
      co_await members("/redfish/v1/Chassis", kMaxChassis, RedfishSession::kRequestTimeout);
  if (!chassis) co_return survey;
  for (const Member& box : chassis->found) {
    const auto adapters = linkAt(box.json, "NetworkAdapters");
    if (adapters.empty()) continue;
    auto found = co_await members(adapters, kMaxAdapters, RedfishSession::kRequestTimeout);
    if (!found) continue;
    for (const Member& adapter : found->found) {
      auto ports = linkAt(adapter.json, "NetworkDeviceFunctions");
      if (ports.empty()) continue;
      auto functions = co_await members(ports, kMaxPorts, RedfishSession::kRequestTimeout);
      if (!functions) continue;
      for (const Member& function : functions->found)
        for (const char* field : {"Ethernet/PermanentMACAddress", "Ethernet/MACAddress"})
          addMac(survey.system.macs, textAt(function.json, field));
    }
  }
  co_return survey;
}

}  // namespace muster::bmc
