// SPDX-License-Identifier: Apache-2.0
// What comes up behind a BMC after its restart: adapters are waited for, but not for ever.
#include "tests/bmc/redfish_rig.h"
#include "tests/bmc/virtual_bmc.h"

#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;

class BmcStartup : public testing::Test {
 protected:
  BmcStartup() { emulator.machine.on = true; }

  /// The adapter says so for the next `reads`.
  void adapterSays(const char* state, int reads) {
    const nlohmann::json one = {
        {"Members",
         {{{"@odata.id", kAdapter}}}}};  // not expanded, so that a rule for the member counts
    emulator.service->faults().add(
        {.method = "GET", .path = "*/NetworkAdapters", .merge = one, .count = -1});
    emulator.service->faults().add({.method = "GET",
                                    .path = kAdapter,
                                    .merge = {{"Status", {{"State", state}}}},
                                    .count = reads});
  }
  std::chrono::steady_clock::duration timeOfReset(Bmc& bmc) {
    const auto began = loop.clock.steady();
    const auto done = loop.run(bmc.resetBmc());
    EXPECT_TRUE(done) << done.error().str();
    return loop.clock.steady() - began;
  }

  static constexpr const char* kAdapter = "/redfish/v1/Chassis/chassis/NetworkAdapters/NIC1";
  test::VirtualLoop loop;
  test::VirtualBmc emulator{loop};
  test::RedfishRig rig{loop, emulator.net};
};

TEST_F(BmcStartup, systemManagerAndAdaptersAreReadThreeTimesAfterAReset) {
  auto bmc = rig.bmc();
  adapterSays("Enabled", -1);
  timeOfReset(*bmc);
  for (const char* path : {"/redfish/v1/Systems/system", "/redfish/v1/Managers/bmc", kAdapter})
    EXPECT_GE(emulator.net.count("GET", path), 3) << path;
}

TEST_F(BmcStartup, anAdapterThatStartsBeginsTheCountAnew) {
  auto bmc = rig.bmc();
  const auto usual = timeOfReset(*bmc);
  adapterSays("Starting", 20);
  const auto longer = timeOfReset(*bmc);
  EXPECT_GE(longer, usual + 20s);
  EXPECT_LT(longer, usual + 60s);
}

TEST_F(BmcStartup, anAdapterThatStartsForEverKeepsNoBmcAway) {
  auto bmc = rig.bmc();
  adapterSays("Starting", -1);
  const auto longer = timeOfReset(*bmc);
  EXPECT_GE(longer, 120s);
  EXPECT_LT(longer, 200s);
}

TEST_F(BmcStartup, whatIsNotReadyIsNamedAlsoThroughTheArbiterAndNothingIsWhileTheHostIsOff) {
  auto bmc = arbitrate(rig.bmc(), loop.clock);
  adapterSays("Starting", 1);
  auto late = loop.run(bmc->devicesNotReady());
  ASSERT_TRUE(late && late->size() == 1);
  EXPECT_EQ(late->front().name, "NIC1");
  adapterSays("Starting", -1);
  emulator.machine.on = false;
  late = loop.run(bmc->devicesNotReady());
  ASSERT_TRUE(late);
  EXPECT_TRUE(late->empty());
}

}  // namespace
}  // namespace muster::bmc
