// SPDX-License-Identifier: Apache-2.0
// The bytes of an index: its digest names the image, so no change of muster may change them.
#include "wire/pack_index.h"

#include <gmock/gmock.h>

namespace muster::wire {
namespace {

using ::testing::HasSubstr;

const std::string kRaw(64, 'a'), kPacked(64, 'b'), kPack(64, 'c');

/// Two chunks, the second of zero bytes.
PackIndex sample() {
  PackIndex index;
  index.name = "bookworm";
  index.size_bytes = 2 * kPackChunkBytes;
  index.pack_bytes = 1000;
  index.pack_sha256 = kPack;
  index.chunks = {{0, 1000, kRaw, false, kPacked, 0xabc}, {1000, 0, kRaw, true}};
  return index;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(PackIndexBytes, ofARootFileSystem) {
  const auto text = canonicalJson(sample());
  EXPECT_EQ(text, R"({"chunk_bytes":1048576,"chunks":[{"length":1000,"offset":0,"packed":")" +
                      kPacked + R"(","quick":"0000000000000abc","sha256":")" + kRaw +
                      R"(","zero":false},{"length":0,"offset":1000,"sha256":")" + kRaw +
                      R"(","zero":true}],"format":"muster-pack/2","kind":"rootfs",)" +
                      R"("name":"bookworm","pack_bytes":1000,"pack_sha256":")" + kPack +
                      R"(","root_fs":"ext4","size_bytes":2097152})");
  const auto read = readIndex(text);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(*read, sample());
}

TEST(PackIndexBytes, ofTheFirstFormat) {
  auto index = sample();
  index.format = 1;
  index.chunks[0].packed_sha256.clear();
  index.chunks[0].quick = 0;
  const auto text = canonicalJson(index);
  EXPECT_EQ(text, R"({"chunk_bytes":1048576,"chunks":[{"length":1000,"offset":0,"sha256":")" +
                      kRaw + R"(","zero":false},{"length":0,"offset":1000,"sha256":")" + kRaw +
                      R"(","zero":true}],"format":"muster-pack/1","name":"bookworm",)" +
                      R"("pack_bytes":1000,"pack_sha256":")" + kPack +
                      R"(","root_fs":"ext4","size_bytes":2097152})");
  EXPECT_EQ(readIndex(text).value_or(PackIndex{}), index);
}

TEST(PackIndexBytes, ofAnImageLaidOutOverAnother) {
  auto index = sample();
  index.predecessor = kPack;
  const auto text = canonicalJson(index);
  EXPECT_THAT(text, HasSubstr(R"("predecessor":")" + kPack + R"(","root_fs":"ext4")"));
  EXPECT_EQ(readIndex(text).value_or(PackIndex{}), index);
  EXPECT_NE(digestOf(index), digestOf(sample()));
  EXPECT_FALSE(readIndex(replaced(text, kPack + R"(","root_fs)", R"(none","root_fs)")));
  EXPECT_FALSE(readIndex(replaced(text, R"("kind":"rootfs",)", R"("kind":"disk",)")));
}

TEST(PackIndexBytes, ofAWholeDisk) {
  auto index = sample();
  index.kind = PackKind::Disk;
  index.root_fs.clear();
  index.sector_bytes = 4096;
  const auto text = canonicalJson(index);
  EXPECT_THAT(text, HasSubstr(R"("format":"muster-pack/2","kind":"disk","name":"bookworm")"));
  EXPECT_THAT(text, HasSubstr(R"("root_fs":"","sector_bytes":4096,"size_bytes":2097152})"));
  EXPECT_EQ(readIndex(text).value_or(PackIndex{}), index);
}

TEST(PackIndexBytes, areRefusedWhereAMemberIsMissingOrOfAnotherType) {
  const auto text = canonicalJson(sample());
  const std::vector<std::pair<std::string, std::string>> faults{
      {R"("chunk_bytes":1048576,)", ""},
      {R"("kind":"rootfs",)", ""},
      {R"("rootfs")", R"("floppy")"},
      {R"("muster-pack/2")", R"("muster-pack/3")"},
      {R"("muster-pack/2")", "2"},
      {R"("name":"bookworm",)", ""},
      {R"("name":"bookworm")", R"("name":7)"},
      {R"(,"root_fs":"ext4")", ""},
      {R"("size_bytes":2097152)", R"("size_bytes":-2097152)"},
      {R"("size_bytes":2097152)", R"("size_bytes":"2097152")"},
      {R"("pack_bytes":1000,)", ""},
      {R"("offset":0,)", ""},
      {R"("length":1000)", R"("length":1000.0)"},
      {R"("zero":false)", R"("zero":0)"},
      {R"(,"zero":false)", ""},
      {R"("quick":"0000000000000abc",)", ""},
      {R"("0000000000000abc")", R"("000000000000abc")"},
      {R"("0000000000000abc")", R"("000000000000abcg")"},
      {R"("packed":")" + kPacked + R"(",)", ""},
      {R"("root_fs":"ext4")", R"("root_fs":"ext4","sector_bytes":512)"},
      {R"("root_fs":"ext4")", R"("root_fs":"ext4","sector_bytes":0)"},
  };
  for (const auto& [what, with] : faults) {
    const auto read = readIndex(replaced(text, what, with));
    ASSERT_FALSE(read) << what << " → " << with;
    EXPECT_EQ(read.error().code(), ErrorCode::Corrupt) << what;
    EXPECT_THAT(read.error().text(), HasSubstr("image index: ")) << what;
  }
  auto disk = sample();
  disk.kind = PackKind::Disk;
  disk.sector_bytes = 512;
  EXPECT_TRUE(readIndex(canonicalJson(disk)));
  EXPECT_FALSE(readIndex(replaced(canonicalJson(disk), ":512", ":513")));
}

}  // namespace
}  // namespace muster::wire
