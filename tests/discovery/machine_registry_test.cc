// SPDX-License-Identifier: Apache-2.0
#include "discovery/machine_registry.h"
#include "discovery/classify.h"
#include "discovery/findings.h"
#include "inventory/model/cluster.h"
#include "tests/discovery/world.h"
#include "tests/fakes/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::discovery {
namespace {

using ::testing::HasSubstr;

Machine surveyed(const std::string& bmc, const std::string& serial, const std::string& mac) {
  Machine machine;
  machine.bmc = bmc, machine.serial = serial, machine.macs = {mac}, machine.seen_by = {"redfish"};
  return machine;
}
Machine heard(const std::string& mac) {
  Machine machine;
  machine.macs = {mac}, machine.boot_mac = mac, machine.seen_by = {"dhcp"};
  return machine;
}

TEST(MachineRegistryTest, aNicThatWasHeardBelongsToTheMachineThatShowsItLater) {
  MachineRegistry registry;
  ASSERT_TRUE(registry.note(heard("aa:00:00:00:00:01"), WallTime{}));
  auto machine = surveyed("https://10.1.0.1", "SN-1", "aa:00:00:00:00:01");
  machine.macs.push_back("aa:00:00:00:00:02");
  ASSERT_TRUE(registry.note(machine, WallTime{}));
  ASSERT_EQ(registry.machines().size(), 1u);
  EXPECT_EQ(registry.machines()[0].boot_mac, "aa:00:00:00:00:01");
  EXPECT_EQ(registry.machines()[0].seen_by, (std::set<std::string>{"dhcp", "redfish"}));
  ASSERT_TRUE(registry.note(heard("aa:00:00:00:00:02"), WallTime{}));
  EXPECT_EQ(registry.machines().size(), 1u);
}

TEST(MachineRegistryTest, twoBmcsThatClaimOneSerialStayTwoAndAreAFinding) {
  MachineRegistry registry;
  ASSERT_TRUE(registry.note(surveyed("https://10.1.0.1", "SN-1", "aa:00:00:00:00:01"), WallTime{}));
  ASSERT_TRUE(registry.note(surveyed("https://10.1.0.2", "SN-1", "aa:00:00:00:00:01"), WallTime{}));
  ASSERT_EQ(registry.machines().size(), 2u);
  const auto odd = anomalies(registry.machines(), test::discoveringCluster());
  ASSERT_EQ(odd.size(), 2u);
  EXPECT_THAT(odd[0].what, HasSubstr("2 machines have the serial SN-1"));
  EXPECT_THAT(odd[1].what, HasSubstr("MAC aa:00:00:00:00:01"));
  EXPECT_THAT(odd[0].where, HasSubstr("https://10.1.0.2"));
  EXPECT_EQ(registry.find("SN-1").error().code(), ErrorCode::Conflict);
  EXPECT_EQ(*registry.find("10.1.0.2"), 1u);
}

TEST(MachineRegistryTest, firmwaresPlaceholdersAreNoSerials) {
  MachineRegistry registry;
  ASSERT_TRUE(registry.note(
      surveyed("https://10.1.0.1", "To Be Filled By O.E.M.", "aa:00:00:00:00:01"), WallTime{}));
  ASSERT_TRUE(registry.note(
      surveyed("https://10.1.0.2", "To Be Filled By O.E.M.", "aa:00:00:00:00:02"), WallTime{}));
  EXPECT_TRUE(anomalies(registry.machines(), test::discoveringCluster()).empty());
  EXPECT_EQ(registry.machines()[0].id(), "10.1.0.1");
  for (const char* text : {"", "0", "000000", "N/A", "Default string"})
    EXPECT_FALSE(isRealSerial(text)) << text;
  EXPECT_TRUE(isRealSerial("J1020X0"));
}

TEST(MachineRegistryTest, aBmcThatMovedIsTheSameMachine) {
  MachineRegistry registry;
  auto before = surveyed("https://10.1.0.1", "SN-1", "aa:00:00:00:00:01");
  before.bmc_macs = {"bb:00:00:00:00:01"};
  auto after = before;
  after.bmc = "https://10.1.0.9";
  ASSERT_TRUE(registry.note(before, WallTime{}));
  ASSERT_TRUE(registry.note(after, WallTime{}));
  ASSERT_EQ(registry.machines().size(), 1u);
  EXPECT_EQ(registry.machines()[0].bmc, "https://10.1.0.9");
}

TEST(MachineRegistryTest, aGpuThatIsGoneIsGone) {
  MachineRegistry registry;
  auto machine = surveyed("https://10.1.0.1", "SN-1", "aa:00:00:00:00:01");
  machine.gpus = {{"H100", "1"}, {"H100", "2"}};
  ASSERT_TRUE(registry.note(machine, WallTime{}));
  machine.gpus.pop_back();
  ASSERT_TRUE(registry.note(machine, WallTime{}));
  EXPECT_EQ(registry.machines()[0].gpus.size(), 1u);
}

TEST(MachineRegistryTest, survivesTheStoreAndRefusesRubbish) {
  test::ValuesStore store;
  auto note = [](MachineRegistry& registry) {
    return registry.note(surveyed("https://10.1.0.1", "SN-1", "aa:00:00:00:00:01"), WallTime{});
  };
  ASSERT_TRUE(updateRegistry(store, note));
  const auto again = MachineRegistry::read(store);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->machines().at(0).serial, "SN-1");
  for (const char* text : {"{", "[]", R"({"machines": [{}]})", R"({"machines": [{"bmc": 1}]})"})
    EXPECT_FALSE(MachineRegistry::parse(text)) << text;
}

