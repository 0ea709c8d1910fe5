// SPDX-License-Identifier: Apache-2.0
// What is SQLite's own: durability across processes, damaged, foreign, locked, read-only and full
// files.
#include "base/io/files.h"
#include "lifecycle/audit/audit.h"
#include "lifecycle/store/sql/schema.h"
#include "lifecycle/store/store.h"
#include "lifecycle/store/store_copy.h"
#include "tests/lifecycle/rack.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <thread>

namespace muster::lifecycle {
namespace {

using test::factOf;
using testing::HasSubstr;

class SqliteStoreTest : public testing::Test {
 protected:
  std::unique_ptr<Store> open() {
    auto store = openSqliteStore(file_, std::chrono::milliseconds(50));
    if (!store) ADD_FAILURE() << store.error().str();
    return store ? std::move(*store) : nullptr;
  }
  Error refused() {
    auto store = openSqliteStore(file_, std::chrono::milliseconds(50));
    EXPECT_FALSE(store);
    return store ? Error(ErrorCode::Internal, "it was opened") : store.error();
  }
  void execute(const std::string& text) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  test::TempFolder folder_;
  std::filesystem::path file_ = folder_.path() / "muster.db";
};

/// A truncated or deleted store must not pass for a new one: quarantine and permissions would be
/// gone without a word.
TEST_F(SqliteStoreTest, anEmptyOrMissingFileOfAFolderThatWasInUseIsRefused) {
  std::ofstream(file_).close();
  open();  // no mark: a first run that was killed
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "controller-id", "abc"));
  open();
  for (const auto* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_.string() + suffix);
  EXPECT_EQ(refused().code(), ErrorCode::Corrupt);
  EXPECT_THAT(refused().text(), HasSubstr("is missing"));
  EXPECT_FALSE(std::filesystem::exists(file_)) << "none is made";
  std::ofstream(file_).close();
  EXPECT_EQ(refused().code(), ErrorCode::Corrupt);
  EXPECT_THAT(refused().text(), HasSubstr("muster.db is empty"));
  EXPECT_EQ(std::filesystem::file_size(file_), 0u);
  std::filesystem::remove(folder_ / "controller-id");
  open();  // the step that says that it is to begin anew
}

TEST_F(SqliteStoreTest, whatWasWrittenIsThereAfterTheProcessWasKilled) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = openSqliteStore(file_);
    const bool written =
        store && (*store)->putFacts({factOf("n1/image", "1")}) && (*store)->putValue("pin", "abc");
    if (written) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  auto store = open();
  ASSERT_TRUE(store);
  EXPECT_EQ(store->facts()->value(Subject(NodeName("n1")), FacetName("image")), "1");
  EXPECT_EQ(*store->getValue("pin"), "abc");
}

TEST_F(SqliteStoreTest, valuesAreReadWhileABatchIsBeingWrittenAndTheBatchSeesItsOwn) {
  auto store = open();
  ASSERT_TRUE(store->putValue("pin", "old"));
  std::promise<void> written, read;
  std::thread journal([&] {
    const std::vector<std::function<bool()>> works{[&] {
      const bool fine = store->putValue("pin", "new") && *store->getValue("pin") == "new";
      written.set_value();
      return read.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready &&
             fine;
    }};
    store->together(works);
  });
  written.get_future().wait();
  EXPECT_EQ(*store->getValue("pin"), "old") << "what is not committed does not count for others";
  read.set_value();
  journal.join();
  EXPECT_EQ(*store->getValue("pin"), "new");
}

