// SPDX-License-Identifier: Apache-2.0
// The phase against a rack in memory.
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/disk_layout.h"
#include "inventory/model/firmware.h"
#include "inventory/model/images.h"
#include "inventory/model/networks.h"
#include "inventory/model/node_network.h"
#include "inventory/model/profile.h"
#include "tests/provision/phase_rack.h"
#include "wire/task_params.h"
#include "wire/write_image.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::provision {
namespace {

TEST_F(ProvisionPhaseTest, goalsFollowTheStages) {
  cluster.firmware["fw"].components = {{"BMC", "2.1.0", "f", "s"}};
  cluster.profiles["uefi"].firmware = "fw";
  std::vector<std::string> names;
  for (const auto& goal : phase->goals(cluster, Subject(kNode), {}))
    names.push_back(goal.facet.facet.str() + " = " + goal.want);
  EXPECT_THAT(names, ElementsAre("enrolled = yes", HasSubstr("inspected = match:"),
                                 "image = bookworm@d1d1", "os = running",
                                 "driver.rdma = module.rdma_rxe=loaded,package.rdma-core=44.*"));
  const auto goals = phase->goals(cluster, Subject(kNode), {});
  EXPECT_EQ(goals[1].needs.back().str(), "gpu001/enrolled");
  EXPECT_THAT(goals[1].after, ElementsAre(lifecycle::Stage::Firmware, lifecycle::Stage::Raid));
  EXPECT_EQ(goals[2].disruption, lifecycle::Disruption::Wipe);
  EXPECT_TRUE(phase->goals(cluster, Subject::cluster(), {}).empty());
}

TEST_F(ProvisionPhaseTest, imageThatIsNotBuiltBlocksAndWipesNobody) {
  images.images.clear();
  newController();
  const auto goals = phase->goals(cluster, Subject(kNode), {});
  EXPECT_EQ(goals[2].want, "bookworm@*");
  EXPECT_THAT(goals[2].blocked, HasSubstr("image bookworm is not built"))
      << "before the node is drained for it";
  EXPECT_THAT(why(act(kImage)), HasSubstr("muster image build"));
  EXPECT_EQ(bmc().power_cycles, 0);
}

TEST_F(ProvisionPhaseTest, withoutARamOsNobodyIsDrainedForIt) {
  images.ram_os.reset();
  newController();
  auto goals = phase->goals(cluster, Subject(kNode), {});
  EXPECT_THAT(goals[1].blocked, HasSubstr("the RAM OS is not built"));
  EXPECT_THAT(goals[2].blocked, HasSubstr("the RAM OS is not built"));
  EXPECT_EQ(goals[3].blocked, "") << "an installed system starts without it";
  images.ram_os.emplace();
  goals = phase->goals(cluster, Subject(kNode), {});
  EXPECT_EQ(goals[1].blocked, "") << "it was built meanwhile";
}

TEST_F(ProvisionPhaseTest, anImageThatTheStoreRefusesBlocksWithItsWords) {
  images.refuse_find =
      Error(ErrorCode::Denied, "the signature is not of the expected key").within("image bookworm");
  newController();
  for (const auto& words :
       {phase->goals(cluster, Subject(kNode), {})[2].blocked, why(act(kImage))}) {
    EXPECT_THAT(words, HasSubstr("image bookworm: the signature is not of the expected key"));
    EXPECT_THAT(words, HasSubstr("`muster image build bookworm`"));
    EXPECT_THAT(words, Not(HasSubstr("is not built")));
  }
  EXPECT_EQ(powerCalls(), 0);
}

TEST_F(ProvisionPhaseTest, probeWithoutAValueMatchesNoGlob) {
  EXPECT_FALSE(lifecycle::matches("nvml.driver=*", joinProbes({{"nvml.driver", ""}})));
  EXPECT_TRUE(lifecycle::matches("nvml.driver=570.*", joinProbes({{"nvml.driver", "570.124.06"}})));
}

TEST_F(ProvisionPhaseTest, anotherMachineBehindTheBmcIsNotEnrolled) {
  cluster.nodes[0].serial = "SN-9";
  EXPECT_THAT(value(observe(), kEnrolled), HasSubstr("no: its serial is SN-1"));
  EXPECT_THAT(why(act(kEnrolled)), HasSubstr("is not the BMC of gpu001"));
  EXPECT_EQ(context.findings.size(), 1u);
  cluster.nodes[0].serial = "SN-1";
  EXPECT_TRUE(is<Done>(act(kEnrolled)));
  EXPECT_EQ(value(verify(kEnrolled), kEnrolled), "yes");
  bmc().info.macs = {"52:54:00:00:00:99"};
  EXPECT_THAT(value(observe(), kEnrolled), HasSubstr("none of its NICs"));
}

TEST_F(ProvisionPhaseTest, aMachineThatNothingIdentifiesIsNotEnrolled) {
  bmc().info.macs.clear();
  EXPECT_THAT(value(observe(), kEnrolled),
              HasSubstr("unknown: it reports no MAC, and its serial SN-1 is not in the inventory"));
  EXPECT_THAT(why(act(kEnrolled)), HasSubstr("is not known to be the BMC of gpu001"));
  ASSERT_EQ(context.findings.size(), 1u);
  EXPECT_THAT(context.findings[0].what_to_do, HasSubstr("declare serial: SN-1"));
  cluster.nodes[0].serial = "SN-1";
  EXPECT_EQ(value(observe(), kEnrolled), "yes");
  bmc().info.serial.clear();
  EXPECT_THAT(value(observe(), kEnrolled), HasSubstr("unknown: it reports no MAC, and no serial"));
  EXPECT_TRUE(is<Blocked>(act(kEnrolled)));
  bmc().info.macs = {"52:54:00:00:00:01"};
  EXPECT_EQ(value(observe(), kEnrolled), "yes");
}

TEST_F(ProvisionPhaseTest, unreachableBmcIsAnErrorThatCanBeRetried) {
  bmc().failNext("system", Error(ErrorCode::Unavailable, "connection refused"), 2);
  const auto outcome = act(kEnrolled);
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(outcome.error().canRetry());
  EXPECT_FALSE(test::runAsync(phase->observe(Subject(kNode))))
      << "neither BMC nor agent: nothing was read";
}

TEST_F(ProvisionPhaseTest, silentMachineIsInspectedInTheRamOs) {
  EXPECT_EQ(value(observe(), kOs), "off");
  const auto outcome = actToEnd(kInspected);
  ASSERT_TRUE(is<Done>(outcome)) << why(outcome);
  EXPECT_THAT(bmc().calls, ::testing::IsSupersetOf({"bootOnce Pxe", "power On"}));
  EXPECT_TRUE(netboot.armed.empty()) << "the arming has been used";
  const auto seen = verify(kInspected);
  EXPECT_EQ(value(seen, kInspected),
            "match:" + expectationDigest(cluster.nodes[0], cluster.profiles["uefi"]));
  EXPECT_EQ(value(seen, "disk.system"), "none");
  EXPECT_EQ(value(seen, "hw.serial"), "SN-1");
  EXPECT_THAT(seen.find(Subject(kNode), facet(kInspected))->evidence,
              HasSubstr("the gates count them"));
}

TEST_F(ProvisionPhaseTest, runningSystemIsInspectedWithoutARestart) {
  runInstalled(kDigest);
  EXPECT_TRUE(is<Done>(act(kInspected)));
  EXPECT_EQ(bmc().count("power"), 0);
}

TEST_F(ProvisionPhaseTest, aValueThatAnEarlierReleaseStoredCausesAnotherLookAndNoRestart) {
  runInstalled(kDigest);
  const auto digest = expectationDigest(cluster.nodes[0], cluster.profiles["uefi"]);
  FactSet stored;
  stored.put({Subject(kNode), facet(kInspected), std::string("fits") + ":" + digest, clock.now(),
              "agent", ""});
  const auto goals = phase->goals(cluster, Subject(kNode), stored);
  const auto goal = std::find_if(goals.begin(), goals.end(), [](const auto& one) {
    return one.facet.facet == facet(kInspected);
  });
  ASSERT_NE(goal, goals.end());
  EXPECT_NE(value(stored, kInspected), goal->want) << "the old word does not count";
  EXPECT_TRUE(is<Done>(act(kInspected))) << "planned before anybody looked: it only looks";
  for (auto& fact : *test::runAsync(phase->observe(Subject(kNode)))) stored.put(std::move(fact));
  EXPECT_EQ(value(stored, kInspected), goal->want);
  EXPECT_EQ(bmc().count("power"), 0);
}

TEST_F(ProvisionPhaseTest, mismatchIsAFindingWithEvidence) {
  hardware.manufacturer = "Vendor";
  hardware.gpus = {{"PCI 10de:2330", "", "", "", "0000:01:00.0"}};
  const auto outcome = actToEnd(kInspected);
  ASSERT_TRUE(is<Blocked>(outcome)) << why(outcome);
  EXPECT_THAT(why(outcome), HasSubstr("1 GPUs seen, 2 expected"));
  ASSERT_EQ(context.findings.size(), 1u);
  EXPECT_THAT(context.findings[0].evidence, HasSubstr("0000:01:00.0"));
  EXPECT_THAT(value(observe(), kInspected), HasSubstr("mismatch"));
}

TEST_F(ProvisionPhaseTest, imageGoesFromRamOsToTheInstalledSystem) {
  startWriting();
  const auto task = imageTask();
  EXPECT_EQ(agents.submitted(kNode, TaskKind::WriteImage)[0].id, context.intent);
  EXPECT_EQ(task["index_url"], "http://10.20.0.1:8080/images/d1d1/index.json");
  EXPECT_EQ(task["wipe_allowed"], false) << "the disk is empty: nothing needs to be allowed";
  EXPECT_EQ(task["address_cidr"], "10.20.1.1/16");
  EXPECT_EQ(task["agent"]["url"], "https://10.20.0.1:8443");
  EXPECT_EQ(task["boot"], "uefi");
  agents.progress(context.intent, 0.5, "500 of 1000 chunks");
  EXPECT_TRUE(is<Again>(act(kImage)));
  EXPECT_EQ(context.progressed.back().second, "500 of 1000 chunks");
  installed = kDigest;
  agents.finish(context.intent, R"({"digest":"d1d1"})");
  const auto outcome = actToEnd(kImage);
  ASSERT_TRUE(is<Done>(outcome)) << why(outcome);
  EXPECT_THAT(bmc().calls, ::testing::Contains("bootOnce Disk"));
  const auto seen = verify(kImage);
  EXPECT_EQ(value(seen, kImage), "bookworm@d1d1");
  EXPECT_EQ(value(seen, kOs), "running");
  EXPECT_EQ(value(seen, "disk.system"), "bookworm@d1d1");
  EXPECT_EQ(agents.submitted(kNode, TaskKind::WriteImage).size(), 1u);
}

TEST_F(ProvisionPhaseTest, killedWhileWritingTakesUpTheSameTask) {
  startWriting();
  const auto calls = powerCalls();
  const auto writing = *agents.state(kNode);
  agents.silence(kNode);  // it has not called the new controller yet: its own pause between two
                          // calls must end first
  newController();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(is<Again>(actAndWait(kImage)));
  EXPECT_EQ(powerCalls(), calls) << "power was cut while the disk was written";
  agents.setState(writing);
  EXPECT_TRUE(is<Again>(act(kImage)));
  installed = kDigest;
  agents.finish(context.intent, "{}");
  ASSERT_TRUE(is<Done>(actToEnd(kImage)));
  EXPECT_EQ(agents.submitted(kNode, TaskKind::WriteImage).size(), 1u) << "written once";
  EXPECT_EQ(netboot.armings[kNode], 1) << "and not booted into the RAM OS again";
}

TEST_F(ProvisionPhaseTest, aNetworkThatIsSilentWhileWritingIsWaitedFor) {
  startWriting();
  const auto calls = powerCalls();
  const auto writing = *agents.state(kNode);
  agents.silence(kNode);
  const auto until = clock.steady() + kBootLimit - 10s;
  bmc().failNext("system", Error(ErrorCode::Unavailable, "no route to host"),
                 20);  // the BMC's network may be the same
  while (clock.steady() < until) ASSERT_TRUE(is<Again>(actAndWait(kImage)));
  EXPECT_EQ(powerCalls(), calls);
  agents.setState(writing);
  EXPECT_TRUE(is<Again>(act(kImage)));
  agents.silence(kNode);  // a second silence counts from its own beginning
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(is<Again>(actAndWait(kImage)));
  EXPECT_EQ(powerCalls(), calls);
  clock.advance(kBootLimit);
  ASSERT_TRUE(is<Again>(act(kImage)));
  EXPECT_GT(powerCalls(), calls) << "nobody writes for so long without a word";
}

TEST_F(ProvisionPhaseTest, aWritingMachineThatLostItsPowerIsStartedAtOnce) {
  startWriting();
  bmc().info.power = bmc::PowerState::Off;
  agents.silence(kNode);
  ASSERT_TRUE(is<Again>(act(kImage)));
  EXPECT_EQ(bmc().info.power, bmc::PowerState::On);
}

TEST_F(ProvisionPhaseTest, aSilentMachineThatIsOnMayCallBeforeItIsInspected) {
  bmc().info.power = bmc::PowerState::On;
  ASSERT_TRUE(is<Again>(act(kInspected)));
  EXPECT_EQ(powerCalls(), 0);
  ASSERT_TRUE(is<Done>(actToEnd(kInspected)));
  EXPECT_EQ(bmc().count("power ForceRestart"), 1);
}

TEST_F(ProvisionPhaseTest, killedWhileTheNewSystemStartsOnlyWaits) {
  startWriting();
  installed = kDigest;
  agents.finish(context.intent, "{}");
  ASSERT_TRUE(is<Again>(act(kImage)));  // restarted from the disk
  const auto calls = powerCalls();
  const auto calling = *agents.state(kNode);
  agents.silence(kNode);  // it has not called the new controller yet
  newController();
  const auto until = clock.steady() + kBootLimit - 10s;
  while (clock.steady() < until) ASSERT_TRUE(is<Again>(actAndWait(kImage)));
  EXPECT_EQ(powerCalls(), calls) << "a machine that is starting is left alone";
  agents.setState(calling);
  EXPECT_TRUE(is<Done>(act(kImage)));
  EXPECT_EQ(powerCalls(), calls);
  EXPECT_EQ(agents.submitted(kNode, TaskKind::WriteImage).size(), 1u);
}

TEST_F(ProvisionPhaseTest, wipePermissionIsThatOfTheFirstMoment) {
  context.wipe = true;
  startWriting();
  EXPECT_EQ(imageTask()["wipe_allowed"], true);
}

TEST_F(ProvisionPhaseTest, secondAttemptHasNoMoreRightsThanTheFirst) {
  startWriting();
  agents.failTask(context.intent, "the index could not be fetched", ErrorCode::Unavailable);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(is<Again>(act(kImage)));
  const auto tasks = agents.submitted(kNode, TaskKind::WriteImage);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[1].id, context.intent + ".2");
  EXPECT_TRUE(context.wipeAllowed()) << "the engine lets an intent that has begun go on";
  EXPECT_EQ(nlohmann::json::parse(tasks[1].params)["wipe_allowed"], false)
      << "but it has not touched the disk";
}

