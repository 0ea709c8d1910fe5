// SPDX-License-Identifier: Apache-2.0
// What a BMC lists but cannot read now is said to be unreadable, never absent.
#include "tests/bmc/redfish_rig.h"
#include "tests/bmc/virtual_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

class RedfishInventory : public testing::Test {
 protected:
  RedfishInventory() {
    virtual_bmc.net.handle = [this, serve = virtual_bmc.net.handle](io::HttpRequest request) {
      return answer(serve, std::move(request));
    };
  }
  Async<io::HttpResponse> answer(test::FakeHttp::Handler serve, io::HttpRequest request) {
    if (request.method == "GET" && request.url.target == broken)
      co_return test::FakeHttp::json(status, "{}");
    if (!broken.empty() && request.url.target.find("$expand") != std::string::npos)
      co_return test::FakeHttp::json(501, "{}");  // each member by itself
    const auto target = request.url.target;
    if (target.starts_with(inventory_ + "/HGX_")) co_return test::FakeHttp::json(503, "{}");
    auto reply = co_await serve(std::move(request));
    if (!reply || target != inventory_) co_return std::move(reply);
    auto list = Json::parse(reply->body);
    for (int i = 0; i < silent; ++i) {
      Json member = Json::object();
      member["@odata.id"] = inventory_ + "/HGX_FW_" + std::to_string(i);
      list["Members"].insert(list["Members"].begin(), std::move(member));
    }
    reply->body = list.dump();
    co_return std::move(reply);
  }

  test::VirtualLoop loop;
  test::VirtualBmc virtual_bmc{loop};
  test::RedfishRig rig{loop, virtual_bmc.net};
  std::unique_ptr<RedfishBmc> bmc = rig.bmc();
  std::string broken;
  int status = 503;
  int silent = 0;  ///< members of a baseboard whose host is off
  const std::string inventory_ = "/redfish/v1/UpdateService/FirmwareInventory";
};

TEST_F(RedfishInventory, aBaseboardThatIsOffDoesNotTakeAMinuteAMember) {
  silent = 50;
  broken = "nothing";
  const auto begun = loop.clock.steady();
  auto items = loop.run(bmc->firmware());
  ASSERT_TRUE(items) << items.error().str();
  EXPECT_LT(loop.clock.steady() - begun, std::chrono::minutes(2));
  EXPECT_EQ(std::count_if(items->begin(), items->end(),
                          [](const FirmwareItem& item) { return !item.unreadable.empty(); }),
            50);
  EXPECT_TRUE(std::any_of(items->begin(), items->end(), [](const FirmwareItem& item) {
    return item.name == "BIOS" && item.unreadable.empty();
  }));
}

TEST_F(RedfishInventory, aMemberThatAnswers503IsListedAsUnreadable) {
  broken = "/redfish/v1/UpdateService/FirmwareInventory/BIOS";
  auto items = loop.run(bmc->firmware());
  ASSERT_TRUE(items) << items.error().str();
  const auto bios = std::find_if(items->begin(), items->end(),
                                 [](const FirmwareItem& item) { return item.name == "BIOS"; });
  ASSERT_NE(bios, items->end());
  EXPECT_THAT(bios->unreadable, testing::HasSubstr("503"));
  EXPECT_TRUE(bios->version.empty());
  for (const auto& item : *items) EXPECT_EQ(item.unreadable.empty(), item.name != "BIOS");
  auto sent = loop.run(
      bmc->startUpdate({"BIOS", virtual_bmc.firmwareFile("BIOS", "9"), std::string(64, '0')}));
  ASSERT_FALSE(sent);
  EXPECT_TRUE(sent.error().canRetry()) << sent.error().str();
}

TEST_F(RedfishInventory, aMemberThatIsGoneIsNotListed) {
  broken = "/redfish/v1/UpdateService/FirmwareInventory/BIOS";
  status = 404;
  auto items = loop.run(bmc->firmware());
  ASSERT_TRUE(items);
  for (const auto& item : *items) EXPECT_NE(item.name, "BIOS");
}

TEST_F(RedfishInventory, aTaskThatCannotBeReadMayBeTheOneThatRuns) {
  const auto file = virtual_bmc.firmwareFile("BIOS", "9");
  auto task = loop.run(bmc->startUpdate({"BIOS", file, *io::sha256File(file)}));
  ASSERT_TRUE(task) << task.error().str();
  broken = *task;
  auto listed = loop.run(bmc->tasks());
  ASSERT_FALSE(listed);
  EXPECT_TRUE(listed.error().canRetry());
}

