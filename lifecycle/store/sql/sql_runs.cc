// SPDX-License-Identifier: Apache-2.0
// Runs in the store's database. What is looked for has a column; the rest of a run is one text,
// read as a whole.
#include "lifecycle/store/runs.h"
#include "lifecycle/store/sql/event_log.h"

namespace muster::lifecycle {
namespace sql {
namespace {

using soci::into;
using soci::use;

std::string keyOf(const Run& run) {
  return run.idempotency_key.empty() ? "" : run.asked_by.principal + "\n" + run.idempotency_key;
}

Event eventOf(const Run& run, const std::string& note) {
  return Event{0,
               run.changedAt(),
               EventKind::Note,
               Subject::cluster(),
               std::string(kRunEventPrefix) + run.id,
               note};
}

struct Row {
  std::string id, key, kind, state, record;
  long long asked_at = 0, revision = 0;
};

Run runOf(const Row& row) {
  auto kind = parseRunKind(row.kind);
  auto state = parseRunState(row.state);
  auto read = runFromRecord(row.record);
  Run run;
  if (read) run = std::move(*read);
  if (!read) run.unreadable = read.error().str();
  if (!kind) run.unreadable = "a newer muster has written it: its kind is " + row.kind;
  if (!state) run.unreadable = "a newer muster has written it: it is " + row.state;
  if (!run.unreadable.empty()) run.reason = RunReason::Unreadable;
  run.id = row.id;
  run.kind = kind.value_or(RunKind::Apply);
  run.state = state.value_or(RunState::Paused);
  const auto separator = row.key.find('\n');
  if (separator != std::string::npos) run.idempotency_key = row.key.substr(separator + 1);
  run.asked_at = fromMillis(row.asked_at);
  run.revision = row.revision;
  return run;
}

class SqlRuns final : public RunStore {
 public:
  explicit SqlRuns(std::unique_ptr<Backend> backend) : db_(std::move(backend)) {}

  Result<void> open() {
    return db_.open([] {});
  }

  Result<Run> add(Run run, const std::string& note) override {
    TRY_OK(checkedRecordOf(run));
    const auto key = storable(keyOf(run));
    auto added = addOnce(run, key, note);
    if (added || key.empty() || added.error().code() != ErrorCode::Conflict) return added;
    auto earlier = db_.read("reading a run", [&]() -> Result<std::vector<Row>> {
      return rows("WHERE request_key = :w", key, 1);  // another process was faster by a moment
    });
    if (!earlier || earlier->empty()) return added;
    return runOf(earlier->front());
  }

  Result<Run> addOnce(const Run& run, const std::string& key, const std::string& note) {
    return db_.write("storing a run", [&]() -> Result<Run> {
      if (!key.empty())
        if (auto earlier = rows("WHERE request_key = :w", key, 1); !earlier.empty())
          return runOf(earlier.front());
      int open_runs = 0;
      db_.sql() << "SELECT count(*) FROM runs WHERE is_open = 1", into(open_runs);
      if (static_cast<std::size_t>(open_runs) >= kMaxOpenRuns)
        return fail(ErrorCode::Unavailable,
                    fmt::format("{} runs are open already; see `muster run list`, and cancel some",
                                open_runs));
      Run stored = run;
      TRY(sequence, log_.append(eventOf(run, note)));
      stored.first_event = stored.last_event = sequence;
      stored.revision = 1;
      const auto added = db_.run(
          "INSERT INTO runs (id, request_key, kind, state, is_open, asked_at_ms, first_event, "
          "revision, record) VALUES (:i, :w, :k, :s, :o, :a, :e, 1, :r) ON CONFLICT DO NOTHING",
          storable(stored.id), key, std::string(toString(stored.kind)),
          std::string(toString(stored.state)), isEnd(stored.state) ? 0 : 1,
          toMillis(stored.asked_at), sequence, storable(recordOf(stored)));
      if (added == 1) return stored;
      return fail(ErrorCode::Conflict, "there is a run " + stored.id + " already");
    });
  }