TEST_F(SqliteStoreTest, theFileIsPrivate) {
  ASSERT_TRUE(open());
  struct stat status{};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(SqliteStoreTest, aNewerSchemaIsRefused) {
  ASSERT_TRUE(open());
  execute("PRAGMA user_version = 99");
  auto error = refused();
  EXPECT_EQ(error.code(), ErrorCode::Corrupt);
  EXPECT_THAT(error.str(), HasSubstr("newer muster (schema 99, this one knows " +
                                     std::to_string(sql::kMigrations.size())));
}

TEST_F(SqliteStoreTest, anotherProgramsDatabaseIsRefusedAndNotTouched) {
  execute("CREATE TABLE theirs (a)");
  auto error = refused();
  EXPECT_EQ(error.code(), ErrorCode::Corrupt);
  EXPECT_THAT(error.str(), HasSubstr("another program"));
  execute("INSERT INTO theirs VALUES (1)");
}

TEST_F(SqliteStoreTest, aFileThatIsNoDatabaseIsCorrupt) {
  std::ofstream(file_) << std::string(5'000, 'x');
  auto error = refused();
  EXPECT_EQ(error.code(), ErrorCode::Corrupt);
  EXPECT_THAT(error.str(), HasSubstr("move it away"));
}

TEST_F(SqliteStoreTest, aDamagedPageIsCorrupt) {
  {
    auto store = open();
    std::vector<Fact> facts;
    for (int i = 0; i < 2'000; ++i)
      facts.push_back(factOf("n" + std::to_string(i) + "/image", std::string(200, 'v')));
    ASSERT_TRUE(store->putFacts(facts));
  }
  const auto size = std::filesystem::file_size(file_);
  std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
  for (auto page = 4096u * 3; page + 4096 < size; page += 4096) {
    file.seekp(page);
    file << std::string(512, '\x7f');
  }
  file.close();
  auto error = refused();
  EXPECT_EQ(error.code(), ErrorCode::Corrupt) << error.str();
}

TEST_F(SqliteStoreTest, aLockedStoreCanBeTriedAgain) {
  auto store = open();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  auto put = store->putValue("k", "v");
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code(), ErrorCode::Unavailable);
  EXPECT_TRUE(put.error().canRetry());
  EXPECT_THAT(put.error().str(), HasSubstr("locked by another process"));
  sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_TRUE(store->putValue("k", "v"));
}

TEST_F(SqliteStoreTest, aReadOnlyFileIsSaidToBe) {
  ASSERT_TRUE(open());
  ASSERT_EQ(::chmod(file_.c_str(), 0444), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0555), 0);
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  auto store = openSqliteStore(file_);
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code(), ErrorCode::Unavailable);
  EXPECT_FALSE(store.error().canRetry());
  EXPECT_THAT(store.error().str(), HasSubstr(root ? "ask the server" : "copy its folder"))
      << "keys lie beside it: another user is not led to a copy";
}

TEST_F(SqliteStoreTest, aFolderThatIsNotThereIsSaidToBe) {
  file_ = folder_.path() / "missing" / "muster.db";
  auto error = refused();
  EXPECT_EQ(error.code(), ErrorCode::Unavailable);
  EXPECT_THAT(error.str(), HasSubstr("check that its folder exists"));
}

