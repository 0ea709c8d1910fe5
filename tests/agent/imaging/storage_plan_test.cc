// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/storage_plan.h"

#include "agent/imaging/install.h"
#include "agent/imaging/writer.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/agent/imaging/sizes.h"
#include "tests/run_async.h"
#include "wire/disk_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <sys/stat.h>

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::FileSystem;
using wire::RaidLevel;

DiskInfo disk(const std::string& path, const std::string& serial, std::uint64_t gib) {
  return {path, serial, "wwn-" + serial, gib * kGib};
}

/// A node with a system disk and four NVMe of 3 TiB, listed in another order than their serials.
class StoragePlanTest : public testing::Test {
 protected:
  Result<StoragePlan> plan(const std::vector<wire::StorageSet>& sets,
                           const FoundStorage& found = {}) {
    return planStorage(disks_, {disks_[0]}, sets, "gpu001", found);
  }
  static wire::StorageSet scratch() {
    wire::StorageSet set;
    set.name = "scratch";
    set.disks = "size:2TB-";
    set.count = 4;
    set.raid = RaidLevel::Raid0;
    set.volumes = {{"scratch", 0, FileSystem::Xfs, "/scratch"}};
    return set;
  }
  static std::vector<std::string> lines(const StoragePlan& plan) {
    std::vector<std::string> out;
    for (const auto& step : plan.steps)
      out.push_back(fmt::format("{} {}", step.program, fmt::join(step.args, " ")));
    return out;
  }
  /// What the partitions of a made plan are called once it is finished.
  static FoundStorage finishedAfter(const StoragePlan& plan) {
    const auto made = partitionsOf(plan);
    return {{made.begin(), made.end()}, {}};
  }
  /// The same, in the order in which they are divided.
  static std::vector<std::string> partitionsOf(const StoragePlan& plan) {
    std::vector<std::string> made;
    for (const auto& step : plan.steps)
      if (const auto at = step.stdin_text.find("uuid="); at != std::string::npos)
        made.push_back(step.stdin_text.substr(at + 5, 36));
    return made;
  }
  static std::vector<std::string> guarded(const StoragePlan& plan) {
    std::vector<std::string> out;
    for (const auto& [set, disk] : plan.guarded) out.push_back(set + " " + disk.serial);
    return out;
  }
  void refused(const std::vector<wire::StorageSet>& sets, ErrorCode code,
               const std::string& words) {
    const auto made = plan(sets);
    ASSERT_FALSE(made) << words;
    EXPECT_EQ(made.error().code(), code) << made.error().str();
    EXPECT_THAT(made.error().text(), HasSubstr(words));
  }

  std::vector<DiskInfo> disks_{disk("/dev/sda", "SYS", 400), disk("/dev/nvme3n1", "A", 3000),
                               disk("/dev/nvme0n1", "B", 3000), disk("/dev/nvme1n1", "C", 3000),
                               disk("/dev/nvme2n1", "D", 3000)};
};

TEST_F(StoragePlanTest, anArrayWithOneFileSystem) {
  const auto made = plan({scratch()});
  ASSERT_TRUE(made) << made.error().str();
  const auto steps = lines(*made);
  ASSERT_EQ(steps.size(), 2 + 4 + 1 + 1 + 2 + 1 + 4u);
  EXPECT_EQ(steps[0], "lvm vgchange --activate n");
  EXPECT_EQ(steps[1], "mdadm --stop --scan");
  EXPECT_TRUE(made->steps[0].may_fail && made->steps[1].may_fail);
  EXPECT_EQ(steps[2], "sfdisk --wipe always --wipe-partitions always --quiet /dev/nvme3n1")
      << "in the order of serials, not of names";
  EXPECT_THAT(made->steps[2].stdin_text, HasSubstr("name=\"muster-making\""));
  EXPECT_EQ(steps[6], "udevadm settle --timeout=30");
  EXPECT_THAT(
      steps[7],
      testing::AllOf(HasSubstr("mdadm --create /dev/md/scratch --run --metadata=1.2"),
                     HasSubstr("--level=0 --raid-devices=4"),
                     HasSubstr("/dev/nvme3n1p1 /dev/nvme0n1p1 /dev/nvme1n1p1 /dev/nvme2n1p1")));
  EXPECT_EQ(steps[8] + "; " + steps[9], "udevadm settle --timeout=30; lvm vgchange --activate n")
      << "a volume group of before may show in the new array";
  EXPECT_THAT(steps[10],
              testing::AllOf(HasSubstr("mkfs.xfs -f -q -m uuid="), HasSubstr(" /dev/md/scratch")));
  EXPECT_EQ(steps.back(), "sfdisk --part-label /dev/nvme2n1 1 muster-data")
      << "finished is said last";
  ASSERT_EQ(made->fstab.size(), 1u);
  EXPECT_THAT(made->fstab[0], HasSubstr(" /scratch xfs noatime,nofail"));
  ASSERT_EQ(made->mdadm.size(), 1u);
  const std::string uuid = made->mdadm[0].substr(made->mdadm[0].find("UUID=") + 5);
  EXPECT_THAT(steps[7], HasSubstr("--uuid=" + uuid))
      << "the installed system looks for the array that is made";
  EXPECT_THAT(steps[10], HasSubstr(made->fstab[0].substr(5, 36)));
  EXPECT_EQ(made->wiped.size(), 4u);
}

