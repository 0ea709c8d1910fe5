// SPDX-License-Identifier: Apache-2.0
// NVMe disks: nothing is harmed, what cannot be known has not passed, units are what they seem.
#include "tests/validate/fake_host.h"
#include "validate/checks/disk_evaluation.h"

#include <gmock/gmock.h>
#include <nvme/types.h>

#include <cmath>
#include <cstring>

namespace muster::validate {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using wire::CheckStatus;

std::string bytesOf(const auto& page) {
  return {reinterpret_cast<const char*>(&page), sizeof page};
}

/// As a good disk has it at 36 °C: the page counts in kelvins.
nvme_smart_log goodPage() {
  nvme_smart_log page{};
  page.temperature[0] = 309 & 0xff, page.temperature[1] = 309 >> 8;
  page.avail_spare = 100, page.spare_thresh = 10, page.percent_used = 3;
  return page;
}
std::string identity(unsigned warning_kelvins) {
  nvme_id_ctrl page{};
  page.wctemp = htole16(static_cast<std::uint16_t>(warning_kelvins));
  return bytesOf(page);
}

TEST(NvmeHealth, hasItsUnits) {
  auto page = goodPage();
  page.media_errors[0] = 1, page.media_errors[9] = 2;  // 128 bits
  page.percent_used = 255;
  const auto health = parseNvmeHealth(bytesOf(page));
  ASSERT_TRUE(health) << health.error().str();
  EXPECT_NEAR(health->temperature_c, 36, 0.2);
  EXPECT_DOUBLE_EQ(health->media_errors, 1 + 2 * std::pow(2.0, 72));
  EXPECT_DOUBLE_EQ(health->used_percent, 255) << "may be above 100";
}

TEST(NvmeHealth, whatNoDiskSaysIsNoHealth) {
  EXPECT_FALSE(parseNvmeHealth(""));
  EXPECT_FALSE(parseNvmeHealth(
      "Smart Log for NVME device:nvme0 namespace-id:ffffffff\ncritical_warning : 0\n"))
      << "text instead of the page";
  EXPECT_FALSE(parseNvmeHealth(std::string(512, '\0'))) << "0 K";
  EXPECT_FALSE(parseNvmeHealth(std::string(512, '\xff')));
  EXPECT_FALSE(parseNvmeHealth(bytesOf(goodPage()).substr(1)));
  auto page = goodPage();
  page.temperature[0] = 36, page.temperature[1] = 0;
  EXPECT_FALSE(parseNvmeHealth(bytesOf(page))) << "36 K: somebody has converted it";
  page = goodPage(), page.avail_spare = 101;
  EXPECT_FALSE(parseNvmeHealth(bytesOf(page)));
}

TEST(NvmeHealth, everyBitAndLimitHasItsWords) {
  const auto troubles = [](auto change, std::optional<double> warning = 75) {
    auto page = goodPage();
    change(page);
    return fmt::format("{}", fmt::join(troublesOf(*parseNvmeHealth(bytesOf(page)), warning), "; "));
  };
  EXPECT_EQ(troubles([](auto&) {}), "");
  for (int bit = 0; bit < 8; ++bit)
    EXPECT_THAT(troubles([bit](auto& page) {
                  page.critical_warning = static_cast<unsigned char>(1 << bit);
                }),
                HasSubstr("it warns: "))
        << bit;
  EXPECT_THAT(troubles([](auto& page) { page.critical_warning = 0x0c; }),
              AllOf(HasSubstr("unreliable"), HasSubstr("read-only")));
  EXPECT_THAT(troubles([](auto& page) { page.media_errors[0] = 1; }),
              HasSubstr("1 times data could not be read"));
  EXPECT_THAT(troubles([](auto& page) { page.avail_spare = 9; }),
              HasSubstr("9 % of its spare is left, 10 %"));
  EXPECT_THAT(troubles([](auto& page) { page.percent_used = 100; }),
              HasSubstr("100 % of its endurance"));
  const auto hot = [](auto& page) {
    page.temperature[0] = 345 & 0xff, page.temperature[1] = 345 >> 8;
  };
  EXPECT_EQ(troubles(hot), "") << "72 °C, and it warns at 75";
  EXPECT_THAT(troubles(hot, std::nullopt), HasSubstr("72 °C, 70 °C is too hot"))
      << "a disk without a limit of its own";
}

TEST(NvmeHealth, theDisksOwnLimitIsInKelvinsToo) {
  EXPECT_NEAR(**parseNvmeWarningC(identity(343)), 70, 0.2);
  EXPECT_FALSE(*parseNvmeWarningC(identity(0))) << "it names none";
  EXPECT_FALSE(parseNvmeWarningC(identity(70))) << "70 K is no limit";
  EXPECT_FALSE(parseNvmeWarningC(identity(700)));
  EXPECT_FALSE(parseNvmeWarningC(""));
}

using Disks = FakeHost;

TEST_F(Disks, healthIsThatOfEveryDiskOnPci) {
  EXPECT_EQ(check("disk.health").status, CheckStatus::NoData) << "no NVMe disk";
  write("sys/class/nvme/nvme0/serial", "S1"), write("sys/class/nvme/nvme0/transport", "pcie");
  write("sys/class/nvme/nvme1/serial", "far"), write("sys/class/nvme/nvme1/transport", "tcp");
  EXPECT_EQ(check("disk.health").status, CheckStatus::NoData) << "no nvme-cli";
  outputs_["nvme smart-log"] = {0, bytesOf(goodPage()), ""};
  EXPECT_EQ(check("disk.health").status, CheckStatus::NoData) << "half an answer";
  outputs_["nvme id-ctrl"] = {0, identity(348), ""};
  const auto good = check("disk.health");
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_DOUBLE_EQ(good.values.at("nvme0.spare_percent"), 100);
  EXPECT_EQ(good.evidence[0]["used_percent"], 3);
  EXPECT_FALSE(good.values.contains("nvme1.spare_percent")) << "a disk of another machine";
  auto page = goodPage();
  page.media_errors[0] = 7;
  outputs_["nvme smart-log"].out = bytesOf(page);
  EXPECT_EQ(check("disk.health").status, CheckStatus::Fail);
  EXPECT_THAT(check("disk.health").text, HasSubstr("nvme0 (serial S1): 7 times"));
  outputs_["nvme smart-log"] = {1, bytesOf(goodPage()), "Permission denied"};
  EXPECT_EQ(check("disk.health").status, CheckStatus::NoData)
      << "its exit status counts, whatever it printed";
}

std::string fio(double read, double write = 0, int error = 0) {
  return json{
      {"jobs",
       {{{"error", error}, {"read", {{"bw_bytes", read}}}, {"write", {{"bw_bytes", write}}}}}}}
      .dump();
}

TEST(Fio, readsBytesAndNothingElse) {
  EXPECT_DOUBLE_EQ(parseFio(fio(3e9), true, false)->read_mbytes_per_s, 3000);
  EXPECT_DOUBLE_EQ(parseFio(fio(3e9, 2e9), true, true)->write_mbytes_per_s, 2000);
  EXPECT_FALSE(parseFio(fio(0), true, false));
  EXPECT_FALSE(parseFio(fio(3e9, 0), true, true)) << "nothing was written";
  EXPECT_FALSE(parseFio(fio(0, 2e9), true, true)) << "nothing was read back";
  EXPECT_FALSE(parseFio(fio(3e9, 0, 5), true, false));
  for (const char* text :
       {"", "{}", "NaN", R"({"jobs":[]})", R"({"jobs":[7]})",
        R"({"jobs":[{"error":"0","read":{"bw_bytes":1}}]})",
        R"({"jobs":[{"error":0,"read":{"bw":3000}}]})",
        R"({"jobs":[{"error":0,"read":{"bw_bytes":"NaN"}}]})", R"({"jobs":[{"error":0,"read":7}]})",
        R"({"jobs":[{"read":{"bw_bytes":1}}]})"})
    EXPECT_FALSE(parseFio(text, true, false)) << text;
}

TEST_F(Disks, areReadOnlyAndComparedWithTheirLike) {
  EXPECT_EQ(check("disk.read").status, CheckStatus::NoData) << "no NVMe disk";
  write("sys/block/nvme0n1/device/model", "SSD X");
  EXPECT_EQ(check("disk.read").status, CheckStatus::Error) << "no fio";
  outputs_["fio"] = {0, fio(3e9), ""};
  EXPECT_EQ(check("disk.read").status, CheckStatus::Pass);
  EXPECT_DOUBLE_EQ(check("disk.read").values.at("nvme0n1.read_mbytes_per_s"), 3000);
  EXPECT_EQ(check("disk.read", {{"min_mbytes_per_s", 5000}}).status, CheckStatus::Fail);
  outputs_["fio"] = {1, fio(3e9), "io error"};
  EXPECT_EQ(check("disk.read").status, CheckStatus::NoData);
  EXPECT_EQ(slowerThanTheirLike({{"a", 3000}, {"b", 3100}, {"c", 2000}}).size(), 1u);
  EXPECT_TRUE(slowerThanTheirLike({{"a", 3000}, {"b", 10}}).empty())
      << "of two nobody knows which is right";
}

TEST_F(Disks, readingIsGuardedTwiceAndHiddenPathsAreNoDisks) {
  for (const char* name : {"nvme0n1", "nvme0c0n1", "nvme0n1p1", "sda", "nvmen1"})
    write(std::string("sys/block/") + name + "/device/model", "SSD X");
  outputs_["fio"] = {0, fio(3e9), ""};
  ASSERT_EQ(check("disk.read").status, CheckStatus::Pass);
  ASSERT_EQ(ran_.size(), 1u);
  EXPECT_THAT(ran_[0].args,
              AllOf(Contains("--readonly"), Contains("--rw=read"),
                    Contains("--allow_mounted_write=0"), Contains("--filename=/dev/nvme0n1")));
}

/// A disk with a partition of ext4 mounted at /data, and what else a machine has mounted.
class MountedDisks : public FakeHost {
 protected:
  void SetUp() override {
    write("sys/devices/nvme0n1/nvme0n1p1/partition", "1");
    std::filesystem::create_directories(host_.root / "sys/class/block");
    std::filesystem::create_symlink(host_.root / "sys/devices/nvme0n1",
                                    host_.root / "sys/class/block/nvme0n1");
    std::filesystem::create_symlink(host_.root / "sys/devices/nvme0n1/nvme0n1p1",
                                    host_.root / "sys/class/block/nvme0n1p1");
    write("dev/nvme0n1p1", ""), write("data/results", "of ten years");
    mounts("/dev/nvme0n1p1 /data ext4 rw,relatime 0 0");
    outputs_["fio"] = {0, fio(3e9, 2e9), ""};
  }
  void mounts(const std::string& lines) {
    write("proc/mounts", "proc /proc proc rw 0 0\n" + lines);
  }
  std::vector<std::string> writtenTo() const {
    std::vector<std::string> files;
    for (const auto& command : ran_)
      for (const auto& arg : command.args)
        if (arg.starts_with("--filename=")) files.push_back(arg.substr(arg.find('=') + 1));
    return files;
  }
};

TEST_F(MountedDisks, aNewFileIsWrittenReadBackAndRemoved) {
  const auto good = check("disk.write", {{"mebibytes", 16}});
  ASSERT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_DOUBLE_EQ(good.values.at("nvme0n1.write_mbytes_per_s"), 2000);
  EXPECT_EQ(writtenTo(),
            std::vector<std::string>{(host_.root / "data/.muster-disk-test/data").string()});
  EXPECT_THAT(ran_[0].args, AllOf(Contains("--verify=crc32c"), Contains("--verify_fatal=1"),
                                  Contains("--size=16M"), Contains("--allow_mounted_write=0")));
  EXPECT_FALSE(std::filesystem::exists(host_.root / "data/.muster-disk-test"));
  EXPECT_EQ(host_.line("data/results"), "of ten years");
}

TEST_F(MountedDisks, whatIsNotOurOwnIsNeverTouched) {
  write("data/.muster-disk-test/thesis", "the only copy");
  const auto refused = check("disk.write");
  EXPECT_EQ(refused.status, CheckStatus::NoData) << refused.text;
  EXPECT_TRUE(ran_.empty());
  EXPECT_EQ(host_.line("data/.muster-disk-test/thesis"), "the only copy");
  std::filesystem::remove_all(host_.root / "data/.muster-disk-test");
  std::filesystem::create_directories(host_.root / "data/.muster-disk-test");
  std::filesystem::create_symlink(host_.root / "data/results",
                                  host_.root / "data/.muster-disk-test/data");
  EXPECT_EQ(check("disk.write").status, CheckStatus::NoData) << "a link that points elsewhere";
  EXPECT_EQ(host_.line("data/results"), "of ten years");
  std::filesystem::remove_all(host_.root / "data/.muster-disk-test");
  write("data/.muster-disk-test/data", "left by a run that was killed");
  EXPECT_EQ(check("disk.write").status, CheckStatus::Pass);
}

TEST_F(MountedDisks, onlyWritableFileSystemsOfNvmeDisksCount) {
  for (const char* line :
       {"/dev/nvme0n1p1 /data ext4 ro,relatime 0 0", "/dev/nvme0n1p1 /data vfat rw 0 0",
        "/dev/sda1 /data ext4 rw 0 0", "server:/export /data nfs4 rw 0 0",
        "/dev/nvme0n1p1 /da:ta ext4 rw 0 0", "/dev/nvme0n1p1 /data", ""}) {
    mounts(line);
    EXPECT_EQ(check("disk.write").status, CheckStatus::NoData) << line;
  }
  mounts("/dev/nvme0n1p1 /data ext4 rw 0 0\nserver:/export /data nfs4 rw 0 0");
  EXPECT_EQ(check("disk.write").status, CheckStatus::NoData) << "another file system lies over it";
  mounts("/dev/nvme0n1p1 /data ext4 rw 0 0\n/dev/nvme0n1p1 /again ext4 rw 0 0");
  EXPECT_EQ(check("disk.write").status, CheckStatus::Pass);
  EXPECT_EQ(writtenTo().size(), 1u) << "one file system, mounted twice";
}

TEST_F(MountedDisks, throughLvmAndEncryptionTheDiskIsFound) {
  std::filesystem::create_directories(host_.root / "sys/class/block/dm-1/slaves/dm-0");
  std::filesystem::create_directories(host_.root / "sys/class/block/dm-0/slaves/nvme0n1p1");
  write("dev/dm-1", "");
  std::filesystem::create_directories(host_.root / "dev/mapper");
  std::filesystem::create_symlink(host_.root / "dev/dm-1", host_.root / "dev/mapper/data");
  mounts("/dev/mapper/data /data xfs rw 0 0");
  const auto good = check("disk.write");
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_TRUE(good.values.contains("nvme0n1.write_mbytes_per_s"));
}

TEST_F(MountedDisks, whatDoesNotComeBackFails) {
  outputs_["fio"] = {1, fio(3e9, 2e9), "verify: bad magic header"};
  const auto bad = check("disk.write");
  EXPECT_EQ(bad.status, CheckStatus::Fail);
  EXPECT_THAT(bad.text, HasSubstr("/data on nvme0n1: fio ended with 1: verify: bad magic header"));
  outputs_["fio"] = {0, fio(0, 2e9), ""};
  EXPECT_EQ(check("disk.write").status, CheckStatus::Fail) << "nothing was read back";
  outputs_.clear();
  EXPECT_EQ(check("disk.write").status, CheckStatus::NoData) << "no fio";
  EXPECT_FALSE(std::filesystem::exists(host_.root / "data/.muster-disk-test"));
  EXPECT_EQ(check("disk.write", {{"mebibytes", "many"}}).status, CheckStatus::Error);
}

}  // namespace
}  // namespace muster::validate
