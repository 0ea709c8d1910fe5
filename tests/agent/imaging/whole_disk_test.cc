// SPDX-License-Identifier: Apache-2.0
// Images of whole disks: the order of the writing, and what is read from a partition table.
#include "agent/imaging/whole_disk.h"
#include "agent/imaging/writer.h"
#include "base/io/process.h"

#include "pack_server.h"

#include <gmock/gmock.h>

#include <unistd.h>

namespace muster::agent {
namespace {

using testing::HasSubstr;

using test::sample;

constexpr const char* kMark = "must";  ///< where an MBR has the disk's number

class WholeDiskTest : public testing::Test {
 protected:
  Result<ChunkReport> write(const test::SamplePack& image = sample()) {
    test::PackServer server{image.pack, {}};
    ChunkJob job{.index = image.index,
                 .pack_url = "http://x/pack",
                 .mirror_urls = {},
                 .target = target_,
                 .deadline = std::chrono::seconds(1),
                 .first_backoff = std::chrono::milliseconds(1),
                 .make_http = [&server] { return std::make_unique<test::PackClient>(server); },
                 .workers = workers_,
                 .clock = clock_,
                 .progress = [](double, const std::string&) {}};
    HeadMark head{beside_ ? twin_ : std::filesystem::path(), [this, &image]() -> Result<void> {
                    table_when_marked_ =
                        target_.data.substr(0, kTable) != std::string(kTable, '\0');
                    if (told_) return fail(*told_);
                    if (!beside_) return {};
                    const auto twin = *openBlockTarget(twin_);
                    EXPECT_EQ(twin->sizeBytes(), kDisk);
                    std::string block(4096, ' ');
                    EXPECT_TRUE(twin->read(0, block));
                    EXPECT_TRUE(block == image.raw.substr(0, 4096));
                    return twin->write(440, kMark);
                  }};
    return test::runAsync(writeWholeDisk(std::move(job), std::move(head)));
  }
  std::string marked() const {
    auto raw = sample().raw;
    return beside_ ? raw.replace(440, 4, kMark) : raw;
  }
  static constexpr std::size_t kTable = 1u << 20, kDisk = 24u << 20;
  test::TempFolder folder_;
  std::filesystem::path twin_ = folder_ / "twin";
  test::MemoryTarget target_{kDisk};
  Workers workers_{kLanes};
  SystemClock clock_;
  bool beside_ = true;
  std::optional<bool> table_when_marked_;
  std::optional<Error> told_;  ///< what the mark fails with
};

TEST_F(WholeDiskTest, becomesTheImageAndLosesTheTableAtItsEnd) {
  const auto report = write();
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == marked());
  EXPECT_EQ(target_.data.substr(kDisk - kTable), std::string(kTable, '\0'))
      << "an old copy of a partition table";
  EXPECT_EQ(target_.data[sample().raw.size() + 4096], 'o') << "nothing else";
}

TEST_F(WholeDiskTest, thatIsHalfWrittenHoldsNoTableAndGoesOn) {
  target_.fail_at = 6 * wire::kPackChunkBytes;
  ASSERT_FALSE(write());
  EXPECT_FALSE(table_when_marked_) << "there is no table to be marked";
  EXPECT_EQ(target_.data.substr(0, kTable), std::string(kTable, '\0'));
  target_.fail_at.reset();
  const auto report = write();
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_GT(report->bytes_skipped, 0u) << "what was right is kept";
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == marked());
}

TEST_F(WholeDiskTest, isMarkedBeforeItsTableIsThere) {
  ASSERT_TRUE(write());
  EXPECT_EQ(table_when_marked_, false);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "twin"));
  told_ = Error(ErrorCode::Internal, "cannot be marked");
  const auto report = write();
  ASSERT_FALSE(report) << "nobody goes on with a disk that looks finished";
  EXPECT_THAT(report.error().text(), HasSubstr("cannot be marked"));
  EXPECT_EQ(target_.data.substr(0, kTable), std::string(kTable, '\0'));
}

