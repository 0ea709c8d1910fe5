// SPDX-License-Identifier: Apache-2.0
// The libvirt driver on libvirt's own test driver: no daemon, no virtual machine.
#include "bmc/libvirt/libvirt_bmc.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

class LibvirtBmcTest : public testing::Test {
 protected:
  template <class T>
  Result<T> run(Async<T> op) {
    return test::runAsync(io, std::move(op));
  }
  asio::io_context io;
  SystemClock clock;
  Workers workers{1};
  std::unique_ptr<Bmc> bmc = makeLibvirtBmc("test", "test:///default", clock, workers);
};

TEST_F(LibvirtBmcTest, switchesTheDomain) {
  auto system = run(bmc->system());
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_EQ(system->power, PowerState::On);
  EXPECT_FALSE(system->uuid.empty());
  ASSERT_TRUE(run(bmc->power(PowerAction::ForceOff)));
  EXPECT_EQ(run(bmc->system())->power, PowerState::Off);
  ASSERT_TRUE(run(bmc->power(PowerAction::ForceOff)));
  ASSERT_TRUE(run(bmc->power(PowerAction::On)));
  ASSERT_TRUE(run(bmc->power(PowerAction::ForceRestart)));
  EXPECT_EQ(run(bmc->system())->power, PowerState::On);
}

TEST_F(LibvirtBmcTest, theBootOverrideIsUsedUpByOneStart) {
  ASSERT_TRUE(run(bmc->power(PowerAction::ForceOff)));
  auto set = run(bmc->bootOnce(BootTarget::Pxe));
  ASSERT_TRUE(set) << set.error().str();
  EXPECT_EQ(run(bmc->system())->boot_override, BootTarget::Pxe);
  auto on = run(bmc->power(PowerAction::On));
  ASSERT_TRUE(on) << on.error().str();
  EXPECT_EQ(run(bmc->system())->boot_override, BootTarget::None);
  ASSERT_TRUE(run(bmc->bootOnce(BootTarget::None)));
}

TEST_F(LibvirtBmcTest, hasNoFirmwareAndSaysSo) {
  EXPECT_TRUE(run(bmc->firmware())->empty());
  auto update = run(bmc->startUpdate({"BIOS", "x", "y"}));
  ASSERT_FALSE(update);
  EXPECT_EQ(update.error().code(), ErrorCode::InvalidInput);
}

TEST_F(LibvirtBmcTest, anUnknownDomainIsNotFound) {
  auto none = makeLibvirtBmc("no-such-domain", "test:///default", clock, workers);
  EXPECT_EQ(run(none->system()).error().code(), ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::bmc
