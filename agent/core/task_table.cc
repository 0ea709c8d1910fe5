// SPDX-License-Identifier: Apache-2.0
#include "agent/core/task_table.h"

#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/log.h"
#include "wire/json_reader.h"

#include <algorithm>

namespace muster::agent {
namespace {

constexpr std::string_view kFormat = "muster-tasks/1";
constexpr std::size_t kMaxFileBytes = 64u << 20;

}  // namespace

Result<TaskTable> TaskTable::open(std::filesystem::path file) {
  TaskTable table(std::move(file));
  TRY_OK(io::makeDirs(table.file_.parent_path(), 0700));
  std::error_code gone;
  if (!std::filesystem::exists(table.file_, gone)) return table;
  TRY(text, io::readFile(table.file_, kMaxFileBytes));
  if (auto loaded = table.load(text); !loaded) {
    auto aside = table.file_.string() + ".corrupt";
    logWarning("agent", "{} is not a table of tasks ({}); moved to {}", table.file_.string(),
               loaded.error().str(), aside);
    std::filesystem::rename(table.file_, aside, gone);
    return TaskTable(table.file_);
  }
  for (auto& entry : table.entries_) {
    if (wire::isFinished(entry.report.phase)) continue;
    bool began = entry.report.phase == wire::TaskPhase::Running;
    entry.report.phase = wire::TaskPhase::Failed;
    entry.report.code = ErrorCode::Unavailable;
    entry.report.text = began ? "the agent was restarted while the task ran"
                              : "the agent was restarted before the task began";
  }
  TRY_OK(table.save());
  return table;
}

Result<void> TaskTable::load(const std::string& text) {
  TRY(object, wire::parseObject(text, kMaxFileBytes, "table of tasks"));
  wire::JsonReader reader(object, "tasks");
  if (reader.text("format", wire::kMaxNameBytes) != kFormat)
    reader.wrong("format", "is not " + std::string(kFormat));
  const auto* listed = reader.field("reports");
  auto kinds = wire::readTexts(reader, "kinds", wire::kMaxTasks, wire::kMaxNameBytes);
  auto forgotten = wire::readTexts(reader, "forgotten", kMaxForgotten, wire::kMaxNameBytes);
  auto watched = wire::readTexts(reader, "watched", kMaxWatchedProbes, wire::kMaxNameBytes);
  wire::Fence newest{reader.text("ledger", wire::kMaxNameBytes, true),
                     static_cast<std::int64_t>(reader.unsignedNumber(
                         "fence", std::numeric_limits<std::int64_t>::max(), true))};
  TRY_OK(reader.finish());
  TRY(reports, wire::parseReports(listed->dump()));
  if (reports.size() != kinds.size())
    return fail(ErrorCode::Corrupt, "kinds and reports do not fit");
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    TRY(kind, wire::parseTaskKind(kinds[i]));
    entries_.push_back({kind, reports[i]});
  }
  forgotten_.assign(forgotten.begin(), forgotten.end());
  watched_ = {watched.begin(), watched.end()};
  newest_ = std::move(newest);
  return {};
}

Result<void> TaskTable::save() const {
  std::vector<wire::AgentTaskReport> reports;
  nlohmann::json kinds = nlohmann::json::array();
  for (const auto& entry : entries_) {
    reports.push_back(entry.report);
    kinds.push_back(toString(entry.kind));
  }
  nlohmann::json out{{"format", kFormat},   {"kinds", kinds},           {"forgotten", forgotten_},
                     {"watched", watched_}, {"ledger", newest_.ledger}, {"fence", newest_.token}};
  out["reports"] = jsonOrNone(toJson(reports), kKeptJson);
  return io::writeFileAtomic(file_, jsonText(out), 0600);
}

const TaskEntry* TaskTable::find(const std::string& id) const {
  auto it = std::find_if(entries_.begin(), entries_.end(),
                         [&](const auto& entry) { return entry.report.id == id; });
  return it == entries_.end() ? nullptr : &*it;
}

bool TaskTable::hasForgotten(const std::string& id) const {
  return std::find(forgotten_.begin(), forgotten_.end(), id) != forgotten_.end();
}

/// Another ledger means another store, whose numbers start anew; only within one does a number tell
/// who came later.
Result<void> TaskTable::pass(const wire::Fence& fence) {
  if (fence.token == 0) return {};
  if (fence.ledger == newest_.ledger && fence.token < newest_.token)
    return fail(
        ErrorCode::Conflict,
        fmt::format(
            "it was ordered under claim {}, but this node has been taken over under claim {}",
            fence.token, newest_.token));
  newest_ = fence;
  return {};
}

Result<void> TaskTable::add(const wire::AgentTask& task) {
  if (find(task.id)) return fail(ErrorCode::Conflict, "task " + task.id + " is known");
  if (entries_.size() >= wire::kMaxTasks) {
    auto oldest = std::find_if(entries_.begin(), entries_.end(), [](const auto& entry) {
      return wire::isFinished(entry.report.phase);
    });
    if (oldest == entries_.end()) return fail(ErrorCode::Conflict, "the agent has too many tasks");
    drop(std::string(oldest->report.id));
  }
  TaskEntry entry;
  entry.kind = task.kind;
  entry.report.id = task.id;
  entries_.push_back(entry);
  return save();
}

void TaskTable::update(const wire::AgentTaskReport& report) {
  for (auto& entry : entries_) {
    if (entry.report.id != report.id) continue;
    entry.report = report;
    if (auto saved = save(); !saved)
      logWarning("agent", "the table of tasks could not be stored: {}", saved.error().str());
  }
}

void TaskTable::drop(const std::string& id) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.report.id == id; });
  forgotten_.push_back(id);
  if (forgotten_.size() > kMaxForgotten) forgotten_.pop_front();
}

void TaskTable::forget(const std::vector<std::string>& ids) {
  bool any = false;
  for (const auto& id : ids) {
    const auto* entry = find(id);
    if (!entry || !wire::isFinished(entry->report.phase)) continue;
    drop(id);
    any = true;
  }
  if (!any) return;
  if (auto saved = save(); !saved)
    logWarning("agent", "the table of tasks could not be stored: {}", saved.error().str());
}

void TaskTable::watch(const std::vector<std::string>& probes) {
  for (const auto& probe : probes) {
    if (watched_.size() < kMaxWatchedProbes && probe.size() <= wire::kMaxNameBytes)
      watched_.insert(probe);
  }
}

}  // namespace muster::agent
