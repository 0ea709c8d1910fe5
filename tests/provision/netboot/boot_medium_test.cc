// SPDX-License-Identifier: Apache-2.0
// The boot medium, made by xorriso and mtools, and read again by others: the ISO file system by
// libarchive's bsdtar or xorriso, the EFI system partition by mtools where the partition table says
// that it is.
#include "provision/netboot/boot_medium.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>

namespace muster::provision {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class BootMediumTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!io::runBlocking({.program = "xorriso", .args = {"-version"}}))
      GTEST_SKIP() << "needs xorriso";
    write("vmlinuz", std::string(300'000, 'k'));
    write("initrd.img", std::string(700'001, 'i'));
    write("agent.img", "agent");
    write("shim", std::string(40'000, 's'));
    write("grub", std::string(90'000, 'g'));
    parts = mediumParts(Architecture::Arm64,
                        RamOs{folder / "vmlinuz", folder / "initrd.img", folder / "agent.img",
                              folder / "shim", folder / "grub"},
                        nullptr);
  }
  void write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(io::writeFileAtomic(folder / name, content));
  }
  std::string run(const std::string& program, std::vector<std::string> args) {
    const auto done = io::runChecked({.program = program, .args = std::move(args)});
    EXPECT_TRUE(done) << done.error().str();
    return done.value_or("");
  }
  std::string fromIso(const fs::path& iso, const std::string& name) {
    const auto to = folder / "extracted";
    fs::remove(to);
    run("xorriso", {"-osirrox", "on", "-indev", iso.string(), "-extract", name, to.string()});
    return io::readFile(to).value_or("");
  }
  static std::uint64_t littleEndian(const std::string& bytes, std::size_t at, std::size_t count) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < count; ++i)
      number |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes.at(at + i))) << (8 * i);
    return number;
  }
  std::vector<std::string> filesOf(const char* ending) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder / "media"))
      if (entry.path().extension() == ending) found.push_back(entry.path().filename());
    return found;
  }

  muster::test::TempFolder folder;
  BootMedia media{folder / "media"};
  MediumParts parts;
};

