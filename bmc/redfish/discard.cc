// SPDX-License-Identifier: Apache-2.0
// An image that waits for its activation and that nobody wants any more (quirks.h,
// CancelStagedMethod).
#include "bmc/redfish/redfish_bmc.h"

#include <algorithm>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxJobs = 256;
constexpr std::string_view kFirmwareJob = "FirmwareUpdate", kWaits = "Scheduled";

}  // namespace

Async<void> RedfishBmc::cancelStaged(std::string component, std::size_t waiting) {
  CO_TRY(at, co_await places());
  if (at.quirks.discard == CancelStagedMethod::DeleteJob) {
    co_return co_await deleteWaitingJobs(at.manager, waiting);
  }
  CO_TRY(manager, co_await session_->get(at.manager));
  CO_TRY(inventory, co_await readInventory());
  const auto own = inventory.uri_by_name.find(component);
  const auto active = linkAt(manager.body, "Links/ActiveSoftwareImage");
  if (at.quirks.discard == CancelStagedMethod::None || own == inventory.uri_by_name.end() ||
      active != own->second)
    co_return fail(
        ErrorCode::NotFound,
        fmt::format(
            "the BMC at {} offers no way to take an image of {} back that waits for its activation",
            address(), component));
  Json body = Json::object();
  body["Links"]["ActiveSoftwareImage"]["@odata.id"] = active;
  CO_TRY_OK(co_await session_->patch(at.manager, std::move(body), manager.etag()));
  co_return Result<void>();
}

/// A job does not say which component it is for; so many as are ours, or none is touched.
Async<void> RedfishBmc::deleteWaitingJobs(std::string manager, std::size_t waiting) {
  CO_TRY(resource, co_await session_->get(manager));
  const auto collection = linkAt(resource.body, "Links/Oem/Dell/Jobs");
  if (collection.empty())
    co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " shows no jobs");
  CO_TRY(jobs, co_await members(collection, kMaxJobs, RedfishSession::kRequestTimeout));
  std::vector<std::string> scheduled;
  for (const Member& job : jobs.found)
    if (textAt(job.json, "JobState") == kWaits && textAt(job.json, "JobType") == kFirmwareJob)
      scheduled.push_back(job.uri);
  if (!jobs.unread.empty()) co_return fail(jobs.unread.front().why);
  if (scheduled.empty()) co_return Result<void>();  // taken back already
  if (scheduled.size() > waiting)
    co_return fail(ErrorCode::Conflict,
                   fmt::format("the BMC at {} holds {} firmware jobs for the next restart, of "
                               "which {} are ours, and does not say which",
                               address(), scheduled.size(), waiting));
  for (const auto& uri : scheduled) {
    CO_TRY_OK(co_await session_->erase(uri));
  }
  co_return Result<void>();
}

}  // namespace muster::bmc
