// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/power_supplies.h"

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxChassis = 128, kMaxSupplies = 64, kMaxGroups = 32;

std::string nameOf(const Json& json, const std::string& uri) {
  // HPE calls all of them HpeServerPowerSupply: where one sits tells them apart.
  auto name = textAt(json, "Name");
  const auto place = textAt(json, "Location/PartLocation/ServiceLabel"),
             member = textAt(json, "MemberId");
  if (!place.empty()) return name.empty() ? place : name + " (" + place + ")";
  if (!member.empty()) return name.empty() ? member : name + " (" + member + ")";
  return name.empty() ? lastSegment(uri) : name;
}

std::optional<int> countAt(const Json& json, const char* field) {
  const auto value = numberAt(json, field);
  return value && *value >= 0 ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

void add(const Json& json, const std::string& uri, PowerSupplies& out) {
  if (out.supplies.size() >= kMaxSupplies) return;
  out.supplies.push_back(
      {nameOf(json, uri), textAt(json, "Status/State"), textAt(json, "Status/Health")});
}

void addGroups(const Json& resource, const char* list, const char* members, const char* needed,
               const char* mode, PowerSupplies& out) {
  const Json* groups = find(resource, list);
  if (!groups || !groups->is_array()) return;
  for (const Json& group : *groups) {
    if (out.groups.size() >= kMaxGroups) return;
    auto name = textAt(group, "Name");
    out.groups.push_back({name.empty() ? "power supplies" : name, textAt(group, mode),
                          textAt(group, "Status/State"), textAt(group, "Status/Health"),
                          linksAt(group, members).size(), countAt(group, needed)});
  }
}

}  // namespace

void addPower(const Json& power, PowerSupplies& out) {
  const Json* supplies = find(power, "PowerSupplies");
  if (!supplies || !supplies->is_array()) return;
  for (const Json& supply : *supplies) add(supply, textAt(supply, "@odata.id"), out);
  if (!supplies->empty())
    addGroups(power, "Redundancy", "RedundancySet", "MinNumNeeded", "Mode", out);
}

void addPowerSubsystem(const Json& subsystem, const std::vector<Member>& supplies,
                       PowerSupplies& out) {
  for (const Member& supply : supplies) add(supply.json, supply.uri, out);
  if (!supplies.empty())
    addGroups(subsystem, "PowerSupplyRedundancy", "RedundancyGroup", "MinNeededInGroup",
              "RedundancyType", out);
}

Async<PowerSupplies> readPowerSupplies(RedfishResources& resources) {
  CO_TRY(at, co_await resources.uris());
  CO_TRY(chassis, co_await resources.members(at.chassis, kMaxChassis));
  if (!chassis.unread.empty()) co_return fail(std::move(chassis.unread.front().why));
  PowerSupplies out;
  for (const Member& box : chassis.found) {
    const auto subsystem = linkAt(box.json, "PowerSubsystem"), power = linkAt(box.json, "Power");
    const auto before = out.supplies.size();
    if (!subsystem.empty()) {
      auto resource = co_await resources.session().get(subsystem);
      if (!resource && resource.error().code() != ErrorCode::NotFound)
        co_return fail(std::move(resource.error()));
      const auto collection = resource ? linkAt(resource->body, "PowerSupplies") : std::string();
      if (!collection.empty()) {
        auto supplies =
            co_await resources.members(collection, kMaxSupplies, at.quirks.inventory_read);
        if (!supplies && supplies.error().code() != ErrorCode::NotFound)
          co_return fail(std::move(supplies.error()));
        if (supplies && !supplies->unread.empty())
          co_return fail(std::move(supplies->unread.front().why));
        if (supplies) addPowerSubsystem(resource->body, supplies->found, out);
      }
    }
    if (out.supplies.size() > before || power.empty()) continue;
    auto resource = co_await resources.session().get(power);
    if (resource)
      addPower(resource->body, out);
    else if (resource.error().code() != ErrorCode::NotFound)
      co_return fail(std::move(resource.error()));
  }
  if (out.supplies.empty())
    co_return fail(ErrorCode::NotFound,
                   "the BMC at " + resources.address() + " shows no power supply");
  co_return out;
}

}  // namespace muster::bmc
