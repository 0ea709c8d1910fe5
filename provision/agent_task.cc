#include "provision/agent_task.h"

#include <fmt/format.h>

#include <charconv>

namespace muster::provision {

using agent::AgentTaskReport;
using agent::TaskPhase;
using lifecycle::Again;
using lifecycle::Blocked;

namespace {

constexpr std::chrono::milliseconds kTaskPoll{1000};

Result<TaskStep> begin(agent::AgentGateway& agents, const NodeName& node, agent::AgentTask task) {
  const auto what = fmt::format("{} to take up {}", node.str(), agent::toString(task.kind));
  TRY_OK(agents.submit(node, std::move(task)));
  return Again{kTaskPoll, what};
}

Result<TaskStep> retryOrFail(const NodeName& node, const AgentTaskReport& report, TaskNote note, lifecycle::ActContext& context) {
  const auto words = fmt::format("{}: {}", node.str(), report.text);
  if (report.code == ErrorCode::Denied) return Blocked{words};
  const Error error(report.code, words);
  if (!error.canRetry() || note.attempt >= kMaxTaskAttempts) return fail(Error(error).retryable(false));
  ++note.attempt;
  TRY_OK(context.recordOperation(note.str()));
  return Again{kTaskPoll, fmt::format("attempt {} of {}, after: {}", note.attempt, kMaxTaskAttempts, report.text)};
}

}  // namespace

std::string TaskNote::str() const { return fmt::format("{}:{}:{}", attempt, wipe_allowed ? "wipe" : "guarded", done ? "done" : "open"); }

Result<std::optional<TaskNote>> TaskNote::parse(const std::string& operation) {
  if (operation.empty()) return std::nullopt;
  TaskNote note;
  const auto* last = operation.data() + operation.size();
  const auto [end, error] = std::from_chars(operation.data(), last, note.attempt);
  const std::string_view rest(end, static_cast<std::size_t>(last - end));
  for (const auto wipe : {true, false}) {
    for (const auto done : {true, false}) {
      note.wipe_allowed = wipe;
      note.done = done;
      if (error == std::errc() && note.str() == operation) return note;
    }
  }
  return fail(ErrorCode::Corrupt, fmt::format("the journal's operation \"{}\" is not one of this phase ({})", operation, rest));
}

std::string TaskNote::taskId(const std::string& intent_id) const {
  return attempt == 1 ? intent_id : fmt::format("{}.{}", intent_id, attempt);
}

Result<TaskStep> stepTask(agent::AgentGateway& agents, const NodeName& node, agent::TaskKind kind, std::chrono::seconds deadline,
                          lifecycle::ActContext& context, const std::function<std::string(bool wipe_allowed)>& params) {
  TRY(known, TaskNote::parse(context.operation()));
  TaskNote note = known.value_or(TaskNote{1, context.wipeAllowed(), false});
  const agent::AgentTask task{note.taskId(context.intentId()), kind, params(note.wipe_allowed), deadline};
  const auto report = agents.report(node, task.id);
  if (!report) {
    if (!known) TRY_OK(context.recordOperation(note.str()));  // before the effect
    return begin(agents, node, task);
  }
  switch (report->phase) {
    case TaskPhase::Queued:
    case TaskPhase::Running:
      if (report->fraction >= 0) context.progress(report->fraction, report->text);
      return Again{kTaskPoll, report->fraction >= 0 ? std::string() : fmt::format("{} on {}", agent::toString(kind), node.str())};
    case TaskPhase::Failed: return retryOrFail(node, *report, note, context);
    case TaskPhase::Done: break;
  }
  note.done = true;
  TRY_OK(context.recordOperation(note.str()));
  return report->result;
}

}  // namespace muster::provision