TEST_F(ProvisionPhaseTest, agentThatRefusesTheDiskBlocksWithAdvice) {
  startWriting();
  agents.failTask(context.intent, "/dev/vda holds ext4 \"data\"", ErrorCode::Denied,
                  {wire::TaskReason::SystemWipeDenied});
  const auto outcome = act(kImage);
  ASSERT_TRUE(is<Blocked>(outcome));
  EXPECT_THAT(why(outcome), HasSubstr("muster wipe gpu001 --reason"));
  EXPECT_THAT(why(outcome), HasSubstr("ext4"));
}

TEST_F(ProvisionPhaseTest, whatAnOlderAgentSaysInWordsAloneIsShownAndDecidesNothing) {
  startWriting();
  agents.failTask(
      context.intent,
      "no disk was touched: /dev/vda holds ext4; it is not overwritten, because the plan "
      "did not say that this node may be wiped; a member of it was replaced; it is "
      "failing: replace the disk",
      ErrorCode::Denied);
  const auto outcome = act(kImage);
  ASSERT_TRUE(is<Blocked>(outcome));
  EXPECT_THAT(why(outcome), HasSubstr("did not say that this node may be wiped"));
  EXPECT_THAT(why(outcome), testing::Not(HasSubstr("muster wipe")));
  EXPECT_TRUE(context.findings.empty());
}

