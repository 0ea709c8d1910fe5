// SPDX-License-Identifier: Apache-2.0
#include "provision/inspection.h"

#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "inventory/model/hardware.h"
#include "inventory/model/profile.h"
#include "tests/provision/clusters.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class InspectionTest : public ::testing::Test {
 protected:
  InspectionTest() {
    hardware.manufacturer = "Vendor";
    hardware.serial = "SN-1";
    hardware.cpus = 96;
    hardware.memory_bytes = 1000ull << 30;
    hardware.nics = {{"eth0", "52:54:00:00:00:01", "e1000"}};
    hardware.rdma_devices = {"mlx5_0"};
    hardware.disks = {{"/dev/sda", "D1", "W1", "Disk", "none", 1000, wire::DiskUse::Empty}};
    for (int i = 0; i < 8; ++i)
      hardware.gpus.push_back(
          {"PCI 10de:2330", "", "", "", "0000:0" + std::to_string(i) + ":00.0"});
    profile.expect = {8, "H100", 1, 1024, 96};
  }
  std::vector<std::string> mismatches() {
    std::vector<std::string> texts;
    for (const auto& mismatch : inspect(node, profile, hardware).mismatches) {
      EXPECT_FALSE(mismatch.what_to_do.empty());
      EXPECT_FALSE(mismatch.evidence.empty());
      texts.push_back(mismatch.text);
    }
    return texts;
  }
  inventory::Cluster cluster = twoNodes();
  inventory::Node node = cluster.nodes[0];
  inventory::Profile profile = cluster.profiles.at("uefi");
  wire::Hardware hardware;
};

TEST_F(InspectionTest, whatIsExpectedFits) {
  EXPECT_THAT(mismatches(), ElementsAre());
  EXPECT_EQ(inspect(node, profile, hardware).value("abc"), "match:abc");
}

TEST_F(InspectionTest, missingGpuOnTheBusIsFound) {
  hardware.gpus.pop_back();
  EXPECT_THAT(mismatches(), ElementsAre("7 GPUs seen, 8 expected"));
  EXPECT_THAT(inspect(node, profile, hardware).mismatches[0].evidence, HasSubstr("0000:06:00.0"));
  EXPECT_EQ(inspect(node, profile, hardware).value("abc"), "mismatch: 7 GPUs seen, 8 expected");
}

TEST_F(InspectionTest, anEmptyBusIsAFaultExceptOnTheTwin) {
  hardware.gpus.clear();
  EXPECT_THAT(mismatches(), ElementsAre("0 GPUs seen, 8 expected"));
  hardware.manufacturer = "muster";
  EXPECT_THAT(mismatches(), ElementsAre());
  EXPECT_THAT(inspect(node, profile, hardware).notes,
              ElementsAre(HasSubstr("the gates count them")));
  hardware.gpus.resize(7, {"NVIDIA H100 80GB HBM3", "GPU-1", "S1", "", ""});
  EXPECT_THAT(mismatches(), ElementsAre("7 GPUs seen, 8 expected"))
      << "once they can be seen, a wrong number counts there too";
}

TEST_F(InspectionTest, wrongModelIsFoundWhenNvmlNamesIt) {
  for (auto& gpu : hardware.gpus) gpu = {"NVIDIA H100 80GB HBM3", "GPU-x", "S", "", ""};
  hardware.gpus[3].model = "NVIDIA A100-SXM4-80GB";
  EXPECT_THAT(mismatches(), ElementsAre(HasSubstr("A100")));
}

TEST_F(InspectionTest, tooLittleOfAnythingIsFound) {
  hardware.cpus = 48;
  hardware.memory_bytes = 900ull << 30;
  hardware.nics.clear();
  EXPECT_THAT(mismatches(), UnorderedElementsAre(HasSubstr("48 CPUs"), HasSubstr("GiB of memory"),
                                                 HasSubstr("provisioning MAC")));
}

TEST_F(InspectionTest, rdmaNicsAreCountedExactlyOnceTheyShow) {
  profile.expect.nics = 2;
  hardware.rdma_devices.clear();
  EXPECT_THAT(mismatches(), ElementsAre()) << "an Ethernet port is no RDMA NIC";
  EXPECT_THAT(inspect(node, profile, hardware).notes,
              ::testing::Contains(HasSubstr("2 RDMA NICs are expected")));
  hardware.rdma_devices = {"mlx5_0", "mlx5_1"};
  EXPECT_THAT(mismatches(), ElementsAre());
  hardware.rdma_devices = {"mlx5_0"};
  EXPECT_THAT(mismatches(), ElementsAre("1 RDMA NICs seen, 2 expected"));
  hardware.rdma_devices = {"mlx5_0", "mlx5_1", "mlx5_2"};
  EXPECT_THAT(mismatches(), ElementsAre("3 RDMA NICs seen, 2 expected"));
}

TEST_F(InspectionTest, anotherMachineIsFound) {
  node.serial = "SN-9";
  EXPECT_THAT(mismatches(), ElementsAre(HasSubstr("\"SN-1\"")));
  EXPECT_NE(expectationDigest(node, profile), expectationDigest(cluster.nodes[0], profile));
}

TEST_F(InspectionTest, anotherProcessorIsFound) {
  hardware.arch = "amd64";
  EXPECT_THAT(mismatches(), ElementsAre());
  hardware.arch = "arm64";
  EXPECT_THAT(mismatches(), ElementsAre("its processor is arm64, profile uefi is of amd64"));
  const auto before = expectationDigest(node, profile);
  profile.arch = Architecture::Arm64;
  EXPECT_THAT(mismatches(), ElementsAre());
  EXPECT_NE(expectationDigest(node, profile), before) << "it is looked at again";
}

