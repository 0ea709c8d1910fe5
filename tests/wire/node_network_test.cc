// SPDX-License-Identifier: Apache-2.0
#include "wire/node_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::wire {
namespace {

using testing::HasSubstr;

NodeNetwork sampleNetwork() {
  NodeNetwork network;
  network.provisioning = {"52:54:00:20:00:01",
                          "boot",
                          "10.20.1.1/16",
                          {{"0.0.0.0/0", "10.20.0.254", 0}},
                          {"10.20.0.1", "10.20.0.2"}};
  NetworkLink boot;
  boot.name = "boot";
  boot.mac = "52:54:00:20:00:01";
  boot.addresses = {"10.20.1.1/16", "fd00:20::1:1/64"};
  boot.routes = {{"0.0.0.0/0", "10.20.0.254", 0}, {"fd00:99::/48", "fe80::1", 50}};
  boot.dns = {"10.20.0.53"};
  boot.switch_name = "leaf1";
  boot.switch_port = "Ethernet1/7";
  NetworkLink data0;
  data0.name = "data0";
  data0.pci = "0000:18:00.0";
  NetworkLink data1 = data0;
  data1.name = "data1";
  data1.pci = "0000:3b:00.1";
  NetworkLink bond;
  bond.name = "bond0";
  bond.kind = LinkKind::Bond;
  bond.members = {"data0", "data1"};
  bond.bond = {BondMode::Lacp, LacpRate::Slow, BondHash::Layer23, 50, 1, {}};
  bond.mtu = 9000;
  NetworkLink vlan;
  vlan.name = "storage";
  vlan.kind = LinkKind::Vlan;
  vlan.parent = "bond0";
  vlan.vlan_id = 30;
  network.links = {boot, data0, data1, bond, vlan};
  network.search = {"hall-2.example.com"};
  return network;
}

TEST(NodeNetwork, travelsWhole) {
  const auto network = sampleNetwork();
  const auto again = parseNodeNetwork(toJson(network));
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(*again, network);
  EXPECT_EQ(digestOf(*again), digestOf(network));
  auto other = network;
  other.links[3].bond.min_links = 2;
  EXPECT_NE(digestOf(other), digestOf(network));
}

TEST(NodeNetwork, knowsWhichBondALinkIsIn) {
  const auto network = sampleNetwork();
  ASSERT_NE(network.bondOf("data1"), nullptr);
  EXPECT_EQ(network.bondOf("data1")->name, "bond0");
  EXPECT_EQ(network.bondOf("boot"), nullptr);
  EXPECT_EQ(network.find("nothing"), nullptr);
}

/// Every text ends up in a configuration file of root's.
TEST(NodeNetwork, refusesWhatWouldBecomeAnotherConfiguration) {
  const auto refused = [](auto change, const char* what) {
    auto json = nlohmann::json::parse(toJson(sampleNetwork()));
    change(json);
    const auto parsed = parseNodeNetwork(json.dump());
    EXPECT_FALSE(parsed) << json.dump();
    if (!parsed) EXPECT_THAT(parsed.error().str(), HasSubstr(what));
  };
  using Json = nlohmann::json;
  refused([](Json& json) { json["links"][0]["name"] = "a\n[Exec]"; }, "links[0].name");
  refused([](Json& json) { json["links"][0]["name"] = "../../etc/x"; }, "links[0].name");
  refused([](Json& json) { json["links"][0]["name"] = "sixteen-letters-"; }, "links[0].name");
  refused([](Json& json) { json["links"][0]["mac"] = "52:54:00:20:00:0g"; }, "links[0].mac");
  refused([](Json& json) { json["links"][1]["pci"] = "0000:18:00.0\nx"; }, "links[1].pci");
  refused([](Json& json) { json["links"][0]["addresses"][0] = "10.20.1.1"; }, "addresses");
  refused([](Json& json) { json["links"][0]["addresses"][0] = "10.20.1.1/33"; }, "addresses");
  refused([](Json& json) { json["links"][0]["routes"][0]["via"] = "gateway"; }, "via");
  refused([](Json& json) { json["links"][0]["routes"][0]["to"] = "10.20.0.1/16"; }, "to");
  refused([](Json& json) { json["links"][0]["dns"][0] = "10.0.0.1 x"; }, "dns");
  refused([](Json& json) { json["links"][0]["port"] = "swp 1"; }, "port");
  refused([](Json& json) { json["links"][3]["bond"]["mode"] = "lacp"; }, "mode");
  refused([](Json& json) { json["links"][4]["vlan_id"] = 4095; }, "vlan_id");
  refused([](Json& json) { json["search"][0] = "a\nb"; }, "search");
  refused([](Json& json) { json["links"] = Json::array(); }, "links");
  refused([](Json& json) { json["provisioning"]["link"] = "gone"; }, "gone");
  refused([](Json& json) { json["links"][0].erase("mac"); }, "neither");
  refused([](Json& json) { json["links"][0]["pci"] = "0000:18:00.0"; }, "both");
  refused([](Json& json) { json["links"][3]["members"][1] = "data9"; }, "data9");
  refused([](Json& json) { json["links"][4]["parent"] = "later"; }, "parent");
  refused([](Json& json) { json["links"][2] = json["links"][1]; }, "twice");
  refused([](Json& json) { json["links"].push_back(json["links"][3]); }, "two bonds");
}

TEST(NodeNetwork, skipsWhatANewerControllerSays) {
  auto json = nlohmann::json::parse(toJson(sampleNetwork()));
  json["links"][0]["colour"] = "green";
  const auto parsed = parseNodeNetwork(json.dump());
  ASSERT_TRUE(parsed) << parsed.error().str();
  EXPECT_EQ(*parsed, sampleNetwork());
}

}  // namespace
}  // namespace muster::wire
