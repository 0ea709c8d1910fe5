// The way back to the image that a component ran before (quirks.h, RollbackWay).
#include "bmc/redfish/redfish_bmc.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kTaskLimit = 20min;  ///< of a rollback until it is taken in
constexpr auto kTaskPoll = 2s;

}  // namespace

Async<RedfishBmc::PreviousImage> RedfishBmc::findPrevious(std::string component) {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  auto read = readInventory();
  CO_TRY(inventory, co_await std::move(read));
  const Error none(ErrorCode::NotFound, fmt::format("the BMC at {} holds no previous image of {} that it could go back to", address(), component));
  if (at.quirks.rollback == RollbackWay::UpdateFromPrevious) {
    const auto known = inventory.previous.find(component);
    if (known == inventory.previous.end()) co_return fail(none);
    co_return PreviousImage{textAt(known->second.json, "Version"), known->second.uri};
  }
  const auto own = inventory.uri_by_name.find(component);
  if (at.quirks.rollback == RollbackWay::None || own == inventory.uri_by_name.end()) co_return fail(none);
  auto look = session_->get(at.manager);
  CO_TRY(manager, co_await std::move(look));
  if (linkAt(manager.body, "Links/ActiveSoftwareImage") != own->second) co_return fail(none);  // of the manager's images only
  for (const auto& uri : linksAt(manager.body, "Links/SoftwareImages")) {
    if (uri == own->second) continue;
    auto one = session_->get(uri);
    CO_TRY(image, co_await std::move(one));
    co_return PreviousImage{textAt(image.body, "Version"), uri};
  }
  co_return fail(none);
}

Async<std::string> RedfishBmc::previousImage(std::string component) {
  auto find_it = findPrevious(component);
  CO_TRY(image, co_await std::move(find_it));
  if (image.version.empty()) co_return fail(ErrorCode::NotFound, fmt::format("the BMC at {} does not say which version {} has", address(), image.uri));
  co_return image.version;
}

Async<void> RedfishBmc::rollBack(std::string component) {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  auto busy = refuseWhileUpdating();
  CO_TRY_OK(co_await std::move(busy));
  auto find_it = findPrevious(component);
  CO_TRY(image, co_await std::move(find_it));
  if (at.quirks.rollback == RollbackWay::ActiveImage) {
    auto look = session_->get(at.manager);
    CO_TRY(manager, co_await std::move(look));
    Json body = Json::object();
    body["Links"]["ActiveSoftwareImage"]["@odata.id"] = image.uri;
    auto write = session_->patch(at.manager, std::move(body), manager.etag());
    CO_TRY_OK(co_await std::move(write));
    co_return Result<void>();
  }
  auto read = session_->get(at.update_service);
  CO_TRY(service, co_await std::move(read));
  const auto target = linkAt(service.body, "Actions/#UpdateService.SimpleUpdate/target");
  if (target.empty()) co_return fail(ErrorCode::NotFound, fmt::format("the BMC at {} offers no SimpleUpdate, by which {} would be taken back", address(), component));
  Json body = Json::object();
  body["ImageURI"] = image.uri;
  auto post = session_->post(target, std::move(body));
  CO_TRY(reply, co_await std::move(post));
  auto taken = waitForTask(taskUriOf(reply));
  co_return co_await std::move(taken);
}

Async<void> RedfishBmc::waitForTask(std::string uri) {
  const auto until = clock_.steady() + kTaskLimit;
  while (!uri.empty() && clock_.steady() < until) {
    auto read = task(uri);
    auto status = co_await std::move(read);
    if (!status && status.error().code() == ErrorCode::NotFound) co_return Result<void>();
    if (!status && !status.error().canRetry()) co_return fail(std::move(status.error()));
    if (status && status->state == TaskState::Failed) co_return fail(ErrorCode::Conflict, fmt::format("the BMC at {} did not go back: {}", address(), status->message));
    if (status && status->state == TaskState::Completed && status->moved_to.empty()) co_return Result<void>();
    if (status && !status->moved_to.empty()) uri = status->moved_to;
    auto pause = clock_.sleep(kTaskPoll);
    co_await std::move(pause);
  }
  co_return Result<void>();  // the inventory decides
}

}  // namespace muster::bmc