TEST_F(StoragePlanTest, encryptedVolumesOnAMirror) {
  auto set = scratch();
  set.disks = "size:2TB-";
  disks_.resize(3);
  set.count = 2;
  set.raid = RaidLevel::Raid1;
  set.encrypt = true;
  set.volumes = {{"home", 500, FileSystem::Ext4, "/home"}, {"rest", 0, FileSystem::Xfs, "/data"}};
  const auto made = plan({set});
  ASSERT_TRUE(made) << made.error().str();
  const auto steps = lines(*made);
  EXPECT_THAT(steps,
              testing::Contains(HasSubstr("cryptsetup luksFormat --batch-mode --type luks2")));
  EXPECT_THAT(steps, testing::Contains("lvm pvcreate -ff --yes /dev/mapper/muster-scratch"));
  EXPECT_THAT(steps,
              testing::Contains(
                  "lvm lvcreate --yes --wipesignatures y --name home --size 500g muster-scratch"));
  EXPECT_THAT(
      steps,
      testing::Contains(
          "lvm lvcreate --yes --wipesignatures y --name rest --extents 100%FREE muster-scratch"));
  EXPECT_THAT(steps, testing::Contains(testing::EndsWith("/dev/muster-scratch/home")));
  EXPECT_THAT(made->crypttab,
              ElementsAre(testing::AllOf(HasSubstr("muster-scratch UUID="),
                                         HasSubstr("/etc/muster/keys/scratch.key luks,nofail"))));
  EXPECT_THAT(made->keys, ElementsAre("scratch"));
  for (const auto& step : made->steps)
    EXPECT_EQ(step.needs_key, step.program == "cryptsetup" && !step.may_fail) << step.what;
  for (const auto& line : steps) EXPECT_THAT(line, testing::Not(HasSubstr("secret")));
}

TEST_F(StoragePlanTest, whatAnOlderSystemLeftIsLetGoOfWhateverIsDeclaredNow) {
  auto set = scratch();
  set.disks = "serial:A";
  set.count = 1;
  set.raid = RaidLevel::None;
  const auto made = plan({set});
  ASSERT_TRUE(made) << made.error().str();
  ASSERT_FALSE(made->wiped.empty());
  EXPECT_EQ(lines(*made)[0], "lvm vgchange --activate n");
  EXPECT_EQ(lines(*made)[1], "mdadm --stop --scan") << "A was in an array, which udev assembled";
}

TEST_F(StoragePlanTest, isTheSameEachTimeAndOtherForAnotherNode) {
  EXPECT_EQ(plan({scratch()})->steps, plan({scratch()})->steps);
  std::reverse(disks_.begin() + 1, disks_.end());
  EXPECT_EQ(lines(*plan({scratch()}))[7], lines(*plan({scratch()}))[7]);
  EXPECT_NE(planStorage(disks_, {disks_[0]}, {scratch()}, "gpu002", {})->mdadm,
            plan({scratch()})->mdadm);
}

