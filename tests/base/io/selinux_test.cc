// SPDX-License-Identifier: Apache-2.0
// What a system says of SELinux, and Debian's own setfiles in a chroot, which labels its files.
#include "base/io/selinux.h"

#include "base/io/files.h"
#include "tests/run_async.h"
#include "tests/selinux_labels.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

namespace muster::io {
namespace {

using testing::HasSubstr;

TEST(SelinuxConfig, isReadAsLibselinuxReadsIt) {
  const struct {
    const char* text;
    bool enforcing;
    const char* policy;
  } cases[] = {
      {"", false, "targeted"},
      {"SELINUX=enforcing\nSELINUXTYPE=targeted\n", true, "targeted"},
      {"# SELINUX=enforcing\nSELINUX=permissive\nSELINUXTYPE=mls", false, "mls"},
      {"SELINUX= Enforcing \r\nSELINUXTYPE=minimum  \n", true, "minimum"},
      {"SELINUX=disabled\nSELINUX=enforcing\n", false, "targeted"},
      {"SELINUX=odd\nSELINUX=enforcing\n", true, "targeted"},
      {"SELINUXTYPE=../../tmp\nSELINUX=enforcing\n", true, "targeted"},
      {"SELINUXTYPE=\nSELINUX=enforcing", true, "targeted"},
      {"SELINUX\n=enforcing\n", false, "targeted"},
  };
  for (const auto& one : cases) {
    const auto config = parseSelinuxConfig(one.text);
    EXPECT_EQ(config.enforcing, one.enforcing) << one.text;
    EXPECT_EQ(config.policy, one.policy) << one.text;
  }
}

class LabelTree : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = test::noLabelsHere(); !why.empty()) GTEST_SKIP() << why;
    put("etc/shadow");
    put("usr/bin/tool");
    put("opt/thing");
    std::filesystem::create_symlink("../bin/tool", root_ / "usr/sbin-link");
  }
  void put(const std::string& name) {
    ASSERT_TRUE(makeDirs((root_ / name).parent_path()));
    ASSERT_TRUE(writeFileAtomic(root_ / name, "content"));
  }

  test::TempFolder folder_;
  const std::filesystem::path root_ = folder_ / "root";
};

TEST_F(LabelTree, everyFileOfASystemThatEnforcesGetsTheLabelOfItsPath) {
  test::putSelinux(root_, "enforcing");
  const auto done = labelTree(root_);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_TRUE(*done);
  EXPECT_EQ(test::labelOf(root_), "root_t");
  EXPECT_EQ(test::labelOf(root_ / "etc"), "etc_t");
  EXPECT_EQ(test::labelOf(root_ / "etc/shadow"), "shadow_t");
  EXPECT_EQ(test::labelOf(root_ / "usr/bin/tool"), "bin_t");
  EXPECT_EQ(test::labelOf(root_ / "usr/sbin-link"), "usr_t") << "the link's own";
  EXPECT_EQ(test::labelOf(root_ / "opt/thing"), "default_t");
}

TEST_F(LabelTree, theNextTimeOnlyWhatIsNewOrWrongIsWritten) {
  test::putSelinux(root_, "enforcing");
  ASSERT_TRUE(labelTree(root_));
  struct stat before{}, after{};
  ASSERT_EQ(::lstat((root_ / "usr/bin/tool").c_str(), &before), 0);
  put("etc/hosts");
  const std::string foreign = "unconfined_u:object_r:user_tmp_t:s0";
  ASSERT_EQ(::lsetxattr((root_ / "etc/shadow").c_str(), "security.selinux", foreign.c_str(),
                        foreign.size() + 1, 0),
            0);
  ASSERT_TRUE(labelTree(root_));
  EXPECT_EQ(test::labelOf(root_ / "etc/hosts"), "net_conf_t");
  EXPECT_EQ(test::labelOf(root_ / "etc/shadow"), "shadow_t");
  ASSERT_EQ(::lstat((root_ / "usr/bin/tool").c_str(), &after), 0);
  EXPECT_EQ(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
  EXPECT_EQ(before.st_ctim.tv_sec, after.st_ctim.tv_sec);
}

TEST_F(LabelTree, aSystemThatDoesNotEnforceIsLeftAlone) {
  for (const char* mode : {"permissive", "disabled"}) {
    test::putSelinux(root_, mode);
    const auto done = labelTree(root_);
    ASSERT_TRUE(done) << done.error().str();
    EXPECT_FALSE(*done);
  }
  std::filesystem::remove_all(root_ / "etc/selinux");
  EXPECT_FALSE(*labelTree(root_));
  EXPECT_EQ(test::labelOf(root_ / "etc/shadow"), "(none)");
}

TEST_F(LabelTree, whatIsMissingIsNamed) {
  test::putSelinux(root_, "enforcing");
  std::filesystem::remove(root_ / "usr/sbin/setfiles");
  const auto without_program = labelTree(root_);
  ASSERT_FALSE(without_program);
  EXPECT_EQ(without_program.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(without_program.error().str(), HasSubstr("install policycoreutils"));
  std::filesystem::remove_all(root_ / "etc/selinux/targeted");
  const auto without_policy = labelTree(root_);
  ASSERT_FALSE(without_policy);
  EXPECT_EQ(without_policy.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(without_policy.error().str(), HasSubstr("install selinux-policy-targeted"));
}

TEST_F(LabelTree, contextsThatSetfilesCannotReadAreItsError) {
  test::putSelinux(root_, "enforcing");
  ASSERT_TRUE(writeFileAtomic(root_ / "etc/selinux/targeted/contexts/files/file_contexts",
                              "/etc(/.*  system_u:object_r:etc_t:s0\n"));
  const auto done = labelTree(root_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Internal);
  EXPECT_THAT(done.error().str(), HasSubstr("setfiles ended with"));
}

}  // namespace
}  // namespace muster::io
