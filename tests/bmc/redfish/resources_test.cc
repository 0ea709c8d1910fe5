// SPDX-License-Identifier: Apache-2.0
// Collections: their members and pages, links as URI references, and what is too much of them.
#include "bmc/redfish/resources.h"
#include "tests/bmc/redfish/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using Collections = Answers;

TEST_F(Collections, aCollectionThatIsNoneIsUnavailableAndNeverEmpty) {
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

TEST_F(Collections, aSecondPageThatIsMissingMakesTheListUnavailable) {
  resources[kInventory]["Members@odata.nextLink"] = std::string(kInventory) + "?$skip=1";
  texts[std::string(kInventory) + "?$skip=1"] = "<html></html>";
  const auto bmc = rig.bmc();
  EXPECT_FALSE(loop.run(bmc->firmware()));
}

TEST_F(Collections, membersAndNextLinksMayBeAnyUriReference) {
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

TEST_F(Collections, aNextLinkToAnotherHostIsNotFollowed) {
  resources[kInventory]["Members@odata.nextLink"] = "https://evil.example/redfish/v1";
  const auto bmc = rig.bmc();
  const auto items = loop.run(bmc->firmware());
  ASSERT_FALSE(items);
  EXPECT_EQ(items.error().code(), ErrorCode::Corrupt);
  for (const auto& request : net.requests) EXPECT_EQ(request.url.host, "10.20.250.1");
}

/// A service without paging that adds a nextLink to every answer, and one whose pages are a circle.
TEST_F(Collections, pagesWithoutAnEndAreReadUntilTheyRepeat) {
  const std::string skip = std::string(kInventory) + "?$skip=";
  const auto page = [](const char* member, const std::string& next) {
    return Json{{"Members", {link(std::string(kInventory) + "/" + member)}},
                {"Members@odata.nextLink", next}};
  };
  resources[kInventory] = page("A", skip + "1");
  resources[skip + "1"] = page("B", skip + "2");
  resources[skip + "2"] = page("A", skip + "1");
  const auto bmc = rig.bmc();
  const auto items = loop.run(bmc->firmware());
  ASSERT_TRUE(items) << items.error().str();
  EXPECT_EQ(items->size(), 2u);
  int reads = 0;
  for (const auto& request : net.requests)
    reads += request.url.target == kInventory || request.url.target.starts_with(skip);
  EXPECT_EQ(reads, 3) << "the third names nothing new";
}

/// Each member is below the limit of one answer; all of them would fill the controller's memory.
TEST_F(Collections, aCollectionHasABoundInBytes) {
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

}  // namespace
}  // namespace muster::bmc
