// SPDX-License-Identifier: Apache-2.0
// iDRAC before multipart: a file that was pushed lies on the BMC as an Available-… member of the
// inventory, and nothing of it is written before SimpleUpdate names it.
#include "bmc/redfish/redfish_bmc.h"

#include <algorithm>

namespace muster::bmc {

namespace {

constexpr int kMaxPages = 16;
constexpr std::string_view kAvailable = "/Available-";

}  // namespace

/// An upload whose answer was lost is found among them. Null: this BMC takes files another way.
Async<std::optional<std::vector<std::string>>> RedfishBmc::readyFiles() {
  CO_TRY(at, co_await places());
  std::optional<std::vector<std::string>> found;
  CO_TRY(service, co_await session_->get(at.update_service));
  const auto pushed_to = linkAt(service.body, "HttpPushUri");
  if (pushed_to.empty() || !linkAt(service.body, "MultipartHttpPushUri").empty()) co_return found;
  found.emplace();
  auto next = linkAt(service.body, "FirmwareInventory");
  for (int page = 0; page < kMaxPages && !next.empty(); ++page) {
    CO_TRY(inventory, co_await session_->get(next, at.quirks.inventory_read));
    for (auto& uri : linksAt(inventory.body, "Members"))
      if (uri.find(kAvailable) != std::string::npos) found->push_back(std::move(uri));
    next = linkAt(inventory.body, "Members@odata.nextLink");
  }
  co_return found;
}

/// Only says where it goes on: whoever follows writes that down before anything is ordered.
Async<TaskStatus> RedfishBmc::beginReady(std::string uri) {
  CO_TRY(known, co_await tasks());
  if (!known.running.empty())
    co_return TaskStatus{TaskState::Running, 0, "waits for " + known.running.front()};
  const auto seen = co_await session_->get(uri);
  if (!seen && seen.error().code() == ErrorCode::NotFound)
    co_return TaskStatus{TaskState::Failed, 0,
                         "the file that it had taken in is gone; nothing of it was written"};
  if (!seen) co_return fail(seen.error());
  not_ordered_.insert(uri);
  co_return TaskStatus{TaskState::Running, 0, "taken in", uri + std::string(kOrderMark)};
}

/// Ordered once. Whoever does not know whether it was (an answer that was lost, a process that
/// died) orders nothing: the BMC's tasks and the inventory decide. Errors: NotFound (no task shows
/// it)
Async<TaskStatus> RedfishBmc::orderReady(std::string uri) {
  TaskStatus status{TaskState::Running, 0, "ordered"};
  if (not_ordered_.erase(uri) == 0) {
    CO_TRY(known, co_await tasks());
    if (known.running.empty())
      co_return fail(ErrorCode::NotFound,
                     fmt::format("the BMC at {} shows no task of {}", address(), uri));
    status.moved_to = known.running.back();
    co_return status;
  }
  CO_TRY(at, co_await places());
  auto service = co_await session_->get(at.update_service);
  const auto target =
      service ? linkAt(service->body, "Actions/#UpdateService.SimpleUpdate/target") : std::string();
  if (!service) not_ordered_.insert(uri);
  if (!service) co_return fail(std::move(service.error()));
  if (target.empty())
    co_return TaskStatus{TaskState::Failed, 0,
                         "it takes files in, but offers no SimpleUpdate for them"};
  Json body = Json::object();
  body["ImageURI"] = uri;
  CO_TRY(reply, co_await session_->postAny(target, std::move(body)));
  if (reply.status == 503 ||
      reply.status == 409) {  // refused as a whole; asked again with the next look
    not_ordered_.insert(uri);
    co_return TaskStatus{TaskState::Running, 0, errorOf(reply, "SimpleUpdate").text()};
  }
  if (!reply.ok())
    co_return TaskStatus{TaskState::Failed, 0, errorOf(reply, "SimpleUpdate").text()};
  status.moved_to = taskUriOf(reply);
  if (status.moved_to.empty())
    co_return fail(ErrorCode::NotFound,
                   fmt::format("the BMC at {} began with {} but named no task", address(), uri));
  co_return status;
}

}  // namespace muster::bmc
