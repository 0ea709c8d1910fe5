// Data beside the system disk: what the controller lets the agent empty, and what it says when it must not.
#include "phase_rack.h"

#include "agent/protocol/wipe_guard.h"
#include "provision/agent_task.h"

#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

class DataWipeTest : public ProvisionPhaseTest {
 protected:
  void SetUp() override {
    ProvisionPhaseTest::SetUp();
    auto& profile = cluster.profiles.at("uefi");
    profile.disk = "serial:D1";
    inventory::StorageSet home;
    home.name = "home";
    home.disks = "size:1GB-2GB";
    home.count = 2;
    profile.storage = {home};
    hardware.disks.push_back({"/dev/vdb", "D2", "", "", "none", 3ull << 29});
    hardware.disks.push_back({"/dev/vdc", "D3", "", "", "none", 3ull << 29});
  }
};

TEST_F(DataWipeTest, aPermissionForTheSystemDiskIsNoneForData) {
  context.wipe = true;
  startWriting();
  EXPECT_EQ(imageTask()["wipe_allowed"], true);
  EXPECT_EQ(imageTask()["data_wipe_allowed"], false);
  EXPECT_EQ(context.recorded, "1:wipe:open");
}

TEST_F(DataWipeTest, aPermissionForDataIsForTheNextWritingOnly) {
  ASSERT_TRUE(allowDataWipe(store, kNode, "new raid"));
  context.wipe = true;
  startWriting();
  EXPECT_EQ(imageTask()["data_wipe_allowed"], true);
  EXPECT_EQ(context.recorded, "1:wipe+data:open");
  EXPECT_TRUE(*takeDataWipe(store, kNode, context.intent)) << "a controller killed before it wrote that down asks again";
  EXPECT_FALSE(*takeDataWipe(store, kNode, "another intent"));
  ASSERT_TRUE(allowDataWipe(store, kNode, "once more"));
  EXPECT_TRUE(*takeDataWipe(store, kNode, "another intent"));
}

TEST_F(DataWipeTest, aSecondAttemptHasNoMoreRightsThanTheFirst) {
  context.wipe = true;
  startWriting();
  ASSERT_TRUE(allowDataWipe(store, kNode, "given meanwhile, for the next time"));
  newController();
  agents.failTask(context.intent, "the index could not be fetched", ErrorCode::Unavailable);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(is<Again>(act(kImage)));
  const auto tasks = agents.submitted(kNode, TaskKind::WriteImage);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(tasks[1].params)["data_wipe_allowed"], false);
  EXPECT_TRUE(*takeDataWipe(store, kNode, "the next time"));
}

TEST_F(DataWipeTest, withoutAPermissionForTheSystemDiskItIsNotUsedUp) {
  ASSERT_TRUE(allowDataWipe(store, kNode, "new raid"));
  startWriting();
  EXPECT_EQ(imageTask()["data_wipe_allowed"], false);
  EXPECT_TRUE(*takeDataWipe(store, kNode, "later"));
}

TEST_F(DataWipeTest, foreignDataIsSaidBeforeTheNodeIsRestarted) {
  hardware.disks[1].content = "ext4 \"photos\" on /dev/vdb";
  runInstalled("an older image");
  context.wipe = true;
  const auto calls = powerCalls();
  const auto outcome = act(kImage);
  ASSERT_TRUE(is<Blocked>(outcome)) << why(outcome);
  EXPECT_THAT(why(outcome), testing::AllOf(HasSubstr("disks of home: /dev/vdb (serial D2) holds ext4 \"photos\""), HasSubstr("muster wipe gpu001 --data --reason"), HasSubstr("take the set out")));
  EXPECT_EQ(powerCalls(), calls);
  EXPECT_TRUE(agents.submitted(kNode, TaskKind::WriteImage).empty());
  ASSERT_TRUE(allowDataWipe(store, kNode, "old photos"));
  startWriting();
  EXPECT_EQ(imageTask()["data_wipe_allowed"], true);
}

TEST_F(DataWipeTest, aRuleThatFitsOtherDisksIsNoReasonToWipeThem) {
  hardware.disks[1].content = "ext4";
  EXPECT_TRUE(foreignData(cluster.profiles.at("uefi"), hardware));
  auto more = cluster.profiles.at("uefi");
  more.storage[0].count = 1;
  EXPECT_FALSE(foreignData(more, hardware)) << "the agent says which disks there are";
  more.storage[0].disks = "size:1GB-";
  more.storage[0].count = 3;
  EXPECT_FALSE(foreignData(more, hardware)) << "the system disk is among them";
}

TEST_F(DataWipeTest, finishedSetsAreTheAgentsToJudge) {
  hardware.disks[1].content = hardware.disks[2].content = "partitions /dev/vdb1 \"muster-data\"";
  runInstalled("an older image");
  context.wipe = true;
  startWriting();
  agents.failTask(context.intent, fmt::format("disks of home: /dev/vdb (serial D2, 1.5 GiB) holds partitions /dev/vdb1 \"muster-data\"; {}", agent::kDataGuard), ErrorCode::Denied);
  const auto outcome = act(kImage);
  ASSERT_TRUE(is<Blocked>(outcome));
  EXPECT_THAT(why(outcome), testing::AllOf(HasSubstr("muster wipe gpu001 --data --reason"), HasSubstr("/dev/vdb (serial D2")));
}

TEST(TaskNote, saysWhichRightsThereWere) {
  for (const char* words : {"1:guarded:open", "2:wipe:done", "1:wipe+data:open", "3:wipe+data:done"}) {
    const auto note = TaskNote::parse(words);
    ASSERT_TRUE(note && *note) << words;
    EXPECT_EQ((*note)->str(), words);
  }
  EXPECT_FALSE((*TaskNote::parse("1:wipe:open"))->data_allowed);
  EXPECT_FALSE(TaskNote::parse("1:data:open"));
}

}  // namespace
}  // namespace muster::provision
