// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/store_copy.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "lifecycle/store/sql/backend.h"
#include "lifecycle/store/sql/schema.h"
#include "lifecycle/store/store.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <map>

namespace muster::lifecycle {
namespace {

namespace fs = std::filesystem;
using soci::into;
using soci::use;

constexpr std::string_view kSqlitePrefix = "sqlite:";
constexpr std::chrono::hours kDumpLimit{2};
constexpr int kMostProblems = 20;

std::unique_ptr<sql::Backend> backendOf(const std::string& url) {
  if (databaseKindOf(url) == DatabaseKind::Sqlite)
    return sql::sqliteBackend(url.substr(kSqlitePrefix.size()), kSqliteBusyTimeout);
  return sql::postgresBackend(url, kPostgresPatience);
}

/// A session on a store that is there; nothing is made or migrated.
struct Opened {
  std::unique_ptr<sql::Backend> backend;
  soci::session sql;
  int schema = 0;
};

template <class Work>
auto guarded(Opened& store, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const soci::soci_error& thrown) {
    return fail(store.backend->explain(thrown, store.sql).error);
  }
}

Result<void> open(Opened& store, const std::string& url) {
  store.backend = backendOf(url);
  if (databaseKindOf(url) == DatabaseKind::Sqlite) {
    const fs::path file = url.substr(kSqlitePrefix.size());
    std::error_code unknown;
    if (!fs::is_regular_file(file, unknown))
      return fail(ErrorCode::NotFound,
                  fmt::format("there is no store at {}; name the state folder: --state, "
                              "MUSTER_STATE",
                              file.string()));
  }
  return guarded(store, [&]() -> Result<void> {
    TRY_OK(store.backend->connect(store.sql));
    TRY(schema, store.backend->version(store.sql));
    store.schema = schema;
    if (schema == 0)
      return fail(ErrorCode::NotFound,
                  fmt::format("{} is empty: no muster has worked with it", store.backend->name()));
    if (schema > knownSchema())
      return fail(ErrorCode::Corrupt, fmt::format(fmt::runtime(sql::kTooNew), store.backend->name(),
                                                  schema, knownSchema()));
    return {};
  });
}

std::string sqlText(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

/// A statement in the words of both databases, which read JSON differently.
struct JsonStatements {
  std::string raise_term;
  std::string end_runs;
};

constexpr int kRunsSince = 9;  ///< of the schema

/// What makes a copy one that may be worked with.
std::vector<std::string> restoringStatements(const JsonStatements& json, int schema,
                                             const std::string& why) {
  std::vector<std::string> out{
      fmt::format("UPDATE claims SET session = '', token = token + {}", kRaisedBy),
      "DELETE FROM controllers",
      json.raise_term,
      // What was open then may have ended since; nobody may go on with it unseen.
      fmt::format("UPDATE intents SET state = 'abandoned', outcome = {} WHERE state IN ('open', "
                  "'blocked')",
                  sqlText(why)),
      fmt::format("UPDATE requests SET outcome = {} WHERE outcome = ''", sqlText(why)),
      // A permission that was used since would count twice.
      // NOLINTNEXTLINE(bugprone-suspicious-missing-comma)
      "UPDATE wipe_permissions SET used_by = 'taken back: restored from a backup' WHERE used_by = "
      "''",
  };
  if (schema >= kRunsSince) out.push_back(json.end_runs);
  return out;
}

constexpr std::string_view kTermKey = "site/serves";

constexpr std::string_view kEndRuns =
    "UPDATE runs SET state = 'cancelled', is_open = 0, revision = revision + 1, record = {} WHERE "
    "is_open = 1";

std::string raiseTermSqlite() {
  return fmt::format(
      "UPDATE vals SET value = json_set(value, '$.term', json_extract(value, '$.term') + {}) WHERE "
      "key = '{}' AND json_valid(value)",
      kRaisedBy, kTermKey);
}

JsonStatements sqliteStatements(const std::string& why) {
  return {raiseTermSqlite(),
          fmt::format(kEndRuns, fmt::format("json_set(record, '$.run.text', {})", sqlText(why)))};
}

std::string raiseTermPostgres() {
  return fmt::format(
      "UPDATE vals SET value = jsonb_set(value::jsonb, '{{term}}', "
      "to_jsonb((value::jsonb->>'term')::bigint + {}))::text WHERE key = '{}'",
      kRaisedBy, kTermKey);
}

JsonStatements postgresStatements(const std::string& why) {
  return {
      raiseTermPostgres(),
      fmt::format(kEndRuns,
                  fmt::format("jsonb_set(record::jsonb, '{{run,text}}', to_jsonb({}::text))::text",
                              sqlText(why)))};
}

/// The URL as libpq's environment: a command line shows passwords to everybody on the host.
Result<std::map<std::string, std::string>> environmentOf(const std::string& url) {
  char* wrong = nullptr;
  PQconninfoOption* options = PQconninfoParse(url.c_str(), &wrong);
  if (!options) {
    const std::string words = wrong ? wrong : "";
    if (wrong) PQfreemem(wrong);
    return fail(ErrorCode::InvalidInput, fmt::format("the store's URL cannot be read: {}", words));
  }
  std::map<std::string, std::string> out;
  for (auto* option = options; option->keyword; ++option)
    if (option->val && option->envvar) out[option->envvar] = option->val;
  PQconninfoFree(options);
  return out;
}

Result<void> runClient(const std::string& url, std::string program, std::vector<std::string> args) {
  io::Command command;
  command.program = program;
  command.args = std::move(args);
  TRY(environment, environmentOf(url));
  command.env = std::move(environment);
  command.timeout = kDumpLimit;
  auto ended = io::runChecked(command);
  if (ended) return {};
  if (ended.error().code() == ErrorCode::NotFound)
    return fail(ErrorCode::NotFound,
                fmt::format("{} is not installed here: apt install postgresql-client", program));
  return fail(std::move(ended).error());
}

}  // namespace

DatabaseKind databaseKindOf(const std::string& url) {
  return url.starts_with(kSqlitePrefix) ? DatabaseKind::Sqlite : DatabaseKind::Postgres;
}

int knownSchema() { return static_cast<int>(sql::migrations().size()); }

Result<int> copyStore(const std::string& url, const fs::path& to) {
  Opened store;
  TRY_OK(open(store, url));
  if (databaseKindOf(url) == DatabaseKind::Postgres) {
    TRY_OK(runClient(url, "pg_dump",
                     {"--format=custom", "--no-owner", "--no-privileges", "--file", to.string()}));
    return store.schema;
  }
  // One transaction's view: others write meanwhile, and their log is part of it.
  return guarded(store, [&]() -> Result<int> {
    store.sql << "VACUUM INTO " + sqlText(to.string());
    return store.schema;
  });
}

Result<void> makeRestored(const fs::path& database, const std::string& why) {
  Opened store;
  TRY_OK(open(store, std::string(kSqlitePrefix) + database.string()));
  return guarded(store, [&]() -> Result<void> {
    std::string verdict;
    store.sql << "PRAGMA integrity_check(1)", into(verdict);
    if (verdict != "ok")
      return fail(ErrorCode::Corrupt, fmt::format("the store in it is damaged: {}", verdict));
    soci::transaction one(store.sql);
    for (const auto& statement : restoringStatements(sqliteStatements(why), store.schema, why))
      store.sql << statement;
    one.commit();
    return {};
  });
}

Result<void> restorePostgres(const std::string& url, const fs::path& archive, int schema,
                             const std::string& why) {
  Opened store;
  store.backend = backendOf(url);
  TRY_OK(guarded(store, [&]() -> Result<void> {
    TRY_OK(store.backend->connect(store.sql));
    int tables = 0;
    store.sql << "SELECT count(*) FROM information_schema.tables WHERE table_schema = "
                 "current_schema()",
        into(tables);
    if (tables != 0)
      return fail(ErrorCode::Conflict,
                  fmt::format("{} is not empty; restore into a new database (createdb), and name "
                              "it with --store",
                              store.backend->name()));
    return {};
  }));
  fs::path script = archive;
  script += ".sql";
  TRY_OK(runClient(url, "pg_restore",
                   {"--no-owner", "--no-privileges", "--file", script.string(), archive.string()}));
  // After the dump, in its transaction; it has emptied the search path.
  std::string more = "\nSET search_path = public;\n";
  for (const auto& statement : restoringStatements(postgresStatements(why), schema, why))
    more += statement + ";\n";
  TRY(text, io::readFile(script, std::size_t{8} << 30));
  TRY_OK(io::writeFileAtomic(script, text + more, 0600));
  return runClient(url, "psql",
                   {"--no-psqlrc", "--quiet", "--single-transaction", "--set", "ON_ERROR_STOP=1",
                    "--output", "/dev/null", "--file", script.string()});
}

Result<StoreExamination> examineStore(const std::string& url) {
  Opened store;
  TRY_OK(open(store, url));
  StoreExamination out;
  out.schema = store.schema;
  return guarded(store, [&]() -> Result<StoreExamination> {
    if (databaseKindOf(url) == DatabaseKind::Sqlite) {
      soci::rowset<std::string> lines =
          (store.sql.prepare << fmt::format("PRAGMA integrity_check({})", kMostProblems));
      for (const auto& line : lines)
        if (line != "ok") out.problems.push_back(line);
      soci::rowset<soci::row> broken = (store.sql.prepare << "PRAGMA foreign_key_check");
      if (broken.begin() != broken.end())
        out.problems.emplace_back("rows refer to others that are not there");
      return out;
    }
    // PostgreSQL verifies pages as it reads them.
    for (const char* table : {"facts", "intents", "events", "findings", "wipe_permissions", "vals",
                              "requests", "controllers", "claims", "measured"}) {
      long long rows = 0;
      store.sql << fmt::format("SELECT count(t.*) FROM {} t", table), into(rows);
    }
    return out;
  });
}

}  // namespace muster::lifecycle
