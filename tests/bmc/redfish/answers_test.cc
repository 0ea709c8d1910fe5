// SPDX-License-Identifier: Apache-2.0
// Answers that are not what was asked for, links as URI references, logins that break off, and
// services without sessions: by the Redfish specification (DSP0266).
#include "bmc/redfish/uri_reference.h"
#include "tests/bmc/redfish_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using testing::HasSubstr;

constexpr const char* kInventory = "/redfish/v1/UpdateService/FirmwareInventory";
constexpr const char* kTasks = "/redfish/v1/TaskService/Tasks";

/// A service whose answers a test overrides, by path without query.
class Answers : public testing::Test {
 public:
  Answers() {
    net.handle = [this](io::HttpRequest request) { return serve(std::move(request)); };
  }
  static Json link(const std::string& path) { return {{"@odata.id", path}}; }

  Async<io::HttpResponse> serve(io::HttpRequest request) {
    const auto target = request.url.target;
    std::string path = target;
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (request.method == "POST") {
      if (resets_at_login-- > 0) co_return fail(ErrorCode::Unavailable, "connection reset");
      co_return test::FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
    }
    if (const auto raw = texts.find(path); raw != texts.end())
      co_return io::HttpResponse{200, {{"Content-Type", "text/html"}}, raw->second};
    const auto found = resources.find(path);
    co_return found == resources.end() ? test::FakeHttp::json(404, "{}")
                                       : test::FakeHttp::json(200, found->dump());
  }

  Json resources = {{"/redfish/v1",
                     {{"RedfishVersion", "1.17.0"},
                      {"Systems", link("/redfish/v1/Systems")},
                      {"Managers", link("/redfish/v1/Managers")},
                      {"Tasks", link("/redfish/v1/TaskService")},
                      {"SessionService", link("/redfish/v1/SessionService")},
                      {"UpdateService", link("/redfish/v1/UpdateService")}}},
                    {"/redfish/v1/Systems", {{"Members", {link("/redfish/v1/Systems/S")}}}},
                    {"/redfish/v1/Systems/S",
                     {{"Id", "S"},
                      {"Model", "M"},
                      {"Manufacturer", "X"},
                      {"SerialNumber", "SN1"},
                      {"PowerState", "On"},
                      {"Actions", {{"#ComputerSystem.Reset", {{"target", "/reset"}}}}}}},
                    {"/redfish/v1/Managers", {{"Members", {link("/redfish/v1/Managers/M")}}}},
                    {"/redfish/v1/Managers/M", {{"Id", "M"}}},
                    {"/redfish/v1/TaskService", {{"Tasks", link(kTasks)}}},
                    {kTasks, {{"Members", Json::array()}}},
                    {"/redfish/v1/UpdateService", {{"FirmwareInventory", link(kInventory)}}},
                    {kInventory, {{"Members", {link(std::string(kInventory) + "/A")}}}},
                    {std::string(kInventory) + "/A", {{"Id", "A"}, {"Version", " 1.0 "}}},
                    {std::string(kInventory) + "/B", {{"Id", "B"}, {"Version", "2.0"}}}};
  std::map<std::string, std::string> texts;
  int resets_at_login = 0;
  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
};

TEST_F(Answers, aCollectionThatIsNoneIsUnavailableAndNeverEmpty) {
  struct Case {
    const char* what;
    std::function<void(Answers&)> set;
  };
  for (const auto& [what, set] : {
           Case{"HTML", [](Answers& t) { t.texts[kTasks] = "<html>log in</html>"; }},
           Case{"truncated", [](Answers& t) { t.texts[kTasks] = R"({"Members": [)"; }},
           Case{"null", [](Answers& t) { t.resources[kTasks] = {{"Members", nullptr}}; }},
           Case{"missing", [](Answers& t) { t.resources[kTasks] = {{"Name", "Tasks"}}; }},
           Case{"a list", [](Answers& t) { t.resources[kTasks] = Json::array(); }},
           Case{"nothing", [](Answers& t) { t.texts[kTasks] = ""; }},
       }) {
    SCOPED_TRACE(what);
    texts.clear();
    resources[kTasks] = {{"Members", Json::array()}};
    const auto bmc = rig.bmc();
    const auto before = loop.run(bmc->tasks());
    ASSERT_TRUE(before) << before.error().str();
    set(*this);
    const auto listed = loop.run(bmc->tasks());
    ASSERT_FALSE(listed) << "it was taken for an empty list";
    EXPECT_EQ(listed.error().code(), ErrorCode::Unavailable) << listed.error().str();
    EXPECT_TRUE(listed.error().canRetry());
  }
}

