// SPDX-License-Identifier: Apache-2.0
#include "app/backup.h"

#include "app/site_keys.h"
#include "app/state_lock.h"
#include "base/io/sealed_file.h"
#include "lifecycle/store/leader_lease.h"
#include "lifecycle/store/store_copy.h"
#include "tests/app/site_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sched.h>

#include <csignal>

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Secret kPassphrase("correct horse battery");

lifecycle::Subject node(const char* name) { return lifecycle::Subject(NodeName(name)); }

class Backup : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(io::makeDirs(site_ / "state", 0700));
    ASSERT_TRUE(Keys::loadOrCreate(site_ / "state"));
    auto store = site_.store();
    ASSERT_TRUE(store->addEvent(
        {0, SystemClock().now(), lifecycle::EventKind::Note, node("gpu001"), "", "before"}));
    ASSERT_TRUE(store->grantWipe(NodeName("gpu001"), "new disk", SystemClock().now()));
    ASSERT_TRUE(store->signOn("old host", 60s));
    const auto claim = store->claim(node("gpu002"));
    ASSERT_TRUE(claim);
    token_ = claim->token;
    lifecycle::LeaderLease lease(*store, clock_, "old host", "10.20.0.1");
    const auto leader = lease.take();
    ASSERT_TRUE(leader);
    term_ = leader->term;
    lifecycle::Intent intent;
    intent.id = "i1";
    intent.action.id = "gpu002/image";
    intent.action.facet = {node("gpu002"), FacetName("image")};
    intent.opened_at = SystemClock().now();
    ASSERT_TRUE(store->openIntent(intent));
  }
  fs::path file() const { return site_ / "site.backup"; }
  Result<BackupReport> make() const { return makeBackup(site_.options(), file(), kPassphrase); }
  /// Another host's folders.
  Options elsewhere() const {
    auto out = site_.options();
    out.state = site_ / "other" / "state";
    return out;
  }
  /// What a reader of the state folder's parent sees, hidden files too.
  std::vector<std::string> namesIn(const fs::path& folder) const {
    std::vector<std::string> out;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      out.push_back(entry.path().filename().string());
    return out;
  }
  SiteFolder site_;
  SystemClock clock_;
  std::int64_t token_ = 0, term_ = 0;
};

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

/// What the lost host did after the backup is not known: nothing of then goes on by itself, and
/// what it gave out is older than what is given out now.
TEST_F(Backup, givesUpWhatWasUnderWayAndRaisesTokensAndTerms) {
  ASSERT_TRUE(make());
  {  // after the backup the old host goes on
    auto store = site_.store();
    ASSERT_TRUE(store->signOn("old host", 60s));
    const auto claim = store->claim(node("gpu002"));
    ASSERT_TRUE(claim);
    token_ = claim->token;
    lifecycle::LeaderLease lease(*store, clock_, "old host", "10.20.0.1");
    const auto leader = lease.take();
    ASSERT_TRUE(leader);
    term_ = leader->term;
  }
  ASSERT_TRUE(restoreBackup(elsewhere(), file(), kPassphrase, false));
  auto store = lifecycle::openStore(elsewhere().storeUrl());
  ASSERT_TRUE(store);
  EXPECT_THAT(*(*store)->openIntents(), IsEmpty());
  EXPECT_THAT(*(*store)->wipeGrants(), IsEmpty());
  const auto intents = (*store)->intentsOf(node("gpu002"), 1);
  ASSERT_TRUE(intents);
  EXPECT_EQ(intents->front().state, lifecycle::IntentState::Abandoned);
  EXPECT_THAT(intents->front().outcome, HasSubstr("restored from the backup of"));
  ASSERT_TRUE((*store)->signOn("new host", 60s));
  const auto claim = (*store)->claim(node("gpu002"));
  ASSERT_TRUE(claim);
  EXPECT_TRUE(claim->ours) << "no lease of the lost host holds it";
  EXPECT_GT(claim->token, token_);
  const auto leader = lifecycle::currentLeader(**store);
  ASSERT_TRUE(leader && *leader);
  EXPECT_GT((*leader)->term, term_);
  const auto events = (*store)->lastEvents(1, nullptr);
  ASSERT_TRUE(events);
  EXPECT_THAT(events->front().text, HasSubstr("restored from the backup of"));
}

