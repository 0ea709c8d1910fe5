// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/parts.h"
#include "agent/tasks/lldp.h"
#include "base/io/files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// One structure of an SMBIOS table.
std::string structure(std::uint8_t type, std::string formatted,
                      const std::vector<std::string>& strings) {
  std::string out(4, '\0');
  out[0] = static_cast<char>(type), out[1] = static_cast<char>(4 + formatted.size()),
  out[2] = '\x01';
  out += formatted;
  for (const auto& text : strings) out += text + '\0';
  return out + (strings.empty() ? std::string(2, '\0') : std::string(1, '\0'));
}
std::string memoryDevice(std::uint16_t size, std::uint32_t extended = 0) {
  std::string f(0x20 - 4, '\0');
  auto put = [&](std::size_t at, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      f[at - 4 + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
  };
  put(0x0c, size, 2), put(0x1c, extended, 4);
  put(0x10, 1, 1), put(0x17, 2, 1), put(0x18, 3, 1), put(0x1a, 4, 1);
  return structure(17, f, {"DIMM_A1", "Samsung", "12345 ", "M321R8GA0BB0-CQKZJ   "});
}

TEST(Dimms, populatedSlotsAreRead) {
  const auto table = structure(1, std::string(8, '\x01'), {"System"}) +
                     memoryDevice(32 * 1024 - 1, 65536) + memoryDevice(0) + memoryDevice(0xffff) +
                     memoryDevice(16384) + memoryDevice(0x8000 | 1024) + structure(127, "", {}) +
                     memoryDevice(16384);
  const auto dimms = dimmsOf(table);
  ASSERT_EQ(dimms.size(), 3u)
      << "empty and unknown slots are none, and nothing counts behind the end";
  EXPECT_EQ(dimms[0].size_bytes, 64ull << 30) << "the extended size";
  EXPECT_EQ(dimms[0].place, "DIMM_A1");
  EXPECT_EQ(dimms[0].model, "Samsung M321R8GA0BB0-CQKZJ");
  EXPECT_EQ(dimms[0].serial, "12345");
  EXPECT_EQ(dimms[1].size_bytes, 16ull << 30);
  EXPECT_EQ(dimms[2].size_bytes, 1ull << 20) << "in KiB";
}

TEST(Dimms, everyCutOfATableEndsWithoutReadingPastIt) {
  const auto whole = memoryDevice(16384) + memoryDevice(16384);
  for (std::size_t size = 0; size <= whole.size(); ++size)
    EXPECT_LE(dimmsOf(std::string(whole, 0, size)).size(), 2u);
  EXPECT_THAT(dimmsOf(std::string("\x11\x00\x00\x00\x00\x00", 6)), IsEmpty())
      << "a length that goes nowhere";
}

TEST(PartsOfMachine, nvmeAndNicsFromSysfs) {
  test::TempFolder folder;
  auto put = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(io::makeDirs((folder / path).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(folder / path, text));
  };
  put("sys/class/nvme/nvme0/model", "SAMSUNG MZQL23T8HCLS-00A07              \n");
  put("sys/class/nvme/nvme0/firmware_rev", "GDC7502Q\n");
  put("sys/class/nvme/nvme0/serial", "S64H\n");
  put("sys/block/nvme0n1/size", "2097152\n");
  put("sys/class/net/eth0/address", "aa:bb:cc:00:00:01\n");
  put("sys/class/net/eth0/device/vendor", "0x15b3\n");
  put("sys/class/net/eth0/device/device", "0x1021\n");
  put("sys/class/net/eth0/device/vpd", std::string("\x82\x0a\x00", 3) + "ConnectX-7" + "\x90\x01");
  put("sys/class/net/lo/address", "00:00:00:00:00:00\n");
  put("sys/class/infiniband/rxe0/fw_ver", "\n");
  const auto parts = partsOf(folder.path());
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].model, "SAMSUNG MZQL23T8HCLS-00A07");
  EXPECT_EQ(parts[0].firmware, "GDC7502Q");
  EXPECT_EQ(parts[0].size_bytes, 1ull << 30);
  EXPECT_EQ(parts[1].kind, "nic");
  EXPECT_EQ(parts[1].model, "ConnectX-7 (15b3:1021)");
}

TEST(PartsOfMachine, vpdThatIsNoneHasNoName) {
  for (const auto& text : {std::string(), std::string("\x82"),
                           std::string("\x82\xff\x00"
                                       "ab",
                                       5),
                           std::string("\x90\x01\x00"
                                       "a",
                                       4)})
    EXPECT_EQ(vpdName(text), "");
}

