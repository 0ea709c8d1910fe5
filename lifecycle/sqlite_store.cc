// Store on SQLite through SOCI. WAL, synchronous FULL: what a call returned from is on the disk.
//
// Every method is one transaction. SOCI throws; `run` is the seam where that becomes an Error that says what to do.
#include "base/io/files.h"
#include "lifecycle/json.h"
#include "lifecycle/sqlite_schema.h"
#include "lifecycle/store.h"

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

namespace muster::lifecycle {
namespace {

using soci::into;
using soci::use;

constexpr std::uintmax_t kQuickCheckMaxBytes = 64u << 20;  ///< a larger file is only checked as it is read
constexpr std::size_t kMaxRows = 1'000'000;

std::int64_t toMillis(WallTime time) { return time.time_since_epoch().count(); }
WallTime fromMillis(long long value) { return WallTime(std::chrono::milliseconds(value)); }
long long bounded(std::size_t limit) { return static_cast<long long>(std::min(limit, kMaxRows)); }

/// Rolled back unless committed.
class Transaction {
 public:
  explicit Transaction(soci::session& sql) : sql_(sql) { sql_ << "BEGIN IMMEDIATE"; }
  ~Transaction() {
    if (done_) return;
    try {
      sql_ << "ROLLBACK";
    } catch (const soci::soci_error&) {  // SQLite has rolled back by itself
    }
  }
  void commit() {
    sql_ << "COMMIT";
    done_ = true;
  }

 private:
  soci::session& sql_;
  bool done_ = false;
};

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(std::filesystem::path file) : file_(std::move(file)) {}

  Result<void> open(std::chrono::milliseconds busy_timeout);

  Result<FactSet> facts() override;
  Result<void> putFacts(const std::vector<Fact>& facts) override;
  Result<void> forgetFacts(const Subject& subject, const std::vector<FacetName>& facets) override;
  Result<void> openIntent(const Intent& intent) override;
  Result<void> recordOperation(const std::string& intent_id, const std::string& operation) override;
  Result<void> closeIntent(const std::string& intent_id, IntentState state, const std::string& outcome, WallTime at) override;
  Result<std::vector<Intent>> openIntents() override;
  Result<std::vector<Intent>> intentsOf(const Subject& subject, std::size_t limit) override;
  Result<std::int64_t> addEvent(const Event& event) override;
  Result<std::vector<Event>> events(std::int64_t after_sequence, std::size_t limit, const Subject* subject) override;
  Result<std::vector<Event>> lastEvents(std::size_t limit, const Subject* subject) override;
  Result<void> addFinding(const Finding& finding) override;
  Result<std::vector<Finding>> findings(const Subject* subject) override;
  Result<void> clearFindings(const FacetRef& facet) override;
  Result<void> allowWipe(const NodeName& node, const std::string& reason, WallTime at) override;
  Result<std::vector<NodeName>> wipesAllowed() override;
  Result<void> putValue(const std::string& key, const std::string& value) override;
  Result<std::optional<std::string>> getValue(const std::string& key) override;
  Result<bool> exchangeValue(const std::string& key, const std::optional<std::string>& expected, const std::string& value) override;

 private:
  template <class Work>
  auto run(std::string_view doing, Work work) -> decltype(work());
  Error explain(int code, const std::string& text) const;
  Result<void> prepareFile() const;
  Result<void> configure(std::chrono::milliseconds busy_timeout);
  Result<void> checkOurs(int& version);
  Result<void> migrate(int version);
  Result<void> checkContent();
  Result<std::vector<Intent>> readIntents(const std::string& where, const Subject* subject, std::size_t limit);
  Result<std::vector<Event>> readEvents(const std::string& tail, std::int64_t after, std::size_t limit, const Subject* subject);
  int number(const std::string& pragma);

  std::filesystem::path file_;
  soci::session sql_;
};

template <class Work>
auto SqliteStore::run(std::string_view doing, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const soci::sqlite3_soci_error& error) {
    return fail(explain(error.result(), error.get_error_message()).within(std::string(doing)));
  } catch (const soci::soci_error& error) {
    return fail(explain(SQLITE_ERROR, error.get_error_message()).within(std::string(doing)));
  }
}

