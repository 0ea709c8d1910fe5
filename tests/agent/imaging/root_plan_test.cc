// SPDX-License-Identifier: Apache-2.0
// A system disk of several parts: what is made, in which order, and what is refused before the
// first byte.
#include "agent/imaging/root_plan.h"

#include "agent/imaging/root_system.h"
#include "base/io/files.h"
#include "tests/agent/imaging/sizes.h"
#include "tests/run_async.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>

namespace muster::agent {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using wire::RaidLevel;

class RootPlanTest : public testing::Test {
 protected:
  Result<RootPlan> plan(const wire::RootLayout& spec, const std::string& rule = "size:400GB-500GB",
                        std::uint64_t image_bytes = 2 * kGib) {
    return planRoot(disks_, rule, spec, image_bytes, "gpu001");
  }
  static std::vector<std::string> lines(const std::vector<StorageStep>& steps) {
    std::vector<std::string> out;
    for (const auto& step : steps)
      out.push_back(fmt::format("{} {}", step.program, fmt::join(step.args, " ")));
    return out;
  }
  void refused(const wire::RootLayout& spec, ErrorCode code, const std::string& words,
               const std::string& rule = "size:400GB-500GB", std::uint64_t image_bytes = 2 * kGib) {
    const auto made = plan(spec, rule, image_bytes);
    ASSERT_FALSE(made) << words;
    EXPECT_EQ(made.error().code(), code) << made.error().str();
    EXPECT_THAT(made.error().text(), HasSubstr(words));
  }