TEST_F(ProvisionPhaseTest, aDiskThatAnOlderAgentDoesNotClassifyIsNotTakenForEmpty) {
  hardware.disks[0].content = "none";
  hardware.disks[0].use = wire::DiskUse::Unknown;
  ASSERT_TRUE(is<Done>(actToEnd(kInspected)));
  EXPECT_THAT(value(observe(), "disk.system"),
              testing::AllOf(testing::StartsWith("/dev/vda: "), HasSubstr("older agent")));
}

TEST_F(ProvisionPhaseTest, anImageOfAnotherKeyIsNoReasonToWipe) {
  startWriting();
  agents.failTask(context.intent, "the signature is not of the expected key", ErrorCode::Denied);
  const auto outcome = act(kImage);
  ASSERT_TRUE(is<Blocked>(outcome));
  EXPECT_THAT(why(outcome), HasSubstr("signature"));
  EXPECT_THAT(why(outcome), testing::Not(HasSubstr("muster wipe")));
}

TEST_F(ProvisionPhaseTest, aDiskThatFailsIsNamedWithWhatToDo) {
  startWriting();
  agents.failTask(
      context.intent,
      "cannot write /dev/nvme1n1p3 of /dev/nvme1n1 (serial S6CK, 3.5 GiB) at byte 4096: "
      "Input/output error",
      ErrorCode::Internal, {wire::TaskReason::DiskFailing});
  const auto outcome = act(kImage);
  ASSERT_FALSE(outcome);
  ASSERT_EQ(context.findings.size(), 1u);
  EXPECT_THAT(context.findings[0].text, HasSubstr("serial S6CK"));
  EXPECT_THAT(context.findings[0].what_to_do,
              testing::StartsWith("replace the disk with the serial that is named"));
}

