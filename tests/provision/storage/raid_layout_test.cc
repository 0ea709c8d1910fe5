// SPDX-License-Identifier: Apache-2.0
#include "provision/storage/raid_layout.h"

#include "provision/storage/raid_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::provision {
namespace {

using bmc::RaidController;
using testing::HasSubstr;
using wire::RaidLevel;

constexpr std::uint64_t kSize = 1'000'000'000'000;

RaidController controller(const std::string& id, int drives) {
  RaidController out;
  out.id = id;
  out.name = "Card " + id;
  out.volumes_uri = id + "/Volumes";
  out.levels = {"RAID0", "RAID1", "RAID10"};
  for (int i = 0; i < drives; ++i)
    out.drives.push_back({id + "/" + std::to_string(i), "Bay" + std::to_string(i),
                          id + "-S" + std::to_string(i), "", kSize});
  return out;
}
bmc::RaidVolume volume(const RaidController& of, const std::string& name, const std::string& level,
                       const std::vector<int>& drives) {
  bmc::RaidVolume out;
  out.uri = of.id + "/Volumes/" + name;
  out.name = name;
  out.level = level;
  out.is_settled = true;
  for (const int drive : drives) out.drives.push_back(of.id + "/" + std::to_string(drive));
  return out;
}
VolumeStatus only(const inventory::HardwareVolume& declared,
                  const std::vector<RaidController>& controllers) {
  inventory::HardwareRaid raid;
  raid.volumes.push_back(declared);
  return compareVolumes(raid, controllers, {}).at(0);
}

TEST(RaidLayout, theControllerIsNamedOrTheOnlyOneThatMakesVolumes) {
  const inventory::HardwareVolume any{"v", "", RaidLevel::Raid1, "size:1GB-", 2};
  auto silent = controller("NVMe", 2);
  silent.levels.clear();
  EXPECT_EQ(only(any, {silent, controller("A", 2)}).controller, "A");
  EXPECT_THAT(only(any, {controller("A", 2), controller("B", 2)}).why,
              HasSubstr("several controllers make RAID volumes: A (Card A), B (Card B)"));
  EXPECT_THAT(only(any, {silent}).why, HasSubstr("name the one that does under `controller`"));
  auto named = any;
  named.controller = "Card B";
  EXPECT_EQ(only(named, {controller("A", 2), controller("B", 2)}).volumes_uri, "B/Volumes");
  named.controller = "NVMe";  // it does not say what it makes: the order shows it
  EXPECT_EQ(only(named, {silent}).state, VolumeState::Free);
}

TEST(RaidLayout, aLevelThatIsNotOfferedIsRefusedWithThoseThatAre) {
  EXPECT_THAT(only({"v", "", RaidLevel::Raid5, "size:1GB-", 3}, {controller("A", 3)}).why,
              HasSubstr("A does not make RAID5; it makes RAID0, RAID1, RAID10"));
}

TEST(RaidLayout, drivesThatCannotBeUsedAreNamedWithTheReason) {
  auto card = controller("A", 2);
  card.drives[1].unusable = "its health is Critical";
  const auto status = only({"v", "", RaidLevel::Raid1, "size:1GB-", 2}, {card});
  EXPECT_EQ(status.state, VolumeState::Impossible);
  EXPECT_THAT(status.why, HasSubstr("Bay1 (serial A-S1) cannot be used: its health is Critical"));
}

TEST(RaidLayout, moreDrivesThanDeclaredAreNotChosenFrom) {
  EXPECT_THAT(only({"v", "", RaidLevel::Raid1, "size:1GB-", 2}, {controller("A", 3)}).why,
              HasSubstr("3 free for it of A's 3 drives fit \"size:1GB-\", 2 must"));
}

TEST(RaidLayout, ofSeveralThatWouldDoTheOneOfThatNameIsIt) {
  auto card = controller("A", 4);
  card.volumes = {volume(card, "b", "RAID1", {0, 1}), volume(card, "a", "RAID1", {2, 3})};
  inventory::HardwareRaid raid;
  raid.volumes.push_back({"a", "", RaidLevel::Raid1, "size:1GB-", 2});
  raid.volumes.push_back({"b", "", RaidLevel::Raid1, "size:1GB-", 2});
  const auto found = compareVolumes(raid, {card}, {});
  EXPECT_EQ(found[0].drives, (std::vector<std::string>{"A/2", "A/3"}));
  EXPECT_EQ(found[1].drives, (std::vector<std::string>{"A/0", "A/1"}));
  EXPECT_EQ(observedRaid(found), declaredRaid(raid));
}

TEST(RaidLayout, anotherLevelOrNumberOfDrivesIsNotTheDeclaredVolume) {
  auto card = controller("A", 2);
  card.volumes = {volume(card, "v", "RAID0", {0, 1})};
  const auto status = only({"v", "", RaidLevel::Raid1, "size:1GB-", 2}, {card});
  EXPECT_EQ(status.state, VolumeState::Taken);
  EXPECT_EQ(status.in_the_way, (std::vector<std::string>{"A/Volumes/v"}));
  card.volumes[0].is_settled = false;
  EXPECT_EQ(only({"v", "", RaidLevel::Raid1, "size:1GB-", 2}, {card}).state,
            VolumeState::Impossible);
}

TEST(RaidLayout, disksOfAnOldAgentAreTakenForUsed) {
  wire::Hardware hardware;
  hardware.disks = {{"/dev/sda", "S", "", "", "?", kSize, wire::DiskUse::Unknown},
                    {"/dev/sdb", "T", "", "", "", kSize, wire::DiskUse::Empty}};
  EXPECT_EQ(heldBySerial(hardware), (std::map<std::string, std::string>{{"S", "?"}}));
}

TEST(RaidNote, isReadAsItWasWrittenAndNothingElseIs) {
  RaidNote note;
  note.volume = "system";
  note.deletes = "/v/1";
  note.before = {"/t/1", "/t/2"};
  note.restart = RaidNote::Restart::Off;
  note.since = "2026-11-27T00:00:00Z";
  note.data_allowed = true;
  const auto read = RaidNote::parse(note.str());
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->str(), note.str());
  EXPECT_FALSE(RaidNote::parse("")->has_value());
  for (const char* bad : {"staged", "{}", "[1]", R"({"raid": 1})"})
    EXPECT_EQ(RaidNote::parse(bad).error().code(), ErrorCode::Corrupt) << bad;
}

}  // namespace
}  // namespace muster::provision
