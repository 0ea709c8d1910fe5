// SPDX-License-Identifier: Apache-2.0
// What killed commands leave: racks without a name, without a folder, half of a down. Real
// namespaces and processes, no machines. Needs root.
#include "base/io/files.h"
#include "base/io/process.h"
#include "lab/lab.h"
#include "lab/netns.h"
#include "tests/lab/lab_cluster.h"

#include <gtest/gtest.h>

#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>

namespace muster::lab {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class Leftovers : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: it makes network namespaces";
    char name[] = "/tmp/muster-leftovers-XXXXXX";
    base_ = ::mkdtemp(name);
    rack_ = rackIn("lab", fmt::format("l{}", ::getpid()));
    other_ = rackIn("other", fmt::format("o{}", ::getpid()));
  }
  void TearDown() override {
    if (base_.empty()) return;
    for (const auto& rack : {rack_, other_}) {
      for (const auto& marked : markedNamespaces())
        if (marked.folder == rack.paths.root) EXPECT_TRUE(endProcessesOf(marked, 1s));
      EXPECT_TRUE(removeNamespace(rack.netns));
    }
    for (auto pid : started_) ::waitpid(pid, nullptr, 0);
    fs::remove_all(base_);
  }

  Rack rackIn(const std::string& folder, const std::string& name) {
    auto rack =
        planRack(labCluster(name), Paths{base_ / folder, base_ / folder / "disks"}, Accel::Tcg)
            .value();
    rack.id = "id-of-" + name;
    return rack;
  }
  /// A rack with one process in it and the record that `up` writes first.
  pid_t make(const Rack& rack) {
    EXPECT_TRUE(makeNamespace(rack));
    auto pid = io::makeProcessRunner()->startDetached(
        {.program = "ip", .args = {"netns", "exec", rack.netns, "sleep", "infinity"}},
        base_ / "log");
    EXPECT_TRUE(pid);
    started_.push_back(*pid);
    while (processesIn(rack.netns).empty() && alive(*pid))
      ::usleep(1000);  // `ip` enters the namespace, then becomes the program
    return *pid;
  }
  void record(const Rack& rack, bool ending) {
    EXPECT_TRUE(io::makeDirs(rack.paths.root));
    EXPECT_TRUE(
        io::writeFileAtomic(rack.paths.record(),
                            fmt::format(R"({{"netns":"{}","disks":"","rack_id":"{}","ending":{}}})",
                                        rack.netns, rack.id, ending)));
  }
  /// As after a kill in the middle of `ip netns delete`, or the end of the mount namespace in which
  /// the name was made.
  static void loseName(const Rack& rack) {
    EXPECT_EQ(::umount2(("/run/netns/" + rack.netns).c_str(), MNT_DETACH), 0);
  }
  static bool alive(pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) == 0; }
  /// A process that was killed leaves its namespaces a moment before it can be waited for.
  static bool hasEnded(pid_t pid) {
    for (int tries = 0; tries < 5'000; ++tries, ::usleep(1'000))
      if (!alive(pid)) return true;
    return false;
  }
  static bool isMarked(const Rack& rack) {
    auto all = markedNamespaces();
    return std::any_of(all.begin(), all.end(), [&](const auto& marked) {
      return marked.folder == rack.paths.root && marked.rack_id == rack.id;
    });
  }
  static void say(std::string_view) {}

  fs::path base_;
  Rack rack_, other_;
  std::vector<pid_t> started_;
};

TEST_F(Leftovers, downEndsARackThatHasLostItsNameAndNoOther) {
  const auto ours = make(rack_), others = make(other_);
  record(rack_, false);
  loseName(rack_);
  EXPECT_FALSE(namespaceExists(rack_.netns)) << "the file is there, but it is no namespace";
  ASSERT_TRUE(isMarked(rack_));
  auto ended = down(rack_.paths.root, say);
  ASSERT_TRUE(ended) << ended.error().str();
  EXPECT_TRUE(hasEnded(ours));
  EXPECT_TRUE(alive(others)) << "a rack of another folder";
  EXPECT_FALSE(fs::exists("/run/netns/" + rack_.netns));
  EXPECT_FALSE(fs::exists(rack_.paths.root));
  EXPECT_TRUE(down(rack_.paths.root, say)) << "once more";
}

TEST_F(Leftovers, downEndsARackWhoseFolderWasRemovedByHand) {
  const auto ours = make(rack_), others = make(other_);
  auto ended = down(rack_.paths.root, say);
  ASSERT_TRUE(ended) << ended.error().str();
  EXPECT_TRUE(hasEnded(ours));
  EXPECT_TRUE(alive(others));
}

TEST_F(Leftovers, aRackThatLivesGetsItsNameBack) {
  const auto ours = make(rack_);
  loseName(rack_);
  auto all = markedNamespaces();
  auto mine = std::find_if(all.begin(), all.end(),
                           [&](const auto& marked) { return marked.folder == rack_.paths.root; });
  ASSERT_NE(mine, all.end());
  auto named = nameNamespace(*mine, rack_.netns);
  ASSERT_TRUE(named) << named.error().str();
  EXPECT_EQ(processesIn(rack_.netns), std::vector<pid_t>{ours});
}

TEST_F(Leftovers, aNameWithoutANamespaceIsNoObstacle) {
  fs::create_directories("/run/netns");
  ASSERT_TRUE(io::writeFileAtomic("/run/netns/" + rack_.netns, ""));
  EXPECT_FALSE(namespaceExists(rack_.netns));
  auto made = makeNamespace(rack_);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_TRUE(namespaceExists(rack_.netns));
  ASSERT_TRUE(markOf(rack_.netns));
  EXPECT_EQ(markOf(rack_.netns)->rack_id, rack_.id);
}

TEST_F(Leftovers, aDownThatWasCutShortIsFinishedByTheNextOne) {
  const auto ours = make(rack_);
  record(rack_, true);
  auto ended = down(rack_.paths.root, say);
  ASSERT_TRUE(ended) << ended.error().str();
  EXPECT_TRUE(hasEnded(ours));
  EXPECT_FALSE(namespaceExists(rack_.netns));
  EXPECT_FALSE(fs::exists(rack_.paths.root));
}

}  // namespace
}  // namespace muster::lab
