// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/update_strategy.h"

#include "bmc/redfish/multipart.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kUploadBase = 120s;
constexpr std::uintmax_t kSlowestUploadBytesPerSecond = 128u << 10;
constexpr const char* kSimpleUpdate = "Actions/#UpdateService.SimpleUpdate";

/// MultipartHttpPushUri: parameters and image in one body.
class MultipartPush final : public UpdateStrategy {
 public:
  explicit MultipartPush(UpdateServices services) : services_(std::move(services)) {}
  UpdateMethod method() const override { return UpdateMethod::Multipart; }
  bool isOffered(const Json& service) const override {
    return !linkAt(service, "MultipartHttpPushUri").empty();
  }
  Async<RedfishReply> send(Upload upload) override {
    return pushMultipart(services_, std::move(upload));
  }
  Result<std::string> followedAt(const RedfishReply& reply, const std::string&,
                                 const std::string& component) const override {
    return namedTask(reply, services_.resources.address(), component);
  }

 private:
  UpdateServices services_;
};

/// HttpPushUri: the body is the file, and the answer names its task.
class HttpPush final : public UpdateStrategy {
 public:
  explicit HttpPush(UpdateServices services) : services_(std::move(services)) {}
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
    return namedTask(reply, services_.resources.address(), component);
  }

 private:
  UpdateServices services_;
};

/// The BMC fetches the file for itself.
class SimpleUpdate final : public UpdateStrategy {
 public:
  explicit SimpleUpdate(UpdateServices services) : services_(std::move(services)) {}
  UpdateMethod method() const override { return UpdateMethod::SimpleUpdate; }
  bool isOffered(const Json& service) const override {
    return find(service, kSimpleUpdate) != nullptr;
  }
  Async<RedfishReply> send(Upload upload) override {
    const auto& url = upload.update.url;
    if (url.empty())
      co_return fail(ErrorCode::InvalidInput, "the BMC at " + services_.resources.address() +
                                                  " fetches its firmware itself, and nothing "
                                                  "serves it here; run this from a controller");
    Json body = std::move(upload.parameters);
    body["ImageURI"] = url;
    body["TransferProtocol"] = url.starts_with("https:") ? "HTTPS" : "HTTP";
    co_return co_await services_.resources.session().postAny(
        linkAt(upload.service, std::string(kSimpleUpdate) + "/target"), std::move(body));
  }
  Result<std::string> followedAt(const RedfishReply& reply, const std::string&,
                                 const std::string& component) const override {
    return namedTask(reply, services_.resources.address(), component);
  }

 private:
  UpdateServices services_;
};

}  // namespace

bool UpdateStrategy::follows(const std::string&) const { return false; }

Async<TaskStatus> UpdateStrategy::follow(std::string uri) {
  co_return fail(ErrorCode::NotFound, "nothing follows " + uri);
}

Async<TaskList> UpdateStrategy::withOwn(TaskList listed) { co_return listed; }

std::chrono::milliseconds uploadTimeout(std::size_t bytes) {
  return kUploadBase + std::chrono::seconds(bytes / kSlowestUploadBytesPerSecond);
}

Result<std::string> namedTask(const RedfishReply& reply, const std::string& address,
                              const std::string& component) {
  auto uri = taskUriOf(reply);
  if (uri.empty())
    return fail(ErrorCode::Corrupt, "the BMC at " + address + " accepted the upload of " +
                                        component + " but named no task");
  return uri;
}

Async<RedfishReply> pushMultipart(UpdateServices services, Upload upload) {
  auto path = pathOnly(linkAt(upload.service, "MultipartHttpPushUri"));
  auto body = multipartUpdate(std::move(upload.image), upload.update.file.filename().string(),
                              upload.parameters);
  const auto timeout = uploadTimeout(body.bytes());
  co_return co_await services.resources.session().upload(std::move(path), std::move(body), timeout);
}

/// The ETag as given, then as a strong one, then none: a refusal for its sake took nothing in.
Async<RedfishReply> pushFile(UpdateServices services, std::string path, FirmwareImage image,
                             std::string name) {
  CO_TRY(at, co_await services.resources.uris());
  const auto& how = at.quirks.push;
  std::vector<std::string> tags;
  if (how.if_match) {
    CO_TRY(resource, co_await services.resources.session().get(path, at.quirks.inventory_read));
    if (const auto tag = resource.etag(); !tag.empty()) tags.push_back(tag);
    if (!tags.empty() && tags.front().starts_with("W/")) tags.push_back(tags.front().substr(2));
  }
  tags.emplace_back();
  for (std::size_t i = 0;; ++i) {
    auto body = how.form ? formUpload({}, image, name)
                         : MultipartBody{"application/octet-stream", "", image, ""};
    body.if_match = tags[i];
    const auto timeout = uploadTimeout(body.bytes());
    CO_TRY(reply, co_await services.resources.session().upload(path, std::move(body), timeout));
    if ((reply.status != 412 && reply.status != 428) || i + 1 == tags.size())
      co_return std::move(reply);
  }
}

std::vector<std::unique_ptr<UpdateStrategy>> makeUpdateStrategies(const Quirks& quirks,
                                                                  UpdateServices services) {
  std::vector<std::unique_ptr<UpdateStrategy>> out;
  if (quirks.two_phase)
    out.push_back(makeVerifiedMultipart(services));
  else
    out.push_back(std::make_unique<MultipartPush>(services));
  if (!quirks.flash_state.empty())
    out.push_back(makeFormFlash(services));
  else if (quirks.push.then_simple_update)
    out.push_back(makeAvailableThenSimpleUpdate(services));
  else
    out.push_back(std::make_unique<HttpPush>(services));
  out.push_back(std::make_unique<SimpleUpdate>(services));
  std::ranges::stable_partition(
      out, [&quirks](const auto& each) { return each->method() == quirks.update; });
  return out;
}

}  // namespace muster::bmc
