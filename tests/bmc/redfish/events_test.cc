// SPDX-License-Identifier: Apache-2.0
// The event log and the full power cycle: found where vendors keep them, refused where they are not
// offered.
#include "tests/bmc/redfish_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <deque>

namespace muster::bmc {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// A service as a map of resources; everything that is posted is kept.
class RedfishLog : public testing::Test {
 protected:
  RedfishLog() {
    net.handle = [this](io::HttpRequest request) { return answer(std::move(request)); };
    tree["/redfish/v1/"] = {{"Systems", link("/redfish/v1/Systems")},
                            {"Managers", link("/redfish/v1/Managers")}};
    tree["/redfish/v1/Systems"] = {{"Members", {link("/redfish/v1/Systems/1")}}};
    tree["/redfish/v1/Managers"] = {{"Members", {link("/redfish/v1/Managers/1")}}};
    tree["/redfish/v1/Systems/1"] = {
        {"PowerState", "On"},
        {"LogServices", link("/redfish/v1/Systems/1/LogServices")},
        {"Actions",
         {{"#ComputerSystem.Reset",
           {{"target", "/reset"}, {"ResetType@Redfish.AllowableValues", {"On", "ForceOff"}}}}}}};
    tree["/redfish/v1/Managers/1"] = {{"LogServices", link("/redfish/v1/Managers/1/LogServices")},
                                      {"LastResetTime", "then"}};
    tree["/redfish/v1/Systems/1/LogServices"] = {{"Members", {link("/log/post")}}};
    tree["/log/post"] = {{"Id", "PostCodes"}, {"Entries", link("/log/post/Entries")}};
    tree["/redfish/v1/Managers/1/LogServices"] = {
        {"Members", {link("/log/audit"), link("/log/sel")}}};
    tree["/log/audit"] = {{"Id", "AuditLog"}, {"Entries", link("/log/audit/Entries")}};
    tree["/log/sel"] = {{"Id", "Sel"}, {"Entries", link("/log/sel/Entries")}};
    auto entries = json::array();
    for (int i : {3, 2, 1})  // newest first, as many do
      entries.push_back({{"@odata.id", fmt::format("/log/sel/Entries/{}", i)},
                         {"Id", std::to_string(i)},
                         {"Created", fmt::format("2026-11-0{}T00:00:00Z", i)},
                         {"Severity", "Critical"},
                         {"Message", fmt::format("event {}", i)}});
    tree["/log/sel/Entries"] = {{"Members", entries}};
  }
  static json link(const std::string& uri) { return {{"@odata.id", uri}}; }
  Async<io::HttpResponse> answer(io::HttpRequest request) {
    const auto path = io::pathOf(request.url.target);
    if (request.method == "POST" && path.ends_with("/Sessions"))
      co_return test::FakeHttp::json(
          201, "{}",
          {{"X-Auth-Token", "t"}, {"Location", "/redfish/v1/SessionService/Sessions/1"}});
    if (request.method == "POST") {
      posted.push_back(path + " " + request.body);
      tree["/redfish/v1/Managers/1"]["LastResetTime"] = "now";
      co_return test::FakeHttp::json(204, "");
    }
    if (path == "/redfish/v1/Systems/1" && !late.empty()) {
      const auto old = late.front();
      late.pop_front();
      co_await loop.clock.sleep(std::chrono::milliseconds(200));
      co_return test::FakeHttp::json(200, old.dump());
    }
    const auto found = tree.find(path);
    co_return test::FakeHttp::json(found == tree.end() ? 404 : 200,
                                   found == tree.end() ? "{}" : found->second.dump());
  }

  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  std::unique_ptr<RedfishBmc> bmc = rig.bmc();
  std::map<std::string, json> tree;
  std::vector<std::string> posted;
  std::deque<json> late;  ///< of the system, answered after others
};

TEST_F(RedfishLog, anOldReadingThatArrivesLateIsNotWhatPowerGoesBy) {
  using namespace asio::experimental::awaitable_operators;
  ASSERT_TRUE(loop.run(bmc->system()));
  loop.clock.advance(std::chrono::seconds(1));  // what was read counts no more
  late.push_back(tree["/redfish/v1/Systems/1"]);
  late.back()["PowerState"] = "Off";
  auto both = [](Bmc& bmc) -> Task<int> {
    auto first = bmc.system();
    auto second = bmc.system();
    (void)co_await (std::move(first) && std::move(second));
    co_return 0;
  };
  loop.run(both(*bmc));
  ASSERT_TRUE(late.empty());
  tree["/redfish/v1/Systems/1"]["PowerState"] = "Off";  // what the order below comes to
  auto off = bmc->power(PowerAction::ForceOff);
  EXPECT_TRUE(loop.run(std::move(off)));
  ASSERT_EQ(posted.size(), 1u) << "it was on when it was asked last";
}

TEST_F(RedfishLog, aReadingIsGoodForHalfASecondUnlessSomethingIsOrdered) {
  const auto power = [this] { return loop.run(bmc->system())->power; };
  EXPECT_EQ(power(), PowerState::On);
  tree["/redfish/v1/Systems/1"]["PowerState"] = "Off";
  EXPECT_EQ(power(), PowerState::On) << "an answer may have been on its way for as long";
  loop.clock.advance(std::chrono::milliseconds(501));
  EXPECT_EQ(power(), PowerState::Off);
  tree["/redfish/v1/Systems/1"]["PowerState"] = "On";  // what the order comes to
  EXPECT_TRUE(loop.run(bmc->power(PowerAction::On)));
  EXPECT_EQ(power(), PowerState::On);
}

TEST_F(RedfishLog, takesTheHardwaresLogWhoeverOwnsItAndItsNewestEntriesOldestFirst) {
  auto log = loop.run(bmc->eventLog(2));
  ASSERT_TRUE(log) << log.error().str();
  ASSERT_EQ(log->size(), 2u);
  EXPECT_EQ(log->at(0).message, "event 2");
  EXPECT_EQ(log->at(1).message, "event 3");
}

TEST_F(RedfishLog, saysThatThereIsNone) {
  tree["/redfish/v1/Managers/1/LogServices"] = {{"Members", {link("/log/audit")}}};
  EXPECT_EQ(loop.run(bmc->eventLog(2)).error().code(), ErrorCode::NotFound);
}

TEST_F(RedfishLog, cutsThePowerOnlyWhereTheBmcNamesIt) {
  auto refused = loop.run(bmc->acCycle());
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(refused.error().str(), HasSubstr("offers no full power cycle"));
  EXPECT_TRUE(posted.empty());
  tree["/redfish/v1/Systems/1"]["Actions"]["#ComputerSystem.Reset"]
      ["ResetType@Redfish.AllowableValues"]
          .push_back("FullPowerCycle");
  auto cut = loop.run(bmc->acCycle());
  ASSERT_TRUE(cut) << cut.error().str();
  ASSERT_EQ(posted.size(), 1u);
  EXPECT_EQ(posted[0], R"(/reset {"ResetType":"FullPowerCycle"})");
}

}  // namespace
}  // namespace muster::bmc
