// SPDX-License-Identifier: Apache-2.0
// Who may enter the state folder, and read what is in it.
#include "app/site/state_folder.h"
#include "tests/cli/muster_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

unsigned modeOf(const fs::path& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

/// Everything at or below a folder that others than its owner may do something with.
std::vector<std::string> openToOthers(const fs::path& folder) {
  std::vector<std::string> out;
  if ((modeOf(folder) & 0077) != 0) out.push_back(folder.string());
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (!entry.is_symlink() && (modeOf(entry.path()) & 0077) != 0)
      out.push_back(fmt::format("{} {:o}", entry.path().string(), modeOf(entry.path())));
  return out;
}

class WithUmask {
 public:
  explicit WithUmask(mode_t mask) : before_(::umask(mask)) {}
  WithUmask(const WithUmask&) = delete;
  ~WithUmask() { ::umask(before_); }

 private:
  mode_t before_;
};

TEST(StateFolder, isItsOwnersAloneWhateverTheUmask) {
  test::TempFolder folder;
  for (const mode_t mask : {022, 000}) {
    const WithUmask masked(mask);
    const auto state = folder / fmt::format("above-{:03o}", mask) / "state";
    ASSERT_TRUE(app::prepareStateFolder(state));
    EXPECT_EQ(modeOf(state), 0700u);
    EXPECT_TRUE(app::prepareStateFolder(state)) << "a second time";
  }
}

TEST(StateFolder, oneThatOthersCouldEnterIsClosedWithAllThatIsInIt) {
  test::TempFolder folder;
  const auto state = folder / "state";
  fs::create_directories(state / "run");
  ASSERT_TRUE(io::writeFileAtomic(state / "run" / "log", "x", 0644));
  ASSERT_TRUE(io::writeFileAtomic(folder / "elsewhere", "x", 0644));
  fs::create_symlink(folder / "elsewhere", state / "link");
  for (const auto& each : {state, state / "run"}) fs::permissions(each, fs::perms(0755));
  testing::internal::CaptureStderr();
  const auto prepared = app::prepareStateFolder(state);
  const auto told = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(prepared) << prepared.error().str();
  EXPECT_THAT(told, testing::HasSubstr("other users could enter"));
  EXPECT_THAT(openToOthers(state), testing::IsEmpty());
  EXPECT_EQ(modeOf(folder / "elsewhere"), 0644u)
      << "what a link points to is not the state folder's";
}

TEST(StateFolder, aFileIsNone) {
  test::TempFolder folder;
  ASSERT_TRUE(io::writeFileAtomic(folder / "state", "x"));
  const auto refused = app::prepareStateFolder(folder / "state");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
}

TEST(StateFolder, anotherUsersIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to be two users";
  test::TempFolder folder;
  fs::permissions(folder.path(), fs::perms(0755));
  ASSERT_TRUE(app::prepareStateFolder(folder / "state"));
  ASSERT_EQ(::seteuid(65534), 0);
  const auto refused = app::prepareStateFolder(folder / "state");
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
}

/// Its owner could put keys and links of his own into it.
TEST(StateFolder, anotherUsersIsRefusedByRootToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to be two users";
  test::TempFolder folder;
  ASSERT_TRUE(app::prepareStateFolder(folder / "state"));
  ASSERT_EQ(::chown((folder / "state").c_str(), 65534, 65534), 0);
  const auto refused = app::prepareStateFolder(folder / "state");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  EXPECT_THAT(refused.error().str(), testing::HasSubstr("chown -R"));
}

/// The real commands: what they leave behind.
TEST(StateFolder, nothingThatCommandsLeaveIsOpenToOthers) {
  for (const mode_t mask : {022, 000}) {
    SCOPED_TRACE(mask);
    test::MusterFolder folder;
    const WithUmask masked(mask);
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"wipe", "gpu001", "--reason", "x"},
                                               {"cert", "revoke", "gpu001", "--reason", "x"},
                                               {"bmc", "revoke-key", "gpu002"},
                                               {"status"},
                                               {"why", "gpu001"}}) {
      const auto ended = folder.muster(words);
      EXPECT_EQ(ended.code, 0) << words.front() << ": " << ended.err;
    }
    EXPECT_EQ(modeOf(folder / "state"), 0700u);
    EXPECT_THAT(openToOthers(folder / "state"), testing::IsEmpty());
  }
}

}  // namespace
}  // namespace muster::app
