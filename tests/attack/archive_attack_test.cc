// SPDX-License-Identifier: Apache-2.0
// Archives that somebody made to get out of the folder that they are unpacked into, to fill it, or
// to hang who unpacks them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "provision/images/archive.h"
#include "provision/images/image_import.h"
#include "tests/run_async.h"

namespace muster::attack {
namespace {

namespace fs = std::filesystem;

struct Member {
  std::string name;
  char kind = '0';  ///< 0 file, 1 hard link, 2 symbolic link, 3 character device, 5 folder, 6 FIFO
  std::string content, link;
  std::uint64_t declared_bytes = 0;  ///< of the header; 0: those of the content
};

/// POSIX ustar, byte by byte: no library would write what stands here. Source: pax(1), "ustar
/// Interchange Format"
std::string tarOf(const std::vector<Member>& members) {
  std::string out;
  for (const auto& member : members) {
    std::string head(512, '\0');
    const auto put = [&head](std::size_t at, const std::string& text) {
      head.replace(at, text.size(), text);
    };
    put(0, member.name.substr(0, 99));
    put(100, "0000755");
    put(108, "0000000");
    put(116, "0000000");
    put(124, fmt::format("{:011o}",
                         member.declared_bytes ? member.declared_bytes : member.content.size()));
    put(136, "00000000000");
    put(148, "        ");
    head[156] = member.kind;
    put(157, member.link.substr(0, 99));
    put(257, std::string("ustar\0", 6) + "00");
    put(329, "0000001");
    put(337, "0000003");
    unsigned sum = 0;
    for (const char letter : head) sum += static_cast<unsigned char>(letter);
    put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
    out += head + member.content + std::string((512 - member.content.size() % 512) % 512, '\0');
  }
  return out + std::string(1024, '\0');
}

class AttackArchive : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "unpacking a root file system needs root";
    std::ofstream(secret_) << "outside";
    fs::create_directories(folder_ / "work/tree/kept");
    std::ofstream(folder_ / "work/beside") << "beside";
  }
  Result<void> extract(const std::vector<Member>& members, bool layer = false) {
    std::ofstream(folder_ / "a.tar", std::ios::binary) << tarOf(members);
    return provision::extractTree(folder_ / "a.tar", folder_ / "work/tree", layer);
  }
  /// Nothing outside the root was made, changed or removed.
  void expectUntouched() {
    EXPECT_EQ(io::readFile(secret_, 1024).value_or("gone"), "outside");
    EXPECT_EQ(io::readFile(folder_ / "work/beside", 1024).value_or("gone"), "beside");
    struct stat info{};
    EXPECT_EQ(::stat(secret_.c_str(), &info), 0);
    EXPECT_EQ(info.st_nlink, 1u) << "a hard link of the file outside";
    EXPECT_FALSE(fs::exists(folder_ / "work/planted"));
    EXPECT_FALSE(fs::exists(folder_ / "planted"));
  }

  test::TempFolder folder_;
  const fs::path secret_ = folder_ / "secret";
};

TEST_F(AttackArchive, noNameLeadsOut) {
  for (const auto* const name :
       {"../planted", "a/../../planted", "./../planted", "..", "a/..", "/../planted"}) {
    EXPECT_FALSE(extract({{name, '0', "x"}})) << name;
    expectUntouched();
  }
  (void)extract(
      {{(folder_ / "planted").string(), '0', "x"}});  // absolute: within the root, or not at all
  expectUntouched();
}

TEST_F(AttackArchive, noLinkLeadsOut) {
  const auto outside = folder_.path().string();
  (void)extract({{"way", '2', "", outside}, {"way/planted", '0', "x"}});
  expectUntouched();
  (void)extract({{"up", '2', "", "../.."}, {"up/secret", '0', "changed"}});
  expectUntouched();
  (void)extract({{"same", '1', "", secret_.string()}});
  expectUntouched();
  EXPECT_FALSE(extract({{"same", '1', "", "../../secret"}}));
  expectUntouched();
  (void)extract(
      {{"door", '2', "", outside}, {"same", '1', "", "door/secret"}, {"same", '0', "changed"}});
  expectUntouched();
  (void)extract({{"file", '2', "", secret_.string()}, {"file", '0', "changed"}});
  expectUntouched();
}

