// SPDX-License-Identifier: Apache-2.0
// A world that several processes act on: facets and operations in a SQLite file of its own, and the
// phase that works there. The same operation id is the same work; a second operation on one facet
// is what must never happen.
#pragma once

#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/phase.h"
#include "tests/lifecycle/rack.h"

#include <sqlite3.h>

#include <filesystem>

namespace muster::test {

class SharedWorld {
 public:
  explicit SharedWorld(const std::filesystem::path& file) {
    if (sqlite3_open(file.c_str(), &db_) != SQLITE_OK) std::abort();
    sqlite3_busy_timeout(db_, 20'000);
    query("PRAGMA synchronous = OFF");
    query("CREATE TABLE IF NOT EXISTS facets (facet TEXT PRIMARY KEY, value TEXT)");
    query(
        "CREATE TABLE IF NOT EXISTS operations (id TEXT PRIMARY KEY, facet TEXT, wanted TEXT, "
        "polls_left INTEGER)");
  }
  ~SharedWorld() { sqlite3_close(db_); }
  SharedWorld(const SharedWorld&) = delete;

  std::string value(const std::string& facet) {
    return query("SELECT value FROM facets WHERE facet = ?1", facet);
  }
  void begin(const std::string& id, const std::string& facet, const std::string& wanted,
             int polls) {
    query("INSERT OR IGNORE INTO operations VALUES (?1, ?2, ?3, " + std::to_string(polls) + ")", id,
          facet, wanted);
  }
  bool poll(const std::string& id) {
    if (query(
            "UPDATE operations SET polls_left = polls_left - 1 WHERE id = ?1 RETURNING polls_left",
            id)
            .starts_with("-") == false)
      return false;
    query("INSERT OR REPLACE INTO facets SELECT facet, wanted FROM operations WHERE id = ?1", id);
    return true;
  }
  /// Whether no process is in the middle of reading or writing it.
  bool isFree() {
    sqlite3_busy_timeout(db_, 0);
    const bool free =
        sqlite3_exec(db_, "BEGIN EXCLUSIVE; COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK;
    sqlite3_busy_timeout(db_, 20'000);
    return free;
  }
  int operations() { return std::stoi(query("SELECT count(*) FROM operations")); }
  /// Facets on which work was begun more than once, one a line.
  std::string doneTwice() {
    return query(
        "SELECT group_concat(facet, ' ') FROM (SELECT facet FROM operations GROUP BY facet HAVING "
        "count(*) > 1)");
  }

 private:
  template <class... Texts>
  std::string query(const std::string& text, const Texts&... texts) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, text.c_str(), -1, &statement, nullptr) != SQLITE_OK) std::abort();
    int index = 0;
    (sqlite3_bind_text(statement, ++index, texts.c_str(), -1, SQLITE_TRANSIENT), ...);
    std::string out;
    while (sqlite3_step(statement) == SQLITE_ROW)
      if (const auto* column = sqlite3_column_text(statement, 0))
        out = reinterpret_cast<const char*>(column);
    sqlite3_finalize(statement);
    return out;
  }
  sqlite3* db_ = nullptr;
};

/// Steps "a" to "e" on every node, each after the one before.
class SharedPhase final : public lifecycle::Phase {
 public:
  static constexpr const char* kSteps[] = {"a", "b", "c", "d", "e"};
  static constexpr int kPolls = 3;
  static constexpr std::chrono::milliseconds kPollEvery{25};

  explicit SharedPhase(SharedWorld& world) : world_(world) {}
  std::string_view name() const override { return "shared"; }
  std::vector<Goal> goals(const inventory::Cluster&, const Subject& subject,
                          const FactSet&) const override {
    std::vector<Goal> out;
    if (subject.isCluster()) return out;
    std::vector<std::string> needs;
    for (const char* step : kSteps) {
      out.push_back(goalOf(subject.str() + "/" + step, "done", Disruption::None, needs));
      needs = {subject.str() + "/" + step};
    }
    return out;
  }
  Async<std::vector<lifecycle::Fact>> observe(Subject subject) override {
    std::vector<lifecycle::Fact> out;
    for (const auto& goal : goals({}, subject, {}))
      if (const auto value = world_.value(goal.facet.str()); !value.empty())
        out.push_back(factOf(goal.facet.str(), value));
    co_return out;
  }
  Async<lifecycle::Outcome> act(lifecycle::Action action, lifecycle::ActContext& context) override {
    if (world_.value(action.facet.str()) == action.to)
      co_return lifecycle::Outcome(lifecycle::Done{});
    if (context.operation().empty()) {
      world_.begin(context.intentId(), action.facet.str(), action.to, kPolls);
      CO_TRY_OK(co_await context.recordOperation(context.intentId()));
    }
    if (world_.poll(context.operation())) co_return lifecycle::Outcome(lifecycle::Done{});
    co_return lifecycle::Outcome(lifecycle::Again{kPollEvery, "the work to end"});
  }
  Async<std::vector<lifecycle::Fact>> verify(lifecycle::Action action) override {
    auto facts = co_await observe(action.facet.subject);
    co_return facts;
  }

 private:
  SharedWorld& world_;
};

}  // namespace muster::test
