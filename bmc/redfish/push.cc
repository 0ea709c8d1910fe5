// SPDX-License-Identifier: Apache-2.0
// Uploads, by whichever way the UpdateService offers and the dialect wants.
#include "bmc/redfish/multipart.h"
#include "bmc/redfish/redfish_bmc.h"
#include "lifecycle/model/facet.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kUploadBase = 120s;
constexpr std::uintmax_t kSlowestUploadBytesPerSecond = 128u << 10;
constexpr std::string_view kSimpleUpdate = "Actions/#UpdateService.SimpleUpdate";

/// The way that is wanted, or the first that is offered. Auto: there is none.
UpdateMethod wayOf(const Json& service, UpdateMethod wanted) {
  auto offers = [&](UpdateMethod way) {
    switch (way) {
      case UpdateMethod::Multipart:
        return !linkAt(service, "MultipartHttpPushUri").empty();
      case UpdateMethod::HttpPush:
        return !linkAt(service, "HttpPushUri").empty();
      case UpdateMethod::SimpleUpdate:
        return find(service, kSimpleUpdate) != nullptr;
      case UpdateMethod::Auto:
        return false;
    }
    return false;
  };
  if (offers(wanted)) return wanted;
  for (const auto way :
       {UpdateMethod::Multipart, UpdateMethod::HttpPush, UpdateMethod::SimpleUpdate})
    if (offers(way)) return way;
  return UpdateMethod::Auto;
}

std::chrono::milliseconds timeoutOf(const MultipartBody& body) {
  return kUploadBase + std::chrono::seconds(body.bytes() / kSlowestUploadBytesPerSecond);
}

}  // namespace

/// A package for a tray goes to the tray; one that names no target is written into all that it is
/// for.
Async<bool> RedfishBmc::sharesPackage(std::string component, std::string other) {
  CO_TRY(at, co_await places());
  const auto& members = at.quirks.tray.members;
  const auto inTray = [&](const std::string& name) {
    return !members.empty() && lifecycle::matches(members, name);
  };
  co_return inTray(component) == inTray(other) && (inTray(component) || !at.quirks.send_targets);
}

Async<Json> RedfishBmc::updateParameters(std::string component) {
  CO_TRY(at, co_await places());
  auto read = readInventory();
  CO_TRY(inventory, co_await std::move(read));
  auto it = inventory.uri_by_name.find(component);
  if (it == inventory.uri_by_name.end()) {
    for (const auto& item : inventory.items) {
      if (item.name == component)
        co_return fail(ErrorCode::Unavailable, fmt::format("the BMC at {} cannot read {} now: {}",
                                                           address(), component, item.unreadable));
    }
    std::vector<std::string> names;
    for (const auto& item : inventory.items) {
      if (item.updateable && names.size() < 12) names.push_back(item.name);
    }
    co_return fail(
        ErrorCode::NotFound,
        fmt::format("the BMC at {} has no firmware component {}; updateable are, among others: {}",
                    address(), component, fmt::join(names, ", ")));
  }
  Json parameters =
      at.quirks.upload_oem.empty() ? Json::object() : parseLenient(at.quirks.upload_oem);
  const auto& tray = at.quirks.tray;
  if (!tray.members.empty() && lifecycle::matches(tray.members, component))
    parameters["Targets"] = Json::array_t(1, fmt::format("{}/{}", inventory_, tray.target));
  else if (at.quirks.send_targets)
    parameters["Targets"] = Json::array_t(1, it->second);
  for (const auto& words : at.quirks.oem_update_parameters) {
    if (!lifecycle::matches(words.component, component)) continue;
    parameters["Oem"] = parseLenient(std::string(words.oem));
    const auto related = inventory.related_by_name.find(component);
    if (words.target_is_related && related != inventory.related_by_name.end())
      parameters["Targets"] = Json::array_t(1, related->second);
    break;
  }
  if (!at.quirks.apply_time.empty())
    parameters["@Redfish.OperationApplyTime"] = at.quirks.apply_time;
  co_return parameters;
}

Async<void> RedfishBmc::refuseWhileUpdating() {
  CO_TRY(now, co_await tasks());
  for (const std::string& uri : now.running) {
    auto reply = co_await session_->get(uri.substr(0, uri.find('#')));
    if (!reply) continue;
    const std::string source = textAt(reply->body, "Payload/TargetUri");
    if (!source.empty() && source.find("UpdateService") == std::string::npos)
      continue;  // some other work
    co_return fail(
        ErrorCode::Conflict,
        fmt::format(
            "the BMC at {} is busy with {} ({}); a second update now could damage the first",
            address(), uri, textAt(reply->body, "Name")));
  }
  co_return Result<void>();
}

