// SPDX-License-Identifier: Apache-2.0
// The store's connection, schema, facts, permissions and values.
#include "lifecycle/store/sql/sql_store.h"

#include "base/utf8.h"
#include "lifecycle/store/sql/schema.h"
#include "lifecycle/store/store_loss.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::lifecycle {
namespace sql {

using soci::into;
using soci::use;

std::string storable(const std::string& text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) > 0; });
  if (plain) return text;
  auto valid = validUtf8(text);
  for (auto nul = valid.find('\0'); nul != std::string::npos; nul = valid.find('\0', nul))
    valid.replace(nul, 1, "\uFFFD");
  return valid;
}

std::string Backend::dialect(std::string_view statement) const {
  std::string out(statement);
  for (const auto& [word, own] : words())
    for (auto at = out.find(word); at != std::string::npos; at = out.find(word, at))
      out.replace(at, word.size(), own);
  return out;
}

Transaction::~Transaction() {
  if (done_) return;
  try {
    sql_ << "ROLLBACK";
  } catch (const soci::soci_error&) {  // the database has rolled back by itself
  }
}

void Transaction::commit() {
  sql_ << "COMMIT";
  done_ = true;
}

// ---- the connection
// ----------------------------------------------------------------------------------------------------

Result<void> SqlStore::connected() {
  if (connected_) return {};
  prepared_.forget();
  prepared_.keepThem(backend_->keepsStatements());
  sql_.close();
  TRY_OK(backend_->connect(sql_));
  connected_ = true;
  return {};
}

Result<void> SqlStore::intact() {
  auto lost = backend_->loss();
  if (!lost) return {};
  backend_->abandon(sql_);
  return fail(std::move(*lost));
}

std::optional<Error> SqlStore::recover(const soci::soci_error& thrown, std::string_view doing,
                                       Steady::time_point until) {
  auto failure = backend_->explain(thrown, sql_);
  if (failure.lost_connection) connected_ = false;
  if (!(failure.lost_connection || failure.collided) || Steady::now() + kReconnectPause > until)
    return std::move(failure.error).within(std::string(doing));
  std::this_thread::sleep_for(kReconnectPause);
  return std::nullopt;
}

Result<bool> SqlStore::outcomeOf(const std::string& mark, Steady::time_point until) {
  for (;;) {
    try {
      TRY_OK(connected());
      auto done = backend_->committed(sql_, mark);
      if (done || Steady::now() > until) return done;
      std::this_thread::sleep_for(kReconnectPause);
    } catch (const soci::soci_error& thrown) {
      if (auto error = recover(thrown, "asking whether the last write was done", until))
        return fail(std::move(*error));
    }
  }
}

Error SqlStore::unreadable(const std::string& what) const {
  return Error(
      ErrorCode::Corrupt,
      fmt::format(
          "{} is damaged or not a muster store ({}); move it away: muster observes everything anew",
          backend_->name(), what));
}

// ---- many writes in one commit
// -----------------------------------------------------------------------------------------

void SqlStore::together(const std::vector<std::function<bool()>>& works) {
  const std::lock_guard lock(mutex_);
  for (std::size_t first = 0; first < works.size();) {
    const auto stopped = runGroup(works, first, works.size());
    if (stopped == works.size()) return;
    if (stopped > first &&
        runGroup(works, first, stopped) != stopped)  // those before it, without it
      for (auto each = first; each < stopped; ++each) works[each]();
    works[stopped]();
    first = stopped + 1;
  }
}

std::size_t SqlStore::runGroup(const std::vector<std::function<bool()>>& works, std::size_t first,
                               std::size_t last) {
  std::size_t next = first;
  auto all = [&]() -> Result<void> {  // may run again, after a lost connection
    restoreHeld();
    grouping_ = true;
    for (next = first; next < last; ++next)
      if (!works[next]()) break;
    grouping_ = false;
    if (next < last) return fail(ErrorCode::Internal, "one of many writes did not succeed");
    return {};
  };
  Result<void> done;
  try {
    done = write("storing what many have written", all);
  } catch (...) {
    grouping_ = false;
    restoreHeld();
    throw;
  }
  grouping_ = false;
  if (done) {
    held_before_.clear();
    return last;
  }
  restoreHeld();
  return std::min(next, last - 1);  // the commit itself failed: each says so for itself
}

void SqlStore::holds(const Subject& subject, std::optional<std::int64_t> token) {
  const std::lock_guard lock(held_mutex_);
  const auto mine = held_.find(subject);
  if (grouping_)
    held_before_.emplace_back(subject,
                              mine == held_.end() ? std::nullopt : std::optional(mine->second));
  if (token)
    held_[subject] = *token;
  else if (mine != held_.end())
    held_.erase(mine);
}

