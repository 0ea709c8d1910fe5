// SPDX-License-Identifier: Apache-2.0
// An image runs and leaves its component worse: the one before runs again where the vendor can do
// that, once, and it is said; else the node fails with the reason.
#include "firmware/baselines.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "tests/firmware/emulated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::firmware {
namespace {

using lab::vbmc::UpdateFault;

struct RollbackCase {
  const char *vendor_profile, *component, *before;
};
class FirmwareRollback : public testing::TestWithParam<std::tuple<RollbackCase, int>> {};

TEST_P(FirmwareRollback, isTakenOnceAndSeenInTheInventory) {
  const auto& [way, restart_every] = GetParam();
  Emulated node(way.vendor_profile, {way.component});
  node.restart_every = restart_every;
  node.emulator.service->faults().expect(UpdateFault::LeavesItWorse);
  const auto why = node.apply();
  EXPECT_THAT(why,
              testing::AllOf(
                  testing::HasSubstr(fmt::format("{} 99.1 left it worse", way.component)),
                  testing::HasSubstr(fmt::format("{} {} runs again", way.component, way.before))));
  const auto& slot = node.state().slots.at(way.component);
  EXPECT_EQ(slot.version, way.before);
  EXPECT_FALSE(slot.broken);
  EXPECT_EQ(slot.flashes, 1u);
  EXPECT_THAT(node.state().violations, testing::IsEmpty());
  ASSERT_FALSE(node.journal.findings.empty());
  EXPECT_THAT(node.journal.findings.front().what_to_do, testing::HasSubstr("muster rma"));
  int ordered = 0;
  for (const auto& sent : node.emulator.net.requests)
    ordered += sent.url.target.ends_with("UpdateService.SimpleUpdate") ||
               (sent.method == "PATCH" && sent.url.target.find("/Managers/") != std::string::npos);
  EXPECT_EQ(ordered, 1);

  lifecycle::FactSet facts;  // no later plan sends it again
  const auto seen = node.loop.run(node.phase->verify(
      lifecycle::Action{.facet = {lifecycle::Subject(kNode), facetOf(way.component)}}));
  for (const auto& fact : *seen) facts.put(fact);
  const auto goals = node.phase->goals(node.cluster, lifecycle::Subject(kNode), facts);
  ASSERT_EQ(goals.size(), 1u);
  EXPECT_THAT(goals[0].blocked, testing::HasSubstr("muster firmware retry"));
}
INSTANTIATE_TEST_SUITE_P(
    All, FirmwareRollback,
    testing::Combine(testing::Values(RollbackCase{"idrac", "BIOS.Setup.1-1", "1.4.0"},
                                     RollbackCase{"idrac", "iDRAC.Embedded.1-1", "6.10.30.00"},
                                     RollbackCase{"idrac", "CPLD.Embedded.1", "1.0.2"},
                                     RollbackCase{"openbmc", "BMC", "2.0.0"}),
                     testing::Values(0, 3)),
    [](const auto& info) {
      std::string name = std::string(std::get<0>(info.param).vendor_profile) +
                         std::get<0>(info.param).component +
                         (std::get<1>(info.param) ? "DyingOften" : "");
      std::erase_if(name, [](char c) { return c == '.' || c == '-'; });
      return name;
    });

TEST(FirmwareRollback, isNotTakenIntoAForbiddenCombination) {
  Emulated node("idrac", {"iDRAC.Embedded.1-1", "BIOS.Setup.1-1"});
  auto& baseline = node.cluster.firmware["b"];
  baseline.components[0].version = "6.10.30.00";  // runs already
  baseline.constraints.push_back(
      *inventory::FirmwareConstraint::parse("iDRAC.Embedded.1-1 >= 6 needs BIOS.Setup.1-1 >= 99"));
  node.restart();
  node.emulator.service->faults().expect(UpdateFault::LeavesItWorse);
  EXPECT_THAT(node.apply(), testing::AllOf(testing::HasSubstr("left it worse"),
                                           testing::HasSubstr("1.4.0, which is forbidden here"),
                                           testing::HasSubstr("BIOS.Setup.1-1 >= 99")));
  EXPECT_TRUE(node.state().slots.at("BIOS.Setup.1-1").broken);
}

TEST(FirmwareRollback, isNotTakenWhenOtherComponentsAreSilentToo) {
  Emulated node("idrac", {"BIOS.Setup.1-1"});
  node.emulator.service->faults().expect(UpdateFault::LeavesItWorse);
  node.emulator.service->faults().add({.method = "GET",
                                       .path = "/redfish/v1",
                                       .merge = {{"ProtocolFeaturesSupported", nullptr}},
                                       .count = -1});  // members are read one by one
  node.emulator.service->faults().add({.method = "GET",
                                       .path = "*/FirmwareInventory/Installed-*CPLD*",
                                       .status = 500,
                                       .count = -1});
  EXPECT_THAT(node.apply(), testing::HasSubstr("BIOS.Setup.1-1 99.1 is not active"));
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").version, "99.1");
}

TEST(FirmwareRollback, isRefusedByABmcAndThatIsSaid) {
  Emulated node("idrac", {"BIOS.Setup.1-1"});
  node.emulator.service->faults().expect(UpdateFault::LeavesItWorse);
  node.emulator.service->faults().add(
      {.method = "POST", .path = "*UpdateService.SimpleUpdate", .status = 400, .count = -1});
  EXPECT_THAT(node.apply(), testing::AllOf(testing::HasSubstr("left it worse"),
                                           testing::HasSubstr("could not be taken back to 1.4.0")));
}

}  // namespace
}  // namespace muster::firmware