TEST(PartsOfMachine, theKernelTellsWhatDrivesANic) {
  EXPECT_FALSE(nicDriver("nosuch0"));
  EXPECT_FALSE(nicDriver(std::string(100, 'x')));
}

std::string tlv(int type, const std::string& value) {
  std::string out(2, '\0');
  out[0] = static_cast<char>(type << 1 | static_cast<int>(value.size() >> 8)),
  out[1] = static_cast<char>(value.size() & 0xff);
  return out + value;
}
std::string frame(const std::string& tlvs) {
  return std::string("\x01\x80\xc2\x00\x00\x0e\x02\x00\x00\x00\x00\x01\x88\xcc", 14) + tlvs;
}
const std::string kChassis = tlv(1, std::string("\x04\x02\x00\x00\x00\x00\x01", 7)),
                  kPort = tlv(2, "\x05swp7"), kTtl = tlv(3, std::string("\x00\x78", 2));

/// The layout of `lspci -vvv`'s "Vital Product Data" of a ConnectX: product name, part number,
/// engineering changes, serial number, checksum, end. PCI 3.0, appendix I.
std::string connectXVpd(const std::string& serial) {
  const auto field = [](const std::string& key, const std::string& data) {
    return key + static_cast<char>(data.size()) + data;
  };
  const auto resource = [](char tag, const std::string& data) {
    return std::string(1, tag) + static_cast<char>(data.size() & 0xff) +
           static_cast<char>(data.size() >> 8) + data;
  };
  return resource('\x82', "ConnectX-7 HHHL adapter Card, 400GbE") +
         resource('\x90', field("PN", "MCX75310AAS-NEAT") + field("EC", "A5") +
                              (serial.empty() ? "" : field("SN", serial)) +
                              field("RV", std::string(1, '\x2a'))) +
         "\x78";
}

TEST(Vpd, theSerialIsThatOfTheReadOnlyFields) {
  const auto vpd = connectXVpd("MT2242X00001   ");
  EXPECT_EQ(vpdSerial(vpd), "MT2242X00001");
  EXPECT_EQ(vpdName(vpd), "ConnectX-7 HHHL adapter Card, 400GbE");
  EXPECT_EQ(vpdSerial(connectXVpd("")), "");
  for (std::size_t size = 0; size < vpd.size(); ++size)
    EXPECT_LE(vpdSerial(vpd.substr(0, size)).size(), 12u) << "every cut ends";
  EXPECT_EQ(vpdSerial(std::string(4096, '\xff')), "");
}