TEST_F(ProvisionPhaseTest, corruptImageIsAnErrorAndNotTriedAgain) {
  startWriting();
  agents.failTask(context.intent, "chunk 7 has another SHA-256", ErrorCode::Corrupt);
  const auto outcome = act(kImage);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), ErrorCode::Corrupt);
  EXPECT_FALSE(outcome.error().canRetry());
  EXPECT_TRUE(context.findings.empty()) << "that is not the disk's fault";
}

TEST_F(ProvisionPhaseTest, retriesEndAndSayWhatFailed) {
  startWriting();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    agents.failTask(attempt == 1 ? context.intent : context.intent + "." + std::to_string(attempt),
                    "no route", ErrorCode::Unavailable);
    const auto outcome = act(kImage);
    if (attempt < 3) {
      ASSERT_TRUE(is<Again>(outcome)) << why(outcome);
      ASSERT_TRUE(is<Again>(act(kImage)));
    } else {
      ASSERT_FALSE(outcome);
      EXPECT_FALSE(outcome.error().canRetry());
    }
  }
}

TEST_F(ProvisionPhaseTest, journalThatCannotBeWrittenStopsBeforeTheDisk) {
  context.refuse_record = Error(ErrorCode::Unavailable, "disk full");
  Result<Outcome> outcome = Outcome(Done{});
  for (int i = 0; i < 10; ++i) {
    outcome = act(kImage);
    if (!outcome) break;
    clock.advance(2s);
  }
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(agents.submitted(kNode, TaskKind::WriteImage).empty());
}

