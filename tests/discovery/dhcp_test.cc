// SPDX-License-Identifier: Apache-2.0
#include "discovery/dhcp.h"

#include <gtest/gtest.h>

namespace muster::discovery {
namespace {

std::string request(const std::string& options) {
  std::string packet(236, '\0');
  packet[0] = 1, packet[1] = 1, packet[2] = 6;
  packet.replace(28, 6, std::string("\x52\x54\x00\x20\x00\x07", 6));
  return packet + "\x63\x82\x53\x63" + options;
}
std::string option(int number, const std::string& value) {
  return std::string{static_cast<char>(number), static_cast<char>(value.size())} + value;
}

TEST(Dhcp, aBootingMachineTellsItsMacAndUuid) {
  const std::string uuid("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\x01",
                         17);
  const auto seen = parseDhcp(
      request(option(53, "\x01") + option(60, "PXEClient:Arch:00007:UNDI:003016") +
              option(97, uuid) + option(50, std::string("\x0a\x14\xf0\x01", 4)) + "\xff" + "rest"));
  ASSERT_TRUE(seen) << seen.error().str();
  EXPECT_EQ(seen->mac.str(), "52:54:00:20:00:07");
  EXPECT_TRUE(seen->boots());
  EXPECT_EQ(seen->address.str(), "10.20.240.1");
  EXPECT_EQ(seen->uuid, "11223344-5566-7788-99aa-bbccddeeff01");
  EXPECT_TRUE(sameUuid(seen->uuid, "44332211-6655-8877-99AA-BBCCDDEEFF01"))
      << "SMBIOS and RFC 4122 order the first fields differently";
  EXPECT_EQ(sightingOf(*seen).boot_mac, "52:54:00:20:00:07");
}

TEST(Dhcp, aRelaySaysWhereTheMachineIs) {
  auto packet = request(option(60, "PXEClient") + "\xff");
  EXPECT_EQ(sightingOf(*parseDhcp(packet)).relay, "0.0.0.0") << "heard directly";
  packet.replace(24, 4, std::string("\x0a\x15\x00\x01", 4));
  EXPECT_EQ(sightingOf(*parseDhcp(packet)).relay, "10.21.0.1");
}

TEST(Dhcp, aBmcIsNotTakenForANic) {
  const auto machine = sightingOf(*parseDhcp(request(option(60, "iDRAC") + "\xff")));
  EXPECT_TRUE(machine.macs.empty());
  EXPECT_EQ(machine.bmc_macs.size(), 1u);
  EXPECT_TRUE(machine.bmc.empty())
      << "an address that a packet claims is no address to send passwords to";
}

TEST(Dhcp, everyCutOfAPacketIsRefusedOrRead) {
  const auto whole =
      request(option(53, "\x01") + option(12, "node\x1b[31m") + option(60, "PXEClient") + "\xff");
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const auto seen = parseDhcp(std::string_view(whole).substr(0, size));
    EXPECT_TRUE(size >= 240 || !seen) << size;
    EXPECT_TRUE(!seen || seen->mac.str() == "52:54:00:20:00:07") << size;
  }
  EXPECT_EQ(parseDhcp(whole)->host_name, "node[31m") << "nothing that moves a terminal";
  auto answer = whole;
  answer[0] = 2;
  EXPECT_FALSE(parseDhcp(answer));
  auto token_ring = whole;
  token_ring[1] = 6;
  EXPECT_FALSE(parseDhcp(token_ring));
}

TEST(Dhcp, onlyWholeDatagramsToTheServersPort) {
  std::string udp = std::string("\x00\x44\x00\x43\x00\x0c\x00\x00", 8) + "DATA";
  std::string ip = std::string(
      "\x45\x00\x00\x20\x00\x00\x00\x00\x40\x11\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff", 20);
  EXPECT_EQ(dhcpPayload(ip + udp), "DATA");
  EXPECT_FALSE(dhcpPayload(ip + udp.substr(0, 11)));
  auto fragment = ip;
  fragment[6] = '\x20';
  EXPECT_FALSE(dhcpPayload(fragment + udp));
  auto port = udp;
  port[3] = '\x44';
  EXPECT_FALSE(dhcpPayload(ip + port));
  auto tcp = ip;
  tcp[9] = '\x06';
  EXPECT_FALSE(dhcpPayload(tcp + udp));
  EXPECT_FALSE(dhcpPayload(""));
}

}  // namespace
}  // namespace muster::discovery
