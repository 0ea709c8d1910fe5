// SPDX-License-Identifier: Apache-2.0
#include "discovery/ssdp.h"

#include "base/ip_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::discovery {
namespace {

using ::testing::HasSubstr;

const Ipv4 kSender = *Ipv4::parse("10.20.250.7");
constexpr const char* kNotify =
    "NOTIFY * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nNT: "
    "urn:dmtf-org:service:redfish-rest:1:5\r\nNTS: ssdp:alive\r\n"
    "USN: uuid:92384634-2938-2342-8820-489239905423::urn:dmtf-org:service:redfish-rest:1:5\r\nAL: "
    "https://10.20.250.7/redfish/v1\r\n\r\n";

TEST(Ssdp, announcementsAndAnswersNameTheService) {
  const auto notify = parseSsdp(kNotify, kSender);
  ASSERT_TRUE(notify) << notify.error().str();
  EXPECT_EQ(notify->url, "https://10.20.250.7");
  EXPECT_EQ(notify->uuid, "92384634-2938-2342-8820-489239905423");
  const auto answer = parseSsdp(
      "HTTP/1.1 200 OK\r\nST: urn:dmtf-org:service:redfish-rest:1\r\nUSN: uuid:1\r\nAL: "
      "<https://10.20.250.7:8443/redfish/v1/>\r\n\r\n",
      kSender);
  ASSERT_TRUE(answer) << answer.error().str();
  EXPECT_EQ(answer->url, "https://10.20.250.7:8443");
}

TEST(Ssdp, nobodyAnnouncesSomebodyElse) {
  EXPECT_THAT(parseSsdp(kNotify, *Ipv4::parse("10.20.250.66")).error().str(),
              HasSubstr("10.20.250.66 announces 10.20.250.7"));
}

TEST(Ssdp, otherServicesPlainHttpAndRubbishAreDropped) {
  const std::string text = kNotify;
  auto with = [&](const std::string& from, const std::string& to) {
    auto changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return parseSsdp(changed, kSender);
  };
  EXPECT_FALSE(with("urn:dmtf-org:service:redfish-rest:1:5\r\nNTS", "upnp:rootdevice\r\nNTS"));
  EXPECT_FALSE(with("https://10.20.250.7", "http://10.20.250.7"));
  EXPECT_FALSE(with("https://10.20.250.7", "https://bmc.example.com"));
  EXPECT_FALSE(parseSsdp("", kSender));
  EXPECT_FALSE(parseSsdp(std::string(100'000, 'x'), kSender));
  EXPECT_FALSE(parseSsdp("M-SEARCH * HTTP/1.1\r\n", kSender));
  for (std::size_t size = 0; size < text.size(); size += 3)
    (void)parseSsdp(std::string_view(text).substr(0, size), kSender);
  EXPECT_TRUE(with("ssdp:alive", "ssdp:byebye")->gone);
}

}  // namespace
}  // namespace muster::discovery