void SqlStore::restoreHeld() {
  const std::lock_guard lock(held_mutex_);
  for (; !held_before_.empty(); held_before_.pop_back()) {
    const auto& [subject, token] = held_before_.back();
    if (token)
      held_[subject] = *token;
    else
      held_.erase(subject);
  }
}

// ---- opening
// -----------------------------------------------------------------------------------------------------------

/// A server that does not answer at first is told at once; one that was reached and then lost, or
/// that undid our migration because of somebody else's, is given time as for any write.
Result<void> SqlStore::open() {
  const auto doing = "opening the store";
  const auto until = Steady::now() + backend_->patience();
  for (bool reached = false;;) try {
      if (auto made = connected(); !made) return fail(std::move(made).error().within(doing));
      reached = true;
      TRY(version, knownVersion());
      TRY_OK(backend_->prepare(sql_));
      TRY_OK(migrate(version));
      TRY_OK(backend_->check(sql_));
      dropOldEvents();
      return {};
    } catch (const soci::soci_error& thrown) {
      if (auto error = recover(thrown, doing, reached ? until : Steady::time_point::min()))
        return fail(std::move(*error));
    }
}

Result<int> SqlStore::knownVersion() {
  TRY(version, backend_->version(sql_));
  const int known = static_cast<int>(kMigrations.size());
  if (version > known)
    return fail(ErrorCode::Corrupt, fmt::format(kTooNew, backend_->name(), version, known));
  return version;
}

Result<void> SqlStore::migrate(int version) {
  if (version == static_cast<int>(kMigrations.size())) return {};
  Transaction transaction(sql_, backend_->begin());
  backend_->lockSchema(sql_);
  TRY(now, knownVersion());  // another process may have been faster
  for (auto next = static_cast<std::size_t>(now); next < kMigrations.size(); ++next)
    for (const auto& statement : kMigrations[next]) sql_ << backend_->dialect(statement);
  backend_->setVersion(sql_, static_cast<int>(kMigrations.size()));
  transaction.commit();
  return {};
}

/// Only what is not in the chain.
void SqlStore::dropOldEvents() {
  const auto keep = static_cast<long long>(kMaxStoredEvents);
  sql_ << "DELETE FROM events WHERE hash = '' AND sequence <= (SELECT max(sequence) FROM events) - "
          ":keep",
      use(keep);
}

// ---- facts
// -------------------------------------------------------------------------------------------------------------

Result<FactSet> SqlStore::readFacts(const Subject* wanted) {
  return read("reading facts", [&]() -> Result<FactSet> {
    FactSet out;
    std::string subject, facet, value, source, evidence;
    long long at = 0;
    const std::string name = wanted ? wanted->str() : "";
    soci::statement rows =
        (sql_.prepare << std::string("SELECT subject, facet, value, observed_at_ms, source, "
                                     "evidence FROM facts WHERE ") +
                             (wanted ? "subject = :s" : ":s = ''"),
         use(name), into(subject), into(facet), into(value), into(at), into(source),
         into(evidence));
    rows.execute();
    while (rows.fetch())
      out.put(
          Fact{Subject::parse(subject), FacetName(facet), value, fromMillis(at), source, evidence});
    return out;
  });
}

Result<FactSet> SqlStore::facts() { return readFacts(nullptr); }

Result<std::vector<Fact>> SqlStore::factsOf(const Subject& subject) {
  TRY(facts, readFacts(&subject));
  return facts.of(subject);
}

Result<void> SqlStore::putFacts(const std::vector<Fact>& facts) {
  for (const auto& fact : facts)
    if (fact.value.empty() || fact.subject.str().empty() || fact.facet.empty())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("a fact without subject, facet or value ({}/{}) cannot be stored",
                              fact.subject.str(), fact.facet.str()));
  if (facts.empty()) return {};
  const std::lock_guard lock(mutex_);
  std::set<Subject> subjects, mine;
  for (const auto& fact : facts) subjects.insert(fact.subject);
  std::copy_if(subjects.begin(), subjects.end(), std::inserter(mine, mine.end()),
               [this](const auto& s) { return held_.contains(s); });
  return write("storing facts", [&]() -> Result<void> {
    for (const auto& subject : mine) TRY_OK(fence(subject));
    const auto others = mine.size() == subjects.size() ? std::set<std::string>() : heldByOthers();
    for (const auto& fact : facts) {
      if (others.contains(fact.subject.str())) continue;
      run("INSERT INTO facts (subject, facet, value, observed_at_ms, source, evidence) VALUES (:s, "
          ":f, :v, :a, :o, :e)"
          " ON CONFLICT (subject, facet) DO UPDATE SET value = excluded.value, observed_at_ms = "
          "excluded.observed_at_ms,"
          " source = excluded.source, evidence = excluded.evidence",
          fact.subject.str(), fact.facet.str(), storable(fact.value), toMillis(fact.observed_at),
          storable(fact.source), storable(fact.evidence));
    }
    return {};
  });
}

