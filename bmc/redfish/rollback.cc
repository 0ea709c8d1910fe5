// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/rollback.h"

#include "inventory/model/firmware.h"

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kTaskLimit = 20min;  ///< of a rollback until it is taken in
constexpr auto kTaskPoll = 2s;
constexpr std::size_t kMaxJobs = 256;
constexpr std::string_view kFirmwareJob = "FirmwareUpdate", kWaits = "Scheduled";

Error noPreviousImage(const RedfishResources& resources, const std::string& component) {
  return Error(ErrorCode::NotFound,
               fmt::format("the BMC at {} holds no previous image of {} that it could go back to",
                           resources.address(), component));
}

Error cannotCancel(const RedfishResources& resources, const std::string& component) {
  return Error(
      ErrorCode::NotFound,
      fmt::format(
          "the BMC at {} offers no way to take an image of {} back that waits for its activation",
          resources.address(), component));
}

Json activeImage(const std::string& uri) {
  Json body = Json::object();
  body["Links"]["ActiveSoftwareImage"]["@odata.id"] = uri;
  return body;
}

// ---- back to the previous image

class NoRollback final : public RollbackStrategy {
 public:
  explicit NoRollback(ImageServices services) : services_(std::move(services)) {}
  Async<PreviousImage> find(std::string component) override {
    co_return fail(noPreviousImage(services_.resources, component));
  }
  Async<void> order(std::string component, PreviousImage) override {
    co_return fail(noPreviousImage(services_.resources, component));
  }

 private:
  ImageServices services_;
};

/// SimpleUpdate with the inventory's "Previous-…" member.
class UpdateFromPrevious final : public RollbackStrategy {
 public:
  explicit UpdateFromPrevious(ImageServices services) : services_(std::move(services)) {}
  Async<PreviousImage> find(std::string component) override {
    CO_TRY(inventory, co_await services_.inventory.read());
    const auto known = inventory.previous.find(component);
    if (known == inventory.previous.end())
      co_return fail(noPreviousImage(services_.resources, component));
    co_return PreviousImage{versionAt(known->second.json), known->second.uri};
  }
  Async<void> order(std::string component, PreviousImage image) override {
    CO_TRY(at, co_await services_.resources.uris());
    CO_TRY(service, co_await services_.resources.session().get(at.update_service));
    const auto target = linkAt(service.body, "Actions/#UpdateService.SimpleUpdate/target");
    if (target.empty())
      co_return fail(
          ErrorCode::NotFound,
          fmt::format("the BMC at {} offers no SimpleUpdate, by which {} would be taken back",
                      services_.resources.address(), component));
    Json body = Json::object();
    body["ImageURI"] = image.uri;
    CO_TRY(reply, co_await services_.resources.session().post(target, std::move(body)));
    co_return co_await waitForTask(taskUriOf(reply));
  }

 private:
  Async<void> waitForTask(std::string uri) {
    const auto until = services_.resources.clock().steady() + kTaskLimit;
    while (!uri.empty() && services_.resources.clock().steady() < until) {
      auto status = co_await services_.task(uri);
      if (!status && status.error().code() == ErrorCode::NotFound) co_return Result<void>();
      if (!status && !status.error().canRetry()) co_return fail(std::move(status.error()));
      if (status && status->state == TaskState::Failed)
        co_return fail(ErrorCode::Conflict,
                       fmt::format("the BMC at {} did not go back: {}",
                                   services_.resources.address(), status->message));
      if (status && status->state == TaskState::Completed && status->moved_to.empty())
        co_return Result<void>();
      if (status && !status->moved_to.empty()) uri = status->moved_to;
      co_await services_.resources.clock().sleep(kTaskPoll);
    }
    co_return Result<void>();  // the inventory decides
  }

  ImageServices services_;
};

