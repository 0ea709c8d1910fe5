// SPDX-License-Identifier: Apache-2.0
// Power supplies by both of Redfish's forms, and as captures of real BMCs have them.
#include "bmc/redfish/power_supplies.h"

#include "tests/bmc/capture.h"
#include "tests/bmc/resource_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace muster::bmc {
namespace {

using nlohmann::json;
using test::healthOf;
using test::linkTo;

class RedfishPowerSupplies : public test::ResourceTree {
 protected:
  RedfishPowerSupplies() {
    tree["/gpus"]["PowerSubsystem"] = linkTo("/gpus/power");
    tree["/gpus/power"] = {{"PowerSupplies", linkTo("/gpus/power/supplies")}};
    tree["/gpus/power/supplies"] = {{"Members", json::array()}};
  }
  Result<PowerSupplies> read() {
    test::RedfishRig rig{loop, net};
    const auto bmc = rig.bmc();
    return loop.run(bmc->powerSupplies());
  }
};

TEST_F(RedfishPowerSupplies, ofAPowerResourceWithItsRedundancy) {
  tree["/host"]["Power"] = linkTo("/host/Power");
  tree["/host/Power"] = {
      {"PowerSupplies",
       {{{"@odata.id", "/host/Power#/PowerSupplies/0"},
         {"Name", "PSU"},
         {"MemberId", "0"},
         {"Status", healthOf("OK")}},
        {{"@odata.id", "/host/Power#/PowerSupplies/1"},
         {"Name", "PSU"},
         {"MemberId", "1"},
         {"Status", {{"State", "Absent"}, {"Health", nullptr}}}}}},
      {"Redundancy",
       {{{"Name", "Group 1"},
         {"Mode", "N+m"},
         {"MinNumNeeded", 1},
         {"RedundancySet",
          {linkTo("/host/Power#/PowerSupplies/0"), linkTo("/host/Power#/PowerSupplies/1")}},
         {"Status", healthOf("Critical")}}}}};
  const auto seen = read();
  ASSERT_TRUE(seen) << seen.error().str();
  ASSERT_EQ(seen->supplies.size(), 2u);
  EXPECT_EQ(seen->supplies[0].name, "PSU (0)") << "names alone are all alike";
  EXPECT_EQ(seen->supplies[0].health, "OK");
  EXPECT_EQ(seen->supplies[1].state, "Absent");
  EXPECT_EQ(seen->supplies[1].health, "");
  ASSERT_EQ(seen->groups.size(), 1u);
  EXPECT_EQ(seen->groups[0].health, "Critical");
  EXPECT_EQ(seen->groups[0].members, 2u);
  EXPECT_EQ(seen->groups[0].needed, 1);
}

TEST_F(RedfishPowerSupplies, ofAPowerSubsystemAndOnceWhereBothAreThere) {
  tree["/host"]["Power"] = linkTo("/host/Power");
  tree["/host"]["PowerSubsystem"] = linkTo("/host/Subsystem");
  tree["/host/Power"] = {{"PowerSupplies", {{{"Name", "the same one"}}}}};
  tree["/host/Subsystem"] = {{"PowerSupplies", linkTo("/host/Supplies")},
                             {"PowerSupplyRedundancy",
                              {{{"RedundancyType", "NPlusM"},
                                {"MinNeededInGroup", 1},
                                {"RedundancyGroup", {linkTo("/host/Supplies/PSU0")}},
                                {"Status", healthOf("OK")}}}}};
  tree["/host/Supplies"] = {{"Members", {linkTo("/host/Supplies/PSU0")}}};
  tree["/host/Supplies/PSU0"] = {{"@odata.id", "/host/Supplies/PSU0"},
                                 {"Status", healthOf("Warning")}};
  const auto seen = read();
  ASSERT_TRUE(seen) << seen.error().str();
  ASSERT_EQ(seen->supplies.size(), 1u);
  EXPECT_EQ(seen->supplies[0].name, "PSU0");
  EXPECT_EQ(seen->supplies[0].health, "Warning");
  EXPECT_EQ(seen->groups.size(), 1u);
}

TEST_F(RedfishPowerSupplies, whatCannotBeReadNowIsNotWithoutSupplies) {
  EXPECT_EQ(read().error().code(), ErrorCode::NotFound) << "no chassis has one";
  tree["/host"]["Power"] = linkTo("/host/Power");
  tree["/host/Power"] = {{"PowerSupplies", {{{"Name", "PSU"}, {"Status", healthOf("OK")}}}}};
  ASSERT_TRUE(read());
  for (const char* path : {"/host/Power", "/gpus/power", "/gpus/power/supplies"}) {
    busy = {path};
    const auto seen = read();
    ASSERT_FALSE(seen) << path;
    EXPECT_NE(seen.error().code(), ErrorCode::NotFound) << path;
  }
}

TEST_F(RedfishPowerSupplies, oddAnswersAreNoSupplies) {
  tree["/host"]["Power"] = linkTo("/host/Power");
  for (const json& odd :
       {json(), json::array(), json("PSU"), json{{"PowerSupplies", 3}},
        json{{"PowerSupplies", json::array()}, {"Redundancy", {{{"Name", "G"}}}}}}) {
    tree["/host/Power"] = odd;
    EXPECT_FALSE(read()) << odd;
  }
  tree["/host/Power"] = {{"PowerSupplies", {3, "PSU", json::object()}}, {"Redundancy", "none"}};
  const auto seen = read();
  ASSERT_TRUE(seen);
  for (const auto& supply : seen->supplies) EXPECT_EQ(supply.health, "");
}

/// Captures of real BMCs are not part of the repository.
class PowerSupplyCaptures : public testing::TestWithParam<std::tuple<const char*, int, int>> {};

TEST_P(PowerSupplyCaptures, areReadWhole) {
  const auto [name, supplies, groups] = GetParam();
  const auto resources = test::readCapture(name);
  if (!resources) GTEST_SKIP() << test::noCapture(name);
  test::VirtualLoop loop;
  test::FakeHttp net;
  net.handle = test::captureHandler(*resources);
  test::RedfishRig rig{loop, net};
  const auto bmc = rig.bmc();
  const auto seen = loop.run(bmc->powerSupplies());
  ASSERT_TRUE(seen) << seen.error().str();
  EXPECT_EQ(seen->supplies.size(), static_cast<std::size_t>(supplies));
  EXPECT_EQ(seen->groups.size(), static_cast<std::size_t>(groups));
  std::set<std::string> names;
  for (const auto& supply : seen->supplies) {
    EXPECT_FALSE(supply.name.empty());
    EXPECT_TRUE(names.insert(supply.name).second) << "two of one name: " << supply.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PowerSupplyCaptures,
                         testing::Values(std::tuple{"dell", 2, 0}, std::tuple{"hpe", 2, 1},
                                         std::tuple{"nvidia_viking", 6, 1},
                                         std::tuple{"supermicro", 8, 1}),
                         [](const auto& info) { return std::string(std::get<0>(info.param)); });

}  // namespace
}  // namespace muster::bmc
