// SPDX-License-Identifier: Apache-2.0
// The tasks that this agent knows, durable across its own restart. What makes "the same id is never
// run twice" true.
//
// File `tasks.json` (mode 0600, replaced atomically): {"format":"muster-tasks/1", "reports":[as in
// a poll], "kinds":[in the same order], "forgotten":[id…], "watched":[probe…], "ledger", "fence":
// the newest claim heard of}. Parameters are never stored: they may hold secrets.
#pragma once

#include "wire/messages.h"

#include <deque>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace muster::agent {

inline constexpr std::size_t kMaxForgotten = 4096;  ///< ids remembered only to refuse them
inline constexpr std::size_t kMaxWatchedProbes = 64;

struct TaskEntry {
  wire::TaskKind kind = wire::TaskKind::Inspect;
  wire::AgentTaskReport report;
  bool acknowledged = false;  ///< the controller of this session has the result; not stored
};

class TaskTable {
 public:
  /// Reads the file when it is there. Tasks that had not ended are Failed now, saying that the
  /// agent was restarted. A file that is no such table is moved aside. Errors: those of the file
  /// system
  static Result<TaskTable> open(std::filesystem::path file);

  /// It ran once, and the controller said that its outcome is of no use any more.
  bool hasForgotten(const std::string& id) const;
  /// Remembers the newest claim. Errors: Conflict (a later claim of the same ledger is known)
  Result<void> pass(const wire::Fence& fence);
  /// Stored before it returns. Errors: Conflict (listed, or too many); those of the file system: it
  /// is listed in memory only and must not start
  Result<void> add(const wire::AgentTask& task);
  /// Stored, but it goes on in memory when storing fails: the outcome must reach the controller
  /// either way.
  void update(const wire::AgentTaskReport& report);
  void forget(const std::vector<std::string>& ids);
  void watch(const std::vector<std::string>& probes);
  const std::set<std::string>& watched() const { return watched_; }

  std::vector<TaskEntry>& entries() { return entries_; }
  const TaskEntry* find(const std::string& id) const;

 private:
  explicit TaskTable(std::filesystem::path file) : file_(std::move(file)) {}
  Result<void> load(const std::string& text);
  Result<void> save() const;
  void drop(const std::string& id);

  std::filesystem::path file_;
  std::vector<TaskEntry> entries_;
  std::deque<std::string> forgotten_;
  std::set<std::string> watched_;
  wire::Fence newest_;
};

}  // namespace muster::agent
