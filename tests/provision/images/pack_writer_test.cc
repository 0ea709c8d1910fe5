// SPDX-License-Identifier: Apache-2.0
#include "provision/images/pack_writer.h"
#include "base/io/files.h"
#include "tests/run_async.h"
#include "wire/pack_index.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

namespace muster {
namespace {

using wire::PackIndex;

std::string noise(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string data(bytes, '\0');
  for (char& c : data) c = static_cast<char>(random());
  return data;
}

/// 0: noise, 1: empty, 2: text, 3: a short last chunk.
std::string sampleImage() {
  return noise(wire::kPackChunkBytes, 1) + std::string(wire::kPackChunkBytes, '\0') +
         std::string(wire::kPackChunkBytes, 'x') + noise(8192, 2);
}

struct Packed {
  test::TempFolder folder;
  std::string raw = sampleImage();
  PackIndex index;
  Packed() {
    EXPECT_TRUE(io::writeFileAtomic(folder / "raw", raw));
    auto made = provision::writePack(folder / "raw", folder / "pack", "sample", 2);
    EXPECT_TRUE(made) << made.error().str();
    index = *made;
  }
};

TEST(Pack, restoresToTheSameBytes) {
  Packed packed;
  const std::string pack = *io::readFile(packed.folder / "pack");
  ASSERT_EQ(pack.size(), packed.index.pack_bytes);
  EXPECT_EQ(io::sha256Hex(pack), packed.index.pack_sha256);
  std::string restored;
  for (std::size_t i = 0; i < packed.index.chunks.size(); ++i) {
    const auto& chunk = packed.index.chunks[i];
    std::string raw(packed.index.rawBytes(i), '\0');
    if (!chunk.zero) {
      ASSERT_EQ(ZSTD_decompress(raw.data(), raw.size(), pack.data() + chunk.offset, chunk.length),
                raw.size());
    }
    EXPECT_EQ(io::sha256Hex(raw), chunk.sha256);
    if (!chunk.zero) {
      EXPECT_EQ(io::sha256Hex(pack.substr(chunk.offset, chunk.length)), chunk.packed_sha256);
      EXPECT_EQ(wire::quickSum(raw), chunk.quick);
    }
    restored += raw;
  }
  EXPECT_TRUE(restored == packed.raw);
}

TEST(Pack, storesNothingForEmptyChunks) {
  Packed packed;
  ASSERT_EQ(packed.index.chunks.size(), 4u);
  EXPECT_TRUE(packed.index.chunks[1].zero);
  EXPECT_EQ(packed.index.chunks[1].length, 0u);
  EXPECT_FALSE(packed.index.chunks[2].zero);
  EXPECT_LT(packed.index.chunks[2].length, 1000u);
  EXPECT_EQ(packed.index.rawBytes(3), 8192u);
}

TEST(Pack, isTheSameWithAnyNumberOfThreads) {
  Packed packed;
  const auto alone =
      provision::writePack(packed.folder / "raw", packed.folder / "pack1", "sample", 1);
  ASSERT_TRUE(alone);
  EXPECT_EQ(*alone, packed.index);
  EXPECT_EQ(*io::readFile(packed.folder / "pack1"), *io::readFile(packed.folder / "pack"));
}

TEST(Pack, refusesAFileThatIsNoFileSystem) {
  test::TempFolder folder;
  ASSERT_TRUE(io::writeFileAtomic(folder / "raw", "only some text"));
  const auto made = provision::writePack(folder / "raw", folder / "pack", "sample", 2);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(provision::writePack(folder / "missing", folder / "pack", "sample", 2).error().code(),
            ErrorCode::NotFound);
}

TEST(PackIndex, isReadBackFromItsSignedForm) {
  Packed packed;
  const auto key = *io::SigningKey::generate();
  const auto text = *wire::signedJson(packed.index, key);
  const auto opened = wire::openIndex(text, wire::digestOf(packed.index), key.public_pem);
  ASSERT_TRUE(opened) << opened.error().str();
  EXPECT_EQ(*opened, packed.index);
}

TEST(PackIndex, ofAWholeDiskTellsTheSectorsOfItsTable) {
  const auto key = *io::SigningKey::generate();
  for (const int sector_bytes : {512, 4096}) {
    test::TempFolder folder;
    std::string raw(1u << 20, '\0');
    raw[510] = '\x55', raw[511] = '\xaa';
    raw.replace(static_cast<std::size_t>(sector_bytes), 8, "EFI PART");
    ASSERT_TRUE(io::writeFileAtomic(folder / "raw", raw));
    const auto made =
        provision::writePack(folder / "raw", folder / "pack", "vendor", 1, wire::PackKind::Disk);
    ASSERT_TRUE(made) << made.error().str();
    EXPECT_EQ(made->tableSectorBytes(), sector_bytes);
    const auto opened =
        wire::openIndex(*wire::signedJson(*made, key), wire::digestOf(*made), key.public_pem);
    ASSERT_TRUE(opened) << opened.error().str();
    EXPECT_EQ(*opened, *made);
    auto older = *made;
    older.sector_bytes = 0;
    EXPECT_EQ(wire::canonicalJson(older).find("sector_bytes"), std::string::npos)
        << "its digest stays what it was";
    EXPECT_EQ(wire::readIndex(wire::canonicalJson(older))->tableSectorBytes(), 512);
  }
  auto wrong = Packed().index;
  wrong.sector_bytes = 512;
  EXPECT_FALSE(wire::readIndex(wire::canonicalJson(wrong)))
      << "a file system has no partition table";
  EXPECT_EQ(Packed().index.tableSectorBytes(), 0);
}

TEST(PackIndex, refusesTheSignatureOfAnotherKey) {
  Packed packed;
  const auto text = *wire::signedJson(packed.index, *io::SigningKey::generate());
  const auto opened =
      wire::openIndex(text, wire::digestOf(packed.index), io::SigningKey::generate()->public_pem);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::Denied);
}

TEST(PackIndex, refusesAnotherImageThanTheOneWanted) {
  Packed packed;
  const auto key = *io::SigningKey::generate();
  const auto opened =
      wire::openIndex(*wire::signedJson(packed.index, key), std::string(64, 'a'), key.public_pem);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::Corrupt);
}

