// SPDX-License-Identifier: Apache-2.0
#include "tests/app/backup/backup_site.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sched.h>

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Backup : public BackupSite {};

TEST_F(Backup, bringsKeysStoreInventoryAndSecretsBack) {
  const auto made = make();
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(fs::status(file()).permissions() & fs::perms(0777), fs::perms(0600));
  EXPECT_THAT(made->left_out, IsEmpty());
  const auto done = restoreBackup(elsewhere(), file(), kPassphrase, false);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(done->cluster, "small");
  for (const auto& row : kKeyPurposes) {
    const auto before = publicKeyOf(site_ / "state", row.purpose),
               after = publicKeyOf(elsewhere().state, row.purpose);
    ASSERT_TRUE(after) << after.error().str();
    EXPECT_EQ(*before, *after) << row.name;
  }
  EXPECT_EQ(io::readFile(done->inventory / "bmc-password").value_or(""), "calvin\n");
  EXPECT_EQ(io::readFile(done->inventory / "cluster.yaml").value_or(""), SiteFolder::kInventory);
  EXPECT_EQ(fs::status(elsewhere().state).permissions() & fs::perms(0777), fs::perms(0700));
  for (const auto& entry : fs::recursive_directory_iterator(elsewhere().state))
    EXPECT_EQ(entry.status().permissions() & fs::perms(0077), fs::perms(0)) << entry.path();
  const auto store = lifecycle::openStore(elsewhere().storeUrl());
  ASSERT_TRUE(store) << store.error().str();
  const auto subject = node("gpu001");
  const auto events = (*store)->lastEvents(10, &subject);
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->front().text, "before");
  const auto checked = checkStore(elsewhere());
  ASSERT_TRUE(checked) << checked.error().str();
  for (const auto& line : *checked) EXPECT_TRUE(line.ok) << line.what << ": " << line.text;
}

TEST_F(Backup, afterAFailureTheOldBackupIsStillThere) {
  ASSERT_TRUE(make());
  const auto before = io::readFile(file());
  fs::remove(site_ / "state/muster.db-wal");
  ASSERT_TRUE(io::writeFileAtomic(site_ / "state/muster.db", "this is no database at all"));
  ASSERT_FALSE(make());
  EXPECT_EQ(io::readFile(file()).value_or(""), *before);
  EXPECT_THAT(namesIn(site_ / ""), Contains("site.backup"));
  for (const auto& name : namesIn(site_ / ""))
    EXPECT_EQ(name.find(".work-"), std::string::npos) << name;
}

/// What a killed one has left goes with the next one to the same file; what one that works holds
/// stays.
TEST_F(Backup, takesAwayWhatAKilledOneHasLeft) {
  const auto left = fs::path(file().string() + ".work-abcdef"),
             used = fs::path(file().string() + ".work-ghijkl");
  for (const auto& folder : {left, used}) {
    fs::create_directory(folder);
    ASSERT_TRUE(io::writeFileAtomic(folder / "store", "nobody has encrypted this"));
  }
  const int held = ::open(used.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  ASSERT_TRUE(make());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(used / "store"));
  ::close(held);
}

/// On a full disk: nothing half, and the same again works when there is room.
TEST_F(Backup, aFullDiskLeavesNothingHalf) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount a small file system";
  const auto made = make();
  ASSERT_TRUE(made);
  const pid_t child = ::fork();
  if (child == 0) {  // a mount namespace of its own
    const auto small = site_ / "small";
    fs::create_directory(small);
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("small", small.c_str(), "tmpfs", 0, "size=64k") != 0)
      ::_exit(77);
    auto there = elsewhere();
    there.state = small / "state";
    const auto restored = restoreBackup(there, file(), kPassphrase, false);
    if (restored || fs::exists(there.state) || !fs::is_empty(small)) ::_exit(1);
    // No room for the store's copy, for the whole of the backup beside it, or for its end.
    const auto store = fs::file_size(site_.options().state / "muster.db") >> 10;
    for (const auto kib : {std::uintmax_t{64}, store + 64, store + store / 2, 2 * store - 64}) {
      const auto room = fmt::format("size={}k", kib);
      if (::mount("small", small.c_str(), "tmpfs", MS_REMOUNT, room.c_str()) != 0) ::_exit(79);
      const auto backup = makeBackup(site_.options(), small / "b", kPassphrase);
      if (backup || !fs::is_empty(small)) ::_exit(2);
      if (backup.error().str().find("the disk of " + small.string() + " is full") ==
          std::string::npos)
        ::_exit(5);
    }
    if (::mount("small", small.c_str(), "tmpfs", MS_REMOUNT, "size=64m") != 0) ::_exit(78);
    if (!restoreBackup(there, file(), kPassphrase, false)) ::_exit(3);
    if (!makeBackup(site_.options(), small / "b", kPassphrase)) ::_exit(4);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Backup, takesThePlaceOfABackupAndOfNothingElse) {
  ASSERT_TRUE(io::writeFileAtomic(file(), "notes that nobody has twice"));
  const auto refused = make();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("is there and is no backup"));
  EXPECT_EQ(io::readFile(file()).value_or(""), "notes that nobody has twice");
  ASSERT_TRUE(io::writeFileAtomic(file(), ""));  // as mktemp makes it
  EXPECT_TRUE(make());
  EXPECT_TRUE(make()) << "every night";
}

TEST_F(Backup, isRefusedInTheStateFolderAndOverADevice) {
  const auto inside = makeBackup(site_.options(), site_ / "state/keys/b", kPassphrase);
  ASSERT_FALSE(inside);
  EXPECT_THAT(inside.error().str(), HasSubstr("is in the state folder"));
  EXPECT_FALSE(makeBackup(site_.options(), "/dev/null", kPassphrase));
  auto unused = site_.options();
  unused.state = site_ / "never";
  EXPECT_FALSE(makeBackup(unused, file(), kPassphrase));
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(Backup, storeCheckNamesADamagedStoreAndAKeyThatIsNotTheSites) {
  ASSERT_TRUE(site_.store()->putValue("site/images-key", "0123456789abcdef"));
  const auto checked = checkStore(site_.options());
  ASSERT_TRUE(checked) << checked.error().str();
  bool seen = false;
  for (const auto& line : *checked) {
    EXPECT_EQ(line.ok, line.what != "key images") << line.what << ": " << line.text;
    seen = seen || line.what == "key images";
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace muster::app