/// The power goes at any of the writes: there is no table on the disk, or a marked one; and the
/// next writing is let in and ends well.
TEST_F(WholeDiskTest, isNobodysAtEveryWrite) {
  int cuts = 0;
  for (int at = 0;; ++at) {
    target_.data.assign(kDisk, 'o');
    target_.writes = 0;
    target_.fail_from = at;
    const bool whole = write().has_value();
    target_.fail_from.reset();
    const auto first = target_.data.substr(0, 512);
    EXPECT_TRUE(first == std::string(512, '\0') || first.substr(440, 4) == kMark)
        << "at write " << at;
    ASSERT_TRUE(write()) << "after write " << at;
    EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == marked());
    if (whole) break;
    ++cuts;
  }
  EXPECT_GE(cuts, 6);
}

TEST_F(WholeDiskTest, isNotTouchedWhileTheRamDiskIsFull) {
  if (::geteuid() != 0) GTEST_SKIP() << "a small RAM disk needs root";
  const auto small = folder_ / "small";
  ASSERT_TRUE(io::makeDirs(small));
  const auto mount = [&small](const char* options) {
    return io::runChecked(
        {.program = "mount", .args = {"-t", "tmpfs", "-o", options, "small", small.string()}});
  };
  if (!mount("size=512k")) GTEST_SKIP() << "no RAM disk can be mounted here";
  twin_ = small / "twin";
  const auto full = write();
  EXPECT_FALSE(full);
  EXPECT_TRUE(target_.data == std::string(kDisk, 'o')) << "it still holds what it held";
  EXPECT_TRUE(mount("remount,size=8m"));
  const auto then = write();
  EXPECT_TRUE(io::runChecked({.program = "umount", .args = {small.string()}}));
  ASSERT_TRUE(then) << then.error().str();
  EXPECT_THAT(full.error().text(), HasSubstr("RAM disk of this machine is full"));
  EXPECT_TRUE(full.error().canRetry());
}

TEST_F(WholeDiskTest, whoseSectorsAFileCannotHaveIsMarkedOnTheDisk) {
  beside_ = false;
  ASSERT_TRUE(write());
  EXPECT_EQ(table_when_marked_, true);
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == sample().raw);
}

/// A table's copy at the end of a disk that is no larger than the image lies beside the image's own
/// last sectors.
TEST_F(WholeDiskTest, asLargeAsTheImageKeepsTheImagesEnd) {
  const test::SamplePack image(kDisk / wire::kPackChunkBytes + 1,
                               [](std::string& raw) { raw.resize(kDisk); });
  ASSERT_TRUE(write(image));
  EXPECT_TRUE(target_.data.substr(4096) == image.raw.substr(4096));
}

TEST(MarkedDisk, holdsNothingUntilItIsFinished) {
  test::TempFolder folder;
  const auto disk = folder / "disk";
  const auto made = io::runChecked(
      {.program = "sh",
       .args = {
           "-ec",
           "truncate -s 8M \"$1\"; printf 'label: gpt\nsize=1M,name=bios\nsize=4M,name=system\n' | "
           "sfdisk -q \"$1\"; truncate -s 16M \"$1\"",
           "sh", disk.string()}});
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_NE(describeDiskContent(disk)->text, "none");
  const auto marked = markWriting(disk);
  ASSERT_TRUE(marked) << marked.error().str();
  EXPECT_EQ(marked->label, "system");
  EXPECT_EQ(marked->last, 2);
  EXPECT_EQ(describeDiskContent(disk)->text, "none");
  EXPECT_TRUE(io::runChecked({.program = "sfdisk", .args = {"--verify", disk.string()}}))
      << "both tables are where they belong";
  ASSERT_TRUE(finishDisk(disk, *marked));
  EXPECT_NE(describeDiskContent(disk)->text, "none");
}