Async<RedfishReply> RedfishBmc::push(UpdateMethod way, Json service, FirmwareUpdate update,
                                     FirmwareImage image, Json parameters) {
  CO_TRY(at, co_await places());
  const auto name = update.file.filename().string();
  if (way == UpdateMethod::SimpleUpdate) {
    if (update.url.empty())
      co_return fail(ErrorCode::InvalidInput, "the BMC at " + address() +
                                                  " fetches its firmware itself, and nothing "
                                                  "serves it here; run this from a controller");
    Json body = std::move(parameters);
    body["ImageURI"] = update.url;
    body["TransferProtocol"] = update.url.starts_with("https:") ? "HTTPS" : "HTTP";
    co_return co_await session_->postAny(linkAt(service, std::string(kSimpleUpdate) + "/target"),
                                         std::move(body));
  }
  MultipartBody body;
  std::string path = pathOnly(
      linkAt(service, way == UpdateMethod::Multipart ? "MultipartHttpPushUri" : "HttpPushUri"));
  if (way == UpdateMethod::Multipart) {
    body = multipartUpdate(std::move(image), name, parameters);
  } else if (!at.quirks.flash_state.empty()) {
    co_return co_await pushForm(std::move(path), std::move(update), std::move(image));
  } else {
    co_return co_await pushFile(std::move(path), std::move(image), name);
  }
  const auto timeout = timeoutOf(body);
  co_return co_await session_->upload(std::move(path), std::move(body), timeout);
}

/// The ETag as given, then as a strong one, then none: a refusal for its sake took nothing in.
Async<RedfishReply> RedfishBmc::pushFile(std::string path, FirmwareImage image, std::string name) {
  CO_TRY(at, co_await places());
  const auto& how = at.quirks.push;
  std::vector<std::string> tags;
  if (how.if_match) {
    CO_TRY(resource, co_await session_->get(path, at.quirks.inventory_read));
    if (const auto tag = resource.etag(); !tag.empty()) tags.push_back(tag);
    if (!tags.empty() && tags.front().starts_with("W/")) tags.push_back(tags.front().substr(2));
  }
  tags.emplace_back();
  for (std::size_t i = 0;; ++i) {
    auto body = how.form ? formUpload({}, image, name)
                         : MultipartBody{"application/octet-stream", "", image, ""};
    body.if_match = tags[i];
    const auto timeout = timeoutOf(body);
    CO_TRY(reply, co_await session_->upload(path, std::move(body), timeout));
    if ((reply.status != 412 && reply.status != 428) || i + 1 == tags.size())
      co_return std::move(reply);
  }
}

Async<std::string> RedfishBmc::startUpdate(FirmwareUpdate update) {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  CO_TRY(service, co_await session_->get(at.update_service));
  const auto way = wayOf(service.body, at.quirks.update);
  if (way == UpdateMethod::Auto)
    co_return fail(ErrorCode::InvalidInput, "the BMC at " + address() +
                                                " offers neither MultipartHttpPushUri, HttpPushUri "
                                                "nor SimpleUpdate; use the vendor's tool for it");
  CO_TRY(parameters, co_await updateParameters(update.component));
  CO_TRY_OK(co_await refuseWhileUpdating());

  CO_TRY(image, co_await images_.get(update));
  if (update.inspect) CO_TRY_OK(update.inspect(*image));
  if (auto most = numberAt(service.body, "MaxImageSizeBytes");
      most && *most > 0 && static_cast<double>(image->size()) > *most)
    co_return fail(
        ErrorCode::InvalidInput,
        fmt::format("{} is larger than the {} bytes that the BMC at {} accepts; nothing was sent",
                    update.file.string(), *most, address()));
  const auto component = update.component;
  CO_TRY(reply, co_await push(way, service.body, std::move(update), std::move(image),
                              std::move(parameters)));
  if (!reply.ok() && !at.quirks.stuck_message.empty() &&
      hasMessageId(reply.body, at.quirks.stuck_message)) {
    auto unstick =
        resetBmc();  // nothing runs, it was asked; only this ends the mode that it is stuck in
    CO_TRY_OK(co_await std::move(unstick));
    co_return fail(
        ErrorCode::Conflict,
        fmt::format("the BMC at {} was stuck in update mode and has been reset; {} is sent again",
                    address(), component));
  }
  if (reply.status == 503 || reply.status == 409) {
    auto why = errorOf(reply, "uploading " + component);
    co_return fail(ErrorCode::Conflict, why.text());  // bmcweb: one update at a time, else 503
  }
  if (!reply.ok()) co_return fail(errorOf(reply, "uploading " + component));
  if (!at.quirks.flash_state.empty() && way == UpdateMethod::HttpPush)
    co_return at.update_service + std::string(kFlashMark);
  auto uri = taskUriOf(reply);
  if (at.quirks.push.then_simple_update && way == UpdateMethod::HttpPush) {
    uri = pathOnly(reply.header("Location"));
    if (uri.empty())
      co_return fail(ErrorCode::Corrupt, "the BMC at " + address() + " took the file of " +
                                             component + " in but did not say where it lies");
    co_return uri + std::string(kReadyMark);
  }
  if (uri.empty())
    co_return fail(ErrorCode::Corrupt, "the BMC at " + address() + " accepted the upload of " +
                                           component + " but named no task");
  co_return at.quirks.two_phase&& way == UpdateMethod::Multipart ? uri + std::string(kVerifyMark)
                                                                 : uri;
}

}  // namespace muster::bmc
