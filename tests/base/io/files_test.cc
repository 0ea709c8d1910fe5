// SPDX-License-Identifier: Apache-2.0
#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace muster::io {
namespace {

TEST(Files, replacesWholeFiles) {
  test::TempFolder folder;
  const auto file = folder / "value";
  ASSERT_TRUE(writeFileAtomic(file, "old"));
  ASSERT_TRUE(writeFileAtomic(file, "new", 0600));
  EXPECT_EQ(*readFile(file), "new");
  struct stat info{};
  ::stat(file.c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1)
      << "no temporary is left";
  EXPECT_EQ(readFile(folder / "none").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(readFile(file, 2).error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(writeFileAtomic(folder / "no/such/folder", "x").error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(readFile("/proc/self/status")->empty()) << "files of /proc have no size";
}

TEST(Files, aNamedFileThatIsNoRegularFileIsLeftAsItIs) {
  test::TempFolder folder;
  const auto fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_symlink(fifo, folder / "to-fifo");
  for (const auto& file : {fifo, folder / "to-fifo", folder.path()}) {
    const auto refused = writeNamedFile(file, "text");
    ASSERT_FALSE(refused) << file;
    EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
    EXPECT_NE(refused.error().str().find("not a regular file"), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "to-fifo"));
  std::filesystem::create_symlink("/dev/null", folder / "null");
  EXPECT_EQ(writeNamedFile(folder / "null", "text").error().code(), ErrorCode::InvalidInput);
}

TEST(Files, anOpenFileOfTheProcessIsNotReplaced) {
  test::TempFolder folder;
  const Fd open(::open((folder / "out").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(open.valid());
  std::filesystem::create_symlink(fmt::format("/proc/self/fd/{}", open.get()), folder / "link");
  EXPECT_EQ(writeNamedFile(folder / "link", "text").error().code(), ErrorCode::InvalidInput);
}

TEST(Files, aNamedLinkStaysAndItsTargetIsReplaced) {
  test::TempFolder folder;
  ASSERT_TRUE(makeDirs(folder / "deep"));
  ASSERT_TRUE(writeFileAtomic(folder / "deep/target", "old"));
  std::filesystem::create_symlink("target", folder / "deep/near");
  std::filesystem::create_symlink("deep/near", folder / "far");
  std::filesystem::create_symlink("deep/none-yet", folder / "to-nothing");
  ASSERT_TRUE(writeNamedFile(folder / "far", "new"));
  EXPECT_EQ(*readFile(folder / "deep/target"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "far"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "deep/near"));
  ASSERT_TRUE(writeNamedFile(folder / "to-nothing", "made"));
  EXPECT_EQ(*readFile(folder / "deep/none-yet"), "made");
  std::filesystem::create_symlink("round", folder / "round");
  EXPECT_FALSE(writeNamedFile(folder / "round", "text"));
}

TEST(FileLock, secondTakerLearnsWhoHoldsIt) {
  test::TempFolder folder;
  {
    auto first = FileLock::take(folder / "lock");
    ASSERT_TRUE(first);
    auto second = FileLock::take(folder / "lock");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ErrorCode::Conflict);
    EXPECT_NE(second.error().str().find(std::to_string(::getpid())), std::string::npos);
  }
  EXPECT_TRUE(FileLock::take(folder / "lock"));
}

unsigned modeOf(const std::filesystem::path& file) {
  struct stat status{};
  return ::stat(file.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

/// Who can open a file can lock it.
TEST(FileLock, whatIsNoFileOfItsOwnIsRefusedAndLeftAlone) {
  const test::TempFolder folder;
  ASSERT_TRUE(writeFileAtomic(folder / "victim", "its text", 0644));
  std::filesystem::create_symlink(folder / "victim", folder / "link");
  std::filesystem::create_symlink(folder / "nobody", folder / "dangling");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  std::filesystem::create_directory(folder / "directory");
  for (const char* name : {"link", "dangling", "fifo", "directory"}) {
    const auto lock = FileLock::take(folder / name);
    ASSERT_FALSE(lock) << name;
    EXPECT_EQ(lock.error().code(), ErrorCode::InvalidInput) << name;
    EXPECT_THAT(lock.error().str(), testing::HasSubstr("remove it")) << name;
  }
  EXPECT_EQ(*readFile(folder / "victim"), "its text");
  struct stat status{};
  ASSERT_EQ(::stat((folder / "victim").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
  EXPECT_FALSE(std::filesystem::exists(folder / "nobody"));
}

TEST(FileLock, otherUsersCannotOpenItsFileWhateverTheUmask) {
  test::TempFolder folder;
  for (const mode_t mask : {022, 000}) {
    const auto file = folder / fmt::format("lock-{:03o}", mask);
    const auto before = ::umask(mask);
    const auto lock = FileLock::take(file);
    ::umask(before);
    ASSERT_TRUE(lock);
    EXPECT_EQ(modeOf(file), 0600u);
  }
}

TEST(FileLock, aFileThatWasOpenToOthersIsClosedToThem) {
  test::TempFolder folder;
  const auto file = folder / "lock";
  ASSERT_TRUE(writeFileAtomic(file, "", 0666));
  ASSERT_TRUE(FileLock::take(file));
  EXPECT_EQ(modeOf(file), 0600u);
}

/// The descriptors of this process that are of this file.
int descriptorsOf(const std::filesystem::path& file) {
  int count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored))
    if (std::filesystem::read_symlink(entry.path(), ignored) == file) ++count;
  return count;
}

/// A holder deletes the file and lets go, as `lab down` does, while somebody who has opened it
/// waits for the lock of what is no file any more.
TEST(FileLock, whoWaitedForADeletedFileLocksTheOneThatOthersLock) {
  test::TempFolder folder;
  const auto file = folder / "lock";
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  ASSERT_TRUE(writeFileAtomic(file, std::to_string(dead) + "\n",
                              0600));  // of a dead holder: who comes waits a moment
  Fd holder(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(holder.get(), LOCK_EX), 0);
  std::optional<Result<FileLock>> taken;
  std::thread waiting([&] { taken = FileLock::take(file); });
  while (descriptorsOf(file) < 2) std::this_thread::yield();
  std::filesystem::remove(file);
  holder = Fd();
  waiting.join();
  ASSERT_TRUE(*taken) << taken->error().str();
  const auto second = FileLock::take(file);
  ASSERT_FALSE(second) << "two hold the lock";
  EXPECT_EQ(second.error().code(), ErrorCode::Conflict);
}

}  // namespace
}  // namespace muster::io
