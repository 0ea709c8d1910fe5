// SPDX-License-Identifier: Apache-2.0
// The client over HTTP against a NetBox that is made from its published description.
#include "discovery/netbox.h"

#include "tests/fakes/netbox_double.h"

#include <gmock/gmock.h>

namespace muster::discovery {
namespace {

using test::NetboxDouble;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class NetboxTest : public ::testing::Test {
 protected:
  void add(int count) {
    for (int i = 1; i <= count; ++i) netbox_.site["devices"].push_back(NetboxDouble::device(i));
    netbox_.save();
  }
  void mode(const std::string& mode) {
    netbox_.site["mode"] = mode;
    netbox_.save();
  }
  Result<std::vector<NetboxDevice>> ask(NetboxQuery query = {},
                                        const std::string& token = NetboxDouble::kToken) {
    NetboxClient client(*io::Url::parse(netbox_.url()), Secret(token), io::makeHttpClient({}));
    return test::runAsync(client.devices(std::move(query)));
  }
  /// Refused with this code and these words; the token is never shown.
  void expectRefused(ErrorCode code, const std::string& words, NetboxQuery query = {},
                     const std::string& token = NetboxDouble::kToken) {
    const auto answer = ask(std::move(query), token);
    ASSERT_FALSE(answer) << words;
    EXPECT_EQ(answer.error().code(), code) << answer.error().str();
    EXPECT_THAT(answer.error().str(), AllOf(HasSubstr(words), Not(HasSubstr(token))));
  }

  NetboxDouble netbox_;
};

TEST_F(NetboxTest, devicesComeWithWhatTheyHave) {
  add(2);
  const auto devices = ask();
  ASSERT_TRUE(devices) << devices.error().str();
  ASSERT_THAT(*devices, SizeIs(2));
  const auto& first = devices->front();
  EXPECT_EQ(first.name, "gpu001");
  EXPECT_EQ(first.rack, "r1");
  EXPECT_EQ(first.position, 10.0);
  EXPECT_EQ(first.serial, "SN1");
  EXPECT_EQ(first.primary_ip4, "10.20.1.1/16");
  EXPECT_EQ(first.oob_ip, "10.20.250.1/16");
  ASSERT_THAT(first.interfaces, SizeIs(3));
  EXPECT_EQ(first.interfaces[0].mac, "52:54:00:20:00:01");
  EXPECT_EQ(first.interfaces[0].peer_device, "leaf1");
  EXPECT_EQ(first.interfaces[0].peer_port, "swp1");
  EXPECT_THAT(first.interfaces[1].mac, IsEmpty());
  EXPECT_TRUE(first.interfaces[2].mgmt_only);
  ASSERT_THAT(first.addresses, SizeIs(3));
  EXPECT_EQ(first.addresses[0].interface, first.interfaces[0].id);
  EXPECT_THAT((*devices)[1].interfaces, SizeIs(3));
}

/// 90 devices in pages of 7, and interfaces in several requests.
TEST_F(NetboxTest, allPagesAreRead) {
  netbox_.site["page"] = 7;
  add(90);
  const auto devices = ask();
  ASSERT_TRUE(devices) << devices.error().str();
  ASSERT_THAT(*devices, SizeIs(90));
  for (const auto& each : *devices) {
    EXPECT_THAT(each.interfaces, SizeIs(3)) << each.name;
    EXPECT_THAT(each.addresses, SizeIs(3)) << each.name;
  }
}

TEST_F(NetboxTest, filtersAreNetboxsOwn) {
  add(3);
  netbox_.site["devices"][2]["site"] = "hall-3";
  netbox_.site["devices"][1]["tags"] = {"gpu", "spare parts"};
  netbox_.save();
  EXPECT_THAT(*ask({.sites = {"hall-3"}}), SizeIs(1));
  EXPECT_THAT(*ask({.sites = {"hall-2", "hall-3"}}), SizeIs(3));
  EXPECT_THAT(*ask({.tags = {"gpu", "spare parts"}}), SizeIs(1));
  expectRefused(ErrorCode::InvalidInput, "site: Select a valid choice. nope", {.sites = {"nope"}});
  expectRefused(ErrorCode::InvalidInput, "tag: Select a valid choice", {.tags = {"a&b=c"}});
}

TEST_F(NetboxTest, macsAreReadAsBeforeAndSinceVersion42) {
  netbox_.site["old_macs"] = true;
  add(1);
  EXPECT_EQ(ask()->front().interfaces[0].mac, "52:54:00:20:00:01");
}

TEST_F(NetboxTest, theOtherEndIsFoundThroughAPatchPanel) {
  add(1);
  netbox_.site["devices"][0]["interfaces"][0]["through_panel"] = true;
  netbox_.save();
  EXPECT_EQ(ask()->front().interfaces[0].peer_device, "leaf1");
}

TEST_F(NetboxTest, tokensOfBothVersions) {
  add(1);
  netbox_.site["token"] = "nbt_4F9DAouzURLb.zjebxBPzICiPbWz0Wtx0fTL7bCKXKGTYhNzkgC2S";
  netbox_.save();
  EXPECT_TRUE(ask({}, netbox_.site["token"]));
}

TEST_F(NetboxTest, saysWhyItIsRefused) {
  add(1);
  expectRefused(ErrorCode::Denied, "Invalid v1 token", {}, "deadbeef00");
  mode("forbidden");
  expectRefused(ErrorCode::Denied, "You do not have permission");
}

/// What stands before a NetBox, or is none.
TEST_F(NetboxTest, anAnswerThatIsNoListIsNoEmptyList) {
  add(3);
  mode("html");
  expectRefused(ErrorCode::Corrupt, "answers with a page and not with JSON");
  mode("cut");
  expectRefused(ErrorCode::Corrupt, "cut off");
  mode("list");
  expectRefused(ErrorCode::Corrupt, "\"results\" is missing");
  mode("gateway");
  expectRefused(ErrorCode::Unavailable, "502");
  mode("shape");
  expectRefused(ErrorCode::Corrupt, "\"position\" is no number");
}

/// A page link decides where the token goes.
TEST_F(NetboxTest, aPageElsewhereIsNotAskedFor) {
  netbox_.site["page"] = 2;
  add(5);
  mode("elsewhere");
  expectRefused(ErrorCode::Conflict, "its next page is at http://netbox.internal:8080");
  mode("endless");
  expectRefused(ErrorCode::Conflict, "names itself as the next one");
}

TEST_F(NetboxTest, aServerThatIsNotThereIsSaid) {
  NetboxClient client(*io::Url::parse("http://127.0.0.1:1"), Secret("x"), io::makeHttpClient({}));
  const auto answer = test::runAsync(client.devices({}));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Unavailable) << answer.error().str();
}

/// Any member of another kind than NetBox's is said, and nothing else happens.
TEST(NetboxRecords, areReadStrictly) {
  const std::vector<nlohmann::json> wrong{
      7, "text", true, nlohmann::json::array({1}), {{"name", 7}}, {{"device", 7}}};
  for (const auto* key : {"id", "name", "serial", "rack", "position", "primary_ip4", "device",
                          "mac_address", "mgmt_only", "connected_endpoints", "assigned_object"})
    for (const auto& value : wrong) {
      nlohmann::json record{{"id", 1},
                            {"connected_endpoints_type", "dcim.interface"},
                            {"assigned_object_type", "dcim.interface"}};
      record[key] = value;
      (void)netboxDevice(record);
      (void)netboxInterface(record);
      (void)netboxAddress(record);
    }
  EXPECT_FALSE(netboxDevice({{"id", "1"}}));
  EXPECT_FALSE(netboxDevice({{"id", 1}, {"name", 5}}));
  EXPECT_FALSE(netboxDevice(nlohmann::json::array()));
  EXPECT_TRUE(netboxDevice({{"id", 1}, {"name", nullptr}, {"rack", nullptr}}));
}

}  // namespace
}  // namespace muster::discovery
