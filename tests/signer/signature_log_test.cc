// SPDX-License-Identifier: Apache-2.0
#include "signer/signature_log.h"

#include "base/io/files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

namespace muster::signer {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr WallTime kNow{std::chrono::milliseconds(1'769'860'800'000)};

/// A disk that is full behind so many bytes of a file, for this process.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : before_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &limit_);
    const rlimit small{bytes, limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &limit_);
    ::signal(SIGXFSZ, before_);
  }

 private:
  sighandler_t before_;
  rlimit limit_{};
};

TEST(SignatureLog, isForItsOwnerAloneAndALineEach) {
  test::TempFolder folder;
  SignatureLog log(folder.path());
  ASSERT_TRUE(log.add(kNow, "uid=1 one"));
  ASSERT_TRUE(log.add(kNow, "uid=1 two"));
  EXPECT_EQ(*io::readFile(folder / "signed.log"),
            "2026-01-31T12:00:00.000Z uid=1 one\n2026-01-31T12:00:00.000Z uid=1 two\n");
  struct stat status{};
  ::stat((folder / "signed.log").c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(SignatureLog, aPartOfALineIsTakenBackAndSaid) {
  test::TempFolder folder;
  SignatureLog log(folder.path());
  ASSERT_TRUE(log.add(kNow, "one"));
  const auto before = *io::readFile(folder / "signed.log");
  {
    FullDisk full(before.size() + 10);
    const auto refused = log.add(kNow, "two");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
    EXPECT_THAT(refused.error().str(), HasSubstr("nothing is signed"));
  }
  EXPECT_EQ(*io::readFile(folder / "signed.log"), before);
  ASSERT_TRUE(log.add(kNow, "three")) << "and goes on when there is room";
  EXPECT_THAT(*io::readFile(folder / "signed.log"),
              EndsWith("one\n2026-01-31T12:00:00.000Z three\n"));
}

TEST(SignatureLog, aLinePartOfBeforeAPowerCutGetsItsEnd) {
  test::TempFolder folder;
  std::ofstream(folder / "signed.log") << "2026-01-31T12:0";
  ASSERT_TRUE(SignatureLog(folder.path()).add(kNow, "one"));
  EXPECT_EQ(*io::readFile(folder / "signed.log"),
            "2026-01-31T12:0\n2026-01-31T12:00:00.000Z one\n");
}

TEST(SignatureLog, theNewestFilesStay) {
  test::TempFolder folder;
  SignatureLog log(folder.path(), {.file_bytes = 60, .files = 3});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(log.add(kNow, "line " + std::to_string(i)));
  EXPECT_THAT(*io::readFile(folder / "signed.log"), EndsWith("line 19\n"));
  EXPECT_TRUE(std::filesystem::exists(folder / "signed.log.2"));
  EXPECT_FALSE(std::filesystem::exists(folder / "signed.log.3"));
}

TEST(SignatureLog, aLinkInItsPlaceIsNotFollowed) {
  test::TempFolder folder;
  std::filesystem::create_symlink(folder / "elsewhere", folder / "signed.log");
  EXPECT_FALSE(SignatureLog(folder.path()).add(kNow, "one"));
  EXPECT_FALSE(std::filesystem::exists(folder / "elsewhere"));
}

}  // namespace
}  // namespace muster::signer
