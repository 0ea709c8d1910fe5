// SPDX-License-Identifier: Apache-2.0
// What is kept of a boot is bounded, and the begin and the end of it are there.
#include "bmc/console/boot_log.h"
#include "tests/bmc/console/node.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

namespace muster::bmc {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::uintmax_t bytesIn(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

class BootLogTest : public testing::Test {
 protected:
  test::TempFolder folder_;
  BootLogArchive shelf_{folder_.path(), kNode};
  WallTime now_ = *parseWallTime("2026-03-01T10:00:00.000Z");
};

TEST_F(BootLogTest, keepsWhatWasSaid) {
  auto log = shelf_.begin(now_, "power on");
  ASSERT_TRUE(log) << log.error().str();
  ASSERT_TRUE(log->append("SeaBIOS\r\n"));
  ASSERT_TRUE(log->append("Linux\r\n"));
  EXPECT_EQ(*shelf_.read(log->number()), "SeaBIOS\r\nLinux\r\n");
  const auto boots = *shelf_.boots();
  ASSERT_EQ(boots.size(), 1u);
  EXPECT_EQ(boots[0].why, "power on");
  EXPECT_EQ(boots[0].began, now_);
}

TEST_F(BootLogTest, aMachineThatNeverStopsTalkingFillsNoDisk) {
  auto log = shelf_.begin(now_, "restart");
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append("the first line\r\n"));
  const std::string piece(4096, 'x');
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(log->append(piece));
  ASSERT_TRUE(log->append("the last line\r\n"));
  EXPECT_LE(bytesIn(folder_.path()), kHeadBytes + 2 * kTailBytes + 1024);
  const auto said = *shelf_.read(log->number());
  EXPECT_THAT(said, StartsWith("the first line"));
  EXPECT_THAT(said, HasSubstr("[muster: what came between is not kept]"));
  EXPECT_TRUE(said.ends_with("the last line\r\n"));
  EXPECT_GT(said.size(), kHeadBytes + kTailBytes) << "the last kTailBytes at least";
}

/// As a page does that shows a boot while it goes on.
TEST_F(BootLogTest, whoFollowsABootMissesNothingAndReadsNothingTwice) {
  auto log = shelf_.begin(now_, "restart");
  ASSERT_TRUE(log);
  std::string all, seen;
  std::uint64_t next = 0;
  for (int i = 0; i < 60; ++i) {
    const auto line = fmt::format("line {:05} {}\r\n", i, std::string(3'000, 'x'));
    ASSERT_TRUE(log->append(line));
    all += line;
    const auto part = shelf_.readFrom(log->number(), next, 4'096);
    ASSERT_TRUE(part) << part.error().str();
    EXPECT_EQ(part->from, next);
    EXPECT_EQ(part->next, next + part->bytes.size());
    seen += part->bytes;
    next = part->next;
  }
  EXPECT_EQ(seen, all);
  EXPECT_EQ(shelf_.readFrom(log->number(), next, 4'096)->bytes, "") << "nothing new";
  EXPECT_EQ(shelf_.readFrom(log->number(), next + 1'000'000, 4'096)->bytes, "");
  EXPECT_EQ(shelf_.readFrom(99, 0, 4'096).error().code(), ErrorCode::NotFound);
}

TEST_F(BootLogTest, aFollowerIsToldOfWhatIsNotKept) {
  auto log = shelf_.begin(now_, "restart");
  ASSERT_TRUE(log);
  const std::string piece(4096, 'x');
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(log->append(piece));
  ASSERT_TRUE(log->append("the last line\r\n"));
  std::string seen;
  std::uint64_t next = 0, gaps = 0;
  for (int i = 0; i < 1'000; ++i) {
    const auto part = shelf_.readFrom(log->number(), next, 10'000);
    ASSERT_TRUE(part);
    gaps += part->from > next;
    if (part->bytes.empty()) break;
    seen += part->bytes;
    next = part->next;
  }
  EXPECT_EQ(gaps, 1u);
  EXPECT_EQ(next, 500u * 4096 + std::string_view("the last line\r\n").size());
  EXPECT_TRUE(seen.ends_with("the last line\r\n"));
}

TEST_F(BootLogTest, nothingIsLeftOutOfABootThatFits) {
  auto log = shelf_.begin(now_, "restart");
  std::string all;
  while (all.size() + 1000 < kHeadBytes + 2 * kTailBytes)
    all += std::string(999, static_cast<char>('a' + all.size() % 26)) + "\n";
  ASSERT_TRUE(log->append(all));
  EXPECT_EQ(*shelf_.read(log->number()), all);
}

TEST_F(BootLogTest, theOldestBootsGoAndNumbersAreNeverUsedAgain) {
  for (int i = 1; i <= kKeptBoots + 3; ++i)
    ASSERT_TRUE(shelf_.begin(now_, std::to_string(i))->append("boot " + std::to_string(i)));
  const auto boots = *shelf_.boots();
  ASSERT_EQ(boots.size(), static_cast<std::size_t>(kKeptBoots));
  EXPECT_EQ(boots.front().number, 4);
  EXPECT_EQ(boots.back().number, kKeptBoots + 3);
  EXPECT_EQ(*shelf_.read(boots.back().number), "boot " + std::to_string(kKeptBoots + 3));
  EXPECT_EQ(shelf_.read(1).error().code(), ErrorCode::NotFound);
}

TEST_F(BootLogTest, nobodyElseMayReadIt) {
  auto log = shelf_.begin(now_, "restart");
  ASSERT_TRUE(log->append("root password is"));
  EXPECT_EQ(fs::status(folder_.path() / "gpu001").permissions() & fs::perms::others_all,
            fs::perms::none);
  EXPECT_EQ(fs::status(folder_.path() / "gpu001").permissions() & fs::perms::group_all,
            fs::perms::none);
}

TEST_F(BootLogTest, withoutItsFolderItSaysSo) {
  auto log = shelf_.begin(now_, "restart");
  fs::remove_all(folder_.path() / "gpu001");
  EXPECT_EQ(log->append("x").error().code(), ErrorCode::Unavailable);
  EXPECT_TRUE(shelf_.boots()->empty());
}

}  // namespace
}  // namespace muster::bmc
