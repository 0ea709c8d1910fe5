// SPDX-License-Identifier: Apache-2.0
// The files of a SQLite store and other processes: locks that last, modes, and files that are taken
// away under their process.
#include "lifecycle/store/sql/store_files.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "lifecycle/store/measurements.h"
#include "lifecycle/store/store_loss.h"
#include "tests/lifecycle/held_locks.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

namespace muster::lifecycle {
namespace {

using sql::LossKind;
using sql::StoreFile;
using testing::Contains;
using testing::HasSubstr;

/// Another process, begun before this one opens the store, so that it knows nothing of our locks.
/// When it is told to, it opens the store, reads, and ends as a command does.
class OtherProcess {
 public:
  explicit OtherProcess(const std::filesystem::path& file) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    go_ = io::Fd(ends[1]);
    const io::Fd told(ends[0]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::close(go_.release());
    bool fine = false;
    char byte = 0;
    if (::read(told.get(), &byte, 1) == 1) {
      auto store = openSqliteStore(file);
      fine = store && (*store)->findings(nullptr);
    }
    ::_exit(fine ? 0 : 1);
  }
  ~OtherProcess() {
    if (!go_.valid()) return;
    ::close(go_.release());
    ::waitpid(pid_, nullptr, 0);
  }
  void openReadAndEnd() {
    ASSERT_EQ(::write(go_.get(), "g", 1), 1);
    int status = 0;
    ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
    ::close(go_.release());
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }

 private:
  io::Fd go_;
  pid_t pid_ = -1;
};

class StoreFilesTest : public testing::Test {
 protected:
  std::unique_ptr<Store> open() {
    auto store = openSqliteStore(file_);
    if (!store) ADD_FAILURE() << store.error().str();
    return store ? std::move(*store) : nullptr;
  }
  unsigned modeOf(const std::string& suffix) {
    struct stat status{};
    EXPECT_EQ(::stat((file_.string() + suffix).c_str(), &status), 0) << suffix;
    return status.st_mode & 07777;
  }
  void expectLost(Store& store, const std::string& which, const std::string& how) {
    const auto value = store.getValue("k");
    const auto findings = store.findings(nullptr);
    ASSERT_FALSE(value);
    ASSERT_FALSE(findings);
    for (const Result<void>& answer : std::vector<Result<void>>{
             store.putValue("k", "lost"), fail(value.error()), fail(findings.error())}) {
      ASSERT_FALSE(answer);
      EXPECT_EQ(answer.error().code(), ErrorCode::Unavailable);
      EXPECT_FALSE(answer.error().canRetry());
      EXPECT_THAT(answer.error().str(), testing::AllOf(HasSubstr(which), HasSubstr(how),
                                                       HasSubstr("start muster again")));
    }
    EXPECT_TRUE(storeLoss(store));
  }
  /// By a process of its own, as a person would: what this one opens and closes would cost it its
  /// locks.
  static bool byAnother(const std::string& script) {
    return io::runChecked({.program = "sh", .args = {"-ec", script}}).has_value();
  }

