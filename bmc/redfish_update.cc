// Firmware inventory, uploads, tasks and the reset of the BMC itself.
#include "bmc/multipart.h"
#include "bmc/redfish_bmc.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxInventory = 1024;
constexpr std::size_t kMaxTasks = 256;
constexpr auto kUploadBase = 120s;
constexpr std::uintmax_t kSlowestUploadBytesPerSecond = 128u << 10;

constexpr auto kGoesDownLimit = 120s;  ///< a BMC that accepted its reset is gone by then
constexpr auto kComesBackLimit = 480s; ///< Ironic's limit
constexpr auto kResetPoll = 500ms;
constexpr int kGoodReads = 3;

std::string lastSegment(const std::string& uri) {
  auto end = uri.find_last_not_of('/');
  if (end == std::string::npos) return {};
  auto slash = uri.rfind('/', end);
  return uri.substr(slash + 1, end - slash);
}

std::string pathOnly(const std::string& link) {
  if (link.empty() || link.front() == '/') return link;
  auto url = io::Url::parse(link);
  return url ? url->target : std::string();
}

bool endsWith(const std::string& text, std::string_view end) { return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0; }

/// The name of a member under this rule; "" when the member is not installed firmware.
std::string memberName(const std::string& uri, const Json& json, InventoryKey key) {
  std::string id = textAt(json, "Id");
  if (id.empty()) id = lastSegment(uri);
  if (key == InventoryKey::Name && !textAt(json, "Name").empty()) return textAt(json, "Name");
  if (key != InventoryKey::InstalledFqdd) return id;
  if (id.rfind("Installed-", 0) != 0) return {};
  const auto mark = id.find("__");
  return mark == std::string::npos ? std::string() : id.substr(mark + 2);
}

}  // namespace

// ---- inventory

Async<RedfishBmc::Inventory> RedfishBmc::readInventory() {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  if (inventory_.empty()) {
    auto read = session_->get(at.update_service);
    CO_TRY(service, co_await std::move(read));
    inventory_ = linkAt(service.body, "FirmwareInventory");
    if (inventory_.empty()) inventory_ = at.update_service + "/FirmwareInventory";
  }
  auto list = members(inventory_, kMaxInventory, at.quirks.inventory_read);
  CO_TRY(listed, co_await std::move(list));
  const auto& found = listed.found;

  std::map<std::string, int> uses;
  for (const Member& m : found) ++uses[memberName(m.uri, m.json, at.quirks.inventory_key)];
  Inventory inventory;
  for (const Member& m : found) {
    std::string name = memberName(m.uri, m.json, at.quirks.inventory_key);
    if (name.empty()) continue;
    if (uses[name] > 1) name = lastSegment(m.uri);
    inventory.items.push_back({name, textAt(m.json, "Version"), boolAt(m.json, "Updateable").value_or(false)});
    inventory.uri_by_name[name] = m.uri;
  }
  for (const Unread& m : listed.unread) {
    const std::string name = memberName(m.uri, Json::object(), at.quirks.inventory_key);
    if (!name.empty()) inventory.items.push_back({name, {}, false, m.why.str()});
  }
  co_return inventory;
}

Async<std::vector<FirmwareItem>> RedfishBmc::firmware() {
  auto read = readInventory();
  CO_TRY(inventory, co_await std::move(read));
  co_return std::move(inventory.items);
}

// ---- update

Async<Json> RedfishBmc::updateParameters(std::string component) {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  auto read = readInventory();
  CO_TRY(inventory, co_await std::move(read));
  auto it = inventory.uri_by_name.find(component);
  if (it == inventory.uri_by_name.end()) {
    for (const auto& item : inventory.items) {
      if (item.name == component) co_return fail(ErrorCode::Unavailable, fmt::format("the BMC at {} cannot read {} now: {}", address(), component, item.unreadable));
    }
    std::vector<std::string> names;
    for (const auto& item : inventory.items) {
      if (item.updateable && names.size() < 12) names.push_back(item.name);
    }
    co_return fail(ErrorCode::NotFound, fmt::format("the BMC at {} has no firmware component {}; updateable are, among others: {}", address(), component, fmt::join(names, ", ")));
  }
  Json parameters = Json::object();
  if (at.quirks.send_targets) parameters["Targets"] = Json::array_t(1, it->second);
  if (!at.quirks.apply_time.empty()) parameters["@Redfish.OperationApplyTime"] = at.quirks.apply_time;
  co_return parameters;
}

