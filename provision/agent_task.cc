// SPDX-License-Identifier: Apache-2.0
#include "provision/agent_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace muster::provision {

using lifecycle::Again;
using wire::AgentTaskReport;
using wire::TaskPhase;

namespace {

constexpr std::chrono::milliseconds kTaskPoll{1000};
constexpr const char* kRights[] = {"guarded", "wipe", "data", "wipe+data"};

Async<TaskStep> retryOrFail(NodeName node, AgentTaskReport report, TaskNote note,
                            lifecycle::ActContext& context) {
  if (report.code == ErrorCode::Denied)
    co_return Refusal{fmt::format("{}: {}", node.str(), report.text), report.reasons};
  auto error = report.failure().within(node.str());
  if (!error.canRetry() || note.attempt >= kMaxTaskAttempts)
    co_return fail(std::move(error).retryable(false));
  ++note.attempt;
  CO_TRY_OK(co_await context.recordOperation(note.str()));
  co_return Again{kTaskPoll, fmt::format("attempt {} of {}, after: {}", note.attempt,
                                         kMaxTaskAttempts, report.text)};
}

}  // namespace

bool Refusal::has(wire::TaskReason reason) const {
  return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
}

std::string TaskNote::str() const {
  return fmt::format("{}:{}:{}", attempt, kRights[(wipe_allowed ? 1 : 0) + (data_allowed ? 2 : 0)],
                     done ? "done" : "open");
}

Result<std::optional<TaskNote>> TaskNote::parse(const std::string& operation) {
  if (operation.empty()) return std::nullopt;
  TaskNote note;
  const auto* last = operation.data() + operation.size();
  const auto [end, error] = std::from_chars(operation.data(), last, note.attempt);
  const std::string_view rest(end, static_cast<std::size_t>(last - end));
  for (const auto rights : {0, 1, 2, 3}) {
    for (const auto done : {true, false}) {
      note.wipe_allowed = (rights & 1) != 0;
      note.data_allowed = (rights & 2) != 0;
      note.done = done;
      if (error == std::errc() && note.str() == operation) return note;
    }
  }
  return fail(
      ErrorCode::Corrupt,
      fmt::format("the journal's operation \"{}\" is not one of this phase ({})", operation, rest));
}

std::string TaskNote::taskId(const std::string& intent_id) const {
  return attempt == 1 ? intent_id : fmt::format("{}.{}", intent_id, attempt);
}

Async<TaskStep> stepTask(gateway::AgentGateway& agents, NodeName node, wire::TaskKind kind,
                         std::chrono::seconds deadline, lifecycle::ActContext& context,
                         std::function<std::string(bool wipe_allowed)> params, bool data_allowed) {
  CO_TRY(known, TaskNote::parse(context.operation()));
  TaskNote note = known.value_or(TaskNote{1, context.wipeAllowed(), false, data_allowed});
  const wire::AgentTask task{note.taskId(context.intentId()), kind, params(note.wipe_allowed),
                             deadline};
  auto report = agents.report(node, task.id);
  if (!report) {
    if (!known) {  // before the effect
      CO_TRY_OK(co_await context.recordOperation(note.str()));
    }
    CO_TRY_OK(agents.submit(node, task));
    report = co_await agents.reportWithin(node, task.id, kTaskPoll);
  }
  if (!report)
    co_return Again{kTaskPoll, fmt::format("{} to take up {}", node.str(), toString(kind))};
  switch (report->phase) {
    case TaskPhase::Queued:
    case TaskPhase::Running:
      if (report->fraction >= 0) context.progress(report->fraction, report->text);
      co_return Again{kTaskPoll, report->fraction >= 0
                                     ? std::string()
                                     : fmt::format("{} on {}", toString(kind), node.str())};
    case TaskPhase::Failed: {
      co_return co_await retryOrFail(node, *report, note, context);
    }
    case TaskPhase::Done:
      break;
  }
  note.done = true;
  CO_TRY_OK(co_await context.recordOperation(note.str()));
  co_return report->result;
}

std::optional<std::string> taskThatRestarts(const gateway::AgentGateway& agents,
                                            const NodeName& node,
                                            const lifecycle::ActContext& context) {
  const auto note = TaskNote::parse(context.operation());
  if (!note || !*note) return std::nullopt;
  const auto id = (*note)->taskId(context.intentId());
  const auto report = agents.report(node, id);
  return report && report->phase == TaskPhase::Running && report->has(wire::TaskReason::Restarting)
             ? std::optional(id)
             : std::nullopt;
}

}  // namespace muster::provision
