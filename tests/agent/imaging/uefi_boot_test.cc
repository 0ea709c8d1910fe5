// SPDX-License-Identifier: Apache-2.0
// Boot options that a real efibootmgr made for real disks, in a copy of a firmware's variables; and
// some bytes that no firmware writes. Needs root, loop devices and efibootmgr; else it is skipped.
#include "agent/imaging/uefi_boot.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"
#include "validate/checks/check_row.h"

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
    beLikeEfivarfs();
    own_ = makeDisk("11111111-2222-4333-8444-555555555555");
    if (own_.device.empty()) GTEST_SKIP() << "this machine lends no loop device";
    factory_ = makeDisk("99999999-2222-4333-8444-abcdefabcdef");
  }
  void TearDown() override {
    if (!path_.empty()) ::setenv("PATH", path_.c_str(), 1);
    for (const auto& disk : {own_, factory_})
      if (!disk.device.empty())
        (void)io::runChecked({.program = "losetup", .args = {"--detach", disk.device}});
  }
  /// What is written to a variable of efivarfs is its new content; a file of a folder keeps the end
  /// of the longer one before.
  void beLikeEfivarfs() {
    const auto bin = folder_ / "shorter";
    ASSERT_TRUE(io::makeDirs(bin));
    ASSERT_TRUE(io::writeFileAtomic(
        bin / "efibootmgr",
        fmt::format(R"(#!/bin/sh
order={}
listed=$(od -An -v -tx2 -j4 "$order" 2>/dev/null)
bytes=$(stat -c %s "$order" 2>/dev/null)
/usr/bin/efibootmgr "$@" || exit
case "$*" in
*--bootorder*) for last; do :; done
  truncate -s $((4 + 2 * $(echo "$last" | tr ',' '\n' | wc -l))) "$order" ;;
*--delete-bootnum*)
  echo "$listed" | grep -iqw "$3" && truncate -s $((bytes - 2)) "$order" ;;
esac
exit 0
)",
                    (variables_ / (std::string("BootOrder") + kGlobal)).string()),
        0755));
    path_ = ::getenv("PATH");
    ::setenv("PATH", (bin.string() + ":" + path_).c_str(), 1);
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
  Result<std::vector<std::string>> mend() { return mend(installed()); }
  Result<std::vector<std::string>> mend(const std::vector<InstalledEsp>& esps) {
    return mendUefiBoot(esps, {.variables = variables_, .partitions = partitions_});
  }

  test::TempFolder folder_;
  std::filesystem::path variables_ = folder_ / "sys/firmware/efi/efivars",
                        partitions_ = folder_ / "by-partuuid";
  Disk own_, factory_;
  std::string path_;
};

TEST_F(UefiBootTest, theInstalledSystemComesFirstThenTheNetworkAndAFactorySystemIsOff) {
  putVariable("Boot0007", nicOption());
  create(factory_, "ubuntu", "\\EFI\\ubuntu\\shimx64.efi");
  create(own_, "Windows Boot Manager", "\\EFI\\Microsoft\\Boot\\bootmgfw.efi");
  tool({"--bootorder", "0001,0000,0007"});
  const auto mended = mend();
  ASSERT_TRUE(mended) << mended.error().str();
  EXPECT_THAT(*mended, testing::Contains(HasSubstr("(ubuntu), a system on another disk")));
  EXPECT_THAT(*mended, testing::Contains(HasSubstr("(Windows Boot Manager), whose files were")));
  const auto shown = tool({"-v"});
  const auto boot = **io::readUefiBoot(variables_);
  ASSERT_EQ(boot.order.size(), 3u) << shown;
  EXPECT_EQ(boot.options.at(boot.order[0]).name, "muster") << shown;
  EXPECT_EQ(boot.options.at(boot.order[0]).partuuid, own_.partuuid);
  EXPECT_EQ(boot.options.at(boot.order[0]).file, "\\EFI\\BOOT\\BOOTX64.EFI");
  EXPECT_EQ(boot.order[1], 7);
  EXPECT_EQ(boot.options.at(boot.order[2]).name, "ubuntu");
  EXPECT_FALSE(boot.options.at(boot.order[2]).active) << shown;
  EXPECT_THAT(shown, HasSubstr("ubuntu"));  // and the tool sees it so
  EXPECT_THAT(shown, testing::Not(HasSubstr("* ubuntu")));
  EXPECT_THAT(*mend(), IsEmpty()) << "a second run";
}

