// SPDX-License-Identifier: Apache-2.0
// The builder of runs, with the real program beside this test: what is missing, built by a process
// of its own.
#include "app/runs/image_builder.h"

#include "base/io/crypto.h"
#include "tests/app/site_folder.h"
#include "tests/paths.h"

#include <gmock/gmock.h>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

extern "C" {  // glibc 2.36 forgot to say so
#include <sys/pidfd.h>
}

#include <cstdlib>
#include <functional>
#include <map>
#include <thread>

namespace muster::app {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kLimit = 120s;

class RealImages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "a tree keeps its owners only for root";
    const auto tree = test::sourceFolder() / "tests/provision/images/make_startable_tree.sh";
    const auto made =
        io::runChecked({.program = "sh",
                        .args = {"-ec", "cd \"$1\"; \"$2\" tree; tar -C tree -cf tree.tar .", "sh",
                                 (site_ / "").string(), tree.string()}});
    ASSERT_TRUE(made) << made.error().str();
    auto inventory = std::string(SiteFolder::kInventory);
    const std::string built = "{build: {suite: bookworm, packages: [linux-image-amd64]}}";
    inventory.replace(inventory.find(built), built.size(),
                      "{import: tree.tar, sha256: " + *io::sha256File(site_ / "tree.tar") + "}");
    site_.write("cluster.yaml", inventory);
    builder_ = makeImageBuilder(site_.options(), workers_);
  }
  Result<std::vector<std::string>> missing(const std::string& only) {
    return test::runAsync(builder_->missing(only));
  }
  std::unique_ptr<io::Child> start(const char* log) {
    auto child = builder_->start("bookworm", "", site_ / log);
    EXPECT_TRUE(child) << child.error().str();
    return std::move(*child);
  }
  static bool ends(io::Child& child) {
    for (const auto until = std::chrono::steady_clock::now() + kLimit;
         std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(50ms))
      if (!child.running()) return true;
    return false;
  }

  SiteFolder site_;
  Workers workers_{1};
  std::unique_ptr<ImageBuilder> builder_;
};

TEST_F(RealImages, areMissingUntilTheProgramHasBuiltThem) {
  const auto before = missing("");
  ASSERT_TRUE(before) << before.error().str();
  EXPECT_THAT(*before, ElementsAre("ramos", "bookworm"));
  const auto unknown = missing("noble");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::NotFound);
  const auto child = start("build.log");
  ASSERT_TRUE(ends(*child));
  EXPECT_THAT(*missing("bookworm"), IsEmpty()) << io::readFile(site_ / "build.log").value_or("");
  EXPECT_THAT(*missing(""), ElementsAre("ramos"));
  EXPECT_THAT(io::readFile(site_ / "build.log").value_or(""), HasSubstr("image bookworm@"));
}

/// Two of one image at a time: the later one waits, and finds it there.
TEST_F(RealImages, areBuiltOnceByTwoAtATime) {
  const auto first = start("first.log"), second = start("second.log");
  ASSERT_TRUE(ends(*first) && ends(*second));
  EXPECT_THAT(*missing("bookworm"), IsEmpty());
  const auto digestIn = [this](const char* log) {
    const auto text = io::readFile(site_ / log).value_or("");
    const auto at = text.find("image bookworm@");
    return at == std::string::npos ? text : text.substr(at, text.find(':', at) - at);
  };
  EXPECT_EQ(digestIn("first.log"), digestIn("second.log"));
}

/// A run that is paused or whose process dies lets go of its build; the next one begins again.
TEST_F(RealImages, areBuiltAgainAfterABuildThatWasKilled) {
  start("killed.log").reset();
  const auto again = start("again.log");
  ASSERT_TRUE(ends(*again));
  EXPECT_THAT(*missing("bookworm"), IsEmpty()) << io::readFile(site_ / "again.log").value_or("");
}

/// In mmdebstrap's place. Without a file "good" it ignores every signal that can be ignored, has a
/// process in a session of its own that goes on writing into the root, and does not end; with it,
/// it makes a root and lists it.
constexpr std::string_view kInstaller = R"sh(#!/bin/sh
root=
for word; do
  case $word in
    --*) ;;
    *) if [ -z "$suite" ]; then suite=$word; elif [ -z "$root" ]; then root=$word; fi ;;
  esac
done
if [ -e SITE/good ]; then
  sh TREE "$root"
  for each in "$root"/boot/vmlinuz*; do ln -s "boot/${each##*/}" "$root/vmlinuz"; done
  for each in "$root"/boot/initrd*; do ln -s "boot/${each##*/}" "$root/initrd.img"; done
  find "$root" >SITE/root.list
  exit
