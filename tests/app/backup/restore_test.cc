// SPDX-License-Identifier: Apache-2.0
#include "app/site/state_lock.h"
#include "base/io/sealed_file.h"
#include "tests/app/backup/backup_site.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Restore : public BackupSite {};

/// What the lost host did after the backup is not known: nothing of then goes on by itself, and
/// what it gave out is older than what is given out now.
TEST_F(Restore, givesUpWhatWasUnderWayAndRaisesTokensAndTerms) {
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

TEST_F(Restore, doesNotTouchAFolderThatHoldsSomethingUnlessToldTo) {
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

TEST_F(Restore, doesNotReplaceAFolderInUse) {
  ASSERT_TRUE(make());
  const auto monitor = acquireMonitorInstance(site_ / "state");
  ASSERT_TRUE(monitor) << monitor.error().str();
  const auto refused = restoreBackup(site_.options(), file(), kPassphrase, true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict) << refused.error().str();
  EXPECT_FALSE(fs::exists(site_ / "state/restored"));
}

// What was wrong: a state on a volume of its own was refused by the kernel's words, after a
// database had been filled that a second try found not empty.
TEST_F(Restore, aMountPointIsRefusedBeforeAnythingIsRestored) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount";
  ASSERT_TRUE(make());
  const auto where = elsewhere();
  const pid_t child = ::fork();
  if (child == 0) {
    fs::create_directories(where.state);
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("state", where.state.c_str(), "tmpfs", 0, nullptr) != 0)
      ::_exit(9);
    const auto refused = [&](bool replace) {
      const auto restored = restoreBackup(where, file(), kPassphrase, replace);
      return !restored && restored.error().code() == ErrorCode::InvalidInput &&
             restored.error().str().contains("is a mount point");
    };
    if (!refused(false)) ::_exit(1);
    (void)io::writeFileAtomic(where.state / "of-before", "x");
    ::_exit(!refused(true) ? 2 : fs::exists(where.state / "of-before") ? 0 : 3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(fs::exists(where.state.string() + ".restoring"));
}

TEST_F(Restore, aWrongPassphraseOrAnotherFileLeavesNothing) {
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
TEST_F(Restore, writesNothingOutsideTheFolderWhateverAFileNames) {
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

TEST_F(Restore, refusesWhatANewerMusterHasMade) {
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
TEST_F(Restore, aRestoreThatIsKilledLeavesNothingHalf) {
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

}  // namespace
}  // namespace muster::app
