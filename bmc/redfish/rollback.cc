// SPDX-License-Identifier: Apache-2.0
// The way back to the image that a component ran before (quirks.h, RollbackMethod).
#include "bmc/redfish/redfish_bmc.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kTaskLimit = 20min;  ///< of a rollback until it is taken in
constexpr auto kTaskPoll = 2s;

}  // namespace

Async<RedfishBmc::PreviousImage> RedfishBmc::findPrevious(std::string component) {
  CO_TRY(at, co_await places());
  CO_TRY(inventory, co_await readInventory());
  const Error none(
      ErrorCode::NotFound,
      fmt::format("the BMC at {} holds no previous image of {} that it could go back to", address(),
                  component));
  if (at.quirks.rollback == RollbackMethod::UpdateFromPrevious) {
    const auto known = inventory.previous.find(component);
    if (known == inventory.previous.end()) co_return fail(none);
    co_return PreviousImage{textAt(known->second.json, "Version"), known->second.uri};
  }
  const auto own = inventory.uri_by_name.find(component);
  if (at.quirks.rollback == RollbackMethod::None || own == inventory.uri_by_name.end())
    co_return fail(none);
  CO_TRY(manager, co_await session_->get(at.manager));
  if (linkAt(manager.body, "Links/ActiveSoftwareImage") != own->second)
    co_return fail(none);  // of the manager's images only
  for (const auto& uri : linksAt(manager.body, "Links/SoftwareImages")) {
    if (uri == own->second) continue;
    CO_TRY(image, co_await session_->get(uri));
    co_return PreviousImage{textAt(image.body, "Version"), uri};
  }
  co_return fail(none);
}

Async<std::string> RedfishBmc::previousImage(std::string component) {
  CO_TRY(image, co_await findPrevious(component));
  if (image.version.empty())
    co_return fail(
        ErrorCode::NotFound,
        fmt::format("the BMC at {} does not say which version {} has", address(), image.uri));
  co_return image.version;
}

Async<void> RedfishBmc::rollBack(std::string component) {
  CO_TRY(at, co_await places());
  CO_TRY_OK(co_await refuseWhileUpdating());
  CO_TRY(image, co_await findPrevious(component));
  if (at.quirks.rollback == RollbackMethod::ActiveImage) {
    CO_TRY(manager, co_await session_->get(at.manager));
    Json body = Json::object();
    body["Links"]["ActiveSoftwareImage"]["@odata.id"] = image.uri;
    CO_TRY_OK(co_await session_->patch(at.manager, std::move(body), manager.etag()));
    co_return Result<void>();
  }
  CO_TRY(service, co_await session_->get(at.update_service));
  const auto target = linkAt(service.body, "Actions/#UpdateService.SimpleUpdate/target");
  if (target.empty())
    co_return fail(
        ErrorCode::NotFound,
        fmt::format("the BMC at {} offers no SimpleUpdate, by which {} would be taken back",
                    address(), component));
  Json body = Json::object();
  body["ImageURI"] = image.uri;
  CO_TRY(reply, co_await session_->post(target, std::move(body)));
  co_return co_await waitForTask(taskUriOf(reply));
}

Async<void> RedfishBmc::waitForTask(std::string uri) {
  const auto until = clock_.steady() + kTaskLimit;
  while (!uri.empty() && clock_.steady() < until) {
    auto status = co_await task(uri);
    if (!status && status.error().code() == ErrorCode::NotFound) co_return Result<void>();
    if (!status && !status.error().canRetry()) co_return fail(std::move(status.error()));
    if (status && status->state == TaskState::Failed)
      co_return fail(ErrorCode::Conflict,
                     fmt::format("the BMC at {} did not go back: {}", address(), status->message));
    if (status && status->state == TaskState::Completed && status->moved_to.empty())
      co_return Result<void>();
    if (status && !status->moved_to.empty()) uri = status->moved_to;
    co_await clock_.sleep(kTaskPoll);
  }
  co_return Result<void>();  // the inventory decides
}

}  // namespace muster::bmc