TEST_F(StoragePlanTest, aFinishedSetKeepsItsData) {
  const auto first = plan({scratch()});
  const FoundStorage finished = finishedAfter(*first);
  ASSERT_EQ(finished.finished.size(), 4u);
  const auto again = plan({scratch()}, finished);
  ASSERT_TRUE(again);
  EXPECT_THAT(again->steps, IsEmpty());
  EXPECT_THAT(again->wiped, IsEmpty());
  EXPECT_THAT(again->kept, ElementsAre("scratch"));
  EXPECT_EQ(again->fstab, first->fstab);
  EXPECT_EQ(again->mdadm, first->mdadm);
}

TEST_F(StoragePlanTest, aSetThatIsOnlyPartlyThereOrDeclaredOtherwiseIsMadeAnewButGuarded) {
  const auto all = testing::ElementsAre("scratch A", "scratch B", "scratch C", "scratch D");
  FoundStorage found = finishedAfter(*plan({scratch()}));
  auto other = scratch();
  other.volumes[0].filesystem = FileSystem::Ext4;
  EXPECT_EQ(plan({other}, found)->wiped.size(), 4u);
  EXPECT_THAT(guarded(*plan({other}, found)), all);
  EXPECT_THAT(guarded(*planStorage(disks_, {disks_[0]}, {scratch()}, "gpu002", found)), all)
      << "the node has another name now";
  auto large = scratch();
  large.sector_bytes = 4096;
  for (auto& one : disks_) one.sector_bytes = 512;
  EXPECT_THAT(guarded(*plan({large}, finishedAfter(*plan({large})))), all);
  found.finished.erase(found.finished.begin());
  EXPECT_EQ(plan({scratch()}, found)->wiped.size(), 4u);
  EXPECT_THAT(guarded(*plan({scratch()}, found)), all);
}

TEST_F(StoragePlanTest, aReplacedMemberPutsNoOtherDiskUnderThePermissionForTheSystem) {
  const FoundStorage found = finishedAfter(*plan({scratch()}));
  disks_[2] = disk("/dev/nvme0n1", "NEW", 3000);
  EXPECT_THAT(guarded(*plan({scratch()}, found)),
              testing::UnorderedElementsAre("scratch A", "scratch NEW", "scratch C", "scratch D"));
}

TEST_F(StoragePlanTest, anEncryptedSetAsDeclaredGoesWithItsKey) {
  auto encrypted = scratch();
  encrypted.encrypt = true;
  const auto made = plan({encrypted}, finishedAfter(*plan({encrypted})));
  EXPECT_EQ(made->wiped.size(), 4u) << "its key went with the system disk";
  EXPECT_THAT(made->guarded, IsEmpty());
  EXPECT_EQ(plan({encrypted}, finishedAfter(*plan({scratch()})))->guarded.size(), 4u)
      << "what lies there was not encrypted";
  const auto parts = partitionsOf(*plan({encrypted}));
  EXPECT_THAT(plan({encrypted}, {{parts[0]}, {parts[1], parts[2], parts[3]}})->guarded, IsEmpty())
      << "stopped at its labels";
  EXPECT_THAT(guarded(*plan({encrypted}, {{parts[2], parts[3]}, {parts[1]}})),
              ElementsAre("scratch A"))
      << "stopped when the first disk had no table";
}

TEST_F(StoragePlanTest, whatIsMustersOnDisksIsToldByTheirTables) {
  test::TempFolder folder;
  std::vector<DiskInfo> real;
  for (const char* label : {"muster-data", "muster-making", "photos"}) {
    const auto file = folder / label;
    ASSERT_TRUE(io::writeFileAtomic(file, ""));
    std::filesystem::resize_file(file, 8u << 20);
    io::Command divide{.program = "sfdisk", .args = {"-q", file.string()}};
    divide.stdin_text = fmt::format(
        "label: gpt\nname=\"{}\", uuid=A0B1C2D3-0000-4000-8000-{:012}\n", label, real.size());
    ASSERT_TRUE(io::runChecked(divide));
    real.push_back({file, "SN", "", 8u << 20});
  }
  real.push_back({folder / "gone", "SN", "", 8u << 20});
  const auto found = findStorage(real);
  EXPECT_THAT(found.finished, ElementsAre("a0b1c2d3-0000-4000-8000-000000000000"));
  EXPECT_THAT(found.making, ElementsAre("a0b1c2d3-0000-4000-8000-000000000001"));
  EXPECT_EQ(describeDiskContent(folder / "muster-making")->text, "none")
      << "it goes on without a permission";
  EXPECT_THAT(describeDiskContent(folder / "muster-data")->text, HasSubstr("\"muster-data\""));
  EXPECT_EQ(describeDiskContent(folder / "muster-data")->use, wire::DiskUse::DataSet);
}