TEST_F(SqliteStoreTest, aFullDiskFailsTheWriteAndKeepsWhatWasThere) {
  auto store = open();
  ASSERT_TRUE(store->putValue("k", "small"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = 64 << 10;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  auto put = store->putValue("k", std::string(1 << 20, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code(), ErrorCode::Unavailable) << put.error().str();
  EXPECT_FALSE(put.error().canRetry());
  EXPECT_EQ(*store->getValue("k"), "small");
  EXPECT_TRUE(store->putValue("k", "after"));
}

TEST_F(SqliteStoreTest, oldProgressIsDroppedWhenItIsOpenedAndTheChainIsKept) {
  ASSERT_TRUE(open()->addEvent(Event{0, {}, EventKind::Note, {}, "", "kept", -1}));
  execute(
      "INSERT INTO events (sequence, at_ms, kind, subject, action_id, text, fraction) VALUES (2, "
      "0, 'action-progress', '', '', 'old', -1), "
      "(" +
      std::to_string(kMaxStoredEvents + 2) + ", 0, 'action-progress', '', '', 'new', -1)");
  auto events = open()->events(0, 10, nullptr);
  ASSERT_EQ(events->size(), 2u);
  EXPECT_EQ(events->at(0).text, "kept");
  EXPECT_EQ(events->at(1).text, "new");
}

/// A process of another program that has the file open, as a server of an older muster has.
class OtherHolder {
 public:
  explicit OtherHolder(const std::filesystem::path& file) {
    int ready[2], stay[2];
    if (::pipe2(ready, O_CLOEXEC) != 0 || ::pipe2(stay, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(stay[0], STDIN_FILENO);
      ::dup2(ready[1], STDOUT_FILENO);
      ::execlp("python3", "python3", "-c",
               "import os, sqlite3, sys\n"
               "db = sqlite3.connect(sys.argv[1])\n"
               "db.execute('SELECT count(*) FROM vals').fetchone()\n"
               "os.write(1, b'r')\n"
               "sys.stdin.read()\n",
               file.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ready[1]);
    ::close(stay[0]);
    stay_ = io::Fd(stay[1]);
    const io::Fd said(ready[0]);
    char first = 0;
    EXPECT_EQ(::read(said.get(), &first, 1), 1) << "python3 with sqlite3";
  }
  OtherHolder(const OtherHolder&) = delete;
  ~OtherHolder() { end(); }
  void end() {
    stay_ = io::Fd();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
  io::Fd stay_;
};

TEST_F(SqliteStoreTest, anOlderSchemaIsNotMigratedUnderAnotherProgramThatWorksWithIt) {
  ASSERT_TRUE(open());
  execute("PRAGMA user_version = 8");
  {
    OtherHolder older(file_);
    const auto error = refused();
    EXPECT_EQ(error.code(), ErrorCode::Conflict);
    EXPECT_FALSE(error.canRetry());
    EXPECT_THAT(error.str(),
                AllOf(HasSubstr(fmt::format("process {} (", older.pid())), HasSubstr("python3")));
    EXPECT_THAT(error.str(), HasSubstr("has the schema of an older muster (8; this one makes " +
                                       std::to_string(sql::migrations().size())));
    EXPECT_THAT(error.str(), HasSubstr("systemctl stop muster-server"));
    EXPECT_EQ(examineStore("sqlite:" + file_.string())->schema, 8) << "nothing was changed";
    EXPECT_EQ(refused().code(), ErrorCode::Conflict) << "asked again, it is the same";
    older.end();
    EXPECT_TRUE(open());
  }
  EXPECT_EQ(examineStore("sqlite:" + file_.string())->schema,
            static_cast<int>(sql::migrations().size()));
  OtherHolder beside(file_);
  EXPECT_TRUE(open()) << "with nothing to migrate anybody may have it open";
}

/// Of several that begin at once each knows the new schema; one migrates, the others find it done.
TEST_F(SqliteStoreTest, processesOfTheSameProgramDoNotHinderEachOther) {
  ASSERT_TRUE(open());
  execute("PRAGMA user_version = 8");
  int ready[2], stay[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(stay, O_CLOEXEC), 0);
  const auto child = ::fork();
  if (child == 0) {
    ::close(stay[1]);
    sqlite3* db = nullptr;
    const bool fine =
        sqlite3_open(file_.c_str(), &db) == SQLITE_OK &&
        sqlite3_exec(db, "SELECT * FROM vals", nullptr, nullptr, nullptr) == SQLITE_OK;
    char byte = fine ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1) ::_exit(2);
    (void)!::read(stay[0], &byte, 1);
    ::_exit(0);
  }
  char fine = 0;
  ASSERT_EQ(::read(ready[0], &fine, 1), 1);
  EXPECT_EQ(fine, 'y');
  EXPECT_TRUE(open());
  ::close(stay[1]);
  ::waitpid(child, nullptr, 0);
}

/// A store as version 1 left it.
TEST_F(SqliteStoreTest, anOlderSchemaIsMigratedAndKeepsWhatItHolds) {
  const std::vector<std::pair<std::string, std::string>> words{
      {"%int", "INTEGER"},
      {"%real", "REAL"},
      {"%serial", "INTEGER PRIMARY KEY"},
      {"%log_serial", "INTEGER PRIMARY KEY AUTOINCREMENT"},
      {"%clustered", "WITHOUT ROWID"}};
  for (const auto statement : sql::kMigrations.front()) {
    std::string text(statement);
    for (const auto& [word, own] : words)
      for (auto at = text.find(word); at != std::string::npos; at = text.find(word))
        text.replace(at, word.size(), own);
    execute(text);
  }
  execute("PRAGMA user_version = 1");
  execute("PRAGMA application_id = " + std::to_string(0x6d757374));
  execute("INSERT INTO facts VALUES ('n1', 'image', '1', 0, '', '')");
  execute(
      "INSERT INTO events (at_ms, kind, subject, action_id, text, fraction) VALUES (0, 'note', '', "
      "'', 'from before', -1)");
  execute(
      "INSERT INTO wipe_permissions (node, reason, allowed_at_ms, used_by) VALUES ('n1', 'r', 0, "
      "'')");
  execute(
      "INSERT INTO findings (subject, facet, severity, text, evidence, what_to_do, at_ms) VALUES "
      "('n1', 'image', 2, 'wrong', '', '', 0)");
  auto store = open();
  ASSERT_TRUE(store);
  ASSERT_EQ(store->findings(nullptr)->size(), 1u);
  EXPECT_EQ(store->findings(nullptr)->front().text, "wrong");
  EXPECT_EQ(store->findings(nullptr)->front().source, "") << "nobody knows who raised it";
  EXPECT_EQ(store->facts()->value(Subject(NodeName("n1")), FacetName("image")), "1");
  EXPECT_EQ(store->wipeGrants()->size(), 1u);
  ASSERT_TRUE(store->addEvent(Event{0, {}, EventKind::Note, {}, "", "chained", -1}));
  auto report = verifyAudit(*store, "");
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->entries, 1);
  EXPECT_EQ(store->events(0, 10, nullptr)->size(), 2u);
}

/// A store as version 6 left it, when the monitor was called keep.
TEST_F(SqliteStoreTest, whatKeepHasStoredIsTheMonitors) {
  ASSERT_TRUE(open());
  execute("PRAGMA user_version = 6");
  for (const std::string source : {"keep", "quarantine"})
    execute(
        "INSERT INTO findings (subject, facet, severity, text, evidence, what_to_do, at_ms, "
        "source) VALUES ('@cluster', 'keep.breaker.batch', 2, 'open', '', '', 0, '" +
        source + "')");
  execute("INSERT INTO vals VALUES ('keep.breakers', 'b'), ('keep.heartbeat', 'h'), ('keep', 'k')");
  auto store = open();
  ASSERT_TRUE(store);
  const auto findings = store->findings(nullptr);
  ASSERT_EQ(findings->size(), 2u);
  for (const auto& finding : *findings)
    EXPECT_EQ(finding.facet.facet.str(), "monitor.breaker.batch");
  EXPECT_EQ(findings->at(0).source, kQuarantineSource);
  EXPECT_EQ(findings->at(1).source, kMonitorSource);
  EXPECT_EQ(*store->getValue("monitor.breakers"), "b");
  EXPECT_EQ(*store->getValue("monitor.heartbeat"), "h");
  EXPECT_EQ(*store->getValue("keep.breakers"), std::nullopt);
  EXPECT_EQ(*store->getValue("keep"), "k") << "only what the monitor wrote";
}

/// A store as version 7 left it: causes and refusals stood in sentences.
TEST_F(SqliteStoreTest, sentencesOfOlderJournalsAreReadAsCausesAndStates) {
  ASSERT_TRUE(open());
  execute("PRAGMA user_version = 7");
  const auto insert = [this](const std::string& id, const std::string& facet,
                             const std::string& reason, const std::string& outcome) {
    execute(
        "INSERT INTO intents (id, plan_hash, inventory_digest, subject, action, operation, state, "
        "outcome, uses_wipe, opened_at_ms, closed_at_ms) VALUES ('" +
        id + R"(', 'p', 'i', 'n1', '{"id":"n1/)" + facet + R"(","subject":"n1","facet":")" + facet +
        R"(","phase":"x","from":"","to":"y","reason":")" + reason +
        R"(","disruption":"none","expected_s":1,"deadline_s":2,"needs":[]}', '', 'failed', ')" +
        outcome + "', 0, 0, 0)");
  };
  insert("1", "firmware.BMC", "baseline b has BMC 2", "blocked: the file is missing");
  insert("2", "recovery.bmc-reset", "recovery: firmware.BMC has failed: no answer", "no answer");
  insert("3", "pool", "admission: it has no certificate", "refused");
  auto store = open();
  ASSERT_TRUE(store);
  const auto journal = store->intentsOf(Subject(NodeName("n1")), 10);
  ASSERT_TRUE(journal) << journal.error().str();
  ASSERT_EQ(journal->size(), 3u);
  const auto &drain = journal->at(0), &step = journal->at(1), &flash = journal->at(2);
  EXPECT_EQ(drain.action.cause, ActionCause::Admission);
  EXPECT_EQ(drain.action.about.str(), "certificate");
  EXPECT_EQ(drain.action.reason, "it has no certificate");
  EXPECT_EQ(step.action.cause, ActionCause::Recovery);
  EXPECT_EQ(step.action.about.str(), "firmware.BMC");
  EXPECT_EQ(step.state, IntentState::Failed);
  EXPECT_EQ(flash.action.cause, ActionCause::Declared);
  EXPECT_EQ(flash.state, IntentState::Blocked);
  EXPECT_EQ(flash.outcome, "the file is missing");
}

/// What is written now says its cause, and its reason is never read for one.
TEST_F(SqliteStoreTest, aReasonThatSoundsLikeACauseIsNone) {
  auto store = open();
  Intent intent;
  intent.id = "i1";
  intent.action.id = "n1/image";
  intent.action.facet = test::FakeWorld::ref("n1/image");
  intent.action.reason = "repair: as bob calls it";
  ASSERT_TRUE(store->openIntent(intent));
  EXPECT_EQ(store->openIntents()->at(0).action, intent.action);
}

/// SQLite's own limit stands for a disk without room.
TEST_F(SqliteStoreTest, aStoreWithoutRoomSaysSoAndLosesNothing) {
  const auto n1 = test::FakeWorld::ref("n1/image");
  {
    auto store = open();
    ASSERT_TRUE(store->putFacts({factOf("n1/image", "1")}));
    ASSERT_TRUE(store->addEvent(Event{0, {}, EventKind::Note, {}, "", "before", -1}));
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* handler = ::signal(SIGXFSZ, SIG_IGN);
  auto store = open();
  rlimit tight = before;
  tight.rlim_cur = 1 << 10;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  std::vector<Result<void>> refused;
  Intent intent;
  intent.id = "i1";
  intent.action.facet = n1;
  for (int i = 0; i < 3; ++i) {  // again and again: it must not get worse
    refused.push_back(store->openIntent(intent));
    refused.push_back(store->putFacts({factOf("n1/image", "2")}));
    auto added = store->addEvent(Event{0, {}, EventKind::Note, {}, "", "lost", -1});
    refused.push_back(added ? Result<void>() : fail(added.error()));
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  for (const auto& each : refused) {
    ASSERT_FALSE(each);
    EXPECT_EQ(each.error().code(), ErrorCode::Unavailable) << each.error().str();
    EXPECT_FALSE(each.error().canRetry());
  }
  EXPECT_EQ(store->facts()->value(n1.subject, n1.facet), "1");
  EXPECT_TRUE(store->openIntents()->empty());
  EXPECT_TRUE(verifyAudit(*store, "")->ok());
  EXPECT_TRUE(store->openIntent(intent));  // there is room again
  EXPECT_TRUE(store->addEvent(Event{0, {}, EventKind::Note, {}, "", "after", -1}));
  EXPECT_EQ(verifyAudit(*store, "")->entries, 2);
}

TEST_F(SqliteStoreTest, tamperingWithTheFileIsFound) {
  {
    auto store = open();
    for (int i = 0; i < 5; ++i)
      ASSERT_TRUE(store->addEvent(Event{0, {}, EventKind::Note, {}, "", "entry", -1}));
  }
  execute("UPDATE events SET text = 'nothing to see' WHERE sequence = 2");
  execute("DELETE FROM events WHERE sequence = 4");
  auto report = verifyAudit(*open(), "");
  ASSERT_TRUE(report);
  EXPECT_THAT(report->problems,
              testing::ElementsAre(HasSubstr("entry #2"), HasSubstr("between #3 and #5")));
}

}  // namespace
}  // namespace muster::lifecycle