TEST(MarkedDisk, withoutNamesHoldsNothingEither) {
  test::TempFolder folder;
  const auto disk = folder / "disk";
  test::SamplePack image(12, test::putMbr);
  ASSERT_TRUE(io::writeFileAtomic(disk, image.raw));
  EXPECT_NE(describeDiskContent(disk)->text, "none");
  const auto marked = markWriting(disk);
  ASSERT_TRUE(marked) << marked.error().str();
  EXPECT_EQ(marked->disk_id, 0x1b2c3d4eu);
  EXPECT_EQ(describeDiskContent(disk)->text, "none");
  EXPECT_THAT(markWriting(disk).error().text(), HasSubstr("had half written"));
  ASSERT_TRUE(finishDisk(disk, *marked));
  EXPECT_NE(describeDiskContent(disk)->text, "none");
  EXPECT_TRUE(*io::readFile(disk) == image.raw) << "its own number is back";
}

TEST_F(WholeDiskTest, isRefusedUntouchedWhereItDoesNotFit) {
  test::MemoryTarget small(4u << 20);
  test::PackServer server{sample().pack, {}};
  ChunkJob job{.index = sample().index,
               .pack_url = "http://x/pack",
               .mirror_urls = {},
               .target = small,
               .make_http = [&server] { return std::make_unique<test::PackClient>(server); },
               .workers = workers_,
               .clock = clock_,
               .progress = [](double, const std::string&) {}};
  const auto report = test::runAsync(
      writeWholeDisk(std::move(job), HeadMark{folder_ / "twin", [] { return Result<void>(); }}));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(small.data, std::string(4u << 20, 'o'));
}

TEST(LastPartition, isTheOneFurthestBackWhateverItsNumber) {
  EXPECT_EQ(
      *lastPartition(
          R"({"partitiontable":{"partitions":[{"node":"/dev/nvme0n1p1","start":262144},{"node":"/dev/nvme0n1p14","start":2048},{"node":"/dev/nvme0n1p15","start":10240}]}})"),
      1);
  EXPECT_EQ(
      *lastPartition(
          R"({"partitiontable":{"partitions":[{"node":"/dev/sda1","start":2048},{"node":"/dev/sda3","start":9000}]}})"),
      3);
  for (const char* none : {"", "[]", "{}", R"({"partitiontable":{"partitions":[]}})"})
    EXPECT_THAT(lastPartition(none).error().text(), HasSubstr("no partitions"));
}

TEST(SectorsOfAnImage, areRefusedOnADiskWithOthersBeforeTheFirstByte) {
  wire::PackIndex image;
  image.name = "vendor";
  image.kind = wire::PackKind::Disk;
  DiskInfo disk{"/dev/nvme0n1", "X", "", 4ull << 30, 4096};
  for (const int told : {0, 512}) {  // 0: packed by an older muster
    image.sector_bytes = told;
    const auto done = checkSectorsOf(image, disk);
    ASSERT_FALSE(done) << told;
    EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput);
    EXPECT_THAT(done.error().text(),
                testing::AllOf(testing::HasSubstr(
                                   "/dev/nvme0n1 (serial X, 4.0 GiB) has sectors of 4096 bytes"),
                               testing::HasSubstr("nothing was written"),
                               testing::HasSubstr("nvme format --block-size=512")));
  }
  disk.path = "/dev/sda";
  EXPECT_THAT(checkSectorsOf(image, disk).error().text(), testing::Not(testing::HasSubstr("nvme")));
  image.sector_bytes = 4096;
  EXPECT_TRUE(checkSectorsOf(image, disk));
  disk.sector_bytes = 512;
  EXPECT_FALSE(checkSectorsOf(image, disk));
  disk.sector_bytes = 0;
  EXPECT_TRUE(checkSectorsOf(image, disk)) << "the kernel does not tell";
  disk.sector_bytes = 4096;
  image.kind = wire::PackKind::RootFs;
  image.sector_bytes = 0;
  EXPECT_TRUE(checkSectorsOf(image, disk)) << "muster makes the partitions";
}

}  // namespace
}  // namespace muster::agent