  Result<std::optional<Run>> exchange(Run run, const std::string& note) override {
    TRY_OK(checkedRecordOf(run));
    return db_.write("changing a run", [&]() -> Result<std::optional<Run>> {
      Run stored = run;
      long long revision = 0;
      if (!db_.ask(std::string("SELECT revision FROM runs WHERE id = :i") + db_.backend().takeRow(),
                   std::tie(revision), stored.id))
        return fail(ErrorCode::NotFound, "there is no run " + stored.id);
      if (revision != stored.revision) return std::optional<Run>();
      if (!note.empty()) {
        TRY(sequence, log_.append(eventOf(stored, note)));
        stored.last_event = sequence;
      }
      ++stored.revision;
      db_.run(
          "UPDATE runs SET state = :s, is_open = :o, revision = :n, record = :r WHERE id = :i AND "
          "revision = :v",
          std::string(toString(stored.state)), isEnd(stored.state) ? 0 : 1, stored.revision,
          storable(recordOf(stored)), stored.id, revision);
      return std::optional(std::move(stored));
    });
  }

  Result<std::optional<Run>> read(const std::string& id) override {
    return db_.read("reading a run", [&]() -> Result<std::optional<Run>> {
      auto found = rows("WHERE id = :w", id, 1);
      return found.empty() ? std::optional<Run>() : std::optional(runOf(found.front()));
    });
  }

  Result<std::vector<Run>> list(const RunFilter& filter) override {
    return db_.read("reading runs", [&]() -> Result<std::vector<Run>> {
      std::string where = "WHERE :w = ''";
      if (filter.open_only) where += " AND is_open = 1";
      // In a text of a record the quotes would be escaped.
      if (filter.loud_only) where += R"( AND record LIKE '%"overrides":[%')";
      if (filter.kind) where += fmt::format(" AND kind = '{}'", toString(*filter.kind));
      if (filter.before > 0) where += fmt::format(" AND first_event < {}", filter.before);
      std::vector<Run> out;
      for (const auto& row : rows(where, "", filter.limit))
        if (auto run = runOf(row); !filter.loud_only || hasLoudOverride(run))
          out.push_back(std::move(run));
      return out;
    });
  }

  Result<void> putPlan(const std::string& id, const KeptPlan& plan) override {
    return db_.write("storing a run's plan", [&]() -> Result<void> {
      db_.run(
          "INSERT INTO run_plans (id, hash, plan) VALUES (:i, :h, :p) ON CONFLICT (id) DO UPDATE "
          "SET hash = excluded.hash, plan = excluded.plan",
          id, plan.hash, storable(plan.json));
      return {};
    });
  }

  Result<std::optional<KeptPlan>> plan(const std::string& id) override {
    return db_.read("reading a run's plan", [&]() -> Result<std::optional<KeptPlan>> {
      KeptPlan kept;
      if (!db_.ask("SELECT hash, plan FROM run_plans WHERE id = :i", std::tie(kept.hash, kept.json),
                   id))
        return std::optional<KeptPlan>();
      return std::optional(std::move(kept));
    });
  }

 private:
  /// Newest first.
  std::vector<Row> rows(const std::string& where, const std::string& what, std::size_t limit) {
    std::vector<Row> out;
    Row row;
    const long long rows_max = bounded(limit);
    soci::statement statement =
        (db_.sql().prepare << "SELECT id, request_key, kind, state, asked_at_ms, revision, record "
                              "FROM runs " +
                                  where + " ORDER BY sequence DESC LIMIT :l",
         use(what), use(rows_max), into(row.id), into(row.key), into(row.kind), into(row.state),
         into(row.asked_at), into(row.revision), into(row.record));
    statement.execute();
    while (statement.fetch()) out.push_back(row);
    return out;
  }

  SqlConnection db_;
  ValueTable values_{db_};
  EventLog log_{db_, values_};
};

}  // namespace
}  // namespace sql

Result<std::unique_ptr<RunStore>> openRuns(const std::string& url) {
  constexpr std::string_view kSqlitePrefix = "sqlite:";
  std::unique_ptr<sql::Backend> backend;
  if (url.starts_with(kSqlitePrefix))
    backend = sql::sqliteBackend(url.substr(kSqlitePrefix.size()), kSqliteBusyTimeout);
  else if (url.starts_with("postgresql://") || url.starts_with("postgres://"))
    backend = sql::postgresBackend(url, kPostgresPatience);
  else
    return fail(ErrorCode::InvalidInput,
                fmt::format("the store must be sqlite:FILE or postgresql://[USER@]HOST/DATABASE "
                            "(--store, MUSTER_STORE), not {}:…",
                            url.substr(0, url.find(':'))));
  auto runs = std::make_unique<sql::SqlRuns>(std::move(backend));
  TRY_OK(runs->open());
  return std::unique_ptr<RunStore>(std::move(runs));
}

}  // namespace muster::lifecycle