Error SqliteStore::explain(int code, const std::string& text) const {
  const auto file = file_.string();
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error(ErrorCode::Unavailable,
                   fmt::format("{} is locked by another process; let it finish, or find it with `fuser {}`", file, file));
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return Error(ErrorCode::Unavailable,
                   fmt::format("{} cannot be written by this user ({}); check its owner and whether the file system is read-only", file,
                               text))
          .retryable(false);
    case SQLITE_CANTOPEN:
      return Error(ErrorCode::Unavailable,
                   fmt::format("{} cannot be opened ({}); check that its folder exists and may be written", file, text))
          .retryable(false);
    case SQLITE_FULL:
      return Error(ErrorCode::Unavailable, fmt::format("the disk of {} is full; nothing was written; make room", file)).retryable(false);
    case SQLITE_IOERR:
      return Error(ErrorCode::Unavailable,
                   fmt::format("{} could not be read or written ({}); check that its disk has room and is healthy (dmesg)", file, text))
          .retryable(false);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Error(ErrorCode::Corrupt,
                   fmt::format("{} is damaged or not a muster store ({}); move it away: muster observes everything anew", file, text));
    case SQLITE_CONSTRAINT: return Error(ErrorCode::Conflict, text);
    default: return Error(ErrorCode::Internal, fmt::format("{}: {} (SQLite {})", file, text, code));
  }
}

// ---- opening -----------------------------------------------------------------------------------------------------------

/// SQLite would create the file for everybody to read, and would open a read-only one without a word.
Result<void> SqliteStore::prepareFile() const {
  io::Fd fd(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid())
    return fail(explain(errno == EACCES || errno == EROFS || errno == EPERM ? SQLITE_READONLY : SQLITE_CANTOPEN, std::strerror(errno))
                    .within("opening the store"));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return fail(explain(SQLITE_CANTOPEN, "not a regular file").within("opening the store"));
  return {};
}

int SqliteStore::number(const std::string& pragma) {
  int value = 0;
  sql_ << pragma, into(value);
  return value;
}

Result<void> SqliteStore::open(std::chrono::milliseconds busy_timeout) {
  TRY_OK(prepareFile());
  int version = 0;
  return run("opening the store", [&]() -> Result<void> {
    sql_.open(soci::sqlite3, fmt::format("db=\"{}\"", file_.string()));
    TRY_OK(configure(busy_timeout));
    TRY_OK(checkOurs(version));
    std::string mode;
    sql_ << "PRAGMA journal_mode = WAL", into(mode);
    if (mode != "wal")
      return fail(Error(ErrorCode::Unavailable,
                        fmt::format("{} cannot use a write-ahead log (its file system lacks shared memory); put it on a local disk",
                                    file_.string()))
                      .retryable(false));
    TRY_OK(migrate(version));
    return checkContent();
  });
}

Result<void> SqliteStore::configure(std::chrono::milliseconds busy_timeout) {
  int ignored = 0;
  sql_ << fmt::format("PRAGMA busy_timeout = {}", busy_timeout.count()), into(ignored);
  sql_ << "PRAGMA synchronous = FULL";
  sql_ << "PRAGMA foreign_keys = ON";
  return {};
}

Result<void> SqliteStore::checkOurs(int& version) {
  const int application = number("PRAGMA application_id");
  const int tables = number("SELECT count(*) FROM sqlite_master");
  version = number("PRAGMA user_version");
  if (application != kApplicationId && (application != 0 || tables != 0))
    return fail(ErrorCode::Corrupt, fmt::format("{} is a database of another program; choose another state folder", file_.string()));
  const int known = static_cast<int>(kMigrations.size());
  if (version > known)
    return fail(ErrorCode::Corrupt, fmt::format("{} was written by a newer muster (schema {}, this one knows {}); use that muster",
                                                file_.string(), version, known));
  return {};
}

Result<void> SqliteStore::migrate(int version) {
  if (version == static_cast<int>(kMigrations.size())) return {};
  Transaction transaction(sql_);
  version = number("PRAGMA user_version");  // another process may have been faster
  for (auto next = static_cast<std::size_t>(version); next < kMigrations.size(); ++next)
    for (const auto& statement : kMigrations[next]) sql_ << std::string(statement);
  sql_ << fmt::format("PRAGMA application_id = {}", kApplicationId);
  sql_ << fmt::format("PRAGMA user_version = {}", kMigrations.size());
  transaction.commit();
  return {};
}

Result<void> SqliteStore::checkContent() {
  std::error_code ignored;
  if (std::filesystem::file_size(file_, ignored) <= kQuickCheckMaxBytes) {
    std::string verdict;
    sql_ << "PRAGMA quick_check(1)", into(verdict);
    if (verdict != "ok") return fail(explain(SQLITE_CORRUPT, verdict));
  }
  const auto keep = static_cast<long long>(kMaxStoredEvents);
  sql_ << "DELETE FROM events WHERE sequence <= (SELECT max(sequence) FROM events) - :keep", use(keep);
  return {};
}