TEST(PartsOfMachine, boardsOfAdaptersSwitchesAndTheBmc) {
  test::TempFolder folder;
  auto put = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(io::makeDirs((folder / path).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(folder / path, text));
  };
  put("sys/class/infiniband/mlx5_0/device/vpd", connectXVpd("MT2242X00001"));
  put("sys/class/infiniband/mlx5_0/fw_ver", "28.39.1002\n");
  put("sys/class/infiniband/mlx5_0/node_guid", "b83f:d203:00aa:0001\n");
  put("sys/class/infiniband/mlx5_1/node_guid", "b83f:d203:00aa:0002\n");
  put("sys/class/infiniband/mlx5_1/device/vendor", "0x15b3\n");
  put("sys/class/infiniband/mlx5_2/node_guid", "b83f:d203:00aa:0003\n");
  put("sys/class/infiniband/mlx5_2/device/physfn/vendor", "0x15b3\n");
  put("sys/class/infiniband/mlx5_4/node_guid", "b83f:d203:00aa:0004\n");
  put("sys/class/infiniband/mlx5_4/device/uevent", "\n");
  ASSERT_TRUE(io::makeDirs(folder / "sys/bus/auxiliary"));
  std::filesystem::create_directory_symlink(
      folder / "sys/bus/auxiliary", folder / "sys/class/infiniband/mlx5_4/device/subsystem");
  put("sys/class/nvme/nvme0/transport", "pcie\n");
  put("sys/class/nvme/nvme0/serial", "S64H\n");
  put("sys/class/nvme/nvme1/transport", "rdma\n");
  put("sys/class/nvme/nvme1/serial", "array-7\n");
  put("sys/class/infiniband/mlx5_3/node_guid", "0000:0000:0000:0000\n");
  put("sys/class/infiniband/mlx5_3/device/vendor", "0x15b3\n");
  put("proc/driver/nvidia-nvswitch/devices/0000:05:00.0/information",
      "BIOS Version: 96.10.57.00.01\nUUID: SWX-8A4F2E31-7B1D-0C5E-93D2-6E0F4A1B2C3D\n"
      "Physical location ID: 0001\n");
  put("sys/bus/platform/devices/ipmi_bmc.0/guid", "31303043-534d-2500-90d8-7a1500400b00\n");
  put("sys/bus/platform/devices/ipmi_bmc.0/firmware_revision", "1.73\n");
  put("sys/bus/platform/devices/serial8250/uevent", "\n");
  std::map<std::string, std::vector<wire::Part>> by_kind;
  for (auto& part : partsOf(folder.path())) by_kind[part.kind].push_back(part);
  ASSERT_EQ(by_kind["hca"].size(), 3u) << "virtual functions and subfunctions are no boards";
  EXPECT_EQ(by_kind["hca"][0].serial, "MT2242X00001");
  EXPECT_EQ(by_kind["hca"][0].firmware, "28.39.1002");
  EXPECT_EQ(by_kind["hca"][1].serial, "b83f:d203:00aa:0002") << "no vital product data";
  EXPECT_EQ(by_kind["hca"][2].serial, "") << "zeros are no identity";
  ASSERT_EQ(by_kind["nvme"].size(), 1u) << "mounting remote storage changes no part";
  EXPECT_EQ(by_kind["nvme"][0].serial, "S64H");
  ASSERT_EQ(by_kind["nvswitch"].size(), 1u);
  EXPECT_EQ(by_kind["nvswitch"][0].serial, "SWX-8A4F2E31-7B1D-0C5E-93D2-6E0F4A1B2C3D");
  EXPECT_EQ(by_kind["nvswitch"][0].firmware, "96.10.57.00.01");
  EXPECT_EQ(by_kind["nvswitch"][0].place, "0000:05:00.0");
  ASSERT_EQ(by_kind["bmc"].size(), 1u);
  EXPECT_EQ(by_kind["bmc"][0].serial, "31303043-534d-2500-90d8-7a1500400b00");
  // What cannot be read now: a folder in its place, as an adapter in reset answers with an error.
  ASSERT_TRUE(io::makeDirs(folder / "sys/class/infiniband/mlx5_5/device/vpd"));
  put("sys/class/infiniband/mlx5_5/node_guid", "b83f:d203:00aa:0005\n");
  for (const auto& part : partsOf(folder.path()))
    EXPECT_NE(part.kind, "hca") << "one that does not answer must not look like another one";
}

TEST(Lldp, frameNamesSwitchAndPort) {
  const auto named =
      parseLldp(frame(kChassis + kPort + kTtl + tlv(5, "leaf1") + tlv(0, "") + "padding"));
  ASSERT_TRUE(named) << named.error().str();
  EXPECT_EQ(named->switch_name, "leaf1");
  EXPECT_EQ(named->port, "swp7");
  EXPECT_EQ(parseLldp(frame(kChassis + kPort + kTtl))->switch_name, "02:00:00:00:00:01")
      << "its chassis id when it has no name";
  const auto by_mac =
      parseLldp(frame(kChassis + tlv(2, std::string("\x03\x02\x00\x00\x00\x00\x07", 7)) + kTtl +
                      tlv(4, "Ethernet1/7")));
  EXPECT_EQ(by_mac->port, "Ethernet1/7") << "a description says more than a MAC";
}

TEST(Lldp, goodbyesCutsAndOtherFramesAreNone) {
  EXPECT_FALSE(parseLldp(frame(kChassis + kPort + tlv(3, std::string(2, '\0')))));
  EXPECT_FALSE(parseLldp(frame(kChassis + kTtl)));
  auto other = frame(kChassis + kPort + kTtl);
  other[12] = '\x08';
  EXPECT_FALSE(parseLldp(other));
  const auto whole = frame(kChassis + kPort + kTtl + tlv(5, "leaf1\x1b[2J"));
  for (std::size_t size = 0; size < whole.size(); ++size)
    (void)parseLldp(std::string(whole, 0, size));
  EXPECT_EQ(parseLldp(whole)->switch_name, "leaf1[2J");
}

TEST(Lldp, whatANeighbourSaysIsNeverTooLongForTheController) {
  wire::Hardware hardware;
  hardware.neighbours = {*parseLldp(frame(tlv(1, "\x04" + std::string(500, 'x')) +
                                          tlv(2, "\x03" + std::string(500, 'y')) + kTtl))};
  std::string letters = "a";
  for (int i = 0; i < 400; ++i) letters += "\u6c34";
  for (const auto& each :
       *parseLldpctl(R"({"lldp": {"interface": {"eth0": {"chassis": {")" + letters +
                     R"(": {}}, "port": {"id": {"value": ")" + letters + R"("}}}}}})"))
    hardware.neighbours.push_back(each);
  EXPECT_EQ(hardware.neighbours.size(), 2u);
  const auto read = wire::parseHardware(toJson(hardware));
  EXPECT_TRUE(read) << read.error().str();
}

