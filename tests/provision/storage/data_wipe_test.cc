// SPDX-License-Identifier: Apache-2.0
// Data beside the system disk: what the controller lets the agent empty, and what it says when it
// must not.
#include "tests/provision/phase_rack.h"

#include "inventory/model/cluster.h"
#include "inventory/model/disk_layout.h"
#include "inventory/model/profile.h"
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
    hardware.disks.push_back({"/dev/vdb", "D2", "", "", "none", 3ull << 29, wire::DiskUse::Empty});
    hardware.disks.push_back({"/dev/vdc", "D3", "", "", "none", 3ull << 29, wire::DiskUse::Empty});
  }
  /// As an order of which nothing is known but its intent.
  bool taken(const std::string& intent) {
    const auto answer = takeDataWipe(store, kNode, {intent, "", true, clock.now()});
    EXPECT_TRUE(answer) << answer.error().str();
    return answer.value_or(false);
  }
  /// Begun with both permissions, and failed in the middle.
  void failHalfWay() {
    ASSERT_TRUE(allowDataWipe(store, kNode, "new raid"));
    context.wipe = true;
    startWriting();
    agents.failTask(context.intent, "/dev/vdb: input/output error", ErrorCode::Internal);
    ASSERT_FALSE(act(kImage));
    ASSERT_EQ(imageTask()["data_wipe_allowed"], true);
    context.wipe = false;
  }
  /// What the next intent hands to the agent.
  nlohmann::json nextOrder(const std::string& intent) {
    context.intent = intent;
    context.recorded.clear();
    newController();
    if (!agents.state(kNode)) bmc().info.power = bmc::PowerState::Off;
    for (int i = 0; i < 20; ++i) {
      const auto tasks = agents.submitted(kNode, TaskKind::WriteImage);
      if (!tasks.empty() && tasks.back().id == intent)
        return nlohmann::json::parse(tasks.back().params);
      (void)actAndWait(kImage);
    }
    ADD_FAILURE() << "nothing was submitted";
    return {};
  }
};

/// The store keeps their hash: a permission that is used goes on only for the same order.
TEST_F(DataWipeTest, wordsOfAnOrderAreWhatEarlierVersionsHashed) {
  auto& profile = cluster.profiles.at("uefi");
  EXPECT_EQ(orderWords(profile, cluster.nodes.front(), "d1", hardware),
            R"({"disk":"serial:D1","image":"d1","serials":["D1","D2","D3"],"storage":[)"
            R"({"count":2,"disks":"size:1GB-2GB","encrypt":false,"name":"home","volumes":[]}]})");
  profile.storage.clear();
  profile.root = inventory::RootLayout{2, inventory::RaidLevel::Raid0, inventory::RootKey::None, 0};
  profile.user_data = "#cloud-config\n";
  EXPECT_EQ(orderWords(profile, cluster.nodes.front(), "d1", hardware),
            R"({"disk":"serial:D1","image":"d1",)"
            R"("root":{"count":2,"encrypt":"none","lvm_gib":0,"raid":0},)"
            R"("serials":["D1","D2","D3"]})");
}

TEST_F(DataWipeTest, anOrderThatFailedGoesOnWithoutAskingAgain) {
  failHalfWay();
  const auto order = nextOrder("second");
  EXPECT_EQ(order["data_wipe_allowed"], true);
  EXPECT_EQ(order["wipe_allowed"], false)
      << "what others put on the system disk meanwhile is another matter";
  EXPECT_EQ(context.recorded, "1:data:open");
  agents.failTask("second", "once more", ErrorCode::Internal);
  EXPECT_EQ(nextOrder("third")["data_wipe_allowed"], true);
}

TEST_F(DataWipeTest, anotherOrderIsNotCovered) {
  failHalfWay();
  hardware.disks[2].serial = "D4";
  agents.silence(kNode);
  EXPECT_EQ(nextOrder("another disk")["data_wipe_allowed"], false);
}

TEST_F(DataWipeTest, anotherDeclarationIsNotCovered) {
  failHalfWay();
  cluster.profiles.at("uefi").storage[0].encrypt = true;
  EXPECT_EQ(nextOrder("another set")["data_wipe_allowed"], false);
}

TEST_F(DataWipeTest, theNextDayItIsAskedForAgain) {
  failHalfWay();
  clock.advance(kDataWipeStands + 1min);
  EXPECT_EQ(nextOrder("tomorrow")["data_wipe_allowed"], false);
}

TEST_F(DataWipeTest, anOrderThatIsDoneUsesThePermissionUp) {
  failHalfWay();
  ASSERT_EQ(nextOrder("second")["data_wipe_allowed"], true);
  agents.finish("second", "{}");
  ASSERT_TRUE(is<Again>(act(kImage)));
  EXPECT_EQ(context.recorded, "1:data:done");
  EXPECT_EQ(nextOrder("an hour later")["data_wipe_allowed"], false);
}

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
  EXPECT_TRUE(taken(context.intent)) << "a controller killed before it wrote that down asks again";
  EXPECT_FALSE(taken("another intent"));
  ASSERT_TRUE(allowDataWipe(store, kNode, "once more"));
  EXPECT_TRUE(taken("another intent"));
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
  EXPECT_TRUE(taken("the next time"));
}