/// The check of the running system, over what a real efibootmgr has changed behind our back.
TEST_F(UefiBootTest, aBootOrderThatSomebodyChangedIsAFailedCheck) {
  const auto check = [&] {
    validate::Host host;
    host.root = folder_.path();
    return validate::checkSystemBootOrder({}, host);
  };
  EXPECT_EQ(check().status, wire::CheckStatus::NoData) << "nothing says which partition is its own";
  ASSERT_TRUE(io::makeDirs(folder_ / "etc/muster"));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "etc/fstab",
                                  "PARTUUID=" + own_.partuuid + " /boot/efi vfat nofail 0 0\n"));
  EXPECT_THAT(check().text, HasSubstr("was started by BIOS"));
  putVariable("Boot0007", nicOption());
  create(factory_, "ubuntu", "\\EFI\\ubuntu\\shimx64.efi");
  tool({"--bootorder", "0000,0007"});
  ASSERT_TRUE(mend());
  EXPECT_EQ(check().status, wire::CheckStatus::Pass) << check().text;
  const auto order = (**io::readUefiBoot(variables_)).order;
  ASSERT_EQ(order.size(), 3u);
  const auto hex = [](std::uint16_t number) { return fmt::format("{:04X}", number); };
  tool({"--bootnum", hex(order[2]), "--active"});
  EXPECT_THAT(check().text, HasSubstr("(ubuntu) is active and starts a system on another disk"));
  EXPECT_EQ(check().status, wire::CheckStatus::Fail);
  tool({"--bootnum", hex(order[2]), "--inactive"});
  tool({"--bootorder", hex(order[1]) + "," + hex(order[0])});
  EXPECT_THAT(check().text, HasSubstr("Boot0007 (PXE) comes before the installed system"));
  ASSERT_TRUE(mend());
  EXPECT_EQ(check().status, wire::CheckStatus::Pass) << check().text;
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "etc/muster/esp-partitions", factory_.partuuid + "\n"));
  EXPECT_EQ(check().status, wire::CheckStatus::Fail) << "it goes before what fstab says";
}

TEST_F(UefiBootTest, aFirmwareWithoutAnyOptionGetsOne) {
  putVariable("SecureBoot", std::string(1, '\0'));
  ASSERT_TRUE(mend());
  const auto boot = **io::readUefiBoot(variables_);
  ASSERT_EQ(boot.options.size(), 1u);
  EXPECT_THAT(boot.order, ElementsAre(boot.options.begin()->first));
}

TEST_F(UefiBootTest, eachDiskOfAMirrorHasItsOption) {
  auto both = installed();
  both.push_back({factory_.device, kEspPartition, factory_.partuuid});
  putVariable("Boot0000", nicOption());
  putVariable("BootOrder", std::string(2, '\0'));
  ASSERT_TRUE(mend(both));
  const auto boot = **io::readUefiBoot(variables_);
  ASSERT_EQ(boot.order.size(), 3u);
  EXPECT_EQ(boot.options.at(boot.order[0]).partuuid, own_.partuuid);
  EXPECT_EQ(boot.options.at(boot.order[1]).partuuid, factory_.partuuid);
  EXPECT_EQ(boot.order[2], 0);
  EXPECT_THAT(*mend(both), IsEmpty());
}

