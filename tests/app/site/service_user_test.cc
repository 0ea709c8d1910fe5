// SPDX-License-Identifier: Apache-2.0
// Root becomes the user that a state folder belongs to. What it may do then is read from the kernel
// (/proc/PID/status), in processes of their own: nobody comes back from it.
#include "app/site/service_user.h"

#include "base/io/files.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUser = "daemon";  // of every Debian
/// CAP_NET_BIND_SERVICE (10), CAP_NET_ADMIN (12), CAP_NET_RAW (13): capabilities(7).
constexpr const char* kThree = "0000000000003400";

class ServiceUser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, who becomes somebody else";
    user_ = ::getpwnam(kUser);
    ASSERT_NE(user_, nullptr);
    std::string name = (fs::temp_directory_path() / "service-user-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
    state_ = folder_ / "state";
    ASSERT_EQ(::mkdir(state_.c_str(), 0700), 0);
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  void giveStateTo(uid_t uid) const { ASSERT_EQ(::chown(state_.c_str(), uid, uid), 0); }

  /// What `work` answers as its exit status, in a process of its own.
  static int elsewhere(const std::function<int()>& work) {
    const auto child = ::fork();
    if (child == 0) ::_exit(work());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
  }
  static std::string field(const std::string& text, const std::string& key) {
    const auto at = text.find("\n" + key + ":");
    if (at == std::string::npos) return "";
    const auto from = text.find_first_not_of(" \t", at + key.size() + 2);
    return text.substr(from, text.find('\n', from) - from);
  }

  const passwd* user_ = nullptr;
  fs::path folder_, state_;
};

TEST_F(ServiceUser, rootBecomesTheOwnerWithThreeCapabilitiesAlsoInPrograms) {
  giveStateTo(user_->pw_uid);
  const auto out = folder_ / "status";
  std::ofstream(out).close();
  ASSERT_EQ(::chown(out.c_str(), user_->pw_uid, user_->pw_gid), 0);
  EXPECT_EQ(elsewhere([&] {
              const auto left = becomeOwnerOf(state_, kUser);
              if (!left || !*left) return 1;
              const auto status = io::readFile("/proc/self/status", 1 << 16).value_or("");
              for (const char* key : {"CapPrm", "CapEff", "CapInh", "CapAmb"})
                if (field(status, key) != kThree) return 2;
              if (::setuid(0) == 0 || ::seteuid(0) == 0) return 3;  // not back
              if (std::string(std::getenv("HOME")) != user_->pw_dir) return 4;
              // Root's own file is shut to it.
              if (::open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0) return 5;
              if (!io::writeFileAtomic(state_ / "key", "k", 0600)) return 6;
              ::execl("/bin/sh", "sh", "-c", ("cat /proc/self/status >" + out.string()).c_str(),
                      nullptr);
              return 7;
            }),
            0);
  const auto of_program = io::readFile(out, 1 << 16).value_or("");
  EXPECT_EQ(field(of_program, "CapEff"), kThree);
  EXPECT_EQ(field(of_program, "Uid").substr(0, 2), std::to_string(user_->pw_uid) + "\t");
  EXPECT_TRUE(field(of_program, "Groups").find('0') == std::string::npos)
      << "root's groups are left behind: " << field(of_program, "Groups");
  struct stat status{};
  ASSERT_EQ(::stat((state_ / "key").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, user_->pw_uid);
}

TEST_F(ServiceUser, rootStaysRootElsewhere) {
  const auto stays = [&](const fs::path& folder, const char* name) {
    return elsewhere([&] {
      const auto left = becomeOwnerOf(folder, name);
      return left && !*left && ::geteuid() == 0 ? 0 : 1;
    });
  };
  EXPECT_EQ(stays(state_, kUser), 0) << "the folder is root's";
  EXPECT_EQ(stays(folder_ / "missing", kUser), 0);
  giveStateTo(user_->pw_uid + 1);
  EXPECT_EQ(stays(state_, kUser), 0) << "the folder is somebody else's";
  giveStateTo(user_->pw_uid);
  EXPECT_EQ(stays(state_, "no-such-user-of-muster"), 0);
  fs::create_directory_symlink(state_, folder_ / "link");
  ASSERT_EQ(::lchown((folder_ / "link").c_str(), user_->pw_uid, user_->pw_gid), 0);
  EXPECT_EQ(stays(folder_ / "link", kUser), 0) << "a link is not followed";
}

TEST_F(ServiceUser, aRestoredTreeGetsTheOwnerAndLinksAreNotFollowed) {
  giveStateTo(user_->pw_uid);
  const auto tree = folder_ / "restored", outside = folder_ / "outside";
  fs::create_directories(tree / "keys");
  std::ofstream(tree / "keys" / "ca.key") << "key";
  std::ofstream(outside) << "root's";
  fs::create_symlink(outside, tree / "keys" / "link");
  ASSERT_TRUE(giveTree(tree, state_));
  struct stat status{};
  for (const auto& path : {tree, tree / "keys", tree / "keys" / "ca.key"}) {
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, user_->pw_uid) << path;
  }
  ASSERT_EQ(::stat(outside.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0u);
  ASSERT_TRUE(giveTree(tree, folder_ / "missing")) << "nobody to give it to";
}

}  // namespace
}  // namespace muster::app
