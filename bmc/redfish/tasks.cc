// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/tasks.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxTasks = 256;
constexpr auto kNewTaskPause = 10s;
constexpr std::string_view kMovedToJob = "OperationTransitionedToJob";

bool isOneOf(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The Job that a Task has become, from the message's arguments.
std::string jobOf(const Json& task) {
  const Json* messages = find(task, "Messages");
  if (!messages || !messages->is_array()) return {};
  for (const Json& message : *messages) {
    const auto id = textAt(message, "MessageId");
    if (!id.ends_with(kMovedToJob)) continue;
    for (const auto& argument : textsAt(message, "MessageArgs"))
      if (argument.find("/Jobs/") != std::string::npos) return pathOnly(argument);
  }
  return {};
}

}  // namespace

std::string withoutMark(const std::string& uri) { return uri.substr(0, uri.find('#')); }

std::string taskUriOf(const RedfishReply& reply) {
  const std::string self = linkAt(reply.body, "@odata.id");
  if (self.find("/Tasks/") != std::string::npos) return self;
  std::string location = pathOnly(reply.header("Location"));
  for (std::string_view end : {"/Monitor", "/monitor"}) {
    if (location.ends_with(end)) location.erase(location.rfind('/'));
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
  if (status.state == TaskState::Failed) {
    auto words = failureMessagesOf(reply.body).words;
    if (!words.text.empty()) status.message = std::move(words.text);
    status.resolution = std::move(words.resolution);
  }
  if (status.state == TaskState::Completed) status.fraction = 1;
  if (status.message.empty()) status.message = state;
  status.moved_to = jobOf(reply.body);
  return status;
}

/// A failure that only names message ids is looked up.
Task<TaskStatus> RedfishTasks::inItsWords(TaskStatus status, Json body) {
  if (status.state != TaskState::Failed) co_return status;
  const auto messages = failureMessagesOf(body);
  std::string text = messages.words.text;
  for (const auto& message : messages.unresolved) {
    const auto words = co_await registries_.lookUp(message.id, message.args);
    // An id that nobody explains is still more than the task's state.
    text += (text.empty() ? "" : "; ") + (words.text.empty() ? message.id : words.text);
    if (status.resolution.empty()) status.resolution = words.resolution;
  }
  if (!text.empty()) status.message = std::move(text);
  co_return status;
}

Async<TaskStatus> RedfishTasks::read(std::string uri) {
  CO_TRY(at, co_await resources_.uris());
  for (int retries = at.quirks.new_task_404_retries;; --retries) {
    auto reply = co_await resources_.session().get(uri);
    if (reply)
      co_return co_await inItsWords(taskStatusOf(*reply, at.quirks.staged_state), reply->body);
    if (reply.error().code() != ErrorCode::NotFound || retries <= 0)
      co_return fail(std::move(reply.error()));
    co_await resources_.clock().sleep(kNewTaskPause);
  }
}

Async<std::vector<RedfishTasks::Listed>> RedfishTasks::list() {
  CO_TRY(at, co_await resources_.uris());
  const auto* known = collection_.get(resources_);
  std::string collection = known ? *known : std::string();
  if (collection.empty()) {
    CO_TRY(service, co_await resources_.session().get(at.tasks));
    collection = linkAt(service.body, "Tasks");
    if (collection.empty()) collection = at.tasks + "/Tasks";
    collection_.set(resources_, collection);
  }
  std::vector<Listed> out;
  auto found = co_await resources_.members(collection, kMaxTasks);
  // A list that is not there is not an empty one: by it an upload is sent again.
  if (!found && found.error().code() == ErrorCode::NotFound)
    co_return fail(ErrorCode::Unavailable, "the BMC lists no tasks now: " + found.error().text());
  if (!found) co_return fail(std::move(found.error()));
  if (!found->unread.empty())
    co_return fail(found->unread.front().why);  // it may be the update that runs
  for (Member& member : found->found) {
    const RedfishReply reply{200, {}, std::move(member.json)};
    const auto state = taskStatusOf(reply, at.quirks.staged_state).state;
    out.push_back({std::move(member.uri), state == TaskState::Running});
  }
  co_return out;
}

}  // namespace muster::bmc