TEST(PackIndex, refusesTextThatWasChangedOrCutShort) {
  Packed packed;
  const auto key = *io::SigningKey::generate();
  const auto text = *wire::signedJson(packed.index, key);
  auto changed = text;
  changed.replace(changed.find("sample"), 6, "sAmple");
  EXPECT_EQ(wire::openIndex(changed, "", key.public_pem).error().code(), ErrorCode::Denied);
  EXPECT_EQ(wire::openIndex(text.substr(0, text.size() / 2), "", key.public_pem).error().code(),
            ErrorCode::Corrupt);
  EXPECT_EQ(wire::openIndex("", "", key.public_pem).error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(wire::openIndex("[1]", "", key.public_pem).error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(wire::openIndex("{\"signature\":\"\"}", "", key.public_pem).error().code(),
            ErrorCode::Denied);
}

/// A signature makes an index genuine, not right: its numbers are checked all the same.
TEST(PackIndex, refusesNumbersThatDoNotFitTogether) {
  const Packed packed;
  const std::vector<std::function<void(PackIndex&)>> faults{
      [](PackIndex& i) { i.chunk_bytes = 0; },
      [](PackIndex& i) { i.chunk_bytes = 1ull << 40; },
      [](PackIndex& i) { i.size_bytes += 4096 << 10; },
      [](PackIndex& i) { i.size_bytes = 0; },
      [](PackIndex& i) { i.chunks.pop_back(); },
      [](PackIndex& i) { i.chunks[2].offset += 1; },
      [](PackIndex& i) { i.chunks[0].length = 0; },
      [](PackIndex& i) { i.chunks[0].length = 1ull << 50; },
      [](PackIndex& i) { i.chunks[1].length = 5; },
      [](PackIndex& i) { i.chunks[0].sha256 = "../../etc"; },
      [](PackIndex& i) { i.pack_bytes += 1; },
      [](PackIndex& i) { i.pack_sha256.clear(); },
      [](PackIndex& i) { i.chunks[0].packed_sha256.clear(); }};
  const auto key = *io::SigningKey::generate();
  for (std::size_t n = 0; n < faults.size(); ++n) {
    PackIndex index = packed.index;
    faults[n](index);
    const auto opened = wire::openIndex(*wire::signedJson(index, key), "", key.public_pem);
    ASSERT_FALSE(opened) << "fault " << n;
    EXPECT_EQ(opened.error().code(), ErrorCode::Corrupt) << "fault " << n;
  }
}

}  // namespace
}  // namespace muster