TEST_F(BootMediumTest, othersReadWhatIsOnItAndTheNodesWordsLieInItsFile) {
  const auto medium = media.make(parts);
  ASSERT_TRUE(medium) << medium.error().str();
  EXPECT_EQ(fromIso(medium->image, "/ramos/vmlinuz"), std::string(300'000, 'k'));
  EXPECT_EQ(fromIso(medium->image, "/ramos/initrd.img"), std::string(700'001, 'i'));
  EXPECT_EQ(fromIso(medium->image, "/ramos/agent.img"), "agent");
  const auto config = fromIso(medium->image, "/grub/grub.cfg");
  EXPECT_THAT(config, HasSubstr("source /muster/node.cfg"));

  // As it is sent: the node's words are the file's content, and nothing else has changed.
  const auto overlay = mediumParameters(*medium, "echo 'muster: gpu001 boots into the RAM OS'\n");
  ASSERT_TRUE(overlay);
  const auto before = io::readFile(medium->image).value();
  {
    std::fstream image(medium->image, std::ios::in | std::ios::out | std::ios::binary);
    image.seekp(static_cast<std::streamoff>(overlay->offset));
    image << overlay->bytes;
  }
  EXPECT_THAT(fromIso(medium->image, "/muster/node.cfg"),
              StartsWith("echo 'muster: gpu001 boots into the RAM OS'\n\n\n"));
  EXPECT_EQ(fromIso(medium->image, "/ramos/initrd.img"), std::string(700'001, 'i'));
  auto expected = before;
  expected.replace(overlay->offset, overlay->bytes.size(), overlay->bytes);
  EXPECT_TRUE(io::readFile(medium->image).value() == expected);
}

/// UEFI 2.10, 5.3: a partition entry has its type at 0 and its first block at 32. As a stick the
/// firmware finds the ESP there, as a CD by El Torito's catalogue.
TEST_F(BootMediumTest, theSystemPartitionIsInThePartitionTableAndInElTorito) {
  const auto medium = media.make(parts);
  ASSERT_TRUE(medium) << medium.error().str();
  const auto image = io::readFile(medium->image).value();
  ASSERT_EQ(image.substr(512, 8), "EFI PART");
  const std::string kEsp("\x28\x73\x2a\xc1\x1f\xf8\xd2\x11\xba\x4b\x00\xa0\xc9\x3e\xc9\x3b", 16);
  std::optional<std::uint64_t> begin;
  for (std::size_t entry = 1024; entry < 1024 + 8 * 128; entry += 128)
    if (image.substr(entry, 16) == kEsp) begin = littleEndian(image, entry + 32, 8) * 512;
  ASSERT_TRUE(begin) << "no EFI system partition in the GPT";
  const auto esp = fmt::format("{}@@{}", medium->image.string(), *begin);
  const auto to = (folder / "loader").string();
  run("mcopy", {"-n", "-i", esp, "::/EFI/BOOT/BOOTAA64.EFI", to});
  EXPECT_EQ(io::readFile(to).value_or(""), std::string(40'000, 's'));
  fs::remove(to);
  run("mcopy", {"-n", "-i", esp, "::/EFI/BOOT/grubaa64.efi", to});
  EXPECT_EQ(io::readFile(to).value_or(""), std::string(90'000, 'g'));
  fs::remove(to);
  run("mcopy", {"-n", "-i", esp, "::/grub/grub.cfg", to});
  EXPECT_EQ(io::readFile(to).value_or("-"), fromIso(medium->image, "/grub/grub.cfg"));
  // El Torito 1.0: the catalogue's sector stands at 0x47 of sector 17, the default entry's load
  // address at 0x28 of it, in sectors of 2048 bytes; platform EF is EFI.
  const auto catalogue = littleEndian(image, 17 * 2048 + 0x47, 4) * 2048;
  EXPECT_EQ(static_cast<unsigned char>(image.at(catalogue + 1)), 0xEF);
  EXPECT_EQ(littleEndian(image, catalogue + 0x28, 4) * 2048, *begin);
}

TEST_F(BootMediumTest, itIsMadeOnceAndAnewWhenSomethingDiffers) {
  const auto first = media.make(parts);
  ASSERT_TRUE(first);
  const auto made_at = fs::last_write_time(first->image);
  const auto second = BootMedia(folder / "media").make(parts);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->image, first->image);
  EXPECT_EQ(second->parameters_at, first->parameters_at);
  EXPECT_EQ(fs::last_write_time(first->image), made_at);

  write("agent.img", "another agent");
  const auto third = media.make(parts);
  ASSERT_TRUE(third);
  EXPECT_NE(third->image, first->image);
  EXPECT_EQ(fromIso(third->image, "/ramos/agent.img"), "another agent");
}

TEST_F(BootMediumTest, aDamagedOneAndOneThatWasNeverFinishedAreMadeAnew) {
  const auto first = media.make(parts);
  ASSERT_TRUE(first);
  const auto good = io::readFile(first->image).value();
  auto bad = good;
  bad[bad.size() / 2] ^= 1;
  ASSERT_TRUE(io::writeFileAtomic(first->image, bad));
  ASSERT_TRUE(media.make(parts));
  EXPECT_EQ(fromIso(first->image, "/ramos/initrd.img"), std::string(700'001, 'i'));
  EXPECT_FALSE(io::readFile(first->image).value() == bad);
  for (const auto* record : {"", "x", "12", "  9"}) {
    ASSERT_TRUE(io::writeFileAtomic(fs::path(first->image).replace_extension(".made"), record));
    const auto again = media.make(parts);
    ASSERT_TRUE(again) << record;
    EXPECT_GT(again->parameters_at, 0u);
  }
  ASSERT_TRUE(io::makeDirs(folder / "media/0123.new/tree"));  // of one that was killed
  write("agent.img", "yet another");
  ASSERT_TRUE(media.make(parts));
  EXPECT_FALSE(fs::exists(folder / "media/0123.new"));
}

TEST_F(BootMediumTest, aFewEarlierOnesAreKeptForWhoStillReadsThem) {
  for (int version = 0; version < 7; ++version) {
    write("agent.img", std::to_string(version));
    ASSERT_TRUE(media.make(parts));
  }
  EXPECT_EQ(filesOf(".iso").size(), 4u);
  EXPECT_EQ(filesOf(".made").size(), 4u);
}

TEST_F(BootMediumTest, whatIsMissingIsNamed) {
  auto without = parts;
  without.shim = folder / "no-shim";
  without.loaders_package = "shim-signed and grub-efi-amd64-signed";
  EXPECT_THAT(media.make(without).error().str(),
              HasSubstr("install the packages shim-signed and grub-efi-amd64-signed"));
  fs::remove(folder / "initrd.img");
  EXPECT_EQ(media.make(parts).error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(fs::exists(folder / "media") && !filesOf(".iso").empty());
}

TEST_F(BootMediumTest, parametersThatDoNotFitAreRefused) {
  const BootMedium medium{"x", 4096};
  EXPECT_TRUE(mediumParameters(medium, std::string(kMediumParameterBytes, 'a')));
  EXPECT_EQ(mediumParameters(medium, std::string(kMediumParameterBytes + 1, 'a')).error().code(),
            ErrorCode::InvalidInput);
}

}  // namespace
}  // namespace muster::provision
