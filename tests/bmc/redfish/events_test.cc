// SPDX-License-Identifier: Apache-2.0
// The event log and the full power cycle: found where vendors keep them, refused where they are not
// offered.
#include "tests/bmc/redfish_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <deque>
#include <set>

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
                         {"EntryType", "SEL"},
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
    if (busy.contains(path)) co_return test::FakeHttp::json(503, "{}");
    const auto found = tree.find(path);
    co_return test::FakeHttp::json(found == tree.end() ? 404 : 200,
                                   found == tree.end() ? "{}" : found->second.dump());
  }

  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  std::unique_ptr<RedfishBmc> bmc = rig.bmc();
  std::map<std::string, json> tree;
  std::set<std::string> busy;  ///< answered with 503
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
  ASSERT_EQ(log->entries.size(), 2u);
  EXPECT_EQ(log->entries[0].message, "event 2");
  EXPECT_EQ(log->entries[1].message, "event 3");
  EXPECT_EQ(log->entries[1].log, "/log/sel");
}

/// Names and types say nothing here: entries are what DSP2046 and the vendors' formats make them.
TEST_F(RedfishLog, isChosenByWhatItHolds) {
  const auto hold = [this](const std::string& log, const json& entry) {
    auto one = entry;
    one["@odata.id"] = log + "/Entries/1";
    one["Id"] = "1";
    tree[log + "/Entries"] = {{"Members", json::array({one})}};
  };
  tree["/log/post"]["Id"] = "SEL";  // by its name the hardware's
  hold("/log/post", {{"EntryType", "Event"}, {"MessageId", "OpenBMC.0.2.BIOSPOSTCode"}});
  tree["/log/audit"]["Id"] = "Anything";
  hold("/log/audit", {{"EntryType", "Event"},
                      {"Severity", "Warning"},
                      {"Message", "fan 2 stands"},
                      {"Resolution", "Replace the fan."}});
  hold("/log/sel", {{"EntryType", "Oem"}, {"OemRecordFormat", "BMC Journal Entry"}});
  auto log = loop.run(bmc->eventLog(20));
  ASSERT_TRUE(log) << log.error().str();
  EXPECT_THAT(log->logs, testing::ElementsAre("/log/audit"));
  ASSERT_EQ(log->entries.size(), 1u);
  EXPECT_EQ(log->entries[0].resolution, "Replace the fan.");
  const auto reads = net.count("GET", "/log/sel/Entries");
  ASSERT_TRUE(loop.run(bmc->eventLog(20)));
  EXPECT_EQ(net.count("GET", "/log/sel/Entries"), reads) << "a journal is read once, to know it";
}

TEST_F(RedfishLog, aBaseboardsLogIsReadToo) {
  tree["/redfish/v1/Systems"]["Members"].push_back(link("/redfish/v1/Systems/Baseboard"));
  tree["/redfish/v1/Systems/Baseboard"] = {{"LogServices", link("/baseboard/logs")}};
  tree["/baseboard/logs"] = {{"Members", {link("/baseboard/log")}}};
  tree["/baseboard/log"] = {{"Id", "EventLog"}, {"Entries", link("/baseboard/log/Entries")}};
  tree["/baseboard/log/Entries"] = {{"Members",
                                     {{{"@odata.id", "/baseboard/log/Entries/1"},
                                       {"Id", "1"},
                                       {"EntryType", "Event"},
                                       {"Created", "1970-01-01T00:00:20Z"},
                                       {"Severity", "Critical"},
                                       {"Message", "GPU 3 fell off the bus"}}}}};
  auto log = loop.run(bmc->eventLog(20));
  ASSERT_TRUE(log) << log.error().str();
  EXPECT_THAT(log->logs, testing::ElementsAre("/log/sel", "/baseboard/log"));
  EXPECT_EQ(log->entries.front().message, "GPU 3 fell off the bus");
}

/// Its host is off: HMC answers 503 for as long.
TEST_F(RedfishLog, aBaseboardThatIsOffTakesNothingFromTheRest) {
  tree["/redfish/v1/Systems"]["Members"].push_back(link("/redfish/v1/Systems/Baseboard"));
  tree["/redfish/v1/Systems/Baseboard"] = {{"LogServices", link("/baseboard/logs")}};
  busy.insert("/baseboard/logs");
  auto log = loop.run(bmc->eventLog(20));
  ASSERT_TRUE(log) << log.error().str();
  EXPECT_THAT(log->logs, testing::ElementsAre("/log/sel"));
}

TEST_F(RedfishLog, anEmptyOneCountsByItsDeclaredTypeOnly) {
  tree["/log/sel/Entries"] = {{"Members", json::array()}};
  tree["/log/audit/Entries"] = {{"Members", json::array()}};
  auto log = loop.run(bmc->eventLog(20));
  ASSERT_TRUE(log) << log.error().str();
  EXPECT_TRUE(log->entries.empty());
  EXPECT_THAT(log->logs, testing::ElementsAre("/log/sel"));
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