TEST_F(StoragePlanTest, aMakingThatStoppedAtItsLabelsOnlyGetsThem) {
  const auto made = partitionsOf(*plan({scratch()}));
  const auto first = plan({scratch()}, {{made[0]}, {made[1], made[2], made[3]}});
  EXPECT_THAT(first->kept, ElementsAre("scratch"));
  EXPECT_THAT(first->wiped, IsEmpty());
  EXPECT_THAT(lines(*first), ElementsAre("sfdisk --part-label /dev/nvme0n1 1 muster-data",
                                         "sfdisk --part-label /dev/nvme1n1 1 muster-data",
                                         "sfdisk --part-label /dev/nvme2n1 1 muster-data"));
  // A making over finished disks divides them in the same order: then the first one is empty, and
  // the others hold what they held.
  EXPECT_EQ(plan({scratch()}, {{made[1], made[2], made[3]}, {made[0]}})->guarded.size(), 4u);
  EXPECT_EQ(plan({scratch()}, {{made[0], made[2]}, {made[1], made[3]}})->guarded.size(), 4u);
  EXPECT_EQ(plan({scratch()}, {{made[0]}, {made[1], made[2]}})->guarded.size(), 4u)
      << "one disk is not muster's at all";
  EXPECT_EQ(plan({scratch()}, {{}, {made.begin(), made.end()}})->wiped.size(), 4u)
      << "nothing says that the file system was made";
}

TEST_F(StoragePlanTest, nvmeDisksGetTheSectorsThatAreDeclared) {
  auto set = scratch();
  set.sector_bytes = 4096;
  for (auto& one : disks_) one.sector_bytes = 512;
  disks_[1].sector_bytes = 4096;  // serial A has them already
  const auto made = plan({set});
  ASSERT_TRUE(made) << made.error().str();
  const auto steps = lines(*made);
  EXPECT_EQ(steps[2], "nvme format /dev/nvme0n1 --block-size=4096 --force")
      << "before the disk is divided";
  EXPECT_EQ(steps[4], "grep -qx 4096 /sys/block/nvme0n1/queue/logical_block_size");
  EXPECT_EQ(std::count_if(steps.begin(), steps.end(),
                          [](const auto& line) { return line.starts_with("nvme format"); }),
            3);
  EXPECT_THAT(steps, testing::Not(testing::Contains(HasSubstr("format /dev/nvme3n1"))));
  const auto finished = finishedAfter(*made);
  EXPECT_EQ(plan({set}, finished)->wiped.size(), 4u)
      << "finished, but with other sectors than declared now";
  for (auto& one : disks_) one.sector_bytes = 4096;
  EXPECT_THAT(plan({set}, finished)->kept, ElementsAre("scratch"));
  EXPECT_THAT(plan({scratch()}, finished)->kept, ElementsAre("scratch"))
      << "no word of sectors keeps those that there are";
}

TEST_F(StoragePlanTest, refusesSectorsThatADiskCannotBeGiven) {
  auto set = scratch();
  set.sector_bytes = 520;
  refused({set}, ErrorCode::InvalidInput, "sectors of 520 bytes do not exist");
  set.sector_bytes = 4096;
  for (auto& one : disks_) one.sector_bytes = 512;
  disks_.push_back(disk("/dev/nvme2n2", "SMALL", 10));
  refused({set}, ErrorCode::Conflict, "may empty /dev/nvme2n2");
  disks_.back() = disk("/dev/sdb", "E", 3000);
  disks_.back().sector_bytes = 512;
  disks_.erase(disks_.begin() + 1);
  refused({set}, ErrorCode::Conflict, "is no NVMe disk");
  disks_.back().sector_bytes = 4096;
  EXPECT_TRUE(plan({set}));
}