TEST_F(AttackArchive, noWhiteoutRemovesMoreThanItsName) {
  for (const auto* const name : {".wh...", ".wh..", ".wh.", "kept/.wh...", "kept/../.wh.work"}) {
    EXPECT_FALSE(extract({{name, '0', ""}}, true)) << name;
    expectUntouched();
    EXPECT_TRUE(fs::exists(folder_ / "work/tree/kept")) << name;
  }
  fs::create_directory_symlink(folder_.path(), folder_ / "work/tree/door");
  (void)extract({{"door/.wh.secret", '0', ""}}, true);
  (void)extract({{"door/.wh..wh..opq", '0', ""}}, true);
  expectUntouched();
}

TEST_F(AttackArchive, whatIsLongerThanItIsOrDeeperThanAnythingIsRefused) {
  EXPECT_FALSE(extract({{"huge", '0', "little", "", 8ull << 30}}))
      << "the archive ends before the file does";
  std::string deep;
  for (int i = 0; i < 45; ++i) deep += "d/";
  std::vector<Member> nest;
  // GNU long names: ././@LongLink of type L names the member behind it.
  std::string name;
  for (int i = 0; i < 2'000; ++i) name += "d/";
  name += "f";
  nest.push_back({"././@LongLink", 'L', name + std::string(1, '\0')});
  nest.push_back({"f", '0', "x"});
  EXPECT_FALSE(extract(nest));
  expectUntouched();
}

TEST_F(AttackArchive, cutsAndRubbishAreRefused) {
  const auto whole = tarOf({{"a", '0', std::string(5'000, 'a')}, {"b", '2', "", "a"}, {"c", '5'}});
  for (std::size_t size = 0; size < whole.size() - 1024; size += 509) {
    std::ofstream(folder_ / "cut.tar", std::ios::binary) << whole.substr(0, size);
    (void)provision::extractTree(folder_ / "cut.tar", folder_ / "work/tree", false);
  }
  for (const char filler : {'\xff', '7', '\x1f'}) {
    std::ofstream(folder_ / "rubbish", std::ios::binary) << std::string(100'000, filler);
    EXPECT_FALSE(provision::extractTree(folder_ / "rubbish", folder_ / "work/tree", false));
  }
  expectUntouched();
}

TEST_F(AttackArchive, aFifoOrADeviceIsNoImage) {
  const auto fifo = folder_ / "fifo.qcow2";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const fs::path& file : {fifo, fs::path("/dev/zero"), folder_.path()}) {
    const auto imported =
        provision::importImage({file, std::string(64, 'a')}, inventory::ImageKind::RootFs,
                               folder_ / "work", folder_ / "out", [](std::string_view) {});
    ASSERT_FALSE(imported);
    EXPECT_NE(imported.error().str().find("not a regular file"), std::string::npos)
        << imported.error().str();
    EXPECT_FALSE(provision::ArchiveReader::open(file, provision::ArchiveReader::Kind::Tar));
  }
}

TEST_F(AttackArchive, compressedZerosTakeNoDisk) {
  constexpr std::uint64_t kUnpackedBytes = 1ull << 30, kMostOnDiskBytes = 16u << 20;
  const auto made = io::runChecked(
      {.program = "sh",
       .args = {"-ec", fmt::format("head -c {} /dev/zero | zstd -q -1 -o \"$1\"", kUnpackedBytes),
                "sh", (folder_ / "bomb.zst").string()}});
  ASSERT_TRUE(made) << made.error().str();
  const auto unpacked = provision::decompressFile(folder_ / "bomb.zst", folder_ / "bomb");
  ASSERT_TRUE(unpacked) << unpacked.error().str();
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / "bomb").c_str(), &info), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(info.st_size), kUnpackedBytes);
  EXPECT_LT(static_cast<std::uint64_t>(info.st_blocks) * 512, kMostOnDiskBytes);
}

}  // namespace
}  // namespace muster::attack