/// What the digest is of, written as an object: digests that sites have stored must stay as they
/// are.
std::string digestOfObject(const nlohmann::json& object) {
  return io::sha256Hex(object.dump()).substr(0, 16);
}

TEST_F(InspectionTest, theDigestOfWhatIsExpectedIsOfAJsonObject) {
  nlohmann::json object = {{"cpus_min", 96}, {"disk", profile.disk},  {"gpu_model", "H100"},
                           {"gpus", 8},      {"mac", node.mac.str()}, {"memory_gib_min", 1024},
                           {"nics", 1},      {"serial", node.serial}};
  EXPECT_EQ(expectationDigest(node, profile), digestOfObject(object));

  profile.expect = {};
  for (const char* key : {"cpus_min", "gpus", "memory_gib_min", "nics"}) object.erase(key);
  object["gpu_model"] = "";
  EXPECT_EQ(expectationDigest(node, profile), digestOfObject(object));

  node.serial = "S \"1\" \\ ü";
  node.switch_name = "leaf";
  profile.disk = "nvme*";
  profile.arch = Architecture::Arm64;
  profile.expect.parts.push_back({});
  profile.expect.parts.back().model = "ConnectX-7";
  profile.expect.parts.back().count = 8;
  object["serial"] = node.serial;
  object["cable"] = {"leaf", ""};
  object["disk"] = "nvme*";
  object["arch"] = "arm64";
  object["parts"] = nlohmann::json::array({nlohmann::json::array(
      {static_cast<int>(profile.expect.parts.back().kind), "ConnectX-7", 8, -1, ""})});
  EXPECT_EQ(expectationDigest(node, profile), digestOfObject(object));
}

TEST_F(InspectionTest, severalDisksNeedARule) {
  hardware.disks.push_back(
      {"/dev/sdb", "D2", "W2", "Disk", "ext4 \"data\" on /dev/sdb1", 500, wire::DiskUse::Other});
  EXPECT_THAT(mismatches(), ElementsAre(HasSubstr("2 disks")));
  EXPECT_EQ(diskContent(profile, hardware), "/dev/sdb: ext4 \"data\" on /dev/sdb1")
      << "all of them could be meant";
  profile.disk = "smallest";
  EXPECT_THAT(mismatches(), ElementsAre());
  EXPECT_THAT(diskContent(profile, hardware), HasSubstr("ext4"));
  profile.disk = "serial:D1";
  EXPECT_THAT(mismatches(), ElementsAre());
  EXPECT_EQ(diskContent(profile, hardware), "none");
  profile.disk = "wwn:W2";
  EXPECT_THAT(diskContent(profile, hardware), HasSubstr("ext4"));
  profile.disk = "serial:D3";
  EXPECT_THAT(mismatches(), ElementsAre(HasSubstr("no disk fits")));
}

TEST_F(InspectionTest, factsNameTheHardware) {
  EXPECT_THAT(hardwareFacts(node, profile, hardware),
              UnorderedElementsAre(Pair("hw.serial", "SN-1"), Pair("hw.mac", "52:54:00:00:00:01")))
      << "GPUs without NVML have no name yet";
  profile.expect.gpus = 3;
  hardware.gpus = {{"H100", "GPU-a", "S1", "", ""}, {"H100", "GPU-b", "", "", ""}};
  EXPECT_THAT(hardwareFacts(node, profile, hardware),
              UnorderedElementsAre(Pair("hw.serial", "SN-1"), Pair("hw.mac", "52:54:00:00:00:01"),
                                   Pair("hw.gpu.0", "S1"), Pair("hw.gpu.1", "GPU-b"),
                                   Pair("hw.gpu.2", "absent")));
}

TEST_F(InspectionTest, partsAreListedBySerialAndMemoryBySlot) {
  hardware.parts = {{"dimm", "A2", "M321", "S2", "", 5},
                    {"dimm", "A1", "M321", "S1", "", 5},
                    {"nvme", "0000:02:00.0", "PM9A3", "N2", "", 5},
                    {"nvme", "0000:01:00.0", "PM9A3", "", "", 5},
                    {"hca", "0000:18:00.1", "ConnectX-7", "MT22", "", 0},
                    {"hca", "0000:18:00.0", "ConnectX-7", "MT22", "", 0},
                    {"nic", "0000:18:00.0", "ConnectX-7", "aa:bb:cc:00:00:01", "", 0},
                    {"bmc", "ipmi_bmc.0", "0x000000:0x0000", "", "1.2", 0}};
  auto facts = hardwareFacts(node, profile, hardware);
  EXPECT_EQ(facts["hw.part.dimm"], "A1=S1, A2=S2");
  EXPECT_EQ(facts["hw.part.nvme"], "N2, without serial: PM9A3");
  EXPECT_EQ(facts["hw.part.hca"], "MT22") << "two functions of one board";
  EXPECT_FALSE(facts.contains("hw.part.bmc")) << "without a serial nothing is known";
  EXPECT_FALSE(facts.contains("hw.part.nic")) << "its address may be a bond's";
  std::swap(hardware.parts[0].place, hardware.parts[1].place);
  EXPECT_EQ(hardwareFacts(node, profile, hardware)["hw.part.dimm"], "A1=S2, A2=S1");
}

}  // namespace
}  // namespace muster::provision
