// SPDX-License-Identifier: Apache-2.0
// Tasks, and what vendors have instead: Jobs, a second phase, a state of the whole UpdateService.
#include "bmc/redfish/redfish_bmc.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxTasks = 256;
constexpr auto kYoungTaskPause = 10s;
constexpr std::string_view kMovedToJob = "OperationTransitionedToJob";

bool endsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool isOneOf(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string plain(const std::string& uri) { return uri.substr(0, uri.find('#')); }

/// The Job that a Task has become, from the message's arguments.
std::string jobOf(const Json& task) {
  const Json* messages = find(task, "Messages");
  if (!messages || !messages->is_array()) return {};
  for (const Json& message : *messages) {
    const auto id = textAt(message, "MessageId");
    if (!endsWith(id, kMovedToJob)) continue;
    for (const auto& argument : textsAt(message, "MessageArgs"))
      if (argument.find("/Jobs/") != std::string::npos) return pathOnly(argument);
  }
  return {};
}

}  // namespace

std::string taskUriOf(const RedfishReply& reply) {
  const std::string self = linkAt(reply.body, "@odata.id");
  if (self.find("/Tasks/") != std::string::npos) return self;
  std::string location = pathOnly(reply.header("Location"));
  for (std::string_view end : {"/Monitor", "/monitor"}) {
    if (endsWith(location, end)) location.erase(location.rfind('/'));
  }
  if (!location.empty()) return location;
  std::string id = textAt(reply.body, "Id");
  if (const Json* list = find(reply.body, "Accepted/@Message.ExtendedInfo");
      id.empty() && list && list->is_array()) {
    for (const Json& message : *list) {
      for (const std::string& argument : textsAt(message, "MessageArgs")) {
        if (argument.find("/Tasks/") != std::string::npos) return pathOnly(argument);
        if (id.empty()) id = argument;
      }
    }
  }
  return id.empty() ? std::string() : "/redfish/v1/TaskService/Tasks/" + id;
}

TaskStatus taskStatusOf(const RedfishReply& reply, std::string_view staged_state) {
  std::string state = textAt(reply.body, "TaskState");
  if (state.empty()) state = textAt(reply.body, "JobState");
  TaskStatus status;
  status.fraction = std::clamp(numberAt(reply.body, "PercentComplete").value_or(0) / 100, 0.0, 1.0);
  status.message = serviceMessage(reply.body);
  if (state == kStarting)
    status.message = status.message.empty() ? state : fmt::format("{}: {}", state, status.message);
  if (state.empty()) {  // a task monitor: 202 while it runs, the final answer afterwards
    status.state = reply.status == 202 ? TaskState::Running : TaskState::Completed;
  } else if (state == "Completed" || (!staged_state.empty() && state == staged_state)) {
    status.state =
        textAt(reply.body, "TaskStatus") == "Critical" ? TaskState::Failed : TaskState::Completed;
  } else if (isOneOf(state, {"Exception", "Killed", "Cancelled", "Interrupted", "UserIntervention",
                             "Failed", "CompletedWithErrors"})) {
    status.state = TaskState::Failed;
  }
  if (status.state == TaskState::Completed) status.fraction = 1;
  if (status.message.empty()) status.message = state;
  status.moved_to = jobOf(reply.body);
  return status;
}

Async<TaskStatus> RedfishBmc::task(std::string uri) {
  CO_TRY(at, co_await places());
  if (endsWith(uri, kFlashMark)) {
    co_return co_await flashState();
  }
  if (endsWith(uri, kReadyMark)) {
    co_return co_await beginReady(plain(uri));
  }
  if (endsWith(uri, kOrderMark)) {
    co_return co_await orderReady(plain(uri));
  }
  const bool verifies = endsWith(uri, kVerifyMark);
  const std::string path = plain(uri);
  for (int young = at.quirks.new_task_404_retries;; --young) {
    auto reply = co_await session_->get(path);
    const bool gone = !reply && reply.error().code() == ErrorCode::NotFound;
    if (gone && young > 0) {
      co_await clock_.sleep(kYoungTaskPause);
      continue;
    }
    if (!reply && !(gone && verifies)) co_return fail(std::move(reply.error()));
    auto status = reply ? taskStatusOf(*reply, at.quirks.staged_state)
                        : TaskStatus{TaskState::Completed, 1, "gone"};
    if (!verifies || status.state != TaskState::Completed) co_return status;
    co_return co_await startVerified(path);
  }
}