TEST_F(StoragePlanTest, refusesWhatIsNotExactlyAsDeclared) {
  auto set = scratch();
  set.count = 3;
  refused({set}, ErrorCode::Conflict, "fits 4 disks, 3 are declared");
  set = scratch();
  set.disks = "serial:WRONG";
  refused({set}, ErrorCode::NotFound, "no disk fits");
  set = scratch();
  set.disks = "size:100GB-";
  set.count = 5;
  refused({set}, ErrorCode::Conflict, "is the system disk");
  auto second = scratch();
  second.name = "second";
  second.volumes[0].mount = "/second";
  refused({scratch(), second}, ErrorCode::Conflict, "belongs to scratch already");
  disks_[1].serial = disks_[1].wwn = "";
  refused({scratch()}, ErrorCode::Conflict, "neither serial nor WWN");
}

TEST_F(StoragePlanTest, refusesWhatCannotBe) {
  const auto with = [](auto change) {
    auto set = scratch();
    change(set);
    return std::vector<wire::StorageSet>{set};
  };
  refused(with([](auto& set) { set.raid = RaidLevel::None; }), ErrorCode::InvalidInput,
          "need raid");
  refused(with([](auto& set) {
            set.raid = RaidLevel::Raid6;
            set.count = 3;
          }),
          ErrorCode::InvalidInput, "RAID 6 is over 4 disks at least");
  refused(with([](auto& set) {
            set.raid = RaidLevel::Raid5;
            set.volumes[0].size_gib = 9001;
          }),
          ErrorCode::InvalidInput, "its disks give 8999 GiB");
  EXPECT_TRUE(plan(with([](auto& set) {
    set.raid = RaidLevel::Raid5;
    set.volumes[0].size_gib = 8900;
  })));
  refused(with([](auto& set) { set.disks = ""; }), ErrorCode::InvalidInput, "a rule is needed");
  refused(with([](auto& set) { set.disks = "/dev/sdb"; }), ErrorCode::InvalidInput,
          "does not name a disk");
  refused(with([](auto& set) { set.volumes[0].mount = "/"; }), ErrorCode::InvalidInput, "no place");
  refused(with([](auto& set) { set.volumes[0].mount = "/boot/efi"; }), ErrorCode::InvalidInput,
          "no place");
  refused(with([](auto& set) {
            set.volumes = {{"a", 0, FileSystem::Xfs, "/a"}, {"b", 1, FileSystem::Xfs, "/b"}};
          }),
          ErrorCode::InvalidInput, "only the last");
  refused(with([](auto& set) { set.volumes[0].size_gib = 12'001; }), ErrorCode::InvalidInput,
          "12001 GiB");
  refused(with([](auto& set) {
            set.volumes = {{"a", 1, FileSystem::Xfs, "/a"}, {"a", 0, FileSystem::Xfs, "/b"}};
          }),
          ErrorCode::InvalidInput, "two volumes a");
  refused({scratch(), scratch()}, ErrorCode::InvalidInput, "two of this name");
}

TEST_F(StoragePlanTest, runsItsStepsInOrderAndStopsAtTheFirstThatFails) {
  auto set = scratch();
  set.encrypt = true;
  const auto made = plan({set});
  std::vector<std::string> ran;
  const StorageTool tool = [&ran](const StorageStep& step, const std::string& key) -> Result<void> {
    ran.push_back(step.program);
    if (step.needs_key) {
      EXPECT_EQ(key, "secret");
    }
    if (step.may_fail) return fail(ErrorCode::Internal, "there is no array");
    if (step.program == "mkfs.xfs") return fail(ErrorCode::Internal, "Input/output error");
    return {};
  };
  const auto done = runSteps(made->steps, {{"scratch", "secret"}}, tool, [](const std::string&) {});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), testing::AllOf(HasSubstr("file system for /scratch"),
                                                 HasSubstr("Input/output error")));
  EXPECT_EQ(ran.back(), "mkfs.xfs") << "nothing is called finished after that";
  EXPECT_FALSE(runSteps(
      made->steps, {}, [](const StorageStep&, const std::string&) { return Result<void>(); },
      [](const std::string&) {}))
      << "never without its key";
}

