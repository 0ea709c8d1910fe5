// SPDX-License-Identifier: Apache-2.0
// Supermicro: an upload is only verified; UpdateService.StartUpdate then begins to write it.
#include "bmc/redfish/update_strategy.h"

#include <algorithm>

namespace muster::bmc {
namespace {

constexpr std::string_view kVerifyMark =
    "#verify";  ///< the task only verifies, a second phase follows

class VerifiedMultipart final : public UpdateStrategy {
 public:
  explicit VerifiedMultipart(UpdateServices services) : services_(std::move(services)) {}
  UpdateMethod method() const override { return UpdateMethod::Multipart; }
  bool isOffered(const Json& service) const override {
    return !linkAt(service, "MultipartHttpPushUri").empty();
  }
  Async<RedfishReply> send(Upload upload) override {
    return pushMultipart(services_, std::move(upload));
  }
  Result<std::string> followedAt(const RedfishReply& reply, const std::string&,
                                 const std::string& component) const override {
    TRY(uri, namedTask(reply, services_.resources.address(), component));
    return marked(std::move(uri));
  }

  /// Each task may be one of a verification: whoever follows it then begins the second phase.
  std::string marked(std::string task_uri) const override {
    return std::move(task_uri) + std::string(kVerifyMark);
  }
  bool follows(const std::string& uri) const override { return uri.ends_with(kVerifyMark); }
  Async<TaskStatus> follow(std::string uri) override {
    const auto path = withoutMark(uri);
    auto status = co_await services_.tasks.read(path);
    const bool gone = !status && status.error().code() == ErrorCode::NotFound;
    if (!status && !gone) co_return fail(std::move(status.error()));
    if (status && status->state != TaskState::Completed) co_return status;
    co_return co_await startVerified(path);
  }

 private:
  /// The image was verified: now it is to be written. A process that died here finds what it began.
  Async<TaskStatus> startVerified(std::string verified) {
    CO_TRY(known, co_await services_.all_tasks());
    TaskStatus status{TaskState::Running, 0, "verified"};
    const auto marked = verified + std::string(kVerifyMark);
    for (const auto& uri : known.running)
      if (uri != marked) status.moved_to = withoutMark(uri);
    const auto at_verified = std::find(known.finished.begin(), known.finished.end(), marked);
    if (status.moved_to.empty() && at_verified != known.finished.end() &&
        std::next(at_verified) != known.finished.end())
      status.moved_to = withoutMark(known.finished.back());
    if (!status.moved_to.empty()) co_return status;
    CO_TRY(at, co_await services_.resources.uris());
    CO_TRY(service, co_await services_.resources.session().get(at.update_service));
    auto target = linkAt(service.body, "Actions/#UpdateService.StartUpdate/target");
    if (target.empty()) target = at.update_service + "/Actions/UpdateService.StartUpdate";
    CO_TRY(reply,
           co_await services_.resources.session().postAny(std::move(target), Json::object()));
    const auto why = reply.ok() ? std::string() : errorOf(reply, "StartUpdate").text();
    if (reply.status == 503 || reply.status == 409)
      co_return TaskStatus{TaskState::Running, 0,
                           why};  // another one runs; asked again with the next look
    if (!reply.ok()) co_return TaskStatus{TaskState::Failed, 0, why};
    status.moved_to = taskUriOf(reply);
    if (status.moved_to.empty()) co_return TaskStatus{TaskState::Completed, 1, "started"};
    co_return status;
  }

  UpdateServices services_;
};

}  // namespace

std::unique_ptr<UpdateStrategy> makeVerifiedMultipart(UpdateServices services) {
  return std::make_unique<VerifiedMultipart>(std::move(services));
}

}  // namespace muster::bmc
