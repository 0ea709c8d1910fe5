// SPDX-License-Identifier: Apache-2.0
#include "base/ip_address.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Ipv4, parsesStrictly) {
  EXPECT_EQ(Ipv4::parse("10.20.0.1")->str(), "10.20.0.1");
  EXPECT_EQ(Ipv4::parse("255.255.255.255")->value(), 0xffffffffu);
  for (const auto* text : {"", "10.20.0", "10.20.0.1.2", "10.20.0.256", "10.20.0.01", "10.20.0.-1",
                           "10.20..1", "10.20.0.1 ", "a.b.c.d", "10.20.0.+1", "."}) {
    EXPECT_FALSE(Ipv4::parse(text)) << text;
  }
}

TEST(Cidr, knowsItsAddresses) {
  const auto cidr = Cidr::parse("10.20.0.0/16");
  ASSERT_TRUE(cidr);
  EXPECT_EQ(cidr->netmask().str(), "255.255.0.0");
  EXPECT_EQ(cidr->host(1).str(), "10.20.0.1");
  EXPECT_TRUE(cidr->contains(*Ipv4::parse("10.20.255.255")));
  EXPECT_FALSE(cidr->contains(*Ipv4::parse("10.21.0.0")));
  EXPECT_TRUE(cidr->overlaps(*Cidr::parse("10.0.0.0/8")));
  EXPECT_TRUE(Cidr::parse("0.0.0.0/0")->overlaps(*cidr));
  EXPECT_FALSE(cidr->overlaps(*Cidr::parse("10.21.0.0/16")));
  EXPECT_EQ(Cidr::parse("1.2.3.4/32")->str(), "1.2.3.4/32");
  for (const auto* text : {"10.20.0.0", "10.20.0.0/33", "10.20.0.0/", "10.20.0.0/-1",
                           "10.20.0.1/16", "/16", "10.20.0.0/16/2"}) {
    EXPECT_FALSE(Cidr::parse(text)) << text;
  }
}

}  // namespace
}  // namespace muster
