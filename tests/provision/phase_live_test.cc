// SPDX-License-Identifier: Apache-2.0
// Live images: started in memory, with no disk written, whatever happens in between.
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "tests/provision/phase_rack.h"

namespace muster::provision {
namespace {

class LivePhaseTest : public ProvisionPhaseTest {
 protected:
  void SetUp() override {
    ProvisionPhaseTest::SetUp();
    cluster.images["bookworm"].kind = inventory::ImageKind::Live;
    auto& image = images.images["bookworm"];
    image.live = true;
    image.kernel = "vmlinuz";
    image.modules = "modules.img";
    image.size_bytes = 600u << 20;
    ram_kernel_of = kDigest;
    agents.hold(TaskKind::StartImage);
    newController();
  }
  /// As the machine does it: the task's end is told, then the live system's agent calls, in the
  /// same boot.
  void takeOver() {
    auto& agent = agents.boot(kNode, Mode::Disk, boot_id);
    agent.hardware = hardware;
    agent.image_digest = kDigest;
  }
  std::vector<wire::AgentTask> starts() { return agents.submitted(kNode, TaskKind::StartImage); }
  void startStarting(std::string_view facet_name = kImage) {
    for (int i = 0; i < 10 && starts().empty(); ++i) {
      auto outcome = act(facet_name);
      ASSERT_TRUE(is<Again>(outcome)) << why(outcome);
      clock.advance(2s);
    }
    ASSERT_EQ(starts().size(), 1u);
  }
};

TEST_F(LivePhaseTest, startsInMemoryAndWritesNoDisk) {
  startStarting();
  EXPECT_EQ(powerCalls(), 1);
  const auto params = nlohmann::json::parse(starts()[0].params);
  EXPECT_EQ(params["digest"], kDigest);
  EXPECT_EQ(params["wipe_allowed"], false);
  EXPECT_THAT(params["index_url"].get<std::string>(), HasSubstr("/images/d1d1/index.json"));
  agents.finish(starts()[0].id, "{}");
  auto outcome = act(kImage);
  ASSERT_TRUE(is<Again>(outcome)) << why(outcome);
  EXPECT_THAT(std::get<Again>(*outcome).waiting_for, HasSubstr("the live system of gpu001"));
  EXPECT_TRUE(netboot.armed.empty()) << "its arming is of no use any more";
  takeOver();
  EXPECT_TRUE(is<Done>(act(kImage)));
  EXPECT_TRUE(is<Done>(act(kOs)));
  EXPECT_TRUE(agents.submitted(kNode, TaskKind::WriteImage).empty());
  EXPECT_EQ(starts().size(), 1u);
  EXPECT_EQ(powerCalls(), 1);
}

TEST_F(LivePhaseTest, nothingIsWipedForIt) {
  const auto goals = phase->goals(cluster, Subject(kNode), {});
  EXPECT_EQ(goals[2].want, "bookworm@d1d1");
  EXPECT_EQ(goals[2].disruption, lifecycle::Disruption::Reset);
  hardware.disks[0].content = "ext4 \"data\"";
  hardware.disks[0].use = wire::DiskUse::Other;
  takeOver();
  EXPECT_EQ(value(observe(), lifecycle::kInstalledFacet), "/dev/vda: ext4 \"data\"")
      << "what runs in memory says nothing of the disk";
  EXPECT_EQ(value(observe(), kImage), "bookworm@d1d1");
}

TEST_F(LivePhaseTest, aMachineWithoutOrWithManyDisksFits) {
  for (const auto& disks :
       {std::vector<wire::Disk>{}, std::vector<wire::Disk>{hardware.disks[0],
                                                           {"/dev/vdb", "D2", "", "", "none",
                                                            4ull << 30, wire::DiskUse::Empty}}}) {
    const auto& profile = cluster.profiles.at("uefi");
    hardware.disks = disks;
    hardware.gpus = {};
    const auto with_disk = inspect(cluster.nodes[0], profile, hardware, {&cluster.nodes});
    const auto without = inspect(cluster.nodes[0], profile, hardware,
                                 {.nodes = &cluster.nodes, .listened = false, .diskless = true});
    EXPECT_EQ(without.mismatches.size() + 1, with_disk.mismatches.size());
  }
}

TEST_F(LivePhaseTest, tooLittleMemoryIsRefusedBeforeTheRestart) {
  images.images["bookworm"].size_bytes = 3ull << 30;
  newController();
  agents.boot(kNode, Mode::Ram, "boot-0").hardware = hardware;
  const auto outcome = act(kImage);
  ASSERT_TRUE(is<Blocked>(outcome)) << why(outcome);
  EXPECT_THAT(
      why(outcome),
      HasSubstr(
          "takes 3072 MiB of memory and its system 512 MiB beside it, the machine has 2048 MiB"));
  EXPECT_EQ(powerCalls(), 0);
}

TEST_F(LivePhaseTest, aRamOsOnAnotherKernelIsStartedAnew) {
  agents.boot(kNode, Mode::Ram, "boot-0").hardware = hardware;
  startStarting();
  EXPECT_EQ(powerCalls(), 1);
}

TEST_F(LivePhaseTest, anotherImageThatRunsIsReplaced) {
  bmc().info.power = bmc::PowerState::On;
  auto& agent = agents.boot(kNode, Mode::Disk, "boot-0");
  agent.hardware = hardware;
  agent.image_digest = "0ld0";
  startStarting();
  EXPECT_EQ(powerCalls(), 1);
}

TEST_F(LivePhaseTest, aControllerThatWasKilledGoesOnByLooking) {
  startStarting();
  newController();
  ASSERT_TRUE(is<Again>(act(kImage)));
  EXPECT_EQ(starts().size(), 1u) << "the same task, not another one";
  agents.finish(starts()[0].id, "{}");
  ASSERT_TRUE(is<Again>(act(kImage)));
  agents.silence(kNode);
  newController();
  ASSERT_TRUE(is<Again>(act(kImage))) << "the live system is starting";
  EXPECT_EQ(powerCalls(), 1);
  takeOver();
  EXPECT_TRUE(is<Done>(act(kImage)));
}

TEST_F(LivePhaseTest, aNodeThatLostItsMemoryIsStartedForItsOs) {
  bmc().info.power = bmc::PowerState::Off;
  startStarting(kOs);
  agents.finish(starts()[0].id, "{}");
  takeOver();
  EXPECT_TRUE(is<Done>(act(kOs)));
}

TEST_F(LivePhaseTest, aSystemThatNeverCallsIsStartedAgainAndThenAFault) {
  startStarting();
  agents.finish(starts()[0].id, "{}");
  ASSERT_TRUE(is<Again>(act(kImage)));
  agents.silence(kNode);
  dead = true;
  const auto outcome = actToEnd(kImage);
  ASSERT_FALSE(outcome) << why(outcome);
  EXPECT_THAT(outcome.error().text(), HasSubstr("did not report within"));
  EXPECT_GE(powerCalls(), 2);
}

TEST_F(LivePhaseTest, aTaskThatFailsTellsWhy) {
  startStarting();
  agents.failTask(starts()[0].id,
                  "900 MiB of memory are free, the live image bookworm takes 600 MiB",
                  ErrorCode::InvalidInput);
  const auto outcome = act(kImage);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().text(), HasSubstr("900 MiB of memory are free"));
  EXPECT_FALSE(outcome.error().canRetry());
}

}  // namespace
}  // namespace muster::provision
