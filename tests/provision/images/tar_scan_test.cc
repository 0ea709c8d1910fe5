// SPDX-License-Identifier: Apache-2.0
// Archives of GNU tar in its formats and of Python's tarfile, in pieces of every size; what is
// wrong in one is in archive_odd_test.cc.
#include "provision/images/tar_scan.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

namespace muster::provision {
namespace {

class TarScanTest : public testing::Test {
 protected:
  std::string made(const std::string& script) {
    const auto done = io::runChecked(
        {.program = "sh", .args = {"-ec", "cd \"$1\"; " + script, "sh", folder_.path().string()}});
    EXPECT_TRUE(done) << done.error().str();
    return io::readFile(folder_ / "t").value_or("");
  }
  static TarScan scanOf(const std::string& archive, std::size_t piece_bytes) {
    TarScan scan;
    for (std::size_t at = 0; at < archive.size(); at += piece_bytes)
      scan.feed(std::string_view(archive).substr(at, piece_bytes));
    return scan;
  }
  static void expectSound(const std::string& archive, const std::string& what) {
    ASSERT_FALSE(archive.empty()) << what;
    for (const std::size_t piece_bytes : {1u, 511u, 513u, 10240u, 1u << 20}) {
      const auto scan = scanOf(archive, piece_bytes);
      EXPECT_FALSE(scan.problem()) << what << ": " << scan.problem()->str();
      EXPECT_TRUE(scan.ended()) << what << ", pieces of " << piece_bytes;
    }
  }
  test::TempFolder folder_;
};

constexpr const char* kTree =
    "mkdir -p a/b; echo x >a/x; ln a/x a/y; ln -s x a/l; mkfifo a/f; "
    "n=$(printf 'n%.0s' $(seq 200)); echo long >a/$n; ln -s $n a/s$n; head -c 70000 /dev/urandom "
    ">a/big; truncate -s 3M a/holes; for i in 1 2 3 4 5 6 7 8; do printf x | dd of=a/holes bs=1 "
    "seek=$((i*300000)) conv=notrunc status=none; done; ";

TEST_F(TarScanTest, archivesOfGnuTarAreSound) {
  for (const char* options :
       {"--format=gnu", "--format=gnu --sparse", "--format=pax --sparse",
        "--format=pax --sparse --sparse-version=0.0", "--format=oldgnu -S",
        "--format=pax --sparse --sparse-version=0.1", "--format=posix --xattrs"})
    expectSound(made(std::string(kTree) + "tar " + options + " -cf t a; rm -r a"), options);
  expectSound(made("mkdir a; echo x >a/x; tar --format=ustar -cf t a"), "ustar");
}

TEST_F(TarScanTest, archivesOfPythonAreSound) {
  for (const char* format : {"USTAR_FORMAT", "GNU_FORMAT", "PAX_FORMAT"})
    expectSound(made("rm -rf a; mkdir a; echo x >a/x; python3 -c \"import tarfile; "
                     "t=tarfile.open('t','w',format=tarfile." +
                     std::string(format) + "); t.add('a'); t.close()\""),
                format);
}

/// GNU tar's own parts: the second begins in the middle of a file.
TEST_F(TarScanTest, aPartOfSeveralVolumesIsRefused) {
  const auto second =
      made("head -c 300000 /dev/urandom >big; tar -c -M -L 200 -f one -f t -f three big");
  const auto scan = scanOf(second, 10240);
  ASSERT_TRUE(scan.problem());
  EXPECT_EQ(scan.problem()->code(), ErrorCode::InvalidInput);
}

/// Cut at each block: what was cut between two members has no end, what was cut within one has
/// none either.
TEST_F(TarScanTest, anArchiveThatWasCutHasNoEnd) {
  auto archive = made("mkdir a; for i in 1 2 3; do echo $i >a/$i; done; tar -b 1 -cf t a");
  while (archive.size() > 1024) {
    archive.resize(archive.size() - 512);
    const auto whole = archive.find_last_not_of('\0') < archive.size() - 512;
    EXPECT_EQ(scanOf(archive, 512).ended(), whole) << archive.size();
  }
}

TEST_F(TarScanTest, whatIsNoTarIsLeftToItsReader) {
  const auto scan = scanOf(std::string(4096, 'x'), 100);
  EXPECT_TRUE(scan.lost());
  EXPECT_FALSE(scan.problem());
}

}  // namespace
}  // namespace muster::provision
