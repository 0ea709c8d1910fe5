// SPDX-License-Identifier: Apache-2.0
// MemoryRuns: RunStore in memory, beside a store in memory that keeps the journal. Records are kept
// as text, as a database keeps them.
#pragma once

#include "lifecycle/store/runs.h"
#include "lifecycle/store/store.h"

#include <functional>
#include <memory>
#include <utility>

namespace muster::test {

class MemoryRuns final : public lifecycle::RunStore {
 public:
  struct Row {
    lifecycle::Run run;  ///< what has a column
    std::string record;
  };
  struct Data {
    std::vector<Row> rows;  ///< oldest first
    std::map<std::string, lifecycle::KeptPlan> plans;
  };
  explicit MemoryRuns(lifecycle::Store& journal,
                      std::shared_ptr<Data> data = std::make_shared<Data>())
      : journal_(journal), data_(std::move(data)) {}

  /// Called before a write is done; may throw: then it is not.
  std::function<void()> before_write;

  Result<lifecycle::Run> add(lifecycle::Run run, const std::string& note) override {
    TRY_OK(lifecycle::checkedRecordOf(run));
    for (const auto& row : data_->rows)
      if (!run.idempotency_key.empty() && row.run.idempotency_key == run.idempotency_key &&
          row.run.asked_by.principal == run.asked_by.principal)
        return read(row);
    if (find(run.id)) return fail(ErrorCode::Conflict, "the run exists");
    std::size_t open = 0;
    for (const auto& row : data_->rows) open += lifecycle::isEnd(row.run.state) ? 0 : 1;
    if (open >= lifecycle::kMaxOpenRuns) return fail(ErrorCode::Unavailable, "too many are open");
    if (before_write) before_write();
    TRY(sequence, journal_.addEvent(eventOf(run, note)));
    run.first_event = run.last_event = sequence;
    run.revision = 1;
    data_->rows.push_back({run, lifecycle::recordOf(run)});
    return run;
  }
  Result<std::optional<lifecycle::Run>> exchange(lifecycle::Run run,
                                                 const std::string& note) override {
    TRY_OK(lifecycle::checkedRecordOf(run));
    auto* row = find(run.id);
    if (!row) return fail(ErrorCode::NotFound, "no run " + run.id);
    if (row->run.revision != run.revision) return std::optional<lifecycle::Run>();
    if (before_write) before_write();
    if (!note.empty()) {
      TRY(sequence, journal_.addEvent(eventOf(run, note)));
      run.last_event = sequence;
    }
    ++run.revision;
    *row = {run, lifecycle::recordOf(run)};
    return std::optional(std::move(run));
  }
  Result<std::optional<lifecycle::Run>> read(const std::string& id) override {
    const auto* row = find(id);
    if (!row) return std::optional<lifecycle::Run>();
    return std::optional(read(*row));
  }
  Result<std::vector<lifecycle::Run>> list(const lifecycle::RunFilter& filter) override {
    std::vector<lifecycle::Run> out;
    for (auto row = data_->rows.rbegin(); row != data_->rows.rend(); ++row)
      if (out.size() < filter.limit && !(filter.open_only && lifecycle::isEnd(row->run.state)) &&
          (!filter.kind || row->run.kind == *filter.kind) &&
          (filter.before == 0 || row->run.first_event < filter.before))
        if (auto run = read(*row); !filter.loud_only || lifecycle::hasLoudOverride(run))
          out.push_back(std::move(run));
    return out;
  }
  Result<void> putPlan(const std::string& id, const lifecycle::KeptPlan& plan) override {
    if (before_write) before_write();
    data_->plans[id] = plan;
    return {};
  }
  Result<std::optional<lifecycle::KeptPlan>> plan(const std::string& id) override {
    const auto found = data_->plans.find(id);
    return found == data_->plans.end() ? std::optional<lifecycle::KeptPlan>()
                                       : std::optional(found->second);
  }

 private:
  Row* find(const std::string& id) {
    for (auto& row : data_->rows)
      if (row.run.id == id) return &row;
    return nullptr;
  }
  static lifecycle::Run read(const Row& row) {
    auto parsed = lifecycle::runFromRecord(row.record);
    lifecycle::Run run = parsed ? std::move(*parsed) : lifecycle::Run();
    if (!parsed) run.unreadable = parsed.error().str();
    run.id = row.run.id;
    run.kind = row.run.kind;
    run.state = row.run.state;
    run.idempotency_key = row.run.idempotency_key;
    run.asked_at = row.run.asked_at;
    run.revision = row.run.revision;
    return run;
  }
  static lifecycle::Event eventOf(const lifecycle::Run& run, const std::string& note) {
    return {0,
            run.changedAt(),
            lifecycle::EventKind::Note,
            lifecycle::Subject::cluster(),
            std::string(lifecycle::kRunEventPrefix) + run.id,
            note};
  }

  lifecycle::Store& journal_;
  std::shared_ptr<Data> data_;
};

}  // namespace muster::test