TEST_F(Answers, aLoginPageInPlaceOfTheSystemIsUnavailable) {
  const auto bmc = rig.bmc();
  ASSERT_TRUE(loop.run(bmc->system()));
  loop.clock.advance(std::chrono::seconds(5));
  texts["/redfish/v1/Systems/S"] = "<html></html>";
  const auto system = loop.run(bmc->system());
  ASSERT_FALSE(system);
  EXPECT_EQ(system.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(system.error().str(), HasSubstr("text/html"));
}

TEST_F(Answers, aSecondPageThatIsMissingMakesTheListUnavailable) {
  resources[kInventory]["Members@odata.nextLink"] = std::string(kInventory) + "?$skip=1";
  texts[std::string(kInventory) + "?$skip=1"] = "<html></html>";
  const auto bmc = rig.bmc();
  EXPECT_FALSE(loop.run(bmc->firmware()));
}

TEST_F(Answers, membersAndNextLinksMayBeAnyUriReference) {
  for (const char* next :
       {"https://10.20.250.1/redfish/v1/UpdateService/FirmwareInventory?$skip=1",
        "https://10.20.250.1:443/redfish/v1/UpdateService/FirmwareInventory?$skip=1", "?$skip=1",
        "FirmwareInventory?$skip=1", "/redfish/v1/UpdateService/FirmwareInventory?$skip=1"}) {
    SCOPED_TRACE(next);
    resources[kInventory] = {
        {"Members", {link("https://10.20.250.1/redfish/v1/UpdateService/FirmwareInventory/A")}},
        {"Members@odata.nextLink", next}};
    resources[std::string(kInventory) + "?$skip=1"] = {{"Members", {link("FirmwareInventory/B")}}};
    const auto bmc = rig.bmc();
    const auto items = loop.run(bmc->firmware());
    ASSERT_TRUE(items) << items.error().str();
    ASSERT_EQ(items->size(), 2u);
    EXPECT_EQ((*items)[0].name, "A");
    EXPECT_EQ((*items)[0].version, "1.0") << "without the blanks around it";
    EXPECT_EQ((*items)[1].name, "B");
  }
}

TEST_F(Answers, aNextLinkToAnotherHostIsNotFollowed) {
  resources[kInventory]["Members@odata.nextLink"] = "https://evil.example/redfish/v1";
  const auto bmc = rig.bmc();
  const auto items = loop.run(bmc->firmware());
  ASSERT_FALSE(items);
  EXPECT_EQ(items.error().code(), ErrorCode::Corrupt);
  for (const auto& request : net.requests) EXPECT_EQ(request.url.host, "10.20.250.1");
}

TEST(UriReferences, resolveAsRfc3986Says) {
  const auto resolved = [](std::string_view from, const std::string& link) {
    return resolveReference("https://bmc.example", from, link).value_or("refused");
  };
  EXPECT_EQ(resolved("/redfish/v1/Systems", "/redfish/v1/Systems/1"), "/redfish/v1/Systems/1");
  EXPECT_EQ(resolved("/redfish/v1/Systems/", "1"), "/redfish/v1/Systems/1");
  EXPECT_EQ(resolved("/redfish/v1/Systems?x=1", "?$skip=50"), "/redfish/v1/Systems?$skip=50");
  EXPECT_EQ(resolved("/a", "//BMC.example/b"), "/b");
  EXPECT_EQ(resolved("/a", "https://bmc.example/b"), "/b");
  for (const char* odd : {"", "https://evil.example/b", "//evil.example/b", "javascript:x", "/a b",
                          "http://bmc.example/b", "https://bmc.example:8443/b"})
    EXPECT_EQ(resolved("/a", odd), "refused") << odd;
}

TEST_F(Answers, aConnectionThatBreaksAtTheLoginIsTriedAgain) {
  resets_at_login = 2;
  const auto bmc = rig.bmc();
  const auto system = loop.run(bmc->system());
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_EQ(net.count("POST", "/redfish/v1/SessionService/Sessions"), 3);
}

TEST_F(Answers, aLoginThatAlwaysBreaksEndsAndUsesUpNoPassword) {
  resets_at_login = 100;
  {
    const auto bmc = rig.bmc();
    const auto system = loop.run(bmc->system());
    ASSERT_FALSE(system);
    EXPECT_EQ(system.error().code(), ErrorCode::Unavailable);
    EXPECT_EQ(net.count("POST", "/redfish/v1/SessionService/Sessions"), 3);
  }
  resets_at_login = 0;
  const auto later = rig.bmc();
  EXPECT_TRUE(loop.run(later->system()));
}

TEST_F(Answers, aServiceWithoutSessionsGetsBasicAuthentication) {
  resources["/redfish/v1"].erase("SessionService");
  const auto bmc = rig.bmc();
  const auto system = loop.run(bmc->system());
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_EQ(net.count("POST", "/redfish/v1/SessionService/Sessions"), 0);
  const auto& last = net.requests.back();
  EXPECT_EQ(last.headers.at("Authorization"), "Basic YWRtaW46cmlnaHQ=") << "admin:right";
  EXPECT_FALSE(last.headers.contains("X-Auth-Token"));
  ASSERT_TRUE(loop.run(bmc->logout()));
}

TEST_F(Answers, aBiosAttributesNameMayHoldASlash) {
  resources["/redfish/v1/Systems/S"]["Bios"] = link("/redfish/v1/Systems/S/Bios");
  resources["/redfish/v1/Systems/S/Bios"] = {
      {"Attributes", {{"NUMA/Mode", "NPS4"}, {"Sub", {{"Mode", "no attribute"}}}, {"Cores", 64}}}};
  const auto bmc = rig.bmc();
  const auto attributes = loop.run(bmc->biosAttributes());
  ASSERT_TRUE(attributes) << attributes.error().str();
  EXPECT_EQ(*attributes,
            (std::map<std::string, std::string>{{"Cores", "64"}, {"NUMA/Mode", "NPS4"}}));
}

/// Each member is below the limit of one answer; all of them would fill the controller's memory.
TEST_F(Answers, aCollectionHasABoundInBytes) {
  constexpr int kMembers = 100;
  const std::string filler(1u << 20, 'x');
  Json members = Json::array();
  for (int i = 0; i < kMembers; ++i) members.push_back(link(fmt::format("{}/{}", kInventory, i)));
  resources[kInventory] = {{"Members", members}};
  int asked = 0;
  net.handle = [&, serve = net.handle](io::HttpRequest request) -> Async<io::HttpResponse> {
    if (!request.url.target.starts_with(std::string(kInventory) + "/"))
      co_return co_await serve(std::move(request));
    ++asked;
    co_return test::FakeHttp::json(
        200, Json{{"Id", std::to_string(asked)}, {"Version", "1"}, {"Oem", filler}}.dump());
  };
  const auto bmc = rig.bmc();
  const auto firmware = loop.run(bmc->firmware());
  ASSERT_FALSE(firmware);
  EXPECT_THAT(firmware.error().text(), testing::HasSubstr("more than 64 MiB"));
  EXPECT_LE(asked, 65);
}

TEST_F(Answers, aRootThatCannotBeReadIsNoReasonToSendThePasswordWithEveryRequest) {
  texts["/redfish/v1"] = "<html></html>";
  const auto bmc = rig.bmc();
  EXPECT_FALSE(loop.run(bmc->system()));
  for (const auto& request : net.requests) EXPECT_FALSE(request.headers.contains("Authorization"));
}

}  // namespace
}  // namespace muster::bmc
