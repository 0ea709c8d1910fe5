// SPDX-License-Identifier: Apache-2.0
#include "base/ip_network.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

IpAddress ip(std::string_view text) {
  auto parsed = IpAddress::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(IpAddress());
}
IpNetwork net(std::string_view text) {
  auto parsed = IpNetwork::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(IpNetwork());
}

TEST(IpAddress, hasOneFormAsText) {
  EXPECT_EQ(ip("fd00:0030:0:0:0:0:0:0001").str(), "fd00:30::1");
  EXPECT_EQ(ip("FD00:30::A"), ip("fd00:30::a"));
  EXPECT_EQ(ip("10.20.0.1").str(), "10.20.0.1");
  EXPECT_EQ(ip("10.20.0.1"), IpAddress(*Ipv4::parse("10.20.0.1")));
  EXPECT_NE(ip("::"), ip("0.0.0.0"));
  for (const auto* text : {"", ":", ":::", "fd00::1::2", "fd00:30:1", "fe80::1%eth0",
                           "::ffff:10.0.0.1", "10.0.0.256", "fd00::g", "fd00::1/64", " fd00::1"})
    EXPECT_FALSE(IpAddress::parse(text)) << text;
}

TEST(IpAddress, countsAcrossBytesAndEndsAtTheLast) {
  EXPECT_EQ(ip("10.20.0.255").plus(1)->str(), "10.20.1.0");
  EXPECT_EQ(ip("10.20.0.0").plus(65536 + 17)->str(), "10.21.0.17");
  EXPECT_EQ(ip("fd00::ffff").plus(1)->str(), "fd00::1:0");
  EXPECT_EQ(ip("fd00::").plus(0x1ffff)->str(), "fd00::1:ffff");
  EXPECT_FALSE(ip("255.255.255.255").plus(1));
  EXPECT_FALSE(ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").plus(1));
}

TEST(IpAddress, knowsLinkLocalOnes) {
  EXPECT_TRUE(ip("fe80::1").isLinkLocal());
  EXPECT_TRUE(ip("febf::1").isLinkLocal());
  EXPECT_FALSE(ip("fec0::1").isLinkLocal());
  EXPECT_TRUE(ip("169.254.9.9").isLinkLocal());
  EXPECT_FALSE(ip("169.253.9.9").isLinkLocal());
}

TEST(IpNetwork, containsItsOwnFamilyOnly) {
  EXPECT_TRUE(net("fd00:30::/64").contains(ip("fd00:30::ffff")));
  EXPECT_FALSE(net("fd00:30::/64").contains(ip("fd00:31::1")));
  EXPECT_TRUE(net("10.20.16.0/20").contains(ip("10.20.31.255")));
  EXPECT_FALSE(net("10.20.16.0/20").contains(ip("10.20.32.0")));
  EXPECT_FALSE(net("0.0.0.0/0").contains(ip("::1")));
  EXPECT_FALSE(net("::/0").contains(ip("10.0.0.1")));
  EXPECT_TRUE(net("::/0").overlaps(net("fd00::/8")));
  EXPECT_FALSE(net("fd00:30::/64").overlaps(net("fd00:30:0:1::/64")));
}

TEST(IpNetwork, saysWhichAddressesAreNoHosts) {
  EXPECT_TRUE(net("10.20.16.0/20").isReserved(ip("10.20.16.0")));
  EXPECT_TRUE(net("10.20.16.0/20").isReserved(ip("10.20.31.255")));
  EXPECT_FALSE(net("10.20.16.0/20").isReserved(ip("10.20.16.255")));
  EXPECT_FALSE(net("10.20.16.0/31").isReserved(ip("10.20.16.1")));
  EXPECT_TRUE(net("fd00:30::/64").isReserved(ip("fd00:30::")));
  EXPECT_FALSE(net("fd00:30::/64").isReserved(ip("fd00:30::ffff:ffff:ffff:ffff")));
  EXPECT_FALSE(net("fd00:30::1/128").isReserved(ip("fd00:30::1")));
}

TEST(IpNetwork, refusesWhatIsNone) {
  for (const auto* text : {"fd00:30::", "fd00:30::/129", "10.0.0.0/33", "fd00:30::1/64",
                           "10.20.0.1/16", "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.0/", "/8"})
    EXPECT_FALSE(IpNetwork::parse(text)) << text;
  EXPECT_NE(IpNetwork::parse("fd00:30::1:0/64").error().str().find("fd00:30::/64"),
            std::string::npos);
}

}  // namespace
}  // namespace muster