  test::TempFolder folder_;
  std::filesystem::path file_ = folder_ / "muster.db";
  std::string log_ = file_.string() + "-wal", index_ = file_.string() + "-shm";
};

TEST_F(StoreFilesTest, aStoreHoldsItsLockWhenOtherConnectionsOfTheProcessComeAndGo) {
  auto store = open();
  ASSERT_TRUE(store->putValue("k", "v"));
  ASSERT_EQ(*store->getValue("k"), "v");  // by a connection of its own
  EXPECT_THAT(test::lockHoldersOf(file_), Contains(::getpid()));
  {
    const auto measurements = openMeasurements("sqlite:" + file_.string());
    ASSERT_TRUE(measurements) << measurements.error().str();
    const auto second = open();
    EXPECT_THAT(test::lockHoldersOf(file_), Contains(::getpid()))
        << "opening a second one took it away";
  }
  EXPECT_THAT(test::lockHoldersOf(file_), Contains(::getpid()))
      << "closing the others took it away";
}

TEST_F(StoreFilesTest, aReaderOfAnotherProcessLeavesTheLogOfARunningOneInPlace) {
  OtherProcess other_process(file_);
  auto store = open();
  const auto measurements = openMeasurements("sqlite:" + file_.string());
  ASSERT_TRUE(measurements);
  ASSERT_TRUE(store->putValue("token", "issued"));
  const auto log = test::inodeOf(log_);
  ASSERT_NE(log, 0u);
  other_process.openReadAndEnd();
  EXPECT_EQ(test::inodeOf(log_), log);
  ASSERT_TRUE(store->putValue("token", "used"));
  const auto other = open();
  EXPECT_EQ(*other->getValue("token"), "used");
}

/// A controller that opens its store as it does at its start, uses a one-time token when it is told
/// to, says so, and waits to be killed.
class Controller {
 public:
  explicit Controller(const std::filesystem::path& file) {
    int go[2], said[2];
    if (::pipe(go) != 0 || ::pipe(said) != 0) std::abort();
    go_ = io::Fd(go[1]);
    said_ = io::Fd(said[0]);
    const io::Fd told(go[0]), say(said[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::close(go_.release());
    char byte = 0;
    auto store = openSqliteStore(file);
    const bool ready =
        store && (*store)->putValue("token", "issued") && *(*store)->getValue("token") == "issued";
    const auto measurements = openMeasurements("sqlite:" + file.string());
    if (ready && measurements && ::write(say.get(), "r", 1) == 1 &&
        ::read(told.get(), &byte, 1) == 1 &&
        (*store)->exchangeValue("token", "issued", "used by the first").value_or(false))
      (void)!::write(say.get(), "u", 1);
    ::pause();
    ::_exit(1);
  }
  ~Controller() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  /// Its next word: r ready, u the token is used; 0: it has ended.
  char hear() {
    char byte = 0;
    return ::read(said_.get(), &byte, 1) == 1 ? byte : '\0';
  }
  void useToken() { ASSERT_EQ(::write(go_.get(), "g", 1), 1); }

 private:
  io::Fd go_, said_;
  pid_t pid_ = -1;
};

TEST_F(StoreFilesTest, aUsedTokenStaysUsedBesideAReaderAndOverAKill) {
  {
    OtherProcess reader(file_);
    Controller controller(file_);
    ASSERT_EQ(controller.hear(), 'r');
    reader.openReadAndEnd();
    controller.useToken();
    ASSERT_EQ(controller.hear(), 'u');
  }
  auto next = open();
  EXPECT_FALSE(*next->exchangeValue("token", "issued", "used by the second"));
  EXPECT_EQ(*next->getValue("token"), "used by the first");
}

TEST_F(StoreFilesTest, aDeletedLogEndsAllWriting) {
  auto store = open();
  ASSERT_TRUE(store->putValue("k", "v"));
  EXPECT_FALSE(storeLoss(*store));
  ASSERT_EQ(::unlink(log_.c_str()), 0);
  expectLost(*store, log_, "was deleted under it");
}

TEST_F(StoreFilesTest, aDeletedIndexEndsAllWriting) {
  auto store = open();
  ASSERT_EQ(::unlink(index_.c_str()), 0);
  expectLost(*store, index_, "was deleted under it");
}

TEST_F(StoreFilesTest, aDeletedDatabaseEndsAllWritingAndIsNotMadeAnew) {
  auto store = open();
  ASSERT_EQ(::unlink(file_.c_str()), 0);
  expectLost(*store, file_, "was deleted under it");
  EXPECT_EQ(test::inodeOf(file_), 0u);
}

TEST_F(StoreFilesTest, aBackupThatIsMovedIntoPlaceEndsAllWriting) {
  const auto backup = folder_ / "backup";
  {
    ASSERT_TRUE(open()->putValue("k", "old"));
  }
  std::filesystem::copy_file(file_, backup);
  auto store = open();
  ASSERT_TRUE(store->putValue("k", "new"));
  std::filesystem::rename(backup, file_);
  expectLost(*store, file_, "was replaced by another file under it");
}

TEST_F(StoreFilesTest, aLogThatIsEmptiedEndsAllWriting) {
  auto store = open();
  ASSERT_TRUE(store->putValue("k", "answered"));
  EXPECT_FALSE(storeLoss(*store));
  ASSERT_TRUE(byAnother(": >" + log_));
  expectLost(*store, log_, "was written over by another program");
}

/// Of the same log some writes ago, or of a log before it: large enough, whole, and wrong.
TEST_F(StoreFilesTest, anOlderLogThatIsCopiedOverEndsAllWriting) {
  constexpr std::size_t kValueBytes = 100'000;
  for (const bool begun_anew : {false, true}) {
    SCOPED_TRACE(begun_anew);
    file_ = folder_ / (begun_anew ? "anew.db" : "same.db");
    log_ = file_.string() + "-wal";
    auto store = open();
    ASSERT_TRUE(store->putValue("k", std::string(kValueBytes, 'a')));
    const auto older = log_ + ".older";
    std::filesystem::copy_file(log_, older);
    if (begun_anew) {
      ASSERT_TRUE(byAnother("python3 -c 'import sqlite3; sqlite3.connect(\"" + file_.string() +
                            "\").execute(\"PRAGMA wal_checkpoint(RESTART)\")'"));
    } else {
      std::filesystem::resize_file(older, std::filesystem::file_size(older) + 4 * kValueBytes);
    }
    ASSERT_TRUE(store->putValue("k", "answered"));
    EXPECT_FALSE(storeLoss(*store));
    ASSERT_TRUE(byAnother("cp " + older + " " + log_));
    expectLost(*store, log_, "was written over by another program");
  }
}

TEST_F(StoreFilesTest, aLinkInPlaceOfTheDatabaseIsRefusedAndNoticed) {
  auto store = open();
  ASSERT_TRUE(store->putValue("k", "answered"));
  const auto elsewhere = folder_ / "elsewhere.db";
  std::filesystem::rename(file_, elsewhere);
  std::filesystem::create_symlink(elsewhere, file_);
  expectLost(*store, file_, "was replaced by another file under it");
  store.reset();
  const auto through_link = openSqliteStore(file_);
  ASSERT_FALSE(through_link) << "its log of before would be forgotten";
  EXPECT_THAT(through_link.error().str(), testing::HasSubstr("not a regular file"));
}

/// As a person restores a backup: the file stays the same one, with other bytes.
TEST_F(StoreFilesTest, aBackupThatIsCopiedOverEndsAllWriting) {
  const auto backup = folder_ / "backup";
  {
    ASSERT_TRUE(open()->putValue("k", "old"));
  }
  std::filesystem::copy_file(file_, backup);
  auto store = open();
  ASSERT_TRUE(store->putValue("k", "new"));
  EXPECT_FALSE(storeLoss(*store));
  const auto inode = test::inodeOf(file_);
  ASSERT_TRUE(byAnother("cp " + backup.string() + " " + file_.string()));
  ASSERT_EQ(test::inodeOf(file_), inode);
  expectLost(*store, file_, "was written over by another program");
  store.reset();
  EXPECT_EQ(*io::readFile(file_), *io::readFile(backup)) << "its log is not copied into the backup";
}

TEST_F(StoreFilesTest, eachWayOfWritingOverTheDatabaseIsSeen) {
  const auto backup = (folder_ / "backup").string();
  {
    ASSERT_TRUE(open()->putValue("k", "old"));
  }
  std::filesystem::copy_file(file_, backup);
  std::filesystem::last_write_time(backup, std::filesystem::last_write_time(backup) -
                                               std::chrono::hours(1));  // as old as backups are
  for (const std::string& how : std::vector<std::string>{
           "cp -p " + backup + " FILE", "cat " + backup + " > FILE",
           "dd if=" + backup + " of=FILE conv=notrunc status=none", "truncate -s 8192 FILE",
           "printf x | dd of=FILE bs=1 seek=5000 conv=notrunc status=none", ": > FILE"}) {
    SCOPED_TRACE(how);
    std::filesystem::copy_file(backup, file_, std::filesystem::copy_options::overwrite_existing);
    for (const auto* suffix : {"-wal", "-shm"}) std::filesystem::remove(file_.string() + suffix);
    auto store = open();
    ASSERT_TRUE(store->putValue("k", "new"));
    auto command = how;
    command.replace(command.find("FILE"), 4, file_.string());
    ASSERT_TRUE(byAnother(command));
    const auto refused = store->putValue("k", "lost");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().str(), HasSubstr("was written over by another program"));
    ASSERT_TRUE(byAnother("cp " + backup + " " + file_.string()));
    EXPECT_TRUE(storeLoss(*store)) << "for good";
  }
}

TEST_F(StoreFilesTest, aBackupThatIsCopiedOverIsSeenAfterAKillToo) {
  const auto backup = folder_ / "backup";
  {
    ASSERT_TRUE(open()->putValue("k", "old"));
  }
  std::filesystem::copy_file(file_, backup);
  {
    Controller killed(file_);
    ASSERT_EQ(killed.hear(), 'r');
  }
  ASSERT_GT(std::filesystem::file_size(log_), 0u) << "it leaves a log behind";
  auto store = open();
  EXPECT_EQ(*store->getValue("token"), "issued");
  EXPECT_FALSE(storeLoss(*store));
  ASSERT_TRUE(byAnother("cp " + backup.string() + " " + file_.string()));
  expectLost(*store, file_, "was written over by another program");
}

/// Three processes write, each so much that the log is copied into the database again and again, by
/// whoever is at it then.
TEST_F(StoreFilesTest, copyingTheLogIntoTheDatabaseIsNoLossWhoeverDoesIt) {
  constexpr int kWriters = 2, kValues = 12;
  constexpr std::size_t kValueBytes = 4u << 20;
  std::vector<pid_t> writers;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const io::Fd told(ends[0]), go(ends[1]);
  for (int writer = 0; writer < kWriters; ++writer) {
    const auto pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      char byte = 0;
      if (::read(told.get(), &byte, 1) != 1) ::_exit(1);
      auto store = openSqliteStore(file_, std::chrono::seconds(60));
      bool fine = store.has_value();
      for (int i = 0; fine && i < kValues; ++i)
        fine = (*store)
                   ->putValue(fmt::format("{}", writer),
                              std::string(kValueBytes, static_cast<char>('a' + i)))
                   .has_value();
      ::_exit(fine ? 0 : 1);
    }
    writers.push_back(pid);
  }
  auto store = openSqliteStore(file_, std::chrono::seconds(60));
  ASSERT_TRUE(store);
  ASSERT_EQ(::write(go.get(), "gg", kWriters), kWriters);
  std::size_t looks = 0, own = 0;
  while (!writers.empty()) {
    const auto lost = storeLoss(**store);
    ASSERT_FALSE(lost) << lost->str();
    ++looks;
    if (looks % 1'000 == 0) ASSERT_TRUE((*store)->putValue("own", std::to_string(++own)));
    int status = 0;
    if (const auto ended = ::waitpid(-1, &status, WNOHANG); ended > 0) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      std::erase(writers, ended);
    }
  }
  EXPECT_GT(looks, 100u);
  EXPECT_GE(std::filesystem::file_size(file_), kWriters * kValueBytes)
      << "the log was copied while all this went on";
  EXPECT_FALSE(storeLoss(**store));
  ASSERT_TRUE(
      byAnother("printf x | dd of=" + file_.string() + " bs=1 seek=5000 conv=notrunc status=none"));
  EXPECT_TRUE(storeLoss(**store)) << "and it is still watched";
}

TEST_F(StoreFilesTest, measurementsStopToo) {
  auto store = open();
  auto measurements = openMeasurements("sqlite:" + file_.string());
  ASSERT_TRUE(measurements);
  const MeasuredSet set{WallTime{}, NodeName("n1"), "gate", "sku", "r1", {{"a", 1}}};
  ASSERT_TRUE((*measurements)->add({set}));
  ASSERT_EQ(::unlink(log_.c_str()), 0);
  const auto refused = (*measurements)->add({set});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("was deleted under it"));
}

/// The last connection to a store copies its log and deletes it by name: of one that was taken away
/// the name is another's.
TEST_F(StoreFilesTest, aStoreThatWasTakenAwayLeavesTheFilesOfOthersAlone) {
  auto store = open();
  auto measurements = openMeasurements("sqlite:" + file_.string());
  ASSERT_TRUE(store->putValue("k", "v"));
  ASSERT_TRUE(store->getValue("k"));
  ASSERT_EQ(::unlink(log_.c_str()), 0);
  std::ofstream(log_) << "another's";
  measurements->reset();
  store.reset();
  std::ifstream kept(log_);
  std::string text;
  std::getline(kept, text);
  EXPECT_EQ(text, "another's");
}

TEST_F(StoreFilesTest, allFilesArePrivateWhateverTheUmask) {
  for (const mode_t mask : {022, 000, 077}) {
    SCOPED_TRACE(mask);
    file_ = folder_ / fmt::format("with-{:03o}.db", mask);
    const auto before = ::umask(mask);
    auto store = open();
    const bool put = store && store->putValue("k", "v");
    ::umask(before);
    ASSERT_TRUE(put);
    for (const char* suffix : {"", "-wal", "-shm"}) EXPECT_EQ(modeOf(suffix), 0600u) << suffix;
  }
}

TEST_F(StoreFilesTest, aStoreThatOthersCouldReadIsClosedToThem) {
  {
    ASSERT_TRUE(open());
  }
  ASSERT_EQ(::chmod(file_.c_str(), 0664), 0);
  auto store = open();
  for (const char* suffix : {"", "-wal", "-shm"}) EXPECT_EQ(modeOf(suffix), 0600u) << suffix;
}

TEST_F(StoreFilesTest, whoComesSecondDoesNotReplaceTheDatabase) {
  const sql::StoreFiles files(file_);
  ASSERT_FALSE(files.prepare());
  const auto first = test::inodeOf(file_);
  ASSERT_FALSE(files.prepare());
  EXPECT_EQ(test::inodeOf(file_), first);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1)
      << "a temporary file is left";
}

TEST_F(StoreFilesTest, whatIsNoFileIsRefused) {
  std::filesystem::create_directory(file_);
  const auto refused = sql::StoreFiles(file_).prepare();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refusal, sql::FileRefusal::NotARegularFile);
}

TEST_F(StoreFilesTest, eachLossHasItsFile) {
  ASSERT_TRUE(open());
  for (const auto* suffix : {"-wal", "-shm"}) std::ofstream(file_.string() + suffix) << "x";
  const std::array<std::string, 3> names{file_.string(), log_, index_};
  for (const auto file : sql::kStoreFiles) {
    const auto& name = names[static_cast<std::size_t>(file)];
    sql::StoreFiles files(file_);
    files.remember();
    EXPECT_EQ(files.loss(), std::nullopt);
    std::filesystem::rename(name, folder_ / "aside");
    EXPECT_EQ(files.loss(), (sql::StoreLoss{file, LossKind::Deleted}));
    std::ofstream(name) << "y";
    EXPECT_EQ(files.loss(), (sql::StoreLoss{file, LossKind::Replaced}));
    std::filesystem::rename(folder_ / "aside", name);
    EXPECT_EQ(files.loss(), std::nullopt);
  }
}

}  // namespace
}  // namespace muster::lifecycle
