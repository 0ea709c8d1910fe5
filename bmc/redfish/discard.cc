// An image that waits for its activation and that nobody wants any more (quirks.h, DiscardWay).
#include "bmc/redfish/redfish_bmc.h"

#include <algorithm>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxJobs = 256;
constexpr std::string_view kFirmwareJob = "FirmwareUpdate", kWaits = "Scheduled";

}  // namespace

Async<void> RedfishBmc::discardStaged(std::string component, std::size_t waiting) {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  if (at.quirks.discard == DiscardWay::DeleteJob) {
    auto jobs = deleteWaitingJobs(at.manager, waiting);
    co_return co_await std::move(jobs);
  }
  auto read = session_->get(at.manager);
  CO_TRY(manager, co_await std::move(read));
  auto list = readInventory();
  CO_TRY(inventory, co_await std::move(list));
  const auto own = inventory.uri_by_name.find(component);
  const auto active = linkAt(manager.body, "Links/ActiveSoftwareImage");
  if (at.quirks.discard == DiscardWay::None || own == inventory.uri_by_name.end() || active != own->second)
    co_return fail(ErrorCode::NotFound, fmt::format("the BMC at {} offers no way to take an image of {} back that waits for its activation", address(), component));
  Json body = Json::object();
  body["Links"]["ActiveSoftwareImage"]["@odata.id"] = active;
  auto write = session_->patch(at.manager, std::move(body), manager.etag());
  CO_TRY_OK(co_await std::move(write));
  co_return Result<void>();
}

/// A job does not say which component it is for; so many as are ours, or none is touched.
Async<void> RedfishBmc::deleteWaitingJobs(std::string manager, std::size_t waiting) {
  auto read = session_->get(manager);
  CO_TRY(resource, co_await std::move(read));
  const auto collection = linkAt(resource.body, "Links/Oem/Dell/Jobs");
  if (collection.empty()) co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " shows no jobs");
  auto list = members(collection, kMaxJobs, RedfishSession::kRequestTimeout);
  CO_TRY(jobs, co_await std::move(list));
  std::vector<std::string> scheduled;
  for (const Member& job : jobs.found)
    if (textAt(job.json, "JobState") == kWaits && textAt(job.json, "JobType") == kFirmwareJob) scheduled.push_back(job.uri);
  if (!jobs.unread.empty()) co_return fail(jobs.unread.front().why);
  if (scheduled.empty()) co_return Result<void>();  // taken back already
  if (scheduled.size() > waiting)
    co_return fail(ErrorCode::Conflict, fmt::format("the BMC at {} holds {} firmware jobs for the next restart, of which {} are ours, and does not say which", address(), scheduled.size(), waiting));
  for (const auto& uri : scheduled) {
    auto erase = session_->erase(uri);
    CO_TRY_OK(co_await std::move(erase));
  }
  co_return Result<void>();
}

}  // namespace muster::bmc
