// SPDX-License-Identifier: Apache-2.0
// Boot options that a real efibootmgr made for real disks, in a copy of a firmware's variables; and
// some bytes that no firmware writes. Needs root, loop devices and efibootmgr; else it is skipped.
#include "agent/imaging/uefi_boot.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kGlobal = "-8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// EFI_LOAD_OPTION of a NIC: MAC and IPv4 nodes (UEFI 2.10, 10.3.4.11 and 10.3.4.12).
std::string nicOption() {
  using namespace std::string_literals;
  std::string out = "\x01\x00\x00\x00"s;  // active
  std::string path = "\x03\x0b\x25\x00"s + std::string(33, '\x52');
  path += "\x03\x0c\x1b\x00"s + std::string(23, '\0') + "\x7f\xff\x04\x00"s;
  out += static_cast<char>(path.size());
  out += '\0';
  for (const char letter : "PXE"s) out += std::string{letter, '\0'};
  return out + "\0\0"s + path;
}

class UefiBootTest : public testing::Test {
 protected:
  struct Disk {
    std::string device, partuuid;
  };
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    if (!io::runBlocking({.program = "efibootmgr", .args = {"--version"}}))
      GTEST_SKIP() << "efibootmgr is not installed";
    ASSERT_TRUE(io::makeDirs(variables_));
    own_ = makeDisk("11111111-2222-4333-8444-555555555555");
    if (own_.device.empty()) GTEST_SKIP() << "this machine lends no loop device";
    factory_ = makeDisk("99999999-2222-4333-8444-abcdefabcdef");
  }
  void TearDown() override {
    for (const auto& disk : {own_, factory_})
      if (!disk.device.empty())
        (void)io::runChecked({.program = "losetup", .args = {"--detach", disk.device}});
  }
  Disk makeDisk(const std::string& partuuid) {
    const auto file = folder_ / (partuuid + ".img");
    EXPECT_TRUE(io::writeFileAtomic(file, ""));
    std::filesystem::resize_file(file, 64u << 20);
    const auto table = folder_ / "table";
    EXPECT_TRUE(io::writeFileAtomic(
        table,
        "label: gpt\nstart=2048,size=2048\nstart=4096,size=20480,type=U,uuid=" + partuuid + "\n"));
    EXPECT_TRUE(io::runChecked(
        {.program = "sh",
         .args = {"-c", fmt::format("sfdisk --quiet {} < {}", file.string(), table.string())}}));
    const auto device = io::runChecked(
        {.program = "losetup", .args = {"--find", "--show", "--partscan", file.string()}});
    return {device ? device->substr(0, device->find('\n')) : "", partuuid};
  }
  std::string tool(std::vector<std::string> args) {
    io::Command command{.program = "efibootmgr", .args = std::move(args)};
    command.env = {{"EFIVARFS_PATH", variables_.string() + "/"}, {"LIBEFIVAR_OPS", "efivarfs"}};
    const auto out = io::runChecked(command);
    EXPECT_TRUE(out) << out.error().str();
    return out.value_or("");
  }
  void create(const Disk& disk, const std::string& label, const std::string& loader) {
    tool({"--create", "--disk", disk.device, "--part", "2", "--label", label, "--loader", loader});
  }
  void putVariable(const std::string& name, const std::string& content) {
    ASSERT_TRUE(
        io::writeFileAtomic(variables_ / (name + kGlobal), std::string("\x07\0\0\0", 4) + content));
  }
  std::vector<InstalledEsp> installed() const {
    return {{own_.device, kEspPartition, own_.partuuid}};
  }

  test::TempFolder folder_;
  std::filesystem::path variables_ = folder_ / "efivars";
  Disk own_, factory_;
};