TEST_F(Backup, doesNotTouchAFolderThatHoldsSomethingUnlessToldTo) {
  ASSERT_TRUE(make());
  const auto refused = restoreBackup(site_.options(), file(), kPassphrase, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(refused.error().str(), HasSubstr("--replace"));
  const auto replaced = restoreBackup(site_.options(), file(), kPassphrase, true);
  ASSERT_TRUE(replaced) << replaced.error().str();
  EXPECT_TRUE(fs::exists(replaced->replaced / "muster.db")) << replaced->replaced;
  EXPECT_TRUE(fs::exists(site_ / "state/restored/about.json"));
}

TEST_F(Backup, doesNotReplaceAFolderInUse) {
  ASSERT_TRUE(make());
  const auto monitor = acquireMonitorInstance(site_ / "state");
  ASSERT_TRUE(monitor) << monitor.error().str();
  const auto refused = restoreBackup(site_.options(), file(), kPassphrase, true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict) << refused.error().str();
  EXPECT_FALSE(fs::exists(site_ / "state/restored"));
}

TEST_F(Backup, aWrongPassphraseOrAnotherFileLeavesNothing) {
  ASSERT_TRUE(make());
  const auto wrong = restoreBackup(elsewhere(), file(), Secret("another passphrase"), false);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), ErrorCode::Denied);
  const auto whole = io::readFile(file());
  ASSERT_TRUE(whole);
  for (const auto& content :
       {whole->substr(0, whole->size() / 2), whole->substr(0, whole->size() - 1),
        std::string("PK\x03\x04 a zip"), std::string()}) {
    ASSERT_TRUE(io::writeFileAtomic(file(), content));
    const auto refused = restoreBackup(elsewhere(), file(), kPassphrase, false);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::Corrupt) << refused.error().str();
  }
  EXPECT_FALSE(fs::exists(elsewhere().state));
  EXPECT_THAT(namesIn(elsewhere().state.parent_path()), IsEmpty());
}

/// A sealed file whose passphrase is known, with entries that a backup never has.
TEST_F(Backup, writesNothingOutsideTheFolderWhateverAFileNames) {
  const std::string about =
      fmt::format(R"({{"format":"muster-backup/1","schema":{},"store":"sqlite","made_at":"x"}})",
                  lifecycle::knownSchema());
  const auto entry = [](const std::string& name, const std::string& content) {
    std::string out{'\0', '\0', '\0', static_cast<char>(name.size())};
    out += name;
    out.append(7, '\0');
    out += static_cast<char>(content.size());
    return out + content;
  };
  for (const auto* name : {"inventory/../../../evil", "/etc/evil", "state/controller-id", "evil",
                           "state/keys/../../evil", "inventory", "about"}) {
    std::error_code ignored;
    fs::remove(file(), ignored);
    auto out = io::SealedWriter::create(file(), kPassphrase, about);
    ASSERT_TRUE(out);
    std::string text{'\0', '\0', '\0', 5};
    text += "about";
    text.append(7, '\0');
    text += static_cast<char>(about.size());
    ASSERT_TRUE(out->write(text + about + entry(name, "x") + std::string(4, '\0')));
    ASSERT_TRUE(out->finish());
    const auto refused = restoreBackup(elsewhere(), file(), kPassphrase, false);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code(), ErrorCode::Corrupt) << refused.error().str();
  }
  EXPECT_THAT(namesIn(elsewhere().state.parent_path()), IsEmpty());
}

TEST_F(Backup, refusesWhatANewerMusterHasMade) {
  const auto about =
      fmt::format(R"({{"format":"muster-backup/1","muster":"9.0.0","schema":{},"store":"sqlite"}})",
                  lifecycle::knownSchema() + 1);
  auto out = io::SealedWriter::create(file(), kPassphrase, about);
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->finish());
  const auto refused = restoreBackup(elsewhere(), file(), kPassphrase, false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("was made by muster 9.0.0"));
}

/// Killed at any moment: the folder is not there, or restored whole; the next restore succeeds.
TEST_F(Backup, aRestoreThatIsKilledLeavesNothingHalf) {
  ASSERT_TRUE(make());
  int killed = 0, ended = 0;
  for (int step = 0; ended < 2 && step < 400; ++step) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto done = restoreBackup(elsewhere(), file(), kPassphrase, false);
      ::_exit(done ? 0 : 1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(8 * step));  // where it is killed
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
      ++killed;
    } else {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      ++ended;
    }
    if (fs::exists(elsewhere().state)) {
      const auto checked = checkStore(elsewhere());
      ASSERT_TRUE(checked) << checked.error().str();
      for (const auto& line : *checked) EXPECT_TRUE(line.ok) << line.what << ": " << line.text;
      const auto store = lifecycle::openStore(elsewhere().storeUrl());
      ASSERT_TRUE(store);
      EXPECT_THAT(*(*store)->wipeGrants(), IsEmpty());
      fs::remove_all(elsewhere().state);
    }
  }
  EXPECT_GT(killed, 5);
  EXPECT_GE(ended, 2);
  EXPECT_THAT(namesIn(elsewhere().state.parent_path()), IsEmpty())
      << "the last one has taken away what the killed ones left";
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
    const auto backup = makeBackup(site_.options(), small / "b", kPassphrase);
    if (backup || !fs::is_empty(small)) ::_exit(2);
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