/// Each installation makes its partitions anew. A hundred of them must not fill the firmware's
/// store, and a system of ours that is still there is somebody's.
TEST_F(UefiBootTest, optionsOfEarlierInstallationsGoWithTheirPartitions) {
  const auto before = makeDisk("77777777-2222-4333-8444-777777777777");
  create(before, "muster", "\\EFI\\BOOT\\BOOTX64.EFI");
  create(factory_, "muster", "\\EFI\\BOOT\\BOOTX64.EFI");
  (void)io::runChecked({.program = "losetup", .args = {"--detach", before.device}});
  const auto blind = mend();
  ASSERT_TRUE(blind) << blind.error().str();
  EXPECT_THAT(*blind, testing::Contains(HasSubstr("is switched off")))
      << "no partition is to be seen, so nothing is deleted";
  EXPECT_EQ((**io::readUefiBoot(variables_)).options.size(), 3u);
  ASSERT_TRUE(io::makeDirs(partitions_));
  for (const auto& disk : {own_, factory_})
    std::filesystem::create_symlink("../../nothing", partitions_ / disk.partuuid);
  const auto seeing = mend();
  ASSERT_TRUE(seeing) << seeing.error().str();
  EXPECT_THAT(*seeing, testing::Contains(HasSubstr("whose partition is gone, is deleted")));
  const auto boot = **io::readUefiBoot(variables_);
  ASSERT_EQ(boot.options.size(), 2u);
  EXPECT_EQ(boot.options.at(boot.order.at(0)).partuuid, own_.partuuid);
  EXPECT_EQ(boot.options.at(boot.order.at(1)).partuuid, factory_.partuuid);
  EXPECT_FALSE(boot.options.at(boot.order.at(1)).active);
}

/// Another process (a vendor's agent) writes between our write and our look.
TEST_F(UefiBootTest, aFirmwareThatKeepsSomethingElseIsAnErrorWithAdvice) {
  putVariable("Boot0007", nicOption());
  const auto bin = folder_ / "bin";
  ASSERT_TRUE(io::makeDirs(bin));
  const auto order = variables_ / (std::string("BootOrder") + kGlobal);
  ASSERT_TRUE(io::writeFileAtomic(bin / "efibootmgr",
                                  fmt::format("#!/bin/sh\n/usr/bin/efibootmgr \"$@\" || exit\n"
                                              "printf '\\007\\0\\0\\0\\007\\0' > {}\n",
                                              order.string()),
                                  0755));
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", (bin.string() + ":" + path).c_str(), 1);
  const auto failed = mend();
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().str(),
              testing::AllOf(HasSubstr("but keeps 0007"), HasSubstr("muster bmc boot-order NODE")));
}

TEST_F(UefiBootTest, aMachineThatStartedByBiosIsLeftAlone) {
  EXPECT_THAT(*mend(), IsEmpty()) << "the folder is empty";
  EXPECT_THAT(*mendUefiBoot(installed(), {.variables = folder_ / "none"}), IsEmpty());
}

TEST_F(UefiBootTest, ordersAndOptionsThatAreDamagedAreNamedOrPassedOver) {
  putVariable("Boot0000", "\x01");
  putVariable("BootZZZZ", nicOption());
  putVariable("BootOrder", std::string("\0\0\1", 3));
  const auto cut = mend();
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().text(), HasSubstr("half a number"));
  putVariable("BootOrder", std::string("\0\0\5\0", 4));  // Boot0005 is not there
  const auto mended = mend();
  ASSERT_TRUE(mended) << mended.error().str();
  const auto boot = **io::readUefiBoot(variables_);
  EXPECT_EQ(boot.options.at(boot.order[0]).name, "muster");
  EXPECT_THAT(boot.order, testing::ElementsAre(testing::_, 0))
      << "what nobody understands keeps its place behind, what is not there loses it";
}

TEST_F(UefiBootTest, efibootmgrsOwnWordsAreInTheError) {
  putVariable("Boot0007", nicOption());
  const auto failed = mend({{"/dev/none", kEspPartition, own_.partuuid}});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().str(), HasSubstr("efibootmgr"));
}

}  // namespace
}  // namespace muster::agent