// ---- facts -------------------------------------------------------------------------------------------------------------

Result<FactSet> SqliteStore::facts() {
  return run("reading facts", [&]() -> Result<FactSet> {
    FactSet out;
    std::string subject, facet, value, source, evidence;
    long long at = 0;
    soci::statement rows = (sql_.prepare << "SELECT subject, facet, value, observed_at_ms, source, evidence FROM facts", into(subject),
                            into(facet), into(value), into(at), into(source), into(evidence));
    rows.execute();
    while (rows.fetch()) out.put(Fact{Subject::parse(subject), FacetName(facet), value, fromMillis(at), source, evidence});
    return out;
  });
}

Result<void> SqliteStore::putFacts(const std::vector<Fact>& facts) {
  for (const auto& fact : facts)
    if (fact.value.empty() || fact.subject.str().empty() || fact.facet.empty())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("a fact without subject, facet or value ({}/{}) cannot be stored", fact.subject.str(), fact.facet.str()));
  if (facts.empty()) return {};
  return run("storing facts", [&]() -> Result<void> {
    Transaction transaction(sql_);
    std::string subject, facet, value, source, evidence;
    long long at = 0;
    soci::statement insert =
        (sql_.prepare << "INSERT INTO facts (subject, facet, value, observed_at_ms, source, evidence) VALUES (:s, :f, :v, :a, :o, :e)"
                         " ON CONFLICT (subject, facet) DO UPDATE SET value = excluded.value,"
                         " observed_at_ms = excluded.observed_at_ms, source = excluded.source, evidence = excluded.evidence",
         use(subject), use(facet), use(value), use(at), use(source), use(evidence));
    for (const auto& fact : facts) {
      subject = fact.subject.str();
      facet = fact.facet.str();
      value = fact.value;
      at = toMillis(fact.observed_at);
      source = fact.source;
      evidence = fact.evidence;
      insert.execute(true);
    }
    transaction.commit();
    return {};
  });
}

Result<void> SqliteStore::forgetFacts(const Subject& subject, const std::vector<FacetName>& facets) {
  return run("forgetting facts", [&]() -> Result<void> {
    Transaction transaction(sql_);
    for (const auto& facet : facets) sql_ << "DELETE FROM facts WHERE subject = :s AND facet = :f", use(subject.str()), use(facet.str());
    transaction.commit();
    return {};
  });
}

// ---- the journal -------------------------------------------------------------------------------------------------------

Result<void> SqliteStore::openIntent(const Intent& intent) {
  return run("opening an intent", [&]() -> Result<void> {
    Transaction transaction(sql_);
    const auto& subject = intent.action.facet.subject.str();
    const auto action = canonical(toJson(intent.action));
    const auto state = std::string(toString(IntentState::Open));
    const long long opened = toMillis(intent.opened_at), closed = 0;
    const int uses_wipe = intent.uses_wipe ? 1 : 0;
    sql_ << "INSERT INTO intents (id, plan_hash, inventory_digest, subject, action, operation, state, outcome, uses_wipe, opened_at_ms, "
            "closed_at_ms)"
            " VALUES (:i, :p, :d, :s, :a, :o, :t, '', :u, :b, :c)",
        use(intent.id), use(intent.plan_hash), use(intent.inventory_digest), use(subject), use(action), use(intent.operation), use(state),
        use(uses_wipe), use(opened), use(closed);
    if (intent.uses_wipe) {
      soci::statement take =
          (sql_.prepare << "UPDATE wipe_permissions SET used_by = :i WHERE node = :n AND used_by = ''", use(intent.id), use(subject));
      take.execute(true);
      if (take.get_affected_rows() != 1) return fail(ErrorCode::Denied, fmt::format("nobody allows {} to be wiped now", subject));
    }
    transaction.commit();
    return {};
  });
}

Result<void> SqliteStore::recordOperation(const std::string& intent_id, const std::string& operation) {
  return run("recording an operation", [&]() -> Result<void> {
    soci::statement update =
        (sql_.prepare << "UPDATE intents SET operation = :o WHERE id = :i AND state = 'open'", use(operation), use(intent_id));
    update.execute(true);
    if (update.get_affected_rows() != 1) return fail(ErrorCode::NotFound, fmt::format("the journal has no open intent {}", intent_id));
    return {};
  });
}