TEST_F(StoragePlanTest, theInstalledSystemFindsItAll) {
  test::TempFolder root;
  auto set = scratch();
  set.encrypt = true;
  const auto made = plan({set});
  auto configured = configureStorage(root.path(), *made, {{"scratch", "secret"}});
  ASSERT_FALSE(configured);
  EXPECT_THAT(configured.error().text(), HasSubstr("mdadm"))
      << "a package that the image lacks is named";
  ASSERT_TRUE(io::makeDirs(root / "usr/sbin"));
  for (const char* program : {"mdadm", "cryptsetup"})
    ASSERT_TRUE(io::writeFileAtomic(root.path() / "usr/sbin" / program, ""));
  ASSERT_TRUE(io::makeDirs(root / "etc"));
  ASSERT_TRUE(io::writeFileAtomic(root / "etc/fstab", "PARTUUID=x / ext4 defaults 0 1\n"));
  configured = configureStorage(root.path(), *made, {{"scratch", "secret"}});
  ASSERT_TRUE(configured) << configured.error().str();
  EXPECT_EQ(*io::readFile(root / "etc/fstab"),
            "PARTUUID=x / ext4 defaults 0 1\n" + made->fstab[0] + "\n");
  EXPECT_EQ(*io::readFile(root / "etc/mdadm/mdadm.conf"), made->mdadm[0] + "\n");
  EXPECT_EQ(*io::readFile(root / "etc/crypttab"), made->crypttab[0] + "\n");
  EXPECT_EQ(*io::readFile(root / "etc/muster/keys/scratch.key"), "secret");
  EXPECT_EQ(std::filesystem::status(root / "etc/muster/keys/scratch.key").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_TRUE(std::filesystem::is_directory(root / "scratch"));
}

TEST(UserData, becomesASeedOfCloudInit) {
  test::TempFolder root;
  wire::WriteImageParams params;
  params.hostname = "gpu001";
  params.digest = std::string(64, 'd');
  EXPECT_TRUE(configureUserData(root.path(), params)) << "nothing to do";
  params.user_data = "#cloud-config\nruncmd: [true]\n";
  EXPECT_EQ(configureUserData(root.path(), params).error().code(), ErrorCode::InvalidInput)
      << "an image without cloud-init";
  ASSERT_TRUE(io::makeDirs(root / "usr/bin"));
  ASSERT_TRUE(io::writeFileAtomic(root / "usr/bin/cloud-init", ""));
  ASSERT_TRUE(configureUserData(root.path(), params));
  EXPECT_EQ(*io::readFile(root / "var/lib/cloud/seed/nocloud/user-data"), params.user_data);
  EXPECT_THAT(*io::readFile(root / "var/lib/cloud/seed/nocloud/meta-data"),
              HasSubstr("\"local-hostname\":\"gpu001\""));
}

TEST(UserData, ofIgnitionLiesBesideTheKernelAndAsksForTheNextStart) {
  test::TempFolder root;
  wire::WriteImageParams params;
  params.hostname = "gpu001";
  params.user_data = " {\"ignition\":{\"version\":\"3.3.0\"}}";
  EXPECT_THAT(configureUserData(root.path(), params).error().text(), HasSubstr("Ignition"));
  ASSERT_TRUE(io::makeDirs(root / "usr/lib/dracut/modules.d/30ignition"));
  ASSERT_TRUE(configureUserData(root.path(), params));
  EXPECT_EQ(*io::readFile(root / "boot/ignition/config.ign"), params.user_data);
  EXPECT_TRUE(std::filesystem::exists(root / "boot/ignition.firstboot"));
  EXPECT_FALSE(std::filesystem::exists(root / "var/lib/cloud"));
}

TEST(HeldDisks, areThoseThatAnArrayOrAVolumeIsMadeOf) {
  test::TempFolder folder;
  const auto sys = folder / "sys/block";
  for (const char* name :
       {"vda/holders", "vda/vda1/holders", "vdb/vdb4/holders", "vdc/holders", "vda/queue"})
    ASSERT_TRUE(io::makeDirs(sys / name));
  ASSERT_TRUE(io::writeFileAtomic(sys / "vdb/vdb4/holders/md127", ""));
  ASSERT_TRUE(io::writeFileAtomic(sys / "vdc/holders/dm-0", ""));
  EXPECT_FALSE(isHeld(folder.path(), disk("/dev/vda", "A", 1)));
  EXPECT_TRUE(isHeld(folder.path(), disk("/dev/vdb", "B", 1))) << "a partition of it";
  EXPECT_TRUE(isHeld(folder.path(), disk("/dev/vdc", "C", 1)));
  EXPECT_FALSE(isHeld(folder.path(), disk("/dev/vdd", "D", 1))) << "a disk that is not there";
}

}  // namespace
}  // namespace muster::agent
