// SPDX-License-Identifier: Apache-2.0
// A controller whose store is taken away while it has nothing to write.
#include "app/site/store_watch.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace muster::app {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr unsigned kSeveralLooksSeconds = 5;
enum { kNothingHappened = 77, kNoStore = 78 };

/// In a process of its own: opens a store and watches it; `meanwhile` is done once the watch runs.
void watchStore(const std::filesystem::path& file, const std::function<void()>& meanwhile) {
  auto store = lifecycle::openSqliteStore(file);
  if (!store) std::_Exit(kNoStore);
  boost::asio::io_context context;
  auto lock = acquireLock(file.parent_path());
  if (!lock) std::_Exit(kNoStore);
  const app::StoreWatch watch(context, **store, *lock);
  boost::asio::post(context, meanwhile);
  context.run_for(kPatience);
  std::_Exit(kNothingHappened);
}

TEST(StoreWatchDeathTest, endsTheProcessWhenTheLogIsDeleted) {
  const test::TempFolder folder;
  const auto file = folder / "muster.db";
  EXPECT_EXIT(watchStore(file, [&] { ::unlink((file.string() + "-wal").c_str()); }),
              testing::ExitedWithCode(kLostStore), "muster.db-wal.* was deleted under it");
}

TEST(StoreWatchDeathTest, endsTheProcessWhenABackupIsMovedIntoPlace) {
  const test::TempFolder folder;
  const auto file = folder / "muster.db";
  ASSERT_TRUE(lifecycle::openSqliteStore(file));
  std::filesystem::copy_file(file, folder / "backup");
  EXPECT_EXIT(watchStore(file, [&] { std::filesystem::rename(folder / "backup", file); }),
              testing::ExitedWithCode(kLostStore), "was replaced by another file under it");
}

TEST(StoreWatchDeathTest, endsTheProcessWhenABackupIsCopiedOverTheDatabase) {
  const test::TempFolder folder;
  const auto file = folder / "muster.db";
  ASSERT_TRUE(lifecycle::openSqliteStore(file));
  std::filesystem::copy_file(file, folder / "backup");
  const auto copy = [&] {
    (void)io::runChecked({.program = "cp", .args = {(folder / "backup").string(), file.string()}});
  };
  EXPECT_EXIT(watchStore(file, copy), testing::ExitedWithCode(kLostStore),
              "was written over by another program");
}

TEST(StoreWatchDeathTest, endsTheProcessWhenItsLockIsTakenAway) {
  for (const char* name : {"lock", "turn"}) {
    const test::TempFolder folder;
    const auto file = folder / "muster.db";
    EXPECT_EXIT(watchStore(file, [&] { std::filesystem::remove(folder / name); }),
                testing::ExitedWithCode(kLostStore),
                std::string("/") + name + ", a lock that this muster holds, was deleted");
    EXPECT_EXIT(watchStore(file,
                           [&] {
                             std::filesystem::rename(folder / name, folder / "aside");
                             std::filesystem::copy_file(folder / "aside", folder / name);
                           }),
                testing::ExitedWithCode(kLostStore), "was deleted or replaced under it");
  }
}

TEST(StoreWatchDeathTest, leavesAProcessWithItsStoreAlone) {
  const test::TempFolder folder;
  const auto file = folder / "muster.db";
  const auto over_soon = [] { ::alarm(kSeveralLooksSeconds); };
  EXPECT_EXIT(watchStore(file, over_soon), testing::KilledBySignal(SIGALRM), "");
}

}  // namespace
}  // namespace muster::app