Result<void> SqliteStore::closeIntent(const std::string& intent_id, IntentState state, const std::string& outcome, WallTime at) {
  return run("closing an intent", [&]() -> Result<void> {
    const auto word = std::string(toString(state));
    const long long closed = toMillis(at);
    soci::statement update =
        (sql_.prepare << "UPDATE intents SET state = :s, outcome = :o, closed_at_ms = :a WHERE id = :i AND state = 'open'", use(word),
         use(outcome), use(closed), use(intent_id));
    update.execute(true);
    if (update.get_affected_rows() != 1) return fail(ErrorCode::NotFound, fmt::format("the journal has no open intent {}", intent_id));
    return {};
  });
}

Result<std::vector<Intent>> SqliteStore::readIntents(const std::string& where, const Subject* subject, std::size_t limit) {
  return run("reading the journal", [&]() -> Result<std::vector<Intent>> {
    std::vector<Intent> out;
    std::string id, plan, digest, action, operation, state, outcome;
    long long opened = 0, closed = 0;
    int uses_wipe = 0;
    const long long rows_max = bounded(limit);
    const std::string name = subject ? subject->str() : "";
    soci::statement rows = (sql_.prepare << "SELECT id, plan_hash, inventory_digest, action, operation, state, outcome, uses_wipe, "
                                            "opened_at_ms, closed_at_ms FROM intents"
                                            " WHERE (:s = '' OR subject = :s) AND " +
                                                where + " LIMIT :l",
                            use(name, "s"), use(rows_max, "l"), into(id), into(plan), into(digest), into(action), into(operation),
                            into(state), into(outcome), into(uses_wipe), into(opened), into(closed));
    rows.execute();
    while (rows.fetch()) {
      auto parsed = actionFromJson(nlohmann::json::parse(action, nullptr, false));
      auto known = parseIntentState(state);
      if (!parsed || !known) return fail(explain(SQLITE_CORRUPT, "intent " + id + " cannot be read"));
      out.push_back(
          Intent{id, plan, digest, std::move(*parsed), operation, *known, outcome, uses_wipe != 0, fromMillis(opened), fromMillis(closed)});
    }
    return out;
  });
}

Result<std::vector<Intent>> SqliteStore::openIntents() { return readIntents("state = 'open' ORDER BY sequence", nullptr, kMaxRows); }

Result<std::vector<Intent>> SqliteStore::intentsOf(const Subject& subject, std::size_t limit) {
  return readIntents("1 ORDER BY sequence DESC", &subject, limit);
}

// ---- events and findings -----------------------------------------------------------------------------------------------

Result<std::int64_t> SqliteStore::addEvent(const Event& event) {
  return run("storing an event", [&]() -> Result<std::int64_t> {
    const long long at = toMillis(event.at);
    const auto kind = std::string(toString(event.kind));
    long long sequence = 0;
    sql_ << "INSERT INTO events (at_ms, kind, subject, action_id, text, fraction) VALUES (:a, :k, :s, :i, :t, :f) RETURNING sequence",
        use(at), use(kind), use(event.subject.str()), use(event.action_id), use(event.text), use(event.fraction), into(sequence);
    return std::int64_t{sequence};
  });
}

Result<std::vector<Event>> SqliteStore::readEvents(const std::string& tail, std::int64_t after, std::size_t limit, const Subject* subject) {
  return run("reading events", [&]() -> Result<std::vector<Event>> {
    std::vector<Event> out;
    long long sequence = 0, at = 0;
    const long long rows_max = bounded(limit), first = after;
    std::string kind, name, action_id, text;
    double fraction = -1;
    const std::string wanted = subject ? subject->str() : "";
    const std::string filter = subject ? " AND subject = :s" : " AND :s = ''";
    soci::statement rows =
        (sql_.prepare << "SELECT sequence, at_ms, kind, subject, action_id, text, fraction FROM events WHERE sequence > :a" + filter +
                             tail + " LIMIT :l",
         use(first, "a"), use(wanted, "s"), use(rows_max, "l"), into(sequence), into(at), into(kind), into(name), into(action_id),
         into(text), into(fraction));
    rows.execute();
    while (rows.fetch())
      out.push_back(
          Event{sequence, fromMillis(at), parseEventKind(kind).value_or(EventKind::Note), Subject::parse(name), action_id, text, fraction});
    return out;
  });
}

Result<std::vector<Event>> SqliteStore::events(std::int64_t after_sequence, std::size_t limit, const Subject* subject) {
  return readEvents(" ORDER BY sequence", after_sequence, limit, subject);
}

Result<std::vector<Event>> SqliteStore::lastEvents(std::size_t limit, const Subject* subject) {
  TRY(events, readEvents(" ORDER BY sequence DESC", 0, limit, subject));
  return std::vector<Event>(events.rbegin(), events.rend());
}