TEST_F(ProvisionPhaseTest, machineThatNeverCallsIsATimeoutWithAdvice) {
  dead = true;
  const auto outcome = actToEnd(kInspected);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), ErrorCode::Timeout);
  EXPECT_THAT(outcome.error().str(), HasSubstr("console"));
  EXPECT_EQ(netboot.armings[kNode], kMaxBoots) << "each boot with an arming of its own";
}

TEST_F(ProvisionPhaseTest, anotherSystemThanTheWrittenOneIsAConflict) {
  startWriting();
  installed = "eeee";
  agents.finish(context.intent, "{}");
  const auto outcome = actToEnd(kImage);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(outcome.error().str(), HasSubstr("unknown@eeee"));
}

TEST_F(ProvisionPhaseTest, wantedImageThatRunsIsNotTouched) {
  runInstalled(kDigest);
  EXPECT_TRUE(is<Done>(act(kImage)));
  EXPECT_EQ(bmc().count("power"), 0);
  EXPECT_TRUE(agents.submitted().empty());
}

TEST_F(ProvisionPhaseTest, silentSystemIsStarted) {
  installed = kDigest;
  ASSERT_TRUE(is<Done>(actToEnd(kOs)));
  EXPECT_EQ(bmc().count("power On"), 1);
  EXPECT_EQ(netboot.armings[kNode], 0);
}