TEST_F(UefiBootTest, theInstalledSystemComesFirstThenTheNetworkAndAFactorySystemIsOff) {
  putVariable("Boot0007", nicOption());
  create(factory_, "ubuntu", "\\EFI\\ubuntu\\shimx64.efi");
  create(own_, "Windows Boot Manager", "\\EFI\\Microsoft\\Boot\\bootmgfw.efi");
  tool({"--bootorder", "0001,0000,0007"});
  const auto mended = mendUefiBoot(installed(), variables_);
  ASSERT_TRUE(mended) << mended.error().str();
  EXPECT_THAT(*mended, testing::Contains(HasSubstr("(ubuntu), a system on another disk")));
  EXPECT_THAT(*mended, testing::Contains(HasSubstr("(Windows Boot Manager), whose files were")));
  const auto shown = tool({"-v"});
  const auto boot = **readUefiBoot(variables_);
  ASSERT_EQ(boot.order.size(), 3u) << shown;
  EXPECT_EQ(boot.options.at(boot.order[0]).name, "muster") << shown;
  EXPECT_EQ(boot.options.at(boot.order[0]).partuuid, own_.partuuid);
  EXPECT_EQ(boot.options.at(boot.order[0]).file, "\\EFI\\BOOT\\BOOTX64.EFI");
  EXPECT_EQ(boot.order[1], 7);
  EXPECT_EQ(boot.options.at(boot.order[2]).name, "ubuntu");
  EXPECT_FALSE(boot.options.at(boot.order[2]).active) << shown;
  EXPECT_THAT(shown, HasSubstr("ubuntu"));  // and the tool sees it so
  EXPECT_THAT(shown, testing::Not(HasSubstr("* ubuntu")));
  EXPECT_THAT(*mendUefiBoot(installed(), variables_), IsEmpty()) << "a second run";
}

TEST_F(UefiBootTest, aFirmwareWithoutAnyOptionGetsOne) {
  putVariable("SecureBoot", std::string(1, '\0'));
  ASSERT_TRUE(mendUefiBoot(installed(), variables_));
  const auto boot = **readUefiBoot(variables_);
  ASSERT_EQ(boot.options.size(), 1u);
  EXPECT_THAT(boot.order, ElementsAre(boot.options.begin()->first));
}

TEST_F(UefiBootTest, eachDiskOfAMirrorHasItsOption) {
  auto both = installed();
  both.push_back({factory_.device, kEspPartition, factory_.partuuid});
  putVariable("Boot0000", nicOption());
  putVariable("BootOrder", std::string(2, '\0'));
  ASSERT_TRUE(mendUefiBoot(both, variables_));
  const auto boot = **readUefiBoot(variables_);
  ASSERT_EQ(boot.order.size(), 3u);
  EXPECT_EQ(boot.options.at(boot.order[0]).partuuid, own_.partuuid);
  EXPECT_EQ(boot.options.at(boot.order[1]).partuuid, factory_.partuuid);
  EXPECT_EQ(boot.order[2], 0);
  EXPECT_THAT(*mendUefiBoot(both, variables_), IsEmpty());
}

TEST_F(UefiBootTest, aMachineThatStartedByBiosIsLeftAlone) {
  EXPECT_THAT(*mendUefiBoot(installed(), variables_), IsEmpty()) << "the folder is empty";
  EXPECT_THAT(*mendUefiBoot(installed(), folder_ / "none"), IsEmpty());
}

TEST_F(UefiBootTest, ordersAndOptionsThatAreDamagedAreNamedOrPassedOver) {
  putVariable("Boot0000", "\x01");
  putVariable("BootZZZZ", nicOption());
  putVariable("BootOrder", std::string("\0\0\1", 3));
  const auto cut = mendUefiBoot(installed(), variables_);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().text(), HasSubstr("half a number"));
  putVariable("BootOrder", std::string("\0\0\5\0", 4));  // Boot0005 is not there
  const auto mended = mendUefiBoot(installed(), variables_);
  ASSERT_TRUE(mended) << mended.error().str();
  const auto boot = **readUefiBoot(variables_);
  EXPECT_EQ(boot.options.at(boot.order[0]).name, "muster");
  EXPECT_THAT(boot.order, testing::ElementsAre(testing::_, 0))
      << "what nobody understands keeps its place behind, what is not there loses it";
}

TEST_F(UefiBootTest, efibootmgrsOwnWordsAreInTheError) {
  putVariable("Boot0007", nicOption());
  const auto failed = mendUefiBoot({{"/dev/none", kEspPartition, own_.partuuid}}, variables_);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().str(), HasSubstr("efibootmgr"));
}

TEST(UefiLoadOption, anyCutOfARealOneIsRefusedOrReadWithoutGoingBeyondIt) {
  const auto whole = nicOption();
  ASSERT_TRUE(parseLoadOption(whole));
  EXPECT_EQ(parseLoadOption(whole)->kind, UefiOption::Kind::Network);
  EXPECT_EQ(parseLoadOption(whole)->name, "PXE");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::string cut = whole.substr(0, bytes);
    EXPECT_FALSE(parseLoadOption(cut)) << bytes;
  }
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
      auto bent = whole;
      bent[at] = value;
      (void)parseLoadOption(bent);  // AddressSanitizer and _GLIBCXX_ASSERTIONS look on
    }
}

}  // namespace
}  // namespace muster::agent
