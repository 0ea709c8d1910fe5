// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/raid.h"

#include "bmc/redfish/raid_resources.h"
#include "bmc/redfish/tasks.h"

#include <fmt/format.h>

namespace muster::bmc {

namespace {

constexpr std::size_t kMaxStorages = 64, kMaxVolumes = 256, kMaxDrives = 256, kMaxControllers = 16;
constexpr int kAccepted = 202;

/// A member that could not be read may be the volume that holds somebody's data.
Result<void> readWhole(const Members& members) {
  if (members.unread.empty()) return {};
  return fail(members.unread.front().why);
}

RaidOrder orderOf(const RedfishReply& reply, const ApplyTime& when) {
  RaidOrder out;
  if (reply.status == kAccepted) out.task = taskUriOf(reply);
  out.needs_restart = when.restart || hasMessageId(reply.body, "SystemResetRequired") ||
                      hasMessageId(reply.body, "ResetRequired");
  return out;
}

}  // namespace

Async<std::vector<RaidController>> RedfishRaid::raidControllers() {
  CO_TRY(system, co_await resources_.cachedSystem());
  const auto link = linkAt(system->body, "Storage");
  if (link.empty()) co_return fail(ErrorCode::NotFound, address() + " shows no Storage");
  CO_TRY(storages, co_await resources_.members(link, kMaxStorages));
  CO_TRY_OK(readWhole(storages));
  std::vector<RaidController> out;
  for (Member& storage : storages.found) {
    CO_TRY(controller, co_await controllerAt(std::move(storage)));
    if (controller) out.push_back(std::move(*controller));
  }
  if (out.empty())
    co_return fail(ErrorCode::NotFound, address() + " shows no Storage that has volumes");
  co_return out;
}

/// Nothing: it has no volumes, so it is no RAID controller.
Async<std::optional<RaidController>> RedfishRaid::controllerAt(Member storage) {
  RaidController out;
  const auto volumes = linkAt(storage.json, "Volumes");
  if (volumes.empty()) co_return std::optional<RaidController>();
  out.id = textAt(storage.json, "Id");
  if (out.id.empty()) out.id = lastSegment(storage.uri);
  out.name = textAt(storage.json, "Name");
  out.volumes_uri = volumes;
  CO_TRY(collection, co_await resources_.session().get(volumes));
  CO_TRY(capabilities, co_await capabilitiesOf(collection.body));
  CO_TRY(controllers, co_await controllersOf(storage.json));
  out.levels = raidLevelsOf(capabilities, controllers);
  out.at_restart = applyTimeOf(collection.body).restart;
  CO_TRY(listed, co_await resources_.members(volumes, kMaxVolumes));
  CO_TRY_OK(readWhole(listed));
  for (const Member& volume : listed.found)
    out.volumes.push_back(raidVolumeOf(volume.json, volume.uri));
  std::vector<Json> drives;
  const auto links = linksAt(storage.json, "Drives");
  if (links.size() > kMaxDrives)
    co_return fail(ErrorCode::InvalidInput,
                   fmt::format("{} of {} lists {} drives", out.id, address(), links.size()));
  for (const auto& uri : links) {
    CO_TRY(drive, co_await resources_.session().get(uri));
    out.drives.push_back(raidDriveOf(drive.body, uri));
    drives.push_back(std::move(drive.body));
  }
  markHiddenUse(out, drives);
  co_return std::optional(std::move(out));
}

/// Storage 1.9 and before has them in itself.
Async<std::vector<Json>> RedfishRaid::controllersOf(Json storage) {
  std::vector<Json> out;
  if (const Json* own = find(storage, "StorageControllers"); own && own->is_array())
    out.assign(own->begin(), own->end());
  const auto link = linkAt(storage, "Controllers");
  if (link.empty()) co_return out;
  CO_TRY(listed, co_await resources_.members(link, kMaxControllers));
  for (Member& member : listed.found) out.push_back(std::move(member.json));
  co_return out;
}

/// Null: the collection shows none.
Async<Json> RedfishRaid::capabilitiesOf(Json collection) {
  const auto link = volumeCapabilitiesOf(collection);
  if (link.empty()) co_return Json();
  auto found = co_await resources_.session().get(link);
  if (!found && found.error().code() == ErrorCode::NotFound) co_return Json();
  if (!found) co_return fail(std::move(found.error()));
  co_return std::move(found->body);
}

Async<RaidOrder> RedfishRaid::createVolume(VolumeOrder order) {
  CO_TRY(collection, co_await resources_.session().get(order.volumes_uri));
  CO_TRY(capabilities, co_await capabilitiesOf(collection.body));
  const auto when = applyTimeOf(collection.body);
  CO_TRY(reply, co_await resources_.session().post(order.volumes_uri,
                                                   volumeBody(order, capabilities, when)));
  auto order_given = orderOf(reply, when);
  CO_TRY(task, co_await jobOf(std::move(order_given.task)));
  order_given.task = std::move(task);
  co_return order_given;
}

/// iDRAC forgets a task that has ended, and how; its job of the same name stays.
Async<std::string> RedfishRaid::jobOf(std::string task) {
  const auto id = lastSegment(task);
  if (!id.starts_with("JID_")) co_return task;
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(manager, co_await resources_.session().get(at.manager));
  const auto jobs = linkAt(manager.body, "Links/Oem/Dell/Jobs");
  co_return jobs.empty() ? task : plainUri(jobs) + "/" + id;
}

Async<RaidOrder> RedfishRaid::deleteVolume(std::string uri) {
  const auto slash = uri.rfind('/');
  CO_TRY(collection, co_await resources_.session().get(uri.substr(0, slash)));
  CO_TRY(reply, co_await resources_.session().erase(uri));
  co_return orderOf(reply, applyTimeOf(collection.body));
}

}  // namespace muster::bmc
