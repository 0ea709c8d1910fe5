// SPDX-License-Identifier: Apache-2.0
// Keys as files of a folder: what is read, what may begin, and what is refused.
#include "signer/key_files.h"

#include "base/io/files.h"
#include "base/io/trusted_keys.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <barrier>
#include <fstream>
#include <future>

namespace muster::signer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr KeyFile kImages{"images", "images.pem"};

class KeyFiles : public ::testing::Test {
 protected:
  ErrorCode refused(KeyChange change) const {
    const auto may = requireChangeable(folder_.path(), kImages, change);
    return may ? ErrorCode::Internal : may.error().code();
  }
  bool may(KeyChange change) const {
    return requireChangeable(folder_.path(), kImages, change).has_value();
  }
  test::TempFolder folder_;
};

/// A server and a command that begin a site together: a key that one has in memory and another on
/// the disk signs what nobody verifies, and a CA of two halves never starts again.
TEST_F(KeyFiles, areMadeOnceHoweverManyBeginTogether) {
  constexpr int kRounds = 20, kTogether = 4;
  for (int round = 0; round < kRounds; ++round) {
    const auto folder = folder_ / std::to_string(round);
    std::barrier begin(kTogether);
    std::vector<std::future<std::string>> seen;
    for (int i = 0; i < kTogether; ++i)
      seen.push_back(std::async(std::launch::async, [&begin, &folder]() -> std::string {
        begin.arrive_and_wait();
        const auto key = loadSigningKey(folder, kImages);
        const auto ca = loadAuthority(folder);
        if (!key || !ca) return key ? ca.error().str() : key.error().str();
        return key->id() + ca->fingerprint();
      }));
    const auto again = [&folder] {
      return loadSigningKey(folder, kImages)->id() + loadAuthority(folder)->fingerprint();
    };
    for (auto& each : seen) each.wait();
    for (auto& each : seen) ASSERT_EQ(each.get(), again()) << "round " << round;
    EXPECT_EQ(*io::readFile(folder / "keys.made", 100), "images\nca\n");
  }
}

TEST_F(KeyFiles, aChangeBeginsWhereThereIsSomethingToChange) {
  const auto first = loadSigningKey(folder_.path(), kImages);
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_TRUE(may(KeyChange::Rotate));
  EXPECT_EQ(refused(KeyChange::Finish), ErrorCode::NotFound);
  EXPECT_EQ(refused(KeyChange::ReplaceLost), ErrorCode::Conflict);
  const auto next = rotateSigningKey(folder_.path(), kImages);
  ASSERT_TRUE(next) << next.error().str();
  EXPECT_THAT(io::publicKeyIds(next->public_pem), SizeIs(2));
  EXPECT_EQ(refused(KeyChange::Rotate), ErrorCode::Conflict) << "one is under way";
  EXPECT_TRUE(may(KeyChange::Finish));
  EXPECT_EQ(rotateSigningKey(folder_.path(), kImages).error().code(), ErrorCode::Conflict);
  ASSERT_TRUE(finishSigningRotation(folder_.path(), kImages));
  EXPECT_TRUE(may(KeyChange::Rotate));
  fs::remove(keyFileOf(folder_.path(), kImages));
  EXPECT_EQ(refused(KeyChange::Rotate), ErrorCode::Conflict) << "it was here";
  EXPECT_TRUE(may(KeyChange::ReplaceLost));
  EXPECT_TRUE(replaceLostSigningKey(folder_.path(), kImages));
}

TEST_F(KeyFiles, askingWhetherItCouldChangesNothing) {
  ASSERT_TRUE(loadSigningKey(folder_.path(), kImages));
  std::ofstream(folder_ / "keys/images.pem.Ab3xYz") << "the rest of a rotation that was killed";
  for (const auto change : {KeyChange::Rotate, KeyChange::Finish, KeyChange::ReplaceLost})
    (void)requireChangeable(folder_.path(), kImages, change);
  EXPECT_TRUE(fs::exists(folder_ / "keys/images.pem.Ab3xYz"));
}

// Also in a state folder, where no signer is.
TEST_F(KeyFiles, aPrivateKeyIsAFileOfItsOwnThatNobodyElseReads) {
  ASSERT_TRUE(loadSigningKey(folder_.path(), kImages));
  ASSERT_TRUE(loadAuthority(folder_.path()));
  const auto key = keyFileOf(folder_.path(), kImages), ca = folder_ / "ca/ca.key";
  const auto said = [&](const fs::path& file) {
    const auto error = file == key ? loadSigningKey(folder_.path(), kImages).error()
                                   : loadAuthority(folder_.path()).error();
    EXPECT_EQ(error.code(), ErrorCode::Denied) << error.str();
    return error.str();
  };
  for (const auto& file : {key, fs::path(ca)}) {
    fs::permissions(file, fs::perms(0644));
    EXPECT_THAT(said(file), HasSubstr("has mode 0644"));
    fs::permissions(file, fs::perms(0600));
    fs::rename(file, folder_ / "elsewhere");
    fs::create_symlink(folder_ / "elsewhere", file);
    EXPECT_THAT(said(file), HasSubstr(file.string() + " is a link"));
    fs::remove(file);
    fs::rename(folder_ / "elsewhere", file);
  }
  EXPECT_TRUE(loadSigningKey(folder_.path(), kImages));
  EXPECT_TRUE(loadAuthority(folder_.path()));
}

}  // namespace
}  // namespace muster::signer
