// SPDX-License-Identifier: Apache-2.0
// Answers that are not what was asked for, logins that break off, and services without sessions:
// by the Redfish specification (DSP0266).
#include "tests/bmc/redfish/answers.h"
#include "bmc/redfish/uri_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using testing::HasSubstr;

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

TEST_F(Answers, aRootThatCannotBeReadIsNoReasonToSendThePasswordWithEveryRequest) {
  texts["/redfish/v1"] = "<html></html>";
  const auto bmc = rig.bmc();
  EXPECT_FALSE(loop.run(bmc->system()));
  for (const auto& request : net.requests) EXPECT_FALSE(request.headers.contains("Authorization"));
}

}  // namespace
}  // namespace muster::bmc