TEST_F(ProvisionPhaseTest, silentSystemThatIsOnGetsAChanceToCallFirst) {
  installed = kDigest;
  bmc().info.power = bmc::PowerState::On;
  ASSERT_TRUE(is<Again>(act(kOs)));
  EXPECT_EQ(bmc().count("power"), 0);
  ASSERT_TRUE(is<Done>(actToEnd(kOs)));
  EXPECT_EQ(bmc().count("power ForceRestart"), 1);
}

TEST_F(ProvisionPhaseTest, driverIsInstalledOnceAndReadAgain) {
  runInstalled(kDigest);
  agents.hold(TaskKind::InstallDriver);
  ASSERT_TRUE(is<Again>(act("driver.rdma")));
  const auto tasks = agents.submitted(kNode, TaskKind::InstallDriver);
  ASSERT_EQ(tasks.size(), 1u);
  const auto params = nlohmann::json::parse(tasks[0].params);
  EXPECT_EQ(nlohmann::json({params["repository_url"], params["repository_ca_pem"]}).dump(),
            R"(["https://10.20.0.1:8443/repo/rdma/","CA"])");
  EXPECT_EQ(params["modules"][0], "rdma_rxe");
  newController();
  agents.finish(tasks[0].id, "{}");
  ASSERT_TRUE(is<Done>(act("driver.rdma")));
  EXPECT_EQ(agents.submitted(kNode, TaskKind::InstallDriver).size(), 1u);
  hardware.gpus = {{"NVIDIA H100 80GB HBM3", "GPU-a", "S1", "", ""},
                   {"NVIDIA H100 80GB HBM3", "GPU-b", "S2", "", ""}};
  const auto seen = verify("driver.rdma");
  EXPECT_EQ(value(seen, "driver.rdma"), "module.rdma_rxe=loaded,package.rdma-core=44.0-2");
  EXPECT_EQ(value(seen, "hw.gpu.1"), "S2") << "hardware that only the driver shows";
}

TEST_F(ProvisionPhaseTest, aDriversRestartIsABootOfTheConsoleAndOfOneAction) {
  runInstalled(kDigest);
  agents.hold(TaskKind::InstallDriver);
  ASSERT_TRUE(is<Again>(act("driver.rdma")));
  EXPECT_TRUE(heard.empty());
  agents.progress(context.intent, 0.9, "restarting: an older agent says it in words alone");
  ASSERT_TRUE(is<Again>(act("driver.rdma")));
  EXPECT_TRUE(heard.empty());
  agents.progress(context.intent, 0.95, "the kernel was started without iommu=pt",
                  {wire::TaskReason::Restarting});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(is<Again>(act("driver.rdma")));
  EXPECT_THAT(heard, ElementsAre("gpu001: restart for driver rdma"))
      << "once, however often the phase looks";
  newController();
  ASSERT_TRUE(is<Again>(act("driver.rdma")));
  EXPECT_EQ(heard.size(), 2u) << "a new controller has to listen anew";
  agents.silence(kNode);
  ASSERT_TRUE(is<Again>(act("driver.rdma")));
  auto& agent = agents.boot(kNode, Mode::Disk, "boot-after");
  agent.image_digest = kDigest;
  agents.failTask(context.intent, "the agent was restarted while the task ran",
                  ErrorCode::Unavailable);
  ASSERT_TRUE(is<Again>(act("driver.rdma")));
  ASSERT_TRUE(is<Again>(act("driver.rdma")));
  agents.finish(context.intent + ".2", "{}");
  ASSERT_TRUE(is<Done>(act("driver.rdma")));
  EXPECT_EQ(heard.size(), 2u);
}

TEST_F(ProvisionPhaseTest, aRunningNodesNetworkIsComparedAndChanged) {
  inventory::DeclaredEthernet boot;
  boot.name = "boot";
  boot.match.by = inventory::NicMatch::By::Provisioning;
  cluster.profiles["uefi"].network.emplace().ethernets = {boot};
  newController();
  const auto wanted = wire::digestOf(*inventory::nodeNetworkOf(cluster, *cluster.findNode(kNode)));
  const auto goals = phase->goals(cluster, Subject(kNode), {});
  const auto goal = std::ranges::find_if(
      goals, [](const auto& each) { return each.facet.facet == facet(kNetwork); });
  ASSERT_NE(goal, goals.end());
  EXPECT_EQ(goal->want, wanted);
  EXPECT_EQ(goal->disruption, lifecycle::Disruption::Drain);
  EXPECT_EQ(goals.back().facet.facet.str(), "driver.rdma");
  EXPECT_EQ(goals.back().needs.back().str(), "gpu001/network") << "packages come by it";

  EXPECT_TRUE(is<Again>(act(kNetwork))) << "its installed system does not run yet";
  runInstalled(kDigest);
  agents.answer(TaskKind::Probe, R"({"module.rdma_rxe":"loaded"})");
  EXPECT_EQ(value(observe(), kNetwork), kNone) << "it was imaged before there was one";
  agents.answer(TaskKind::Probe, R"({"network":"changed:etc/x"})");
  EXPECT_EQ(value(observe(), kNetwork), "changed:etc/x");
  agents.hold(TaskKind::NodeService);
  ASSERT_TRUE(is<Again>(act(kNetwork)));
  const auto tasks = agents.submitted(kNode, TaskKind::NodeService);
  ASSERT_EQ(tasks.size(), 1u);
  const auto params = wire::parseNodeServiceParams(tasks[0].params);
  ASSERT_TRUE(params) << params.error().str();
  EXPECT_EQ(params->service, "network");
  EXPECT_EQ(params->value, wanted);
  EXPECT_EQ(wire::digestOf(*wire::parseNodeNetwork(params->files.at("network.json"))), wanted);
  agents.finish(tasks[0].id, "{}");
  EXPECT_TRUE(is<Done>(act(kNetwork)));
  agents.answer(TaskKind::Probe, fmt::format(R"({{"network":"{}"}})", wanted));
  EXPECT_EQ(value(verify(kNetwork), kNetwork), wanted);
}

TEST_F(ProvisionPhaseTest, missingDriverShowsAsAbsent) {
  runInstalled(kDigest);
  agents.answer(TaskKind::Probe, R"({"package.rdma-core":"44.0-2"})");
  EXPECT_EQ(value(observe(), "driver.rdma"), "module.rdma_rxe,package.rdma-core=44.0-2");
}

TEST_F(ProvisionPhaseTest, pollsThatTellAllNeedNoProbe) {
  runInstalled(kDigest);
  auto state = *agents.state(kNode);
  state.probes = {{"module.rdma_rxe", "loaded"}, {"package.rdma-core", "44.1"}, {"kernel", "6.1"}};
  agents.setState(state);
  EXPECT_EQ(value(observe(), "driver.rdma"), "module.rdma_rxe=loaded,package.rdma-core=44.1");
  EXPECT_TRUE(agents.submitted().empty());
}

TEST_F(ProvisionPhaseTest, diskThatHoldsSomethingIsReportedFromTheRamOs) {
  hardware.disks[0].content = "ext4 \"data\" on /dev/vda1";
  hardware.disks[0].use = wire::DiskUse::Other;
  ASSERT_TRUE(is<Done>(actToEnd(kInspected)));
  const auto seen = observe();
  EXPECT_EQ(value(seen, "disk.system"), "/dev/vda: ext4 \"data\" on /dev/vda1");
  EXPECT_EQ(value(seen, kImage), "(no fact)");
}

/// gpu001 is of amd64, gpu002 of arm64, in one rack and one plan.
TEST_F(ProvisionPhaseTest, aRackOfBothProcessorsGoesOnWhereOneRamOsIsMissing) {
  auto& arm64 = cluster.profiles.at("bios");
  arm64.arch = Architecture::Arm64;
  arm64.boot = inventory::BootMode::Uefi;
  images.no_ram_os_for = Architecture::Arm64;
  newController();
  const auto blocked = [this](const char* node) {
    for (const auto& goal : phase->goals(cluster, Subject(NodeName(node)), FactSet()))
      if (goal.facet.facet == facet(kInspected)) return goal.blocked;
    return std::string("no such goal");
  };
  EXPECT_EQ(blocked("gpu001"), "");
  EXPECT_EQ(blocked("gpu002"), "the RAM OS for arm64 is not built; run `muster image build`");
  images.no_ram_os_for.reset();
  newController();
  EXPECT_EQ(blocked("gpu002"), "");
}

}  // namespace
}  // namespace muster::provision