TEST_F(DataWipeTest, withoutAPermissionForTheSystemDiskItIsNotUsedUp) {
  ASSERT_TRUE(allowDataWipe(store, kNode, "new raid"));
  startWriting();
  EXPECT_EQ(imageTask()["data_wipe_allowed"], false);
  EXPECT_TRUE(taken("later"));
}

TEST_F(DataWipeTest, foreignDataIsSaidBeforeTheNodeIsRestarted) {
  hardware.disks[1].content = "ext4 \"photos\" on /dev/vdb";
  hardware.disks[1].use = wire::DiskUse::Other;
  runInstalled("an older image");
  context.wipe = true;
  const auto calls = powerCalls();
  const auto outcome = act(kImage);
  ASSERT_TRUE(is<Blocked>(outcome)) << why(outcome);
  EXPECT_THAT(why(outcome),
              testing::AllOf(HasSubstr("disks of home: /dev/vdb (serial D2) holds ext4 \"photos\""),
                             HasSubstr("muster wipe gpu001 --data --reason"),
                             HasSubstr("take the set out")));
  EXPECT_EQ(powerCalls(), calls);
  EXPECT_TRUE(agents.submitted(kNode, TaskKind::WriteImage).empty());
  ASSERT_TRUE(allowDataWipe(store, kNode, "old photos"));
  startWriting();
  EXPECT_EQ(imageTask()["data_wipe_allowed"], true);
}

TEST_F(DataWipeTest, aRuleThatFitsOtherDisksIsNoReasonToWipeThem) {
  hardware.disks[1].content = "ext4";
  hardware.disks[1].use = wire::DiskUse::Other;
  EXPECT_TRUE(foreignData(cluster.profiles.at("uefi"), hardware));
  auto more = cluster.profiles.at("uefi");
  more.storage[0].count = 1;
  EXPECT_FALSE(foreignData(more, hardware)) << "the agent says which disks there are";
  more.storage[0].disks = "size:1GB-";
  more.storage[0].count = 3;
  EXPECT_FALSE(foreignData(more, hardware)) << "the system disk is among them";
}

TEST_F(DataWipeTest, disksThatAnOlderAgentDoesNotClassifyAreLeftToTheAgentThatWrites) {
  hardware.disks[1].content = "ext4 \"photos\" on /dev/vdb";
  hardware.disks[1].use = wire::DiskUse::Unknown;
  EXPECT_FALSE(foreignData(cluster.profiles.at("uefi"), hardware));
  runInstalled("an older image");
  context.wipe = true;
  startWriting();
  EXPECT_EQ(imageTask()["data_wipe_allowed"], false) << "so that it refuses what is there";
}

TEST_F(DataWipeTest, finishedSetsAreTheAgentsToEvaluate) {
  hardware.disks[1].content = hardware.disks[2].content = "partitions /dev/vdb1 \"muster-data\"";
  hardware.disks[1].use = hardware.disks[2].use = wire::DiskUse::DataSet;
  runInstalled("an older image");
  context.wipe = true;
  startWriting();
  agents.failTask(context.intent,
                  "disks of home: /dev/vdb (serial D2, 1.5 GiB) holds partitions /dev/vdb1 "
                  "\"muster-data\"",
                  ErrorCode::Denied, {wire::TaskReason::DataWipeDenied});
  const auto outcome = act(kImage);
  ASSERT_TRUE(is<Blocked>(outcome));
  EXPECT_THAT(why(outcome), testing::AllOf(HasSubstr("muster wipe gpu001 --data --reason"),
                                           HasSubstr("/dev/vdb (serial D2")));
}

TEST_F(DataWipeTest, aNewMemberIsAFindingThatSaysHowToKeepTheData) {
  runInstalled("an older image");
  context.wipe = true;
  startWriting();
  agents.failTask(context.intent,
                  "disks of home: /dev/vdb (serial D2) holds it; home is RAID 1 with the UUID "
                  "1:2:3:4: its data "
                  "is on /dev/vdb; empty is /dev/vdc",
                  ErrorCode::Denied,
                  {wire::TaskReason::DataWipeDenied, wire::TaskReason::MemberReplaced});
  ASSERT_TRUE(is<Blocked>(act(kImage)));
  ASSERT_EQ(context.findings.size(), 1u);
  EXPECT_THAT(context.findings[0].text,
              testing::AllOf(HasSubstr("1:2:3:4"), HasSubstr("empty is /dev/vdc")));
  EXPECT_THAT(
      context.findings[0].what_to_do,
      testing::AllOf(HasSubstr("mdadm --assemble --run"), HasSubstr("muster wipe gpu001 --data")));
}

TEST(TaskNote, saysWhichRightsThereWere) {
  for (const char* words :
       {"1:guarded:open", "2:wipe:done", "1:wipe+data:open", "3:wipe+data:done", "2:data:open"}) {
    const auto note = TaskNote::parse(words);
    ASSERT_TRUE(note && *note) << words;
    EXPECT_EQ((*note)->str(), words);
  }
  EXPECT_FALSE((*TaskNote::parse("1:wipe:open"))->data_allowed);
  EXPECT_FALSE((*TaskNote::parse("1:data:open"))->wipe_allowed);
  EXPECT_FALSE(TaskNote::parse("1:everything:open"));
}

}  // namespace
}  // namespace muster::provision