/// The image was verified: now it is to be written. A process that died here finds what it began.
Async<TaskStatus> RedfishBmc::startVerified(std::string verified) {
  CO_TRY(known, co_await tasks());
  TaskStatus status{TaskState::Running, 0, "verified"};
  const auto marked = verified + std::string(kVerifyMark);
  for (const auto& uri : known.running)
    if (uri != marked) status.moved_to = plain(uri);
  const auto at_verified = std::find(known.finished.begin(), known.finished.end(), marked);
  if (status.moved_to.empty() && at_verified != known.finished.end() &&
      std::next(at_verified) != known.finished.end())
    status.moved_to = plain(known.finished.back());
  if (!status.moved_to.empty()) co_return status;
  CO_TRY(at, co_await places());
  CO_TRY(service, co_await session_->get(at.update_service));
  auto target = linkAt(service.body, "Actions/#UpdateService.StartUpdate/target");
  if (target.empty()) target = at.update_service + "/Actions/UpdateService.StartUpdate";
  CO_TRY(reply, co_await session_->postAny(std::move(target), Json::object()));
  const auto why = reply.ok() ? std::string() : errorOf(reply, "StartUpdate").text();
  if (reply.status == 503 || reply.status == 409)
    co_return TaskStatus{TaskState::Running, 0,
                         why};  // another one runs; asked again with the next look
  if (!reply.ok()) co_return TaskStatus{TaskState::Failed, 0, why};
  status.moved_to = taskUriOf(reply);
  if (status.moved_to.empty()) co_return TaskStatus{TaskState::Completed, 1, "started"};
  co_return status;
}

/// iLO: one flash at a time, and the UpdateService itself says how far it is.
Async<TaskStatus> RedfishBmc::flashState() {
  CO_TRY(at, co_await places());
  CO_TRY(service, co_await session_->get(at.update_service));
  const auto state = textAt(service.body, at.quirks.flash_state + "/State");
  TaskStatus status{TaskState::Completed, 1, state};
  if (isOneOf(state, {"Uploading", "Verifying", "Writing", "Updating"})) {
    status.state = TaskState::Running;
    status.fraction = std::clamp(
        numberAt(service.body, at.quirks.flash_state + "/FlashProgressPercent").value_or(0) / 100,
        0.0, 1.0);
  } else if (state == "Error") {
    status.state = TaskState::Failed;
    if (auto words = serviceMessage(service.body); !words.empty()) status.message = words;
  }
  co_return status;
}

Async<TaskList> RedfishBmc::tasks() {
  CO_TRY(at, co_await places());
  TaskList list;
  list.keeps_finished = at.quirks.keeps_finished_tasks;
  if (task_collection_.empty()) {
    CO_TRY(service, co_await session_->get(at.tasks));
    task_collection_ = linkAt(service.body, "Tasks");
    if (task_collection_.empty()) task_collection_ = at.tasks + "/Tasks";
  }
  auto found = co_await members(task_collection_, kMaxTasks, RedfishSession::kRequestTimeout);
  if (!found && found.error().code() == ErrorCode::NotFound)
    co_return list;  // the last one vanished while it was read
  if (!found) co_return fail(std::move(found.error()));
  if (!found->unread.empty())
    co_return fail(found->unread.front().why);  // it may be the update that runs
  for (const Member& m : found->found) {
    RedfishReply reply{200, {}, m.json};
    // Where an upload is only verified, each task may be one of a verification: whoever follows it
    // then begins the second phase.
    const auto uri = at.quirks.two_phase ? m.uri + std::string(kVerifyMark) : m.uri;
    (taskStatusOf(reply, at.quirks.staged_state).state == TaskState::Running ? list.running
                                                                             : list.finished)
        .push_back(uri);
  }
  if (at.quirks.push.then_simple_update) {
    CO_TRY(ready, co_await readyFiles());
    if (ready) {
      list.keeps_finished = true;  // an upload that arrived lies there until its update is ordered
      for (const auto& uri : *ready) list.finished.push_back(uri + std::string(kReadyMark));
    }
  }
  if (!at.quirks.flash_state.empty()) {
    CO_TRY(flash, co_await flashState());
    if (flash.state == TaskState::Running)
      list.running.push_back(at.update_service + std::string(kFlashMark));
  }
  co_return list;
}

}  // namespace muster::bmc