Async<void> RedfishBmc::refuseWhileUpdating() {
  auto list = tasks();
  CO_TRY(now, co_await std::move(list));
  for (const std::string& uri : now.running) {
    auto read = session_->get(uri);
    auto reply = co_await std::move(read);
    if (!reply) continue;
    const std::string source = textAt(reply->body, "Payload/TargetUri");
    if (!source.empty() && source.find("UpdateService") == std::string::npos) continue;  // some other work
    co_return fail(ErrorCode::Conflict, fmt::format("the BMC at {} is busy with {} ({}); a second update now could damage the first", address(), uri, textAt(reply->body, "Name")));
  }
  co_return Result<void>();
}

Async<std::string> RedfishBmc::startUpdate(FirmwareUpdate update) {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  auto read = session_->get(at.update_service);
  CO_TRY(service, co_await std::move(read));
  const std::string push = pathOnly(linkAt(service.body, "MultipartHttpPushUri"));
  if (push.empty()) {
    co_return fail(ErrorCode::InvalidInput, "the BMC at " + address() + " offers no MultipartHttpPushUri, the only way of update that muster has; use the vendor's tool for it");
  }
  auto describe = updateParameters(update.component);
  CO_TRY(parameters, co_await std::move(describe));
  auto busy = refuseWhileUpdating();
  CO_TRY_OK(co_await std::move(busy));

  auto load = images_.get(update);
  CO_TRY(image, co_await std::move(load));
  if (auto most = numberAt(service.body, "MaxImageSizeBytes"); most && *most > 0 && static_cast<double>(image->size()) > *most) {
    co_return fail(ErrorCode::InvalidInput, fmt::format("{} is larger than the {} bytes that the BMC at {} accepts; nothing was sent", update.file.string(), *most, address()));
  }
  auto multipart = multipartUpdate(std::move(image), update.file.filename().string(), parameters);
  const std::chrono::milliseconds timeout = kUploadBase + std::chrono::seconds(multipart.bytes() / kSlowestUploadBytesPerSecond);
  auto send = session_->upload(push, std::move(multipart), timeout);
  CO_TRY(reply, co_await std::move(send));
  if (reply.status == 503 || reply.status == 409) {
    auto why = errorOf(reply, "uploading " + update.component);
    co_return fail(ErrorCode::Conflict, why.text());  // bmcweb: one update at a time, else 503
  }
  if (!reply.ok()) co_return fail(errorOf(reply, "uploading " + update.component));
  auto uri = taskUriOf(reply);
  if (uri.empty()) co_return fail(ErrorCode::Corrupt, "the BMC at " + address() + " accepted the upload of " + update.component + " but named no task");
  co_return uri;
}

std::string taskUriOf(const RedfishReply& reply) {
  const std::string self = linkAt(reply.body, "@odata.id");
  if (self.find("/Tasks/") != std::string::npos) return self;
  std::string location = pathOnly(reply.header("Location"));
  for (std::string_view end : {"/Monitor", "/monitor"}) {
    if (endsWith(location, end)) location.resize(location.size() - end.size());
  }
  if (!location.empty()) return location;
  std::string id = textAt(reply.body, "Id");
  if (const Json* list = find(reply.body, "Accepted/@Message.ExtendedInfo"); id.empty() && list && list->is_array()) {
    for (const Json& message : *list) {
      for (const std::string& argument : textsAt(message, "MessageArgs")) {
        if (argument.find("/Tasks/") != std::string::npos) return pathOnly(argument);
        if (id.empty()) id = argument;
      }
    }
  }
  return id.empty() ? std::string() : "/redfish/v1/TaskService/Tasks/" + id;
}

// ---- tasks

TaskStatus taskStatusOf(const RedfishReply& reply) {
  const std::string state = textAt(reply.body, "TaskState");
  TaskStatus status;
  status.fraction = std::clamp(numberAt(reply.body, "PercentComplete").value_or(0) / 100, 0.0, 1.0);
  status.message = serviceMessage(reply.body);
  if (state.empty()) {  // a task monitor: 202 while it runs, the final answer afterwards
    status.state = reply.status == 202 ? TaskState::Running : TaskState::Completed;
  } else if (state == "Completed") {
    status.state = textAt(reply.body, "TaskStatus") == "Critical" ? TaskState::Failed : TaskState::Completed;
  } else if (state == "Exception" || state == "Killed" || state == "Cancelled" || state == "Interrupted" || state == "UserIntervention") {
    status.state = TaskState::Failed;
  }
  if (status.state == TaskState::Completed) status.fraction = 1;
  if (status.message.empty()) status.message = state;
  return status;
}

Async<TaskStatus> RedfishBmc::task(std::string uri) {
  auto read = session_->get(uri);
  CO_TRY(reply, co_await std::move(read));
  co_return taskStatusOf(reply);
}

