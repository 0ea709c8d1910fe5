// Images of whole disks: the order of the writing, and what is read from a partition table.
#include "agent/writer/whole_disk.h"
#include "agent/writer/writer.h"
#include "base/io/process.h"

#include "pack_server.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using testing::HasSubstr;

using test::sample;

class WholeDiskTest : public testing::Test {
 protected:
  Result<ChunkReport> write() {
    ChunkJob job{.index = sample().index, .pack_url = "http://x/pack", .mirror_urls = {}, .target = target_, .deadline = std::chrono::seconds(1), .first_backoff = std::chrono::milliseconds(1),
                 .make_http = [this] { return std::make_unique<test::PackClient>(server_); }, .workers = workers_, .clock = clock_, .progress = [](double, const std::string&) {}};
    return test::runAsync(writeWholeDisk(std::move(job), [this]() -> Result<void> {
      whole_when_told_ = target_.data.substr(0, sample().raw.size()) == sample().raw;
      if (told_) return fail(*told_);
      return {};
    }));
  }
  static constexpr std::size_t kTable = 1u << 20, kDisk = 24u << 20;
  test::PackServer server_{sample().pack, {}};
  test::MemoryTarget target_{kDisk};
  Workers workers_{kLanes};
  SystemClock clock_;
  std::optional<bool> whole_when_told_;
  std::optional<Error> told_;  ///< what the mark fails with
};

TEST_F(WholeDiskTest, becomesTheImageAndLosesTheTableAtItsEnd) {
  const auto report = write();
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == sample().raw);
  EXPECT_EQ(target_.data.substr(kDisk - kTable), std::string(kTable, '\0')) << "an old copy of a partition table";
  EXPECT_EQ(target_.data[sample().raw.size() + 4096], 'o') << "nothing else";
}

TEST_F(WholeDiskTest, thatIsHalfWrittenHoldsNoTableAndGoesOn) {
  target_.fail_at = 6 * kPackChunkBytes;
  ASSERT_FALSE(write());
  EXPECT_FALSE(whole_when_told_) << "there is no table to be marked";
  EXPECT_EQ(target_.data.substr(0, kTable), std::string(kTable, '\0'));
  target_.fail_at.reset();
  const auto report = write();
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_GT(report->bytes_skipped, 0u) << "what was right is kept";
  EXPECT_TRUE(target_.data.substr(0, sample().raw.size()) == sample().raw);
}

TEST_F(WholeDiskTest, isMarkedAsSoonAsItsTableIsThere) {
  ASSERT_TRUE(write());
  EXPECT_EQ(whole_when_told_, true);
  told_ = Error(ErrorCode::Internal, "cannot be marked");
  const auto report = write();
  ASSERT_FALSE(report) << "nobody goes on with a disk that looks finished";
  EXPECT_THAT(report.error().text(), HasSubstr("cannot be marked"));
}

TEST(MarkedDisk, holdsNothingUntilItIsFinished) {
  test::TempFolder folder;
  const auto disk = folder / "disk";
  const auto made = io::runChecked({.program = "sh", .args = {"-ec", "truncate -s 8M \"$1\"; printf 'label: gpt\nsize=1M,name=bios\nsize=4M,name=system\n' | sfdisk -q \"$1\"; truncate -s 16M \"$1\"", "sh", disk.string()}});
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_NE(*describeDiskContent(disk), "none");
  const auto marked = markWriting(disk);
  ASSERT_TRUE(marked) << marked.error().str();
  EXPECT_EQ(marked->label, "system");
  EXPECT_EQ(marked->last, 2);
  EXPECT_EQ(*describeDiskContent(disk), "none");
  EXPECT_TRUE(io::runChecked({.program = "sfdisk", .args = {"--verify", disk.string()}})) << "both tables are where they belong";
  ASSERT_TRUE(finishDisk(disk, *marked));
  EXPECT_NE(*describeDiskContent(disk), "none");
}

TEST_F(WholeDiskTest, isRefusedUntouchedWhereItDoesNotFit) {
  test::MemoryTarget small(4u << 20);
  ChunkJob job{.index = sample().index, .pack_url = "http://x/pack", .mirror_urls = {}, .target = small, .make_http = [this] { return std::make_unique<test::PackClient>(server_); },
               .workers = workers_, .clock = clock_, .progress = [](double, const std::string&) {}};
  const auto report = test::runAsync(writeWholeDisk(std::move(job), [] { return Result<void>(); }));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(small.data, std::string(4u << 20, 'o'));
}

TEST(LastPartition, isTheOneFurthestBackWhateverItsNumber) {
  EXPECT_EQ(*lastPartition(R"({"partitiontable":{"partitions":[{"node":"/dev/nvme0n1p1","start":262144},{"node":"/dev/nvme0n1p14","start":2048},{"node":"/dev/nvme0n1p15","start":10240}]}})"), 1);
  EXPECT_EQ(*lastPartition(R"({"partitiontable":{"partitions":[{"node":"/dev/sda1","start":2048},{"node":"/dev/sda3","start":9000}]}})"), 3);
  for (const char* none : {"", "[]", "{}", R"({"partitiontable":{"partitions":[]}})"}) EXPECT_THAT(lastPartition(none).error().text(), HasSubstr("no partitions"));
}

}  // namespace
}  // namespace muster::agent