TEST(Lldp, anAgeBeyondAllNumbersIsOld) {
  const auto seen = parseLldpctl(R"({"lldp": {"interface": [
    {"eth0": {"age": "99999999999999999 day, 00:01:40", "chassis": {"leaf1": {}}, "port": {"id": {"value": "swp1"}}}},
    {"eth0": {"age": "0 day, 00:00:02", "chassis": {"leaf2": {}}, "port": {"id": {"value": "swp9"}}}}]}})");
  ASSERT_TRUE(seen && seen->size() == 1u);
  EXPECT_EQ(seen->front().switch_name, "leaf2");
}

TEST(Lldp, theYoungestNeighbourOfLldpctlCounts) {
  const auto seen = parseLldpctl(R"({"lldp": {"interface": [
    {"eth0": {"via": "LLDP", "age": "0 day, 00:01:40", "chassis": {"leaf1": {"id": {"type": "mac", "value": "1"}}}, "port": {"id": {"type": "ifname", "value": "swp1"}}}},
    {"eth0": {"via": "LLDP", "age": "0 day, 00:00:02", "chassis": {"leaf2": {"id": {"type": "mac", "value": "2"}}}, "port": {"id": {"type": "ifname", "value": "swp9"}}}},
    {"eth1": {"via": "LLDP", "age": "1 day, 00:00:02", "chassis": {"id": {"type": "mac", "value": "02:00"}}, "port": {"id": {"type": "mac", "value": "3"}, "descr": "Eth7"}}}]}})");
  ASSERT_TRUE(seen) << seen.error().str();
  ASSERT_EQ(seen->size(), 2u);
  EXPECT_EQ((*seen)[0].switch_name, "leaf2");
  EXPECT_EQ((*seen)[0].port, "swp9");
  EXPECT_EQ((*seen)[1].switch_name, "02:00");
  EXPECT_EQ((*seen)[1].port, "Eth7");
  EXPECT_EQ(
      parseLldpctl(
          R"({"lldp": {"interface": {"eth0": {"chassis": {"a": {}}, "port": {"id": {"value": "p"}}}}}})")
          ->size(),
      1u)
      << "one is no list";
  EXPECT_THAT(*parseLldpctl(R"({"lldp": {}})"), IsEmpty());
  for (const char* text : {"", "{", "[]", "{}", R"({"lldp": 7})"})
    EXPECT_FALSE(parseLldpctl(text)) << text;
  EXPECT_THAT(*parseLldpctl(R"({"lldp": {"interface": [7, {"eth0": 1}]}})"), IsEmpty());
}

TEST(Lldp, theLargestFrameIsThatOfTheYoungestNeighbour) {
  const auto sizes = frameSizes(R"({"lldp": {"interface": [
    {"eth0": {"age": "0 day, 00:01:40", "port": {"id": {"value": "swp1"}, "mfs": "1500"}}},
    {"eth0": {"age": "0 day, 00:00:02", "port": {"id": {"value": "swp9"}, "mfs": "9216"}}},
    {"eth1": {"age": "0 day, 00:00:02", "port": {"id": {"value": "swp2"}}}}]}})");
  EXPECT_EQ(sizes, (std::map<std::string, int>{{"eth0", 9216}}));
  EXPECT_EQ(frameSizes(R"({"lldp": {"interface": {"eth0": {"port": {"mfs": "9000"}}}}})"),
            (std::map<std::string, int>{{"eth0", 9000}}));
  for (const char* text : {"", "[]", R"({"lldp": 7})",
                           R"({"lldp": {"interface": [7, {"eth0": 1}, {"eth0": {"port": 7}}]}})"})
    EXPECT_TRUE(frameSizes(text).empty()) << text;
}

TEST(HardwareMessage, partsAndNeighboursTravelAndMayBeAbsent) {
  wire::Hardware hardware;
  hardware.parts = {{"dimm", "A1", "M", "S", "", 5}};
  hardware.neighbours = {{"eth0", "aa", "leaf1", "swp1"}};
  const auto again = wire::parseHardware(toJson(hardware));
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->parts.at(0).size_bytes, 5u);
  EXPECT_EQ(again->neighbours.at(0).port, "swp1");
  auto old = toJson(wire::Hardware{});
  old.replace(old.find("\"parts\""), 7, "\"later\"");
  EXPECT_TRUE(wire::parseHardware(old)) << "an older agent sends none";
}

}  // namespace
}  // namespace muster::agent