TEST(MachineRegistryTest, swappedMachinesAreFound) {
  auto cluster = test::discoveringCluster();
  for (const char* n : {"1", "2"}) {
    inventory::Node node;
    node.name = NodeName(std::string("gpu00") + n);
    node.serial = std::string("SN-") + n;
    node.mac = *Mac::parse(std::string("aa:00:00:00:00:0") + n);
    node.bmc.url = std::string("https://10.1.0.") + n;
    cluster.nodes.push_back(node);
  }
  const std::vector<Machine> swapped = {surveyed("https://10.1.0.1", "SN-2", "aa:00:00:00:00:02"),
                                        surveyed("https://10.1.0.2", "SN-1", "aa:00:00:00:00:01")};
  const auto odd = anomalies(swapped, cluster);
  ASSERT_EQ(odd.size(), 2u);
  EXPECT_EQ(odd[0].what, "behind the BMC of gpu001 is gpu002");
  const std::vector<Machine> right = {surveyed("https://10.1.0.1", "SN-1", "aa:00:00:00:00:01"),
                                      surveyed("https://10.1.0.2", "SN-2", "aa:00:00:00:00:02")};
  EXPECT_TRUE(anomalies(right, cluster).empty());
  EXPECT_EQ(anomalies({surveyed("https://10.1.0.1", "SN-9", "aa:00:00:00:00:09")}, cluster).size(),
            1u);
}

TEST(DiscoverFindings, areKeptWhileTheyHoldUnderTheNodeThatTheyAreAbout) {
  test::MemoryStore store;
  const std::vector<Anomaly> seen = {{"2 machines have the serial SN-1",
                                      "https://10.1.0.1, https://10.1.0.2", "compare the labels"},
                                     {"behind the BMC of gpu001 is gpu002", "https://10.1.0.1",
                                      "correct the rack", NodeName("gpu001")}};
  ASSERT_TRUE(updateFindings(store, seen, WallTime{}));
  const lifecycle::Subject node(NodeName("gpu001"));
  ASSERT_EQ(store.findings(&node)->size(), 1u);
  EXPECT_EQ(store.findings(&node)->front().text, seen[1].what);
  EXPECT_EQ(store.findings(nullptr)->size(), 2u);
  ASSERT_TRUE(updateFindings(store, seen, WallTime{} + std::chrono::hours(1)));
  EXPECT_EQ(store.findings(nullptr)->size(), 2u);
  EXPECT_EQ(store.findings(&node)->front().at, WallTime{})
      << "nothing is written where nothing is new";
  ASSERT_TRUE(updateFindings(store, {seen[0]}, WallTime{}));
  EXPECT_TRUE(store.findings(&node)->empty());
  EXPECT_EQ(store.findings(nullptr)->size(), 1u);
}

}  // namespace
}  // namespace muster::discovery