fi
trap '' TERM INT HUP
setsid sh -c '
  trap "" TERM INT HUP
  while :; do
    mkdir -p "$0" && echo x >>"$0/foreign"
    [ -e SITE/writes ] || mv "$0/foreign" SITE/writes
  done' "$root" &
while :; do wait; done
)sh";

class KilledBuild : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "building images needs root";
    auto text = std::string(kInstaller);
    const auto put = [&text](std::string_view word, const std::string& value) {
      for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at))
        text.replace(at, word.size(), value);
    };
    put("TREE", (test::sourceFolder() / "tests/provision/images/make_startable_tree.sh").string());
    put("SITE", (site_ / "").parent_path().string());
    ASSERT_TRUE(io::makeDirs(site_ / "bin"));
    ASSERT_TRUE(io::writeFileAtomic(site_ / "bin/mmdebstrap", text, 0755));
    const std::string path = ::getenv("PATH");
    ::setenv("PATH", ((site_ / "bin").string() + ":" + path).c_str(), 1);
    path_ = path;
    builder_ = makeImageBuilder(site_.options(), workers_);
  }
  void TearDown() override {
    if (!path_.empty()) ::setenv("PATH", path_.c_str(), 1);
    for (const auto& [pid, fd] : processes()) ::pidfd_send_signal(fd.get(), SIGKILL, nullptr, 0);
  }
  std::unique_ptr<io::Child> start(const char* log) {
    auto child = builder_->start("bookworm", "", site_ / log);
    EXPECT_TRUE(child) << child.error().str();
    return std::move(*child);
  }
  static bool becomes(const std::function<bool()>& what) {
    for (const auto until = std::chrono::steady_clock::now() + kLimit;
         std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(50ms))
      if (what()) return true;
    return false;
  }
  bool writes() {
    return becomes([this] { return std::filesystem::exists(site_ / "writes"); });
  }
  /// Those whose command line names this site's folder, by pid.
  std::map<pid_t, io::Fd> processes() const {
    std::map<pid_t, io::Fd> found;
    const auto mark = (site_ / "").parent_path().string();
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0 || pid == ::getpid()) continue;
      io::Fd fd(::pidfd_open(pid, 0));
      const auto words = io::readFile(entry.path() / "cmdline").value_or("");
      if (fd.valid() && words.find(mark) != std::string::npos) found.emplace(pid, std::move(fd));
    }
    return found;
  }
  /// Each of them, within a bounded time.
  static void expectEnded(const std::map<pid_t, io::Fd>& all) {
    for (const auto& [pid, fd] : all) {
      pollfd ended{fd.get(), POLLIN, 0};
      EXPECT_EQ(::poll(&ended, 1, 10'000), 1) << pid << " goes on";
    }
  }
  void expectAGoodBuild() {
    site_.write("good", "");
    const auto again = start("again.log");
    ASSERT_TRUE(becomes([&again] { return !again->running(); }));
    const auto log = io::readFile(site_ / "again.log").value_or("");
    EXPECT_THAT(log, HasSubstr("image bookworm@"));
    const auto root = io::readFile(site_ / "root.list").value_or("");
    EXPECT_THAT(root, AllOf(HasSubstr("/etc/hostname"), Not(HasSubstr("foreign"))));
  }

  SiteFolder site_;
  Workers workers_{1};
  std::unique_ptr<ImageBuilder> builder_;
  std::string path_;
};

/// As `kill -9` does it, and Ctrl-C where `image build --direct` is typed.
TEST_F(KilledBuild, leavesNoProcessBehindAndNothingInTheNextImage) {
  for (const int number : {SIGKILL, SIGINT}) {
    std::filesystem::remove(site_ / "writes");
    const auto build = start("killed.log");
    ASSERT_TRUE(writes()) << io::readFile(site_ / "killed.log").value_or("");
    const auto all = processes();
    EXPECT_GE(all.size(), 3u) << "unshare, mmdebstrap and its child";
    ASSERT_EQ(::kill(build->pid(), number), 0);
    ASSERT_TRUE(becomes([&build] { return !build->running(); }));
    EXPECT_THAT(io::readFile(site_ / "killed.log").value_or(""),
                HasSubstr(fmt::format("\nthe build was ended by signal {}\n", number)));
    expectEnded(all);
  }
  EXPECT_THAT(processes(), IsEmpty());
  expectAGoodBuild();
}

/// As a pause or a cancel of its run does it.
TEST_F(KilledBuild, endsWithWhoWatchesIt) {
  auto build = start("killed.log");
  ASSERT_TRUE(writes()) << io::readFile(site_ / "killed.log").value_or("");
  const auto all = processes();
  EXPECT_GE(all.size(), 3u);
  build.reset();
  expectEnded(all);
  EXPECT_THAT(processes(), IsEmpty());
  expectAGoodBuild();
}

}  // namespace
}  // namespace muster::app
