// SPDX-License-Identifier: Apache-2.0
// What a machine boots from, and interrupts, on every kind of emulated BMC: believed when it is
// read again.
#include "tests/bmc/redfish_rig.h"
#include "tests/bmc/virtual_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using testing::HasSubstr;

class RedfishOverride : public testing::TestWithParam<const char*> {
 protected:
  test::VirtualLoop loop;
  test::VirtualBmc emulator{loop, GetParam()};
  test::RedfishRig rig{loop, emulator.net};
  std::unique_ptr<RedfishBmc> bmc = rig.bmc();
};

TEST_P(RedfishOverride, aPersistentOneStaysOverBootsAndOneForOnceDoesNot) {
  ASSERT_TRUE(loop.run(bmc->boot({BootTarget::Pxe, true, {}})));
  EXPECT_TRUE(emulator.service->state().boot_lasts);
  for (int boots = 0; boots < 2; ++boots)
    ASSERT_TRUE(loop.run(bmc->power(PowerAction::ForceRestart)));
  EXPECT_EQ(loop.run(bmc->system())->boot_override, BootTarget::Pxe);
  for (const auto& start : emulator.machine.starts)
    EXPECT_EQ(start.first, lab::vbmc::BootDevice::Network);
  ASSERT_TRUE(loop.run(bmc->boot({BootTarget::Pxe, false, {}})));
  EXPECT_FALSE(emulator.service->state().boot_lasts);
  ASSERT_TRUE(loop.run(bmc->power(PowerAction::ForceRestart)));
  EXPECT_EQ(loop.run(bmc->system())->boot_override, BootTarget::None);
}

TEST_P(RedfishOverride, uefiHttpTakesItsUri) {
  ASSERT_TRUE(
      loop.run(bmc->boot({BootTarget::UefiHttp, false, "http://10.20.0.1:8080/boot/gpu001.efi"})));
  EXPECT_EQ(emulator.service->state().boot_uri, "http://10.20.0.1:8080/boot/gpu001.efi");
  EXPECT_EQ(emulator.service->state().boot_once, "UefiHttp");
}

TEST_P(RedfishOverride, oneThatIsAcceptedAndNotKeptIsAnError) {
  emulator.service->faults().add({.method = "GET",
                                  .path = "/redfish/v1/Systems/system*",
                                  .merge = {{"Boot", {{"BootSourceOverrideEnabled", "Once"}}}},
                                  .count = -1});
  const auto done = loop.run(bmc->boot({BootTarget::Pxe, true, {}}));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("shows \"Once Pxe"));
}

/// Each answer of a BMC takes 100 to 500 ms: between two writes the system is read once, and after
/// each of them anew.
TEST(RedfishReads, aRestartReadsNothingTwice) {
  test::VirtualLoop loop;
  test::VirtualBmc emulator{loop, "muster"};
  test::RedfishRig rig{loop, emulator.net};
  const auto bmc = rig.bmc();
  emulator.machine.on = true;
  ASSERT_TRUE(loop.run(bmc->system()));
  const auto reads = [&] { return emulator.net.count("GET", "/redfish/v1/Systems/system"); };
  const int before = reads();
  ASSERT_TRUE(loop.run(bmc->bootOnce(BootTarget::Pxe)));
  EXPECT_EQ(reads() - before, 1)
      << "before the write it was just read, after it the override is verified";
  ASSERT_TRUE(loop.run(bmc->power(PowerAction::ForceRestart)));
  EXPECT_EQ(reads() - before, 3) << "off and on, each verified";
  EXPECT_EQ(emulator.machine.starts.back().first, lab::vbmc::BootDevice::Network);
}

TEST(RedfishReads, whatWasReadLongAgoIsReadAgain) {
  test::VirtualLoop loop;
  test::VirtualBmc emulator{loop, "muster"};
  test::RedfishRig rig{loop, emulator.net};
  const auto bmc = rig.bmc();
  emulator.machine.on = true;
  ASSERT_TRUE(loop.run(bmc->system()));
  emulator.machine.on = false;  // somebody pressed the button
  loop.clock.advance(std::chrono::seconds(1));
  const int resets =
      emulator.net.count("POST", "/redfish/v1/Systems/system/Actions/ComputerSystem.Reset");
  ASSERT_TRUE(loop.run(bmc->power(PowerAction::ForceOff)));
  EXPECT_EQ(emulator.net.count("POST", "/redfish/v1/Systems/system/Actions/ComputerSystem.Reset"),
            resets)
      << "it is off already";
}

TEST_P(RedfishOverride, anInterruptReachesAMachineThatRunsAndOnlyWhereItIsOffered) {
  const auto off = loop.run(bmc->sendNmi());
  ASSERT_FALSE(off);
  EXPECT_EQ(off.error().code(), ErrorCode::Conflict);
  emulator.machine.on = true;
  const auto sent = loop.run(bmc->sendNmi());
  if (std::string_view(GetParam()) == "dgx-h100") {
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code(), ErrorCode::NotFound);
    EXPECT_THAT(sent.error().str(), HasSubstr("GracefulShutdown"));  // what it does offer
  } else {
    ASSERT_TRUE(sent) << sent.error().str();
    EXPECT_THAT(emulator.service->state().log.back(), HasSubstr("NMI"));
  }
  EXPECT_TRUE(emulator.machine.on);
}

INSTANTIATE_TEST_SUITE_P(All, RedfishOverride,
                         testing::Values("muster", "idrac", "ilo", "supermicro", "dgx-h100",
                                         "gb200"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace muster::bmc