  /// In another order than their serials.
  std::vector<DiskInfo> disks_{{"/dev/nvme1n1", "B", "wwn-B", 446 * kGib},
                               {"/dev/nvme0n1", "A", "wwn-A", 446 * kGib},
                               {"/dev/sda", "BIG", "", 4000 * kGib}};
};

/// What was written before the power went is looked for only where it can be.
TEST(DividedForRoot, isADiskOfThisPlanWholeOrHalfWritten) {
  const auto table = [](const std::string& label, std::initializer_list<const char*> names) {
    auto parts = nlohmann::json::array();
    for (const char* name : names)
      parts.push_back({{"node", fmt::format("/dev/sda{}", parts.size() + 1)}, {"name", name}});
    return nlohmann::json{{"partitiontable", {{"label", label}, {"partitions", parts}}}}.dump();
  };
  EXPECT_TRUE(
      dividedForRoot(table("gpt", {"muster-bios", "muster-esp", "muster-boot", "muster-writing"})));
  EXPECT_TRUE(
      dividedForRoot(table("gpt", {"muster-bios", "muster-esp", "muster-boot", "muster-root"})));
  EXPECT_FALSE(dividedForRoot(table("gpt", {"muster-bios", "muster-esp", "muster-root"})))
      << "a system disk of one part: its root begins elsewhere";
  EXPECT_FALSE(dividedForRoot(table("gpt", {"muster-bios", "muster-esp", "muster-boot", "data"})));
  EXPECT_FALSE(
      dividedForRoot(table("dos", {"muster-bios", "muster-esp", "muster-boot", "muster-root"})));
  for (const char* none : {"", "[]", "{}"}) EXPECT_FALSE(dividedForRoot(none));
}

TEST_F(RootPlanTest, aMirrorHasItsKernelOnBothDisks) {
  const auto made = plan({2, RaidLevel::Raid1});
  ASSERT_TRUE(made) << made.error().str();
  const auto steps = lines(made->steps);
  EXPECT_EQ(made->disks[0].serial, "A") << "in the order of serials, not of names";
  EXPECT_THAT(steps, Contains(AllOf(HasSubstr("mdadm --create /dev/md/muster-boot"),
                                    HasSubstr("--metadata=1.0"), HasSubstr("--level=1"),
                                    EndsWith("/dev/nvme0n1p3 /dev/nvme1n1p3"))));
  EXPECT_THAT(steps, Contains(AllOf(HasSubstr("mdadm --create /dev/md/muster-root"),
                                    HasSubstr("--metadata=1.2"), HasSubstr("--level=1"),
                                    EndsWith("/dev/nvme0n1p4 /dev/nvme1n1p4"))));
  EXPECT_EQ(made->root, "/dev/md/muster-root");
  EXPECT_EQ(made->root_argument, "root=/dev/md/muster-root");
  EXPECT_THAT(made->mdadm,
              ElementsAre(HasSubstr("/dev/md/muster-boot"), HasSubstr("/dev/md/muster-root")));
  EXPECT_THAT(made->crypttab, IsEmpty());
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(made->steps[i].may_fail) << "letting go of what udev assembled comes first";
  const auto divided = std::find_if(made->steps.begin(), made->steps.end(),
                                    [](const auto& step) { return step.program == "sfdisk"; });
  EXPECT_THAT(divided->stdin_text,
              AllOf(HasSubstr("muster-bios"), HasSubstr("muster-esp"), HasSubstr("muster-boot"),
                    HasSubstr("muster-writing"), Not(HasSubstr("muster-root"))));
}

TEST_F(RootPlanTest, stripesOfTheRootStillMirrorBoot) {
  const auto steps = lines(plan({2, RaidLevel::Raid0})->steps);
  EXPECT_THAT(steps, Contains(AllOf(HasSubstr("/dev/md/muster-boot"), HasSubstr("--level=1"))));
  EXPECT_THAT(steps, Contains(AllOf(HasSubstr("/dev/md/muster-root"), HasSubstr("--level=0"))));
}

TEST_F(RootPlanTest, encryptionAndAVolumeLieOnTheArray) {
  const auto made = plan({2, RaidLevel::Raid1, wire::RootKey::Tpm, 100});
  ASSERT_TRUE(made) << made.error().str();
  const auto steps = lines(made->steps);
  EXPECT_THAT(steps, Contains(AllOf(HasSubstr("cryptsetup luksFormat"),
                                    EndsWith("--key-file - /dev/md/muster-root"))));
  EXPECT_THAT(
      steps,
      Contains("cryptsetup open --type luks2 --key-file - /dev/md/muster-root muster-root-crypt"));
  EXPECT_THAT(steps, Contains("lvm pvcreate -ff --yes /dev/mapper/muster-root-crypt"));
  EXPECT_THAT(
      steps, Contains("lvm lvcreate --yes --wipesignatures y --name root --size 100g muster-root"));
  EXPECT_EQ(made->root_argument, "root=/dev/mapper/muster--root-root");
  EXPECT_THAT(
      made->crypttab,
      ElementsAre(AllOf(HasSubstr("muster-root-crypt UUID="),
                        HasSubstr(" none luks,initramfs,keyscript=/usr/lib/muster/unlock-root"))));
  for (const auto& step : made->steps)
    EXPECT_EQ(step.needs_key, step.program == "cryptsetup" && !step.may_fail) << step.what;
  EXPECT_EQ(lines(made->closing), (std::vector<std::string>{"lvm vgchange --activate n",
                                                            "cryptsetup close muster-root-crypt",
                                                            "mdadm --stop --scan"}));
}

TEST_F(RootPlanTest, aVolumeGroupOfBeforeIsNotInUseWhenTheNewOneIsMade) {
  const auto steps = lines(plan({2, RaidLevel::Raid1, wire::RootKey::None, 3})->steps);
  const auto made = std::find_if(steps.begin(), steps.end(), [](const auto& step) {
    return step.starts_with("mdadm --create /dev/md/muster-root");
  });
  ASSERT_LT(made + 3, steps.end());
  EXPECT_EQ(std::vector<std::string>(made + 1, made + 4),
            (std::vector<std::string>{"udevadm settle --timeout=30", "lvm vgchange --activate n",
                                      "lvm pvcreate -ff --yes /dev/md/muster-root"}));
}

TEST_F(RootPlanTest, oneDiskNeedsNoArray) {
  const auto made = plan({1, RaidLevel::None, wire::RootKey::File, 0}, "serial:A");
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(made->boot, "/dev/nvme0n1p3");
  EXPECT_EQ(made->root, "/dev/mapper/muster-root-crypt");
  EXPECT_THAT(made->mdadm, IsEmpty());
  for (const auto& step : made->steps) EXPECT_TRUE(step.program != "mdadm" || step.may_fail);
  EXPECT_EQ(plan({1, RaidLevel::None, wire::RootKey::File, 0}, "serial:A")->steps, made->steps)
      << "the same each time";
}

TEST_F(RootPlanTest, refusesBeforeTheFirstByte) {
  refused({3, RaidLevel::Raid1}, ErrorCode::Conflict, "fits 2 disks, 3 are declared; there are: ");
  refused({2, RaidLevel::Raid1}, ErrorCode::NotFound,
          "no disk fits \"serial:X\"; there are: ", "serial:X");
  refused({2, RaidLevel::Raid5}, ErrorCode::InvalidInput, "RAID is 0 or 1");
  refused({2, RaidLevel::None}, ErrorCode::InvalidInput, "several disks need RAID");
  refused({1, RaidLevel::Raid1}, ErrorCode::InvalidInput, "over two disks at least", "serial:A");
  refused({2, RaidLevel::Raid1}, ErrorCode::InvalidInput, "its disks give", "size:400GB-500GB",
          500 * kGib);
  EXPECT_TRUE(plan({2, RaidLevel::Raid0}, "size:400GB-500GB", 500 * kGib))
      << "stripes have room for it";
  refused({2, RaidLevel::Raid1, wire::RootKey::None, 1}, ErrorCode::InvalidInput,
          "the image needs 2048 MiB, its volume has 1 GiB");
}

/// The image's own side, with the commands only noted.
class RootSystemTest : public RootPlanTest {
 protected:
  void SetUp() override {
    for (const char* hook : {"mdadm", "lvm2", "cryptroot"})
      ASSERT_TRUE(put(fmt::format("usr/share/initramfs-tools/hooks/{}", hook), ""));
    ASSERT_TRUE(put("usr/sbin/update-initramfs", ""));
  }
  Result<void> put(const std::string& name, std::string_view text) {
    TRY_OK(io::makeDirs((root_ / name).parent_path()));
    return io::writeFileAtomic(root_ / name, text);
  }
  std::string at(const std::string& name) {
    return io::readFile(root_ / name).value_or("(missing)");
  }
  Result<void> configure(const wire::RootLayout& spec,
                         const std::string& rule = "size:400GB-500GB") {
    return configureRoot(root_, *plan(spec, rule), "KEY",
                         [this](const std::filesystem::path&,
                                const std::vector<std::string>& command) -> Result<void> {
                           ran_.push_back(fmt::format("{}", fmt::join(command, " ")));
                           return {};
                         });
  }
  test::TempFolder folder_;
  std::filesystem::path root_ = folder_ / "root";
  std::vector<std::string> ran_;
};

TEST_F(RootSystemTest, knowsItsArraysAndMakesItsInitrd) {
  ASSERT_TRUE(put("etc/mdadm/mdadm.conf", "HOMEHOST <system>\n"));
  ASSERT_TRUE(configure({2, RaidLevel::Raid1}));
  EXPECT_THAT(at("etc/mdadm/mdadm.conf"),
              AllOf(HasSubstr("HOMEHOST <system>\nARRAY /dev/md/muster-boot"),
                    HasSubstr("\nARRAY /dev/md/muster-root")));
  EXPECT_EQ(at("etc/crypttab"), "(missing)");
  EXPECT_THAT(ran_, ElementsAre("update-initramfs -u -k all"));
}

TEST_F(RootSystemTest, aKeyFileIsReadableToRootAlone) {
  ASSERT_TRUE(configure({1, RaidLevel::None, wire::RootKey::File, 0}, "serial:A"));
  EXPECT_EQ(at("etc/muster/keys/root.key"), "KEY");
  struct stat info{};
  ASSERT_EQ(::stat((root_ / "etc/muster/keys/root.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(at("etc/initramfs-tools/conf.d/muster-root"), "UMASK=0077\n")
      << "the initrd holds the key too";
  EXPECT_THAT(at("etc/cryptsetup-initramfs/conf-hook"),
              HasSubstr("KEYFILE_PATTERN=/etc/muster/keys/root.key"));
}

TEST_F(RootSystemTest, anImageWithoutTheProgramsIsNamed) {
  const auto lacks = [this](const std::string& hook, const wire::RootLayout& spec,
                            const std::string& rule) {
    std::filesystem::remove(root_ / "usr/share/initramfs-tools/hooks" / hook);
    const auto done = configure(spec, rule);
    return done ? std::string("nothing") : done.error().text();
  };
  EXPECT_THAT(lacks("cryptroot", {1, RaidLevel::None, wire::RootKey::Tpm, 0}, "serial:A"),
              HasSubstr("no cryptsetup-initramfs"));
  EXPECT_THAT(lacks("lvm2", {1, RaidLevel::None, wire::RootKey::None, 10}, "serial:A"),
              HasSubstr("no lvm2"));
  EXPECT_THAT(lacks("mdadm", {2, RaidLevel::Raid1}, "size:400GB-500GB"), HasSubstr("no mdadm"));
  EXPECT_THAT(ran_, IsEmpty());
}

TEST_F(RootSystemTest, bootMovesWithNamesThatGrubKnows) {
  ASSERT_TRUE(put("boot/vmlinuz-6.1.0-9-amd64", "old"));
  ASSERT_TRUE(put("boot/vmlinuz-6.1.0-28-amd64", "kernel"));
  ASSERT_TRUE(put("boot/initrd.img-6.1.0-28-amd64", "initrd"));
  const auto boot = folder_ / "bootfs";
  ASSERT_TRUE(io::makeDirs(boot));
  const auto moved = moveBoot(root_, boot);
  ASSERT_TRUE(moved) << moved.error().str();
  EXPECT_EQ(*io::readFile(boot / "vmlinuz"), "kernel") << "the newest";
  EXPECT_EQ(*io::readFile(boot / "initrd.img"), "initrd");
  EXPECT_THAT(at("etc/kernel-img.conf"), HasSubstr("link_in_boot = yes"));
  std::filesystem::remove_all(root_ / "boot");
  ASSERT_TRUE(put("boot/config", ""));
  ASSERT_TRUE(io::makeDirs(folder_ / "bootfs2"));
  EXPECT_FALSE(moveBoot(root_, folder_ / "bootfs2"));
}

}  // namespace
}  // namespace muster::agent