Result<void> SqliteStore::addFinding(const Finding& finding) {
  return run("storing a finding", [&]() -> Result<void> {
    const long long at = toMillis(finding.at);
    const int severity = static_cast<int>(finding.severity);
    sql_ << "INSERT INTO findings (subject, facet, severity, text, evidence, what_to_do, at_ms) VALUES (:s, :f, :v, :t, :e, :w, :a)",
        use(finding.facet.subject.str()), use(finding.facet.facet.str()), use(severity), use(finding.text), use(finding.evidence),
        use(finding.what_to_do), use(at);
    return {};
  });
}

Result<std::vector<Finding>> SqliteStore::findings(const Subject* subject) {
  return run("reading findings", [&]() -> Result<std::vector<Finding>> {
    std::vector<Finding> out;
    std::string name, facet, text, evidence, what_to_do;
    int severity = 0;
    long long at = 0;
    const std::string wanted = subject ? subject->str() : "";
    soci::statement rows =
        (sql_.prepare << "SELECT subject, facet, severity, text, evidence, what_to_do, at_ms FROM findings"
                         " WHERE (:s = '' OR subject = :s) ORDER BY sequence DESC",
         use(wanted, "s"), into(name), into(facet), into(severity), into(text), into(evidence), into(what_to_do), into(at));
    rows.execute();
    while (rows.fetch())
      out.push_back(Finding{{Subject::parse(name), FacetName(facet)},
                            static_cast<Severity>(std::clamp(severity, 0, 2)),
                            text,
                            evidence,
                            what_to_do,
                            fromMillis(at)});
    return out;
  });
}

Result<void> SqliteStore::clearFindings(const FacetRef& facet) {
  return run("clearing findings", [&]() -> Result<void> {
    sql_ << "DELETE FROM findings WHERE subject = :s AND facet = :f", use(facet.subject.str()), use(facet.facet.str());
    return {};
  });
}

// ---- permissions and values --------------------------------------------------------------------------------------------

Result<void> SqliteStore::allowWipe(const NodeName& node, const std::string& reason, WallTime at) {
  return run("allowing a wipe", [&]() -> Result<void> {
    const long long allowed = toMillis(at);
    sql_ << "INSERT INTO wipe_permissions (node, reason, allowed_at_ms, used_by) VALUES (:n, :r, :a, '') ON CONFLICT DO NOTHING",
        use(node.str()), use(reason), use(allowed);
    return {};
  });
}

Result<std::vector<NodeName>> SqliteStore::wipesAllowed() {
  return run("reading wipe permissions", [&]() -> Result<std::vector<NodeName>> {
    std::vector<NodeName> out;
    std::string name;
    soci::statement rows = (sql_.prepare << "SELECT node FROM wipe_permissions WHERE used_by = '' ORDER BY node", into(name));
    rows.execute();
    while (rows.fetch()) out.emplace_back(name);
    return out;
  });
}

Result<void> SqliteStore::putValue(const std::string& key, const std::string& value) {
  return run("storing a value", [&]() -> Result<void> {
    sql_ << "INSERT INTO vals (key, value) VALUES (:k, :v) ON CONFLICT (key) DO UPDATE SET value = excluded.value", use(key), use(value);
    return {};
  });
}

Result<std::optional<std::string>> SqliteStore::getValue(const std::string& key) {
  return run("reading a value", [&]() -> Result<std::optional<std::string>> {
    std::string value;
    soci::statement row = (sql_.prepare << "SELECT value FROM vals WHERE key = :k", use(key), into(value));
    row.execute();
    if (!row.fetch()) return std::optional<std::string>();
    return std::optional(value);
  });
}

Result<bool> SqliteStore::exchangeValue(const std::string& key, const std::optional<std::string>& expected, const std::string& value) {
  return run("exchanging a value", [&]() -> Result<bool> {
    const auto was = expected.value_or("");
    soci::statement change =
        expected ? (sql_.prepare << "UPDATE vals SET value = :v WHERE key = :k AND value = :e", use(value), use(key), use(was))
                 : (sql_.prepare << "INSERT INTO vals (key, value) VALUES (:k, :v) ON CONFLICT (key) DO NOTHING", use(key), use(value));
    change.execute(true);
    return change.get_affected_rows() == 1;
  });
}

}  // namespace

Result<std::unique_ptr<Store>> openSqliteStore(const std::filesystem::path& file, std::chrono::milliseconds busy_timeout) {
  auto store = std::make_unique<SqliteStore>(file);
  TRY_OK(store->open(busy_timeout));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace muster::lifecycle
