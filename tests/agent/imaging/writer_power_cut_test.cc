// SPDX-License-Identifier: Apache-2.0
// The power goes while an image is written: the writing process is killed in the middle, and what
// it leaves is a file on a real file system. The next writing looks at what is there and fetches
// only the rest.
#include "agent/imaging/chunk_writer.h"
#include "agent/imaging/whole_disk.h"
#include "agent/imaging/writer.h"

#include "pack_server.h"

#include <gmock/gmock.h>

#include <sys/wait.h>
#include <unistd.h>

namespace muster::agent {
namespace {

constexpr std::size_t kChunks = 60;
constexpr int kKilled = 9;

const test::SamplePack& longPack() {
  static const test::SamplePack pack(kChunks);
  return pack;
}

class PowerCutTest : public testing::TestWithParam<int> {
 protected:
  static Result<ChunkReport> write(const std::filesystem::path& disk, bool keep,
                                   const std::function<void(double)>& progress) {
    TRY(target, openBlockTarget(disk));
    test::PackServer server{longPack().pack, {}};
    Workers workers(3);
    SystemClock clock;
    ChunkJob job{
        .index = longPack().index,
        .pack_url = "http://x/pack",
        .mirror_urls = {},
        .target = *target,
        .keep_matching_chunks = keep,
        .make_http = [&server] { return std::make_unique<test::PackClient>(server); },
        .workers = workers,
        .clock = clock,
        .progress = [&progress](double fraction, const std::string&) { progress(fraction); }};
    return test::runAsync(writeAndVerify(std::move(job)));
  }

  /// Of the chunks that have data, the share that is not on the disk. How far the writing had come
  /// says less: empty chunks count there too, and they are done at once, before the first data has
  /// come.
  static double missingShare(const std::string& disk) {
    double missing = 0, all = 0;
    for (std::size_t at = 0; at < longPack().raw.size(); at += wire::kPackChunkBytes) {
      const std::string_view chunk =
          std::string_view(longPack().raw).substr(at, wire::kPackChunkBytes);
      if (chunk.find_first_not_of('\0') == std::string_view::npos) continue;
      all += static_cast<double>(chunk.size());
      if (std::string_view(disk).substr(at, wire::kPackChunkBytes) != chunk)
        missing += static_cast<double>(chunk.size());
    }
    return missing / all;
  }

  /// Writes until so much is on the disk, then is no more. Nothing is flushed.
  static void writeAndDie(const std::filesystem::path& disk, double at) {
    (void)write(disk, false, [at](double fraction) {
      if (fraction >= at) ::_exit(kKilled);
    });
    ::_exit(0);
  }
};

TEST_P(PowerCutTest, theNextWritingGoesOnWhereItStopped) {
  const double at = GetParam() / 100.0;
  test::TempFolder folder;
  const auto disk = folder / "disk";
  ASSERT_TRUE(io::writeFileAtomic(disk, std::string(longPack().raw.size(), 'o')));
  const pid_t child = ::fork();
  if (child == 0) writeAndDie(disk, at);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), kKilled) << "it was to die in the middle";
  const double missing = missingShare(*io::readFile(disk));
  const auto report = write(disk, true, [](double) {});
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(*io::readFile(disk) == longPack().raw);
  EXPECT_LT(report->bytes_fetched, static_cast<double>(longPack().pack.size()) * (0.02 + missing))
      << "what was there was not fetched again";
  EXPECT_GT(report->bytes_skipped, 0u);
}

/// A whole disk with an MBR, which has no names: what is left of it at the guard's door, and what
/// the next writing does with it.
class WholeDiskPowerCut : public PowerCutTest {};

TEST_P(WholeDiskPowerCut, ofATableWithoutNamesIsKnownAsOursAndGoneOnWith) {
  static const test::SamplePack image(kChunks, test::putMbr);
  const double at = GetParam() / 100.0;
  test::TempFolder folder;
  const auto disk = folder / "disk";
  ASSERT_TRUE(io::writeFileAtomic(disk, std::string(image.raw.size() + (8u << 20), 'o')));
  const auto write_whole = [&](const std::function<void(double)>& progress,
                               GrownDisk* marked) -> Result<ChunkReport> {
    TRY(target, openBlockTarget(disk));
    test::PackServer server{image.pack, {}};
    Workers workers(3);
    SystemClock clock;
    ChunkJob job{
        .index = image.index,
        .pack_url = "http://x/pack",
        .mirror_urls = {},
        .target = *target,
        .make_http = [&server] { return std::make_unique<test::PackClient>(server); },
        .workers = workers,
        .clock = clock,
        .progress = [&progress](double fraction, const std::string&) { progress(fraction); }};
    HeadMark head{folder / "twin", [&]() -> Result<void> {
                    TRY(made, markWriting(folder / "twin"));
                    *marked = made;
                    return {};
                  }};
    return test::runAsync(writeWholeDisk(std::move(job), std::move(head)));
  };
  const pid_t child = ::fork();
  if (child == 0) {
    GrownDisk marked;
    (void)write_whole(
        [at](double fraction) {
          if (fraction >= at) ::_exit(kKilled);
        },
        &marked);
    ::_exit(at > 1 ? kKilled : 0);  // after the last byte, before the system is the node's
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), kKilled) << "it was to die in the middle";
  EXPECT_EQ(describeDiskContent(disk)->text, "none") << "the guard would ask a person";
  GrownDisk marked;
  const auto report = write_whole([](double) {}, &marked);
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_GT(report->bytes_skipped, 0u);
  EXPECT_EQ(describeDiskContent(disk)->text, "none");
  ASSERT_TRUE(finishDisk(disk, marked));
  EXPECT_NE(describeDiskContent(disk)->text, "none");
  EXPECT_TRUE(io::readFile(disk)->substr(0, image.raw.size()) == image.raw);
}

constexpr int kAfterTheLastByte = 101;
INSTANTIATE_TEST_SUITE_P(AtPercent, WholeDiskPowerCut,
                         testing::Values(10, 50, 90, kAfterTheLastByte));
INSTANTIATE_TEST_SUITE_P(AtPercent, PowerCutTest, testing::Values(10, 50, 90));

TEST_F(PowerCutTest, whatTheDiskLostInItsCacheIsWrittenAgain) {
  test::TempFolder folder;
  const auto disk = folder / "disk";
  std::string half = longPack().raw;
  half.replace(7 * wire::kPackChunkBytes + 4096, 4096,
               std::string(4096, 'l'));  // acknowledged once, never stored
  ASSERT_TRUE(io::writeFileAtomic(disk, half));
  const auto report = write(disk, true, [](double) {});
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(*io::readFile(disk) == longPack().raw);
}

}  // namespace
}  // namespace muster::agent
