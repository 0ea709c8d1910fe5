// SPDX-License-Identifier: Apache-2.0
#include "base/io/sealed_file.h"

#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::io {
namespace {

using ::testing::HasSubstr;

const Secret kPassphrase("correct horse battery");

class SealedFile : public ::testing::Test {
 protected:
  void seal(std::string_view content) {
    std::error_code ignored;
    std::filesystem::remove(file(), ignored);
    auto out = SealedWriter::create(file(), kPassphrase, R"({"what":"test"})");
    ASSERT_TRUE(out) << out.error().str();
    ASSERT_TRUE(out->write(content));
    ASSERT_TRUE(out->finish());
  }
  Result<std::string> open(std::size_t bytes, const Secret& passphrase = kPassphrase) {
    TRY(in, SealedReader::open(file()));
    TRY_OK(in.unlock(passphrase));
    TRY(content, in.read(bytes));
    TRY_OK(in.expectEnd());
    return content;
  }
  std::filesystem::path file() const { return folder_ / "sealed"; }
  test::TempFolder folder_;
};

TEST_F(SealedFile, givesBackWhatWasWrittenAtEveryBorderOfPieces) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kSealedPieceBytes - 1,
                                 kSealedPieceBytes, kSealedPieceBytes + 1, 3 * kSealedPieceBytes}) {
    std::string content(size, 'x');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 7);
    seal(content);
    const auto read = open(size);
    ASSERT_TRUE(read) << size << ": " << read.error().str();
    EXPECT_EQ(*read, content);
  }
}

TEST_F(SealedFile, isPrivateAndDoesNotShowItsContent) {
  seal("a secret of the site");
  EXPECT_EQ(std::filesystem::status(file()).permissions() & std::filesystem::perms(0777),
            std::filesystem::perms(0600));
  const auto bytes = readFile(file());
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->find("a secret"), std::string::npos);
  const auto in = SealedReader::open(file());
  ASSERT_TRUE(in);
  EXPECT_EQ(in->about(), R"({"what":"test"})");
}

TEST_F(SealedFile, tellsAWrongPassphraseFromADamagedFile) {
  seal("content");
  const auto wrong = open(7, Secret("correct horse batterz"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), ErrorCode::Denied);
  const auto in = SealedWriter::create(folder_ / "other", Secret("short"), "{}");
  ASSERT_FALSE(in);
  EXPECT_EQ(in.error().code(), ErrorCode::InvalidInput);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "other"));
}

/// Whatever byte is another, and wherever it ends: never a part as if it were all.
TEST_F(SealedFile, isRefusedWhenAnyByteIsAnotherOrMissing) {
  const std::string content(2 * kSealedPieceBytes + 100, 'c');
  seal(content);
  const auto whole = readFile(file());
  ASSERT_TRUE(whole);
  // Beside the header each piece costs the same; a few places of each kind are enough.
  const std::size_t places[] = {0,
                                15,
                                16,
                                20,
                                40,
                                90,
                                150,
                                220,
                                300,
                                400,
                                5000,
                                70000,
                                whole->size() - 120,
                                whole->size() - 1};
  for (const auto place : places) {
    auto changed = *whole;
    changed[place] = static_cast<char>(changed[place] ^ 0x01);
    ASSERT_TRUE(writeFileAtomic(file(), changed));
    EXPECT_FALSE(open(content.size())) << "byte " << place;
    ASSERT_TRUE(writeFileAtomic(file(), whole->substr(0, place)));
    const auto cut = open(content.size());
    ASSERT_FALSE(cut) << "cut at " << place;
    EXPECT_EQ(cut.error().code(), ErrorCode::Corrupt) << cut.error().str();
  }
  ASSERT_TRUE(writeFileAtomic(file(), *whole + "x"));
  EXPECT_FALSE(open(content.size())) << "something follows";
}

TEST_F(SealedFile, piecesCannotBeMovedOrCutOffAtTheirBorder) {
  const std::string content =
      std::string(kSealedPieceBytes, 'a') + std::string(kSealedPieceBytes, 'b') + "end";
  seal(content);
  const auto whole = readFile(file());
  ASSERT_TRUE(whole);
  const std::size_t piece = kSealedPieceBytes + 16 + 4, last = 3 + 16 + 4;
  const auto first = whole->size() - 2 * piece - last;
  const auto head = whole->substr(0, first), a = whole->substr(first, piece),
             b = whole->substr(first + piece, piece), end = whole->substr(first + 2 * piece);
  for (const auto& other : {head + b + a + end, head + a + end, head + a + b, head + a + a + end}) {
    ASSERT_TRUE(writeFileAtomic(file(), other));
    EXPECT_FALSE(open(content.size()));
  }
  ASSERT_TRUE(writeFileAtomic(file(), head + a + b + end));
  EXPECT_TRUE(open(content.size()));
}

TEST_F(SealedFile, namesWhatIsNoneAndWhatIsNewer) {
  ASSERT_TRUE(writeFileAtomic(file(), "muster-sealed/2\nwhatever may come"));
  auto newer = open(1);
  ASSERT_FALSE(newer);
  EXPECT_THAT(newer.error().str(), HasSubstr("newer muster"));
  ASSERT_TRUE(writeFileAtomic(file(), "cluster: {name: small}\n"));
  const auto other = open(1);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().str(), HasSubstr("is no sealed file"));
}

/// A file that asks for terabytes of memory.
TEST_F(SealedFile, doesNotSpendWhatAHeaderAsksFor) {
  seal("content");
  auto bytes = readFile(file());
  ASSERT_TRUE(bytes);
  const auto at = bytes->find("65536");
  ASSERT_NE(at, std::string::npos);
  bytes->replace(at, 5, "99999");
  ASSERT_TRUE(writeFileAtomic(file(), *bytes));
  EXPECT_FALSE(open(7));
  bytes->replace(at, 5, "9e999");
  ASSERT_TRUE(writeFileAtomic(file(), *bytes));
  EXPECT_FALSE(open(7));
}

}  // namespace
}  // namespace muster::io
