// SPDX-License-Identifier: Apache-2.0
// iDRAC before multipart: a file that was pushed lies on the BMC as an Available-… member of the
// inventory, and nothing of it is written before SimpleUpdate names it.
#include "bmc/redfish/answers.h"
#include "bmc/redfish/update_strategy.h"

#include <algorithm>
#include <optional>
#include <set>

namespace muster::bmc {
namespace {

constexpr int kMaxPages = 16;
constexpr std::string_view kAvailable = "/Available-";
constexpr std::string_view kReadyMark = "#ready";  ///< behind the URI of a file that lies there

class AvailableThenSimpleUpdate final : public UpdateStrategy {
 public:
  explicit AvailableThenSimpleUpdate(UpdateServices services) : services_(std::move(services)) {}
  UpdateMethod method() const override { return UpdateMethod::HttpPush; }
  bool isOffered(const Json& service) const override {
    return !linkAt(service, "HttpPushUri").empty();
  }
  Async<RedfishReply> send(Upload upload) override {
    auto name = upload.update.file.filename().string();
    return pushFile(services_, pathOnly(linkAt(upload.service, "HttpPushUri")),
                    std::move(upload.image), std::move(name));
  }
  Result<std::string> followedAt(const RedfishReply& reply, const std::string&,
                                 const std::string& component) const override {
    const auto uri = pathOnly(reply.header("Location"));
    if (uri.empty())
      return fail(ErrorCode::Corrupt, "the BMC at " + services_.resources.address() +
                                          " took the file of " + component +
                                          " in but did not say where it lies");
    return uri + std::string(kReadyMark);
  }

  bool follows(const std::string& uri) const override {
    return uri.ends_with(kReadyMark) || uri.ends_with(kOrderMark);
  }
  Async<TaskStatus> follow(std::string uri) override {
    return uri.ends_with(kReadyMark) ? begin(withoutMark(uri)) : order(withoutMark(uri));
  }
  Async<TaskList> withOwn(TaskList listed) override {
    CO_TRY(files, co_await availableFiles());
    if (files) {
      listed.keeps_finished =
          true;  // an upload that arrived lies there until its update is ordered
      for (const auto& uri : *files) listed.finished.push_back(uri + std::string(kReadyMark));
    }
    co_return listed;
  }

 private:
  /// An upload whose answer was lost is found among them. Null: this BMC takes files another way.
  Async<std::optional<std::vector<std::string>>> availableFiles() {
    CO_TRY(at, co_await services_.resources.uris());
    std::optional<std::vector<std::string>> found;
    CO_TRY(service, co_await services_.resources.session().get(at.update_service));
    const auto pushed_to = linkAt(service.body, "HttpPushUri");
    if (pushed_to.empty() || !linkAt(service.body, "MultipartHttpPushUri").empty()) co_return found;
    found.emplace();
    auto next = linkAt(service.body, "FirmwareInventory");
    for (int page = 0; page < kMaxPages && !next.empty(); ++page) {
      CO_TRY(inventory, co_await services_.resources.session().get(next, at.quirks.inventory_read));
      CO_TRY_OK(membersOf(inventory, next));
      for (auto& uri : linksAt(inventory.body, "Members"))
        if (uri.find(kAvailable) != std::string::npos) found->push_back(std::move(uri));
      next = linkAt(inventory.body, "Members@odata.nextLink");
    }
    co_return found;
  }

  /// Only says where it goes on: whoever follows writes that down before anything is ordered.
  Async<TaskStatus> begin(std::string uri) {
    CO_TRY(known, co_await services_.all_tasks());
    if (!known.running.empty())
      co_return TaskStatus{TaskState::Running, 0, "waits for " + known.running.front()};
    const auto seen = co_await services_.resources.session().get(uri);
    if (!seen && seen.error().code() == ErrorCode::NotFound)
      co_return TaskStatus{TaskState::Failed, 0,
                           "the file that it had taken in is gone; nothing of it was written"};
    if (!seen) co_return fail(seen.error());
    not_ordered_.insert(uri);
    co_return TaskStatus{TaskState::Running, 0, "taken in", uri + std::string(kOrderMark)};
  }

  /// Ordered once. Whoever does not know whether it was (an answer that was lost, a process that
  /// died) orders nothing: the BMC's tasks and the inventory decide. Errors: NotFound (no task
  /// shows it)
  Async<TaskStatus> order(std::string uri) {
    TaskStatus status{TaskState::Running, 0, "ordered"};
    if (not_ordered_.erase(uri) == 0) {
      CO_TRY(known, co_await services_.all_tasks());
      if (known.running.empty())
        co_return fail(ErrorCode::NotFound, fmt::format("the BMC at {} shows no task of {}",
                                                        services_.resources.address(), uri));
      status.moved_to = known.running.back();
      co_return status;
    }
    CO_TRY(at, co_await services_.resources.uris());
    auto service = co_await services_.resources.session().get(at.update_service);
    const auto target = service
                            ? linkAt(service->body, "Actions/#UpdateService.SimpleUpdate/target")
                            : std::string();
    if (!service) not_ordered_.insert(uri);
    if (!service) co_return fail(std::move(service.error()));
    if (target.empty())
      co_return TaskStatus{TaskState::Failed, 0,
                           "it takes files in, but offers no SimpleUpdate for them"};
    Json body = Json::object();
    body["ImageURI"] = uri;
    CO_TRY(reply, co_await services_.resources.session().postAny(target, std::move(body)));
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
                     fmt::format("the BMC at {} began with {} but named no task",
                                 services_.resources.address(), uri));
    co_return status;
  }

  UpdateServices services_;
  std::set<std::string> not_ordered_;  ///< files that lie ready, of which this process knows that
                                       ///< nobody has ordered their update
};

}  // namespace

std::unique_ptr<UpdateStrategy> makeAvailableThenSimpleUpdate(UpdateServices services) {
  return std::make_unique<AvailableThenSimpleUpdate>(std::move(services));
}

}  // namespace muster::bmc
