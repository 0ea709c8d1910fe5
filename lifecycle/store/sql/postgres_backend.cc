// SPDX-License-Identifier: Apache-2.0
// PostgreSQL: for several controllers. A connection that is lost is made again, within a patience;
// whether a COMMIT that met the loss was done is asked of the server itself (pg_xact_status), so
// nothing is written twice and nothing is guessed.
#include "lifecycle/store/sql/backend.h"
#include "lifecycle/store/sql/schema.h"

#include <soci/postgresql/soci-postgresql.h>

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace muster::lifecycle::sql {
namespace {

using soci::into;
using soci::use;

constexpr long long kSchemaLock = 0x6d757374;  ///< "must": advisory lock of those who migrate
/// A stopped controller must not keep its locks, nor a dead host its session.
constexpr std::array kSettings{"SET synchronous_commit = on",
                               "SET client_min_messages = warning",
                               "SET lock_timeout = '5s'",
                               "SET statement_timeout = '60s'",
                               "SET idle_in_transaction_session_timeout = '5s'",
                               "SET tcp_keepalives_idle = 10",
                               "SET tcp_keepalives_interval = 5",
                               "SET tcp_keepalives_count = 3"};

/// SQLSTATEs by their beginning, the longest first: what they mean for an operator.
struct Meaning {
  std::string_view state;
  ErrorCode code;
  bool retry;
  std::string_view text;  ///< {0}: the store, {1}: PostgreSQL's words
};
constexpr std::array kMeanings{
    Meaning{"53100", ErrorCode::Unavailable, false,
            "the disk of {0} is full ({1}); nothing was written and nothing is lost; make room, "
            "then run the same command again"},
    Meaning{"53300", ErrorCode::Unavailable, true,
            "{0} has no connection left ({1}); raise max_connections or end idle clients"},
    Meaning{"53", ErrorCode::Unavailable, true, "{0} lacks resources ({1})"},
    Meaning{"25006", ErrorCode::Unavailable, false,
            "{0} is read-only ({1}); nothing was changed; name the primary server in the URL "
            "(target_session_attrs=read-write)"},
    Meaning{"42501", ErrorCode::Denied, false,
            "this user may not do that in {0} ({1}); let it own the database"},
    Meaning{"28", ErrorCode::Denied, false,
            "{0} refuses this user ({1}); check the user, ~/.pgpass and pg_hba.conf"},
    Meaning{"3D000", ErrorCode::NotFound, false, "{0} is not there ({1}); create it with createdb"},
    Meaning{"40", ErrorCode::Unavailable, true,
            "{0} undid this because of another controller ({1})"},
    Meaning{"55P03", ErrorCode::Unavailable, true,
            "another controller works on the same rows of {0} ({1})"},
    Meaning{"57014", ErrorCode::Unavailable, true, "{0} took too long ({1})"},
    Meaning{"23", ErrorCode::Conflict, false, "{1}"},
    Meaning{"XX001", ErrorCode::Corrupt, false,
            "{0} is damaged ({1}); restore it, or give muster a new database: it observes "
            "everything anew"},
    Meaning{"XX002", ErrorCode::Corrupt, false, "{0} has a damaged index ({1}); REINDEX it"},
};

/// How a session says of which version its muster is: "muster schema 9, ctl1, process 4711". Older
/// ones say nothing.
constexpr std::string_view kSessionName = "muster schema ";

std::string sessionName() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  auto name = fmt::format("{}{}, {}, process {}", kSessionName, migrations().size(),
                          std::string_view(host.data()).substr(0, 24), ::getpid());
  std::erase_if(name, [](unsigned char c) { return c == '\'' || c == '\\' || c < ' ' || c > '~'; });
  return name;
}

constexpr std::string_view kNoState =
    " ";  ///< SOCI's answer when the server said nothing: it is gone

/// "PostgreSQL muster on /run/postgresql": never the password.
std::string describe(const std::string& url) {
  char* wrong = nullptr;
  PQconninfoOption* options = PQconninfoParse(url.c_str(), &wrong);
  if (wrong) PQfreemem(wrong);
  if (!options) return "PostgreSQL";
  std::string database, host;
  for (auto* option = options; option->keyword; ++option) {
    const std::string_view key = option->keyword;
    if (key == "dbname" && option->val) database = option->val;
    if ((key == "host" || key == "hostaddr") && option->val) host = option->val;
  }
  PQconninfoFree(options);
  const char* default_host = std::getenv("PGHOST");
  if (host.empty()) host = default_host ? default_host : "its local socket";
  return fmt::format("PostgreSQL database {} on {}", database.empty() ? "(default)" : database,
                     host);
}

PGconn* connectionOf(soci::session& sql) {
  auto* backend = static_cast<soci::postgresql_session_backend*>(
      sql.get_backend());  // ours opened it; the library hides its type
  return backend ? backend->conn_ : nullptr;
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  for (auto& c : text)
    if (c == '\n') c = ' ';
  return text;
}

/// SOCI (4.0) reads a connection string as words KEY=VALUE, and ends one without "=" with one: the
/// database of "postgresql://host/muster" would be "muster=".
std::string forSoci(const std::string& url) {
  if (url.find('=') != std::string::npos) return url;
  const char* joint = url.ends_with('?') ? "" : url.find('?') == std::string::npos ? "?" : "&";
  return url + joint + "application_name=muster";
}

class PostgresBackend final : public Backend {
 public:
  PostgresBackend(std::string url, std::chrono::milliseconds patience)
      : url_(std::move(url)), name_(describe(url_)), patience_(patience) {}

  const std::string& name() const override { return name_; }
  std::chrono::milliseconds patience() const override { return patience_; }

  Result<void> connect(soci::session& sql) override {
    sql.open(soci::postgresql, forSoci(url_));
    for (const char* setting : kSettings) sql << setting;
    sql << fmt::format("SET application_name = '{}'", sessionName());
    return {};
  }

  Result<int> version(soci::session& sql) override {
    int ours = 0, tables = 0, version = 0;
    sql << "SELECT count(*) FILTER (WHERE table_name = 'muster_schema'), count(*) FROM "
           "information_schema.tables"
           " WHERE table_schema = current_schema()",
        into(ours), into(tables);
    if (ours == 0 && tables != 0)
      return fail(
          ErrorCode::Corrupt,
          fmt::format("{} holds tables of another program; give muster a database of its own",
                      name_));
    if (ours != 0) sql << "SELECT version FROM muster_schema", into(version);
    return version;
  }

  /// Another process migrates: on a busy server that takes longer than any row is waited for, and
  /// than a statement lasts between two of its own. (Four processes that opened an empty database
  /// under load were refused after the lock timeout of rows.)
  void lockSchema(soci::session& sql) override {
    for (const char* setting : {"SET LOCAL lock_timeout = '60s'",
                                "SET LOCAL idle_in_transaction_session_timeout = '60s'"})
      sql << setting;
    sql << fmt::format("SELECT pg_advisory_xact_lock({})", kSchemaLock);
  }

  void setVersion(soci::session& sql, int version) override {
    sql << "CREATE TABLE IF NOT EXISTS muster_schema (version INTEGER NOT NULL)";
    sql << "DELETE FROM muster_schema";
    sql << "INSERT INTO muster_schema (version) VALUES (:v)", use(version);
  }

  /// Sessions of this user that name no program, or a muster of an older schema; those of psql,
  /// pg_dump and the like name theirs. A host that died has none any more (tcp_keepalives above).
  std::optional<std::string> olderUser(soci::session& sql, int known) override {
    const soci::rowset<soci::row> sessions =
        (sql.prepare << "SELECT coalesce(host(client_addr), 'the host of the database'), "
                        "application_name, CAST(pid AS TEXT) FROM pg_stat_activity WHERE datname = "
                        "current_database() AND usename = current_user AND pid <> "
                        "pg_backend_pid() AND backend_type = 'client backend' AND "
                        "(application_name = '' OR application_name LIKE '"
                     << kSessionName << "%') ORDER BY backend_start");
    for (const auto& session : sessions) {
      const auto name = session.get<std::string>(1);
      if (!name.empty() && std::atoi(name.c_str() + kSessionName.size()) >= known) continue;
      return fmt::format("a muster at {} ({}; session {} of the database)",
                         session.get<std::string>(0), name.empty() ? "of an older version" : name,
                         session.get<std::string>(2));
    }
    return std::nullopt;
  }

  std::string mark(soci::session& sql) override {
    std::string id;
    soci::indicator written = soci::i_null;
    sql << "SELECT CAST(pg_current_xact_id_if_assigned() AS TEXT)", into(id, written);
    return written == soci::i_ok ? id : std::string();
  }

  Result<bool> committed(soci::session& sql, const std::string& mark) override {
    std::string status;
    soci::indicator known = soci::i_null;
    sql << fmt::format("SELECT pg_xact_status(CAST('{}' AS xid8))", mark), into(status, known);
    if (known == soci::i_ok && status == "in progress")
      return fail(ErrorCode::Unavailable, "the transaction has not ended yet");
    return known == soci::i_ok && status == "committed";
  }

  Failure explain(const soci::soci_error& error, soci::session& sql) const override {
    const auto* own = dynamic_cast<const soci::postgresql_soci_error*>(&error);
    const auto state = own ? own->sqlstate() : std::string();
    const auto words = trimmed(error.get_error_message());
    PGconn* connection = connectionOf(sql);
    if (!connection || PQstatus(connection) != CONNECTION_OK || state.starts_with(kNoState) ||
        state.starts_with("08") || state.starts_with("57P")) {
      const auto text =
          fmt::format("{} cannot be reached ({}); check that the server runs and the URL is right",
                      name_, words);
      return {Error(ErrorCode::Unavailable, text), true};
    }
    for (const auto& meaning : kMeanings)
      if (state.starts_with(meaning.state))
        return {Error(meaning.code, fmt::format(fmt::runtime(meaning.text), name_, words))
                    .retryable(meaning.retry),
                false, state.starts_with("40")};
    return {Error(ErrorCode::Internal, fmt::format("{}: {} (SQLSTATE {})", name_, words, state))};
  }

  const char* begin() const override { return "BEGIN"; }
  const char* nowMs() const override {
    return "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
  }
  const char* shareRow() const override { return " FOR SHARE"; }
  const char* takeRow() const override { return " FOR UPDATE"; }
  const char* takeFreeRow() const override { return " FOR UPDATE SKIP LOCKED"; }
  const std::vector<std::pair<std::string_view, std::string_view>>& words() const override {
    static const std::vector<std::pair<std::string_view, std::string_view>> words{
        {"%int", "BIGINT"},
        {"%real", "DOUBLE PRECISION"},
        {"%serial", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"},
        {"%log_serial", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"},
        {"%clustered", ""}};
    return words;
  }

 private:
  std::string url_;
  std::string name_;
  std::chrono::milliseconds patience_;
};

}  // namespace

std::unique_ptr<Backend> postgresBackend(std::string url, std::chrono::milliseconds patience) {
  return std::make_unique<PostgresBackend>(std::move(url), patience);
}

}  // namespace muster::lifecycle::sql
