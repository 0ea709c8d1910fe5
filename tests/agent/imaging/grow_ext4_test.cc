// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/grow_ext4.h"

#include "base/io/files.h"
#include "base/io/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace muster::agent {
namespace {

using testing::HasSubstr;

class GrowExt4Test : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(sh("mke2fs -q -t ext4 fs 8M; truncate -s 24M fs")); }
  Result<std::string> sh(const std::string& script) {
    return io::runChecked(
        {.program = "sh", .args = {"-ec", "cd \"$1\"; " + script, "sh", folder_.path().string()}});
  }
  std::string told(const std::string& field) {
    return sh("dumpe2fs -h fs 2>/dev/null | sed -n 's/^" + field + ": *//p'").value_or("(none)");
  }
  void expectGrownAndSound() {
    const auto grown = growExt4(folder_ / "fs");
    ASSERT_TRUE(grown) << grown.error().str();
    EXPECT_EQ(std::stoull(told("Block count")) * std::stoull(told("Block size")), 24u << 20);
    EXPECT_TRUE(sh("e2fsck -f -n fs"));
  }

  test::TempFolder folder_;
};

TEST_F(GrowExt4Test, oneThatWasNeverMounted) { expectGrownAndSound(); }

TEST_F(GrowExt4Test, oneThatWasMountedAfterItsLastCheck) {
  ASSERT_TRUE(
      sh("debugfs -w -R 'set_super_value lastcheck 20260101000000' fs 2>/dev/null; debugfs -w -R "
         "'set_super_value mtime 20260102000000' fs 2>/dev/null"));
  ASSERT_FALSE(sh("cp --sparse=always fs other; resize2fs other"))
      << "resize2fs itself refuses such a one";
  expectGrownAndSound();
}

TEST_F(GrowExt4Test, oneThatReallyWasMounted) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  if (const auto mounted = sh("mkdir m; mount -o loop fs m"); !mounted)
    GTEST_SKIP() << "this machine mounts no file as ext4: " << mounted.error().str();
  ASSERT_TRUE(sh("echo ran >m/ran; umount m"));
  expectGrownAndSound();
  EXPECT_EQ(sh("debugfs -R 'cat ran' fs 2>/dev/null").value_or(""), "ran\n");
}

TEST_F(GrowExt4Test, faultsThatNeedSomebodyAreSaidWithTheWordsOfTheCheck) {
  ASSERT_TRUE(sh("debugfs -w -R 'clri <2>' fs 2>/dev/null"));
  const auto grown = growExt4(folder_ / "fs");
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(grown.error().str(), HasSubstr("exit status 4"));
  EXPECT_THAT(grown.error().str(), HasSubstr("UNEXPECTED INCONSISTENCY"));
  EXPECT_THAT(grown.error().str(), HasSubstr("import it again"));
}

}  // namespace
}  // namespace muster::agent