Result<void> SqlStore::forgetFacts(const Subject& subject, const std::vector<FacetName>& facets) {
  return write("forgetting facts", [&]() -> Result<void> {
    TRY_OK(fence(subject));
    for (const auto& facet : facets)
      run("DELETE FROM facts WHERE subject = :s AND facet = :f", subject.str(), facet.str());
    return {};
  });
}

// ---- permissions and values
// --------------------------------------------------------------------------------------------

Result<void> SqlStore::grantWipe(const NodeName& node, const std::string& reason, WallTime at) {
  return write("allowing a wipe", [&]() -> Result<void> {
    const long long allowed = toMillis(at);
    const auto why = storable(reason);
    sql_ << "INSERT INTO wipe_permissions (node, reason, allowed_at_ms, used_by) VALUES (:n, :r, "
            ":a, '') ON CONFLICT DO NOTHING",
        use(node.str()), use(why), use(allowed);
    return {};
  });
}

Result<bool> SqlStore::revokeWipe(const NodeName& node, const std::string& reason) {
  return write("taking a wipe permission back", [&]() -> Result<bool> {
    const auto why = storable(reason);
    soci::statement gone =
        (sql_.prepare
             << "DELETE FROM wipe_permissions WHERE node = :n AND reason = :r AND used_by = ''",
         use(node.str()), use(why));
    gone.execute(true);
    return gone.get_affected_rows() > 0;
  });
}

Result<std::vector<NodeName>> SqlStore::wipeGrants() {
  return read("reading wipe permissions", [&]() -> Result<std::vector<NodeName>> {
    std::vector<NodeName> out;
    std::string name;
    soci::statement rows =
        (sql_.prepare << "SELECT node FROM wipe_permissions WHERE used_by = ''", into(name));
    rows.execute();
    while (rows.fetch()) out.emplace_back(name);
    std::sort(out.begin(), out.end());  // not by the database: each has an order of its own
    return out;
  });
}

Result<void> SqlStore::putValue(const std::string& key, const std::string& value) {
  return write("storing a value", [&]() -> Result<void> {
    const auto kept = storable(value);
    sql_ << "INSERT INTO vals (key, value) VALUES (:k, :v) ON CONFLICT (key) DO UPDATE SET value = "
            "excluded.value",
        use(key), use(kept);
    return {};
  });
}

Result<std::optional<std::string>> SqlStore::getValue(const std::string& key) {
  if (writing_ != std::this_thread::get_id()) return values_.get(key);
  std::string value;
  if (!ask("SELECT value FROM vals WHERE key = :k", std::tie(value), key))
    return std::optional<std::string>();
  return std::optional(std::move(value));
}

Result<bool> SqlStore::exchangeValue(const std::string& key,
                                     const std::optional<std::string>& expected,
                                     const std::string& value) {
  return write("exchanging a value", [&]() -> Result<bool> {
    const auto was = storable(expected.value_or("")), kept = storable(value);
    soci::statement change =
        expected
            ? (sql_.prepare << "UPDATE vals SET value = :v WHERE key = :k AND value = :e",
               use(kept), use(key), use(was))
            : (sql_.prepare
                   << "INSERT INTO vals (key, value) VALUES (:k, :v) ON CONFLICT (key) DO NOTHING",
               use(key), use(kept));
    change.execute(true);
    return change.get_affected_rows() == 1;
  });
}

}  // namespace sql

namespace {

constexpr std::string_view kSqlitePrefix = "sqlite:";

Result<std::unique_ptr<Store>> opened(std::unique_ptr<sql::Backend> backend) {
  auto store = std::make_unique<sql::SqlStore>(std::move(backend));
  TRY_OK(store->open());
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace

std::optional<Error> storeLoss(const Store& store) {
  const auto* sql = dynamic_cast<const sql::SqlStore*>(&store);
  return sql ? sql->loss() : std::nullopt;
}

Result<std::unique_ptr<Store>> openSqliteStore(const std::filesystem::path& file,
                                               std::chrono::milliseconds busy_timeout) {
  return opened(sql::sqliteBackend(file, busy_timeout));
}

Result<std::unique_ptr<Store>> openStore(const std::string& url,
                                         std::chrono::milliseconds patience) {
  if (url.starts_with(kSqlitePrefix))
    return openSqliteStore(url.substr(kSqlitePrefix.size()), kSqliteBusyTimeout);
  if (url.starts_with("postgresql://") || url.starts_with("postgres://"))
    return opened(sql::postgresBackend(url, patience));
  return fail(ErrorCode::InvalidInput,
              fmt::format("the store must be sqlite:FILE or postgresql://[USER@]HOST/DATABASE "
                          "(--store, MUSTER_STORE), not {}:…",
                          url.substr(0, url.find(':'))));
}

}  // namespace muster::lifecycle
