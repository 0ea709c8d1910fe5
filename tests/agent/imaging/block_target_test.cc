// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/block_target.h"

#include "base/io/files.h"
#include "wire/task_reason.h"

#include <gmock/gmock.h>

#include <cerrno>

namespace muster::agent {
namespace {

using testing::HasSubstr;

TEST(BlockTarget, aFileIsWrittenZeroedAndRead) {
  test::TempFolder folder;
  ASSERT_TRUE(io::writeFileAtomic(folder / "disk", std::string(3u << 20, 'o')));
  auto target = openBlockTarget(folder / "disk");
  ASSERT_TRUE(target) << target.error().str();
  EXPECT_EQ((*target)->sizeBytes(), 3u << 20);
  ASSERT_TRUE((*target)->write(4096, "hello"));
  ASSERT_TRUE((*target)->zero(1u << 20, 1u << 20));
  ASSERT_TRUE((*target)->flush());
  std::string text(5, ' '), zeros(1u << 20, 'x');
  ASSERT_TRUE((*target)->read(4096, text));
  ASSERT_TRUE((*target)->read(1u << 20, zeros));
  EXPECT_EQ(text, "hello");
  EXPECT_EQ(zeros, std::string(1u << 20, '\0'));
  EXPECT_FALSE((*target)->write((3u << 20) - 2, "hello")) << "the end of the disk is its end";
  EXPECT_EQ(openBlockTarget(folder / "missing").error().code(), ErrorCode::NotFound);
}

TEST(BlockTarget, aFailingDiskIsNamedWithItsSerialAndWhatToDo) {
  test::TempFolder folder;
  ASSERT_TRUE(io::writeFileAtomic(folder / "disk", std::string(8192, 'o')));
  auto target = openBlockTarget(folder / "disk", "/dev/sdb (serial X, 1.0 GiB)");
  ASSERT_TRUE(target);
  std::filesystem::resize_file(folder / "disk", 4096);
  std::string text(8192, ' ');
  const auto done = (*target)->read(0, text);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text(),
            "cannot read /dev/sdb (serial X, 1.0 GiB) at byte 4096: Input/output error; it is "
            "failing: replace the disk");
  for (const int gone : {ENXIO, ENODEV, ENODATA, EREMOTEIO}) {
    const auto error = diskError("write", "/dev/sdb", 0, gone);
    EXPECT_THAT(error.text(), HasSubstr("replace the disk"));
    EXPECT_TRUE(error.has(wire::TaskReason::DiskFailing));
  }
  for (const int other : {ENOSPC, EACCES, EINVAL, ENOMEM}) {
    const auto error = diskError("write", "/dev/sdb", 0, other);
    EXPECT_THAT(error.text(), testing::Not(HasSubstr("replace")));
    EXPECT_FALSE(error.has(wire::TaskReason::DiskFailing));
  }
}

}  // namespace
}  // namespace muster::agent