/// A BMC whose answers are a function of the path; the whole of a hostile one is in a few lines.
class HostileBmc : public testing::Test {
 protected:
  HostileBmc() {
    net.handle = [this](io::HttpRequest request) { return answer(std::move(request)); };
    resources["/redfish/v1"] = Json::object();
    resources["/redfish/v1/Systems"] = collection({"/s"});
    resources["/redfish/v1/Managers"] = collection({"/m"});
    resources["/s"] = {{"Id", "1"}, {"Actions", {{"#ComputerSystem.Reset", Json::object()}}}};
    resources["/m"] = {{"Id", "m"}};
  }
  static Json collection(const std::vector<std::string>& uris) {
    Json members = Json::array();
    for (const auto& uri : uris) members.push_back({{"@odata.id", uri}});
    return {{"Members", std::move(members)}};
  }
  Async<io::HttpResponse> answer(io::HttpRequest request) {
    if (request.method == "POST")
      co_return test::FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
    std::string path = io::pathOf(request.url.target);
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (path.starts_with("/functions")) co_return test::FakeHttp::json(200, functions().dump());
    const auto found = resources.find(path);
    co_return found == resources.end() ? test::FakeHttp::json(404, "{}")
                                       : test::FakeHttp::json(200, found->second.dump());
  }
  /// Each time others.
  Json functions() {
    Json members = Json::array();
    for (int i = 0; i < 32; ++i) {
      ++macs_told;
      const auto mac = fmt::format("52:54:{:02x}:{:02x}:{:02x}:01", macs_told >> 16 & 0xff,
                                   macs_told >> 8 & 0xff, macs_told & 0xff);
      members.push_back({{"@odata.id", "/fn"}, {"Id", "f"}, {"Ethernet", {{"MACAddress", mac}}}});
    }
    return {{"Members", std::move(members)}};
  }

  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  std::unique_ptr<RedfishBmc> bmc = rig.bmc();
  std::map<std::string, Json> resources;
  int macs_told = 0;
};

TEST_F(HostileBmc, thatHasAMillionNicsIsSurveyedToABound) {
  Json adapters = Json::array(), boxes = Json::array();
  for (int i = 0; i < 64; ++i)
    adapters.push_back({{"@odata.id", "/a"},
                        {"Id", "a"},
                        {"NetworkDeviceFunctions", fmt::format("/functions/{}", i)}});
  for (int i = 0; i < 64; ++i)
    boxes.push_back({{"@odata.id", "/c"}, {"Id", "c"}, {"NetworkAdapters", "/adapters"}});
  resources["/adapters"] = {{"Members", adapters}};
  resources["/redfish/v1/Chassis"] = {{"Members", boxes}};
  const auto survey = loop.run(bmc->survey());
  ASSERT_TRUE(survey) << survey.error().str();
  EXPECT_FALSE(survey->system.macs.empty());
  EXPECT_LE(survey->system.macs.size(), 512u);
  EXPECT_LT(macs_told, 2'000);
}

TEST_F(HostileBmc, thatLinksAThousandChassisIsNotAskedForAll) {
  Json links = Json::array();
  for (int i = 0; i < 1'000; ++i) links.push_back({{"@odata.id", fmt::format("/gone/{}", i)}});
  resources["/s"]["Links"]["Chassis"] = links;
  resources["/redfish/v1/Systems"] = collection({"/s", "/s"});
  const auto survey = loop.run(bmc->survey());
  ASSERT_TRUE(survey) << survey.error().str();
  EXPECT_LT(net.requests.size(), 150u);
}

TEST_F(HostileBmc, thatReportsAMegabyteForAVersionIsNotBelieved) {
  resources["/redfish/v1/UpdateService"] = Json::object();
  resources["/redfish/v1/UpdateService/FirmwareInventory"] = collection({"/f"});
  resources["/f"] = {{"Id", "BIOS"}, {"Version", " " + std::string(1'000'000, '1')}};
  const auto items = loop.run(bmc->firmware());
  ASSERT_TRUE(items) << items.error().str();
  ASSERT_EQ(items->size(), 1u);
  EXPECT_EQ(items->front().version.size(), 1024u);
}

}  // namespace
}  // namespace muster::bmc