Async<TaskList> RedfishBmc::tasks() {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  TaskList list;
  list.keeps_finished = at.quirks.keeps_finished_tasks;
  auto read = session_->get(at.tasks);
  CO_TRY(service, co_await std::move(read));
  auto collection = linkAt(service.body, "Tasks");
  if (collection.empty()) collection = at.tasks + "/Tasks";
  auto all = members(collection, kMaxTasks, RedfishSession::kRequestTimeout);
  auto found = co_await std::move(all);
  if (!found && found.error().code() == ErrorCode::NotFound) co_return list;  // the last one vanished while it was read
  if (!found) co_return fail(std::move(found.error()));
  if (!found->unread.empty()) co_return fail(found->unread.front().why);  // it may be the update that runs
  for (const Member& m : found->found) {
    RedfishReply reply{200, {}, m.json};
    (taskStatusOf(reply).state == TaskState::Running ? list.running : list.finished).push_back(m.uri);
  }
  co_return list;
}

// ---- the BMC itself

Async<void> RedfishBmc::resetBmc() {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  auto read = session_->get(at.manager);
  CO_TRY(manager, co_await std::move(read));
  const Json* action = find(manager.body, "Actions/#Manager.Reset");
  if (!action) co_return fail(ErrorCode::InvalidInput, at.manager + " of " + address() + " cannot be reset");
  auto ask = allowedResets(*action);
  CO_TRY(allowed, co_await std::move(ask));
  std::string type = at.quirks.manager_reset.empty() ? "ForceRestart" : at.quirks.manager_reset;
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), type) == allowed.end()) type = allowed.front();
  std::string target = linkAt(*action, "target");
  if (target.empty()) target = at.manager + "/Actions/Manager.Reset";

  auto reset = resetThrough(std::move(target), std::move(type), at.manager, textAt(manager.body, "LastResetTime"));
  co_return co_await std::move(reset);
}

Async<void> RedfishBmc::resetThrough(std::string target, std::string type, std::string manager, std::string reset_time_before) {
  Json body = Json::object();
  body["ResetType"] = type;
  auto post = session_->post(target, std::move(body));
  auto answer = co_await std::move(post);
  if (!answer && !answer.error().canRetry()) co_return fail(std::move(answer.error()));  // an answer lost on the way may well be the reset
  forgetPlaces();
  auto wait = waitForReset(std::move(manager), std::move(reset_time_before));
  CO_TRY_OK(co_await std::move(wait));
  auto calm = settle();
  co_return co_await std::move(calm);
}

// The reset has happened when the BMC was away, has forgotten the session, or says so itself.
Async<void> RedfishBmc::waitForReset(std::string manager, std::string reset_time_before) {
  const auto until = clock_.steady() + kGoesDownLimit;
  while (clock_.steady() < until) {
    auto look = session_->peek(manager, true);
    auto reply = co_await std::move(look);
    if (!reply && reply.error().code() == ErrorCode::Denied) co_return fail(std::move(reply.error()));
    if (!reply || reply->status == 401 || reply->status >= 500) co_return Result<void>();
    const std::string now = textAt(reply->body, "LastResetTime");
    if (!now.empty() && now != reset_time_before) co_return Result<void>();
    auto pause = clock_.sleep(kResetPoll);
    co_await std::move(pause);
  }
  co_return fail(ErrorCode::Timeout, "the BMC at " + address() + " accepted its reset but did not restart");
}

// First without a login: an account service that is still starting might refuse the right password. Then the system and
// the manager, kGoodReads times in a row.
Async<void> RedfishBmc::settle() {
  const auto until = clock_.steady() + kComesBackLimit;
  std::string last = "no answer";
  std::chrono::milliseconds gap = 1000ms;
  for (int good = 0; good < 2 * kGoodReads;) {
    if (clock_.steady() >= until) {
      co_return fail(ErrorCode::Timeout, fmt::format("the BMC at {} did not come back within {} s of its reset; last: {}", address(), kComesBackLimit.count(), last));
    }
    bool answered = false;
    if (good < kGoodReads) {
      auto look = session_->peek("/redfish/v1/", false);
      auto reply = co_await std::move(look);
      if (!reply && reply.error().code() == ErrorCode::Denied) co_return fail(std::move(reply.error()));
      answered = reply && (reply->ok() || reply->status == 401);
      last = reply ? fmt::format("status {}", reply->status) : reply.error().str();
    } else {
      auto where = places();
      auto at = co_await std::move(where);
      if (at) {
        gap = at->quirks.settle_gap;
        auto read = session_->get(at->system);
        auto system = co_await std::move(read);
        answered = system.has_value();
        last = system ? "good" : system.error().str();
      } else {
        if (at.error().code() == ErrorCode::Denied) co_return fail(std::move(at.error()));
        last = at.error().str();
      }
    }
    good = answered ? good + 1 : 0;
    if (good == 2 * kGoodReads) break;
    auto pause = clock_.sleep(good < kGoodReads ? kResetPoll : gap);
    co_await std::move(pause);
  }
  co_return Result<void>();
}

}  // namespace muster::bmc
