// SPDX-License-Identifier: Apache-2.0
// Mounts as /proc/self/mounts of Debian 12 and Ubuntu 22.04 machines name them; how full they are
// is asked of the folder that the test runs in.
#include "tests/validate/fake_host.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using ::testing::HasSubstr;
using wire::CheckStatus;

class Filesystems : public FakeHost {
 protected:
  void mounted(const std::string& root_options, const std::string& more = "") {
    write("proc/self/mounts",
          "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n"
          "/dev/nvme0n1p2 / ext4 " +
              root_options +
              ",relatime 0 0\n"
              "tmpfs /run tmpfs ro,size=1k 0 0\n"
              "/dev/loop0 /snap squashfs ro,nodev,relatime 0 0\n" +
              more);
  }
};

TEST_F(Filesystems, writableWithRoomPasses) {
  mounted("rw");
  const auto verdict = check("system.filesystems", {{"min_free_percent", 0.0}});
  EXPECT_EQ(verdict.status, CheckStatus::Pass) << verdict.text;
  EXPECT_TRUE(verdict.values.contains("free_percent /"));
  EXPECT_EQ(verdict.values.size(), 1u) << "only what is on a disk";
}

/// errors=remount-ro: what ext4 does after an error of its disk.
TEST_F(Filesystems, whatTheKernelMadeReadOnlyFails) {
  mounted("ro");
  const auto verdict = check("system.filesystems");
  EXPECT_EQ(verdict.status, CheckStatus::Fail);
  EXPECT_THAT(verdict.text, HasSubstr("/ (ext4 on /dev/nvme0n1p2) is read-only"));
  write("etc/fstab", "# <file system>\nUUID=ab / ext4 ro,errors=remount-ro 0 1");
  EXPECT_EQ(check("system.filesystems", {{"min_free_percent", 0.0}}).status, CheckStatus::Pass)
      << "it is meant to be";
}

TEST_F(Filesystems, fullFails) {
  mounted("rw");
  const auto verdict = check("system.filesystems", {{"min_free_percent", 101.0}});
  EXPECT_EQ(verdict.status, CheckStatus::Fail);
  EXPECT_THAT(verdict.text, HasSubstr("% free, at least 101"));
  EXPECT_EQ(
      check("system.filesystems", {{"min_free_percent", 0.0}, {"min_free_inodes_percent", 101.0}})
          .status,
      CheckStatus::Fail);
}

TEST_F(Filesystems, oneThatDoesNotAnswerFails) {
  mounted("rw", "/dev/sda1 /data\\040set xfs rw 0 0\n");
  const auto verdict = check("system.filesystems", {{"min_free_percent", 0.0}});
  EXPECT_EQ(verdict.status, CheckStatus::Fail);
  EXPECT_THAT(verdict.text, HasSubstr("/data set (xfs on /dev/sda1) does not say"));
  write("data set/file", "");
  EXPECT_EQ(check("system.filesystems", {{"min_free_percent", 0.0}}).status, CheckStatus::Pass);
}

TEST_F(Filesystems, withoutATableThereIsNoPass) {
  EXPECT_EQ(check("system.filesystems").status, CheckStatus::NoData);
}

}  // namespace
}  // namespace muster::validate
