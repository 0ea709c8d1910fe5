// SPDX-License-Identifier: Apache-2.0
#include "app/doctor/dhcp_rival.h"

#include "discovery/dhcp.h"

#include <gtest/gtest.h>

namespace muster::app {
namespace {

constexpr std::uint32_t kTransaction = 0x3903F326;

/// An offer as RFC 2131, figure 1, and RFC 2132 lay it out.
std::string offer(std::uint32_t transaction, const std::string& options) {
  std::string out(236, '\0');
  out[0] = 2;
  out[1] = 1;
  out[2] = 6;
  for (int i = 0; i < 4; ++i)
    out[4 + static_cast<std::size_t>(i)] = static_cast<char>(transaction >> (24 - 8 * i));
  return out + std::string("\x63\x82\x53\x63", 4) + options;
}
const std::string kOffer{"\x35\x01\x02", 3}, kAck{"\x35\x01\x05", 3};
const std::string kServer{"\x36\x04\xc0\xa8\x01\x01", 6}, kEnd{"\xff", 1}, kPads{"\0\0\0", 3};

TEST(DhcpRival, readsWhoOffers) {
  const auto server = Ipv4::parse("192.168.1.1");
  EXPECT_EQ(offeringServer(offer(kTransaction, kOffer + kServer + kEnd), kTransaction), *server);
  EXPECT_EQ(offeringServer(offer(kTransaction, kPads + kServer + kPads + kOffer), kTransaction),
            *server)
      << "in any order, with pads, without an end";
}

TEST(DhcpRival, takesNothingElseForAnOffer) {
  const auto good = offer(kTransaction, kOffer + kServer + kEnd);
  EXPECT_FALSE(offeringServer(offer(kTransaction + 1, kOffer + kServer + kEnd), kTransaction));
  EXPECT_FALSE(offeringServer(offer(kTransaction, kAck + kServer + kEnd), kTransaction));
  EXPECT_FALSE(offeringServer(offer(kTransaction, kOffer + kEnd + kServer), kTransaction));
  for (std::size_t size = 0; size + kEnd.size() < good.size(); ++size)
    EXPECT_FALSE(offeringServer(std::string_view(good).substr(0, size), kTransaction)) << size;
  EXPECT_FALSE(offeringServer(offer(kTransaction, kOffer + "\x36\xff\xc0"), kTransaction));
}

/// What this program's own listener makes of it, which was written for real machines' requests.
TEST(DhcpRival, asksAsAMachineDoes) {
  const auto mac = Mac::parse("02:11:22:33:44:55");
  const auto request = dhcpDiscover(*mac, kTransaction);
  EXPECT_GE(request.size(), 300u);
  const auto heard = discovery::parseDhcp(request);
  ASSERT_TRUE(heard) << heard.error().str();
  EXPECT_EQ(heard->mac, *mac);
  EXPECT_FALSE(heard->boots()) << "nobody may answer it with a boot file";
}

}  // namespace
}  // namespace muster::app
