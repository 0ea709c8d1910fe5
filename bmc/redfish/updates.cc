// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/updates.h"

#include "lifecycle/model/facet.h"

#include <algorithm>

namespace muster::bmc {

Async<void> RedfishUpdates::chooseStrategies() {
  if (!strategies_.empty()) co_return Result<void>();
  CO_TRY(at, co_await resources_.uris());
  if (strategies_.empty())
    strategies_ =
        makeUpdateStrategies(at.quirks, {resources_, images_, tasks_, [this] { return tasks(); }});
  co_return Result<void>();
}

ImageServices RedfishUpdates::imageServices() {
  return {resources_, inventory_, [this](std::string uri) { return task(std::move(uri)); }};
}

// ---- tasks, and what vendors have instead

/// What an earlier read of the inventory shows says nothing of what the task has done since.
Async<TaskStatus> RedfishUpdates::task(std::string uri) {
  auto status = co_await followed(std::move(uri));
  inventory_.forgetRead();
  co_return status;
}

Async<TaskStatus> RedfishUpdates::followed(std::string uri) {
  CO_TRY_OK(co_await chooseStrategies());
  for (const auto& strategy : strategies_) {
    if (!strategy->follows(uri)) continue;
    co_return co_await strategy->follow(std::move(uri));
  }
  co_return co_await tasks_.read(withoutMark(uri));
}

Async<TaskList> RedfishUpdates::tasks() {
  CO_TRY_OK(co_await chooseStrategies());
  CO_TRY(at, co_await resources_.uris());
  TaskList list;
  list.keeps_finished = at.quirks.keeps_finished_tasks;
  CO_TRY(listed, co_await tasks_.list());
  for (auto& task : listed) {
    auto uri = std::move(task.uri);
    for (const auto& strategy : strategies_) uri = strategy->marked(std::move(uri));
    (task.running ? list.running : list.finished).push_back(std::move(uri));
  }
  for (const auto& strategy : strategies_) {
    CO_TRY(more, co_await strategy->withOwn(std::move(list)));
    list = std::move(more);
  }
  co_return list;
}

// ---- uploads

/// A package for a tray goes to the tray; one that names no target is written into all that it is
/// for.
Async<bool> RedfishUpdates::sharesPackage(std::string component, std::string other) {
  CO_TRY(at, co_await resources_.uris());
  const auto& members = at.quirks.tray.members;
  const auto inTray = [&](const std::string& name) {
    return !members.empty() && lifecycle::matches(members, name);
  };
  co_return inTray(component) == inTray(other) && (inTray(component) || !at.quirks.send_targets);
}

Async<Json> RedfishUpdates::updateParameters(std::string component) {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(inventory, co_await inventory_.cached());
  auto it = inventory.uri_by_name.find(component);
  if (it == inventory.uri_by_name.end()) {
    for (const auto& item : inventory.items) {
      if (item.name == component)
        co_return fail(ErrorCode::Unavailable, fmt::format("the BMC at {} cannot read {} now: {}",
                                                           address(), component, item.unreadable));
    }
    std::vector<std::string> names;
    for (const auto& item : inventory.items) {
      if (item.updateable.value_or(false) && names.size() < 12) names.push_back(item.name);
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
    parameters["Targets"] = Json::array_t(
        1, tray.target.starts_with('/') ? std::string(tray.target)
                                        : fmt::format("{}/{}", inventory.collection, tray.target));
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

Async<void> RedfishUpdates::refuseWhileUpdating() {
  CO_TRY(now, co_await tasks());
  for (const std::string& uri : now.running) {
    auto reply = co_await resources_.session().get(withoutMark(uri));
    if (!reply && reply.error().code() == ErrorCode::NotFound) continue;  // it has ended meanwhile
    if (!reply) co_return fail(std::move(reply.error()));                 // it may be an update
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

Async<std::string> RedfishUpdates::startUpdate(FirmwareUpdate update) {
  CO_TRY_OK(co_await chooseStrategies());
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(service, co_await resources_.session().get(at.update_service));
  const auto chosen = std::ranges::find_if(
      strategies_, [&](const auto& each) { return each->isOffered(service.body); });
  if (chosen == strategies_.end())
    co_return fail(ErrorCode::InvalidInput, "the BMC at " + address() +
                                                " offers neither MultipartHttpPushUri, HttpPushUri "
                                                "nor SimpleUpdate; use the vendor's tool for it");
  auto& strategy = **chosen;
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
  Upload upload{service.body, std::move(update), std::move(image), std::move(parameters)};
  CO_TRY(reply, co_await strategy.send(std::move(upload)));
  if (!reply.ok()) co_return co_await refusal(std::move(reply), component);
  co_return strategy.followedAt(reply, at.update_service, component);
}

/// What a refusal of the upload means: it is the error.
Async<std::string> RedfishUpdates::refusal(RedfishReply reply, std::string component) {
  CO_TRY(at, co_await resources_.uris());
  if (!at.quirks.stuck_message.empty() && hasMessageId(reply.body, at.quirks.stuck_message)) {
    CO_TRY_OK(co_await reset_.reset());  // nothing runs, it was asked; only this ends the mode that
                                         // it is stuck in
    co_return fail(
        ErrorCode::Conflict,
        fmt::format("the BMC at {} was stuck in update mode and has been reset; {} is sent again",
                    address(), component));
  }
  auto why = errorOf(reply, "uploading " + component);
  if (reply.status == 503 || reply.status == 409)
    co_return fail(ErrorCode::Conflict, why.text());  // bmcweb: one update at a time, else 503
  co_return fail(std::move(why));
}

// ---- images besides the running one

Async<void> RedfishUpdates::cancelStaged(std::string component, std::size_t waiting) {
  CO_TRY(at, co_await resources_.uris());
  const auto strategy = makeCancelStagedStrategy(at.quirks.cancel_staged, imageServices());
  co_return co_await strategy->cancel(std::move(component), waiting);
}

Async<std::string> RedfishUpdates::previousImage(std::string component) {
  CO_TRY(at, co_await resources_.uris());
  const auto strategy = makeRollbackStrategy(at.quirks.rollback, imageServices());
  CO_TRY(image, co_await strategy->find(component));
  if (image.version.empty())
    co_return fail(
        ErrorCode::NotFound,
        fmt::format("the BMC at {} does not say which version {} has", address(), image.uri));
  co_return image.version;
}

Async<void> RedfishUpdates::rollBack(std::string component) {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY_OK(co_await refuseWhileUpdating());
  const auto strategy = makeRollbackStrategy(at.quirks.rollback, imageServices());
  CO_TRY(image, co_await strategy->find(component));
  co_return co_await strategy->order(std::move(component), std::move(image));
}

Async<void> RedfishUpdates::commitImage(std::string component) {
  CO_TRY(at, co_await resources_.uris());
  const auto& globs = at.quirks.commit;
  const bool wanted = std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return lifecycle::matches(glob, component);
  });
  if (!wanted) co_return fail(ErrorCode::NotFound, component + " needs no commit");
  CO_TRY(service, co_await resources_.session().get(at.update_service));
  const Json* action = find(service.body, at.quirks.commit_action);
  if (!action) co_return fail(ErrorCode::NotFound, address() + " offers no commit of images");
  CO_TRY(inventory, co_await inventory_.read());
  const auto uri = inventory.uri_by_name.find(component);
  if (uri == inventory.uri_by_name.end())
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{} does not list {} now", address(), component));
  Json body = Json::object();
  body["Targets"] = Json::array_t(1, uri->second);
  CO_TRY_OK(co_await resources_.session().post(linkAt(*action, "target"), std::move(body)));
  co_return Result<void>();
}

}  // namespace muster::bmc