/// The manager's Links.ActiveSoftwareImage is set to another of its SoftwareImages.
class ActivatePrevious final : public RollbackStrategy {
 public:
  explicit ActivatePrevious(ImageServices services) : services_(std::move(services)) {}
  Async<PreviousImage> find(std::string component) override {
    CO_TRY(at, co_await services_.resources.uris());
    CO_TRY(inventory, co_await services_.inventory.read());
    const auto none = noPreviousImage(services_.resources, component);
    const auto own = inventory.uri_by_name.find(component);
    if (own == inventory.uri_by_name.end()) co_return fail(none);
    CO_TRY(manager, co_await services_.resources.session().get(at.manager));
    if (linkAt(manager.body, "Links/ActiveSoftwareImage") != own->second)
      co_return fail(none);  // of the manager's images only
    for (const auto& uri : linksAt(manager.body, "Links/SoftwareImages")) {
      if (uri == own->second) continue;
      CO_TRY(image, co_await services_.resources.session().get(uri));
      co_return PreviousImage{versionAt(image.body), uri};
    }
    co_return fail(none);
  }
  Async<void> order(std::string, PreviousImage image) override {
    CO_TRY(at, co_await services_.resources.uris());
    CO_TRY(manager, co_await services_.resources.session().get(at.manager));
    CO_TRY_OK(co_await services_.resources.session().patch(at.manager, activeImage(image.uri),
                                                           manager.etag()));
    co_return Result<void>();
  }

 private:
  ImageServices services_;
};

// ---- an image that waits for its activation

class CannotCancel final : public CancelStagedStrategy {
 public:
  explicit CannotCancel(ImageServices services) : services_(std::move(services)) {}
  Async<void> cancel(std::string component, std::size_t) override {
    co_return fail(cannotCancel(services_.resources, component));
  }

 private:
  ImageServices services_;
};

/// iDRAC: its job in the queue is deleted.
class DeleteWaitingJobs final : public CancelStagedStrategy {
 public:
  explicit DeleteWaitingJobs(ImageServices services) : services_(std::move(services)) {}
  /// A job does not say which component it is for; so many as are ours, or none is touched.
  Async<void> cancel(std::string, std::size_t waiting) override {
    CO_TRY(at, co_await services_.resources.uris());
    CO_TRY(resource, co_await services_.resources.session().get(at.manager));
    const auto collection = linkAt(resource.body, "Links/Oem/Dell/Jobs");
    if (collection.empty())
      co_return fail(ErrorCode::NotFound,
                     "the BMC at " + services_.resources.address() + " shows no jobs");
    CO_TRY(jobs, co_await services_.resources.members(collection, kMaxJobs));
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
                                 services_.resources.address(), scheduled.size(), waiting));
    for (const auto& uri : scheduled) {
      CO_TRY_OK(co_await services_.resources.session().erase(uri));
    }
    co_return Result<void>();
  }

 private:
  ImageServices services_;
};

/// The manager's Links.ActiveSoftwareImage is set to the one that runs; the BMC's own image only.
class KeepActiveImage final : public CancelStagedStrategy {
 public:
  explicit KeepActiveImage(ImageServices services) : services_(std::move(services)) {}
  Async<void> cancel(std::string component, std::size_t) override {
    CO_TRY(at, co_await services_.resources.uris());
    CO_TRY(manager, co_await services_.resources.session().get(at.manager));
    CO_TRY(inventory, co_await services_.inventory.read());
    const auto own = inventory.uri_by_name.find(component);
    const auto active = linkAt(manager.body, "Links/ActiveSoftwareImage");
    if (own == inventory.uri_by_name.end() || active != own->second)
      co_return fail(cannotCancel(services_.resources, component));
    CO_TRY_OK(co_await services_.resources.session().patch(at.manager, activeImage(active),
                                                           manager.etag()));
    co_return Result<void>();
  }

 private:
  ImageServices services_;
};

}  // namespace

std::unique_ptr<RollbackStrategy> makeRollbackStrategy(RollbackMethod method,
                                                       ImageServices services) {
  switch (method) {
    case RollbackMethod::None:
      break;
    case RollbackMethod::UpdateFromPrevious:
      return std::make_unique<UpdateFromPrevious>(std::move(services));
    case RollbackMethod::ActiveImage:
      return std::make_unique<ActivatePrevious>(std::move(services));
  }
  return std::make_unique<NoRollback>(std::move(services));
}

std::unique_ptr<CancelStagedStrategy> makeCancelStagedStrategy(CancelStagedMethod method,
                                                               ImageServices services) {
  switch (method) {
    case CancelStagedMethod::None:
      break;
    case CancelStagedMethod::DeleteJob:
      return std::make_unique<DeleteWaitingJobs>(std::move(services));
    case CancelStagedMethod::ActiveImage:
      return std::make_unique<KeepActiveImage>(std::move(services));
  }
  return std::make_unique<CannotCancel>(std::move(services));
}

}  // namespace muster::bmc
