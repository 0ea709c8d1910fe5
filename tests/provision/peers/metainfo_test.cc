// SPDX-License-Identifier: Apache-2.0
#include "provision/peers/metainfo.h"

#include "agent/peers/swarm.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/sha1.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

namespace muster::provision {
namespace {

const std::atomic<bool> kGoOn{false};

TEST(Sha1, isTheKnownOne) {
  EXPECT_EQ(io::toHex(io::sha1("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

class MetainfoTest : public ::testing::Test {
 protected:
  MetainfoTest() {
    for (std::size_t i = 0; i < content.size(); ++i)
      content[i] = static_cast<char>(i * 7 + i / 256);
    EXPECT_TRUE(io::writeFileAtomic(folder / "pack", content));
  }
  std::string content = std::string(2 * kLeastPieceBytes + 5, '\0');
  test::TempFolder folder;
};

TEST_F(MetainfoTest, followsFromThePackAlone) {
  const auto one = makeMetainfo(folder / "pack", kGoOn);
  ASSERT_TRUE(one) << one.error().str();
  std::filesystem::copy_file(folder / "pack", folder / "another name");
  const auto two = makeMetainfo(folder / "another name", kGoOn);
  ASSERT_TRUE(two);
  EXPECT_EQ(one->bytes, two->bytes);
  EXPECT_EQ(one->pieces, 3u);
  const std::string info = "d6:lengthi524293e4:name4:pack12:piece lengthi262144e6:pieces60:" +
                           io::sha1(content.substr(0, kLeastPieceBytes)) +
                           io::sha1(content.substr(kLeastPieceBytes, kLeastPieceBytes)) +
                           io::sha1(content.substr(2 * kLeastPieceBytes)) + "7:privatei1ee";
  EXPECT_EQ(one->bytes, "d4:info" + info + "e");
  EXPECT_EQ(one->info_hash, io::sha1(info));
  EXPECT_EQ(one->sha256, io::sha256Hex(one->bytes));
}

TEST_F(MetainfoTest, isKeptBesideThePackAndMadeAnewWhenItDoesNotFit) {
  const auto made = keptMetainfo(folder / "kept", folder / "pack", kGoOn);
  ASSERT_TRUE(made);
  const auto written = std::filesystem::last_write_time(folder / "kept");
  ASSERT_TRUE(keptMetainfo(folder / "kept", folder / "pack", kGoOn));
  EXPECT_EQ(std::filesystem::last_write_time(folder / "kept"), written);
  for (const std::string& damaged :
       {std::string(), std::string("d4:infoe"), made->bytes.substr(0, made->bytes.size() - 3),
        made->bytes + "e"}) {
    ASSERT_TRUE(io::writeFileAtomic(folder / "kept", damaged));
    const auto again = keptMetainfo(folder / "kept", folder / "pack", kGoOn);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->bytes, made->bytes);
  }
  ASSERT_TRUE(io::writeFileAtomic(folder / "pack", content + "more"));
  EXPECT_EQ(keptMetainfo(folder / "kept", folder / "pack", kGoOn)->pack_bytes, content.size() + 4);
}

TEST_F(MetainfoTest, everyDamageIsSeen) {
  const auto made = makeMetainfo(folder / "pack", kGoOn);
  ASSERT_TRUE(made);
  for (std::size_t at = 0; at < made->bytes.size(); ++at) {
    auto damaged = made->bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    const auto read = readMetainfo(damaged);
    EXPECT_TRUE(!read || read->info_hash != made->info_hash) << "byte " << at;
    EXPECT_FALSE(readMetainfo(made->bytes.substr(0, at)));
  }
}

TEST_F(MetainfoTest, whatCannotBeSharedIsSaid) {
  EXPECT_EQ(makeMetainfo(folder / "none", kGoOn).error().code(), ErrorCode::NotFound);
  ASSERT_TRUE(io::writeFileAtomic(folder / "empty", ""));
  EXPECT_EQ(makeMetainfo(folder / "empty", kGoOn).error().code(), ErrorCode::NotFound);
  EXPECT_EQ(makeMetainfo(folder / "pack", std::atomic<bool>(true)).error().code(),
            ErrorCode::Unavailable);
}

TEST_F(MetainfoTest, theAgentReadsThePieces) {
  const auto made = makeMetainfo(folder / "pack", kGoOn);
  ASSERT_TRUE(made);
  const auto table = agent::PieceTable::of(made->bytes, content.size());
  ASSERT_TRUE(table) << table.error().str();
  EXPECT_EQ(table->pieces(), 3u);
  EXPECT_EQ(table->sha1.substr(40), io::sha1(content.substr(2 * kLeastPieceBytes)));
  EXPECT_EQ(agent::PieceTable::of(made->bytes, content.size() + kLeastPieceBytes).error().code(),
            ErrorCode::Corrupt);
  for (const char* text : {"", "d4:infoe", "6:pieces99999999999:", "12:piece lengthi0e6:pieces20:"})
    EXPECT_FALSE(agent::PieceTable::of(text, 5));
}

TEST(PieceBytes, staySmallForSmallPacksAndFewForLargeOnes) {
  EXPECT_EQ(pieceBytesFor(1), kLeastPieceBytes);
  EXPECT_EQ(pieceBytesFor(512ull << 20), kLeastPieceBytes);
  EXPECT_EQ(pieceBytesFor(1ull << 30), 2 * kLeastPieceBytes);
  EXPECT_EQ(pieceBytesFor(1ull << 40), kMostPieceBytes);
}

}  // namespace
}  // namespace muster::provision
