// SPDX-License-Identifier: Apache-2.0
// Boot order, LED and virtual CDs of every vendor profile of the virtual BMC, by our client. The
// profiles come from DSP0266, DSP2046 and captures (docs/adr/0226), not from the client's rows.
#include "tests/bmc/redfish_rig.h"
#include "tests/bmc/virtual_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace muster::bmc {
namespace {

using lab::vbmc::BootDevice;

class ProfileBoot : public testing::TestWithParam<std::string> {
 protected:
  std::vector<std::string> references(const Result<BootOrder>& order) {
    std::vector<std::string> out;
    EXPECT_TRUE(order) << order.error().str();
    if (order)
      for (const auto& option : order->options) out.push_back(option.reference);
    return out;
  }
  test::VirtualLoop loop;
  test::VirtualBmc emulator{loop, GetParam()};
  test::RedfishRig rig{loop, emulator.net};
  std::unique_ptr<RedfishBmc> bmc = rig.bmc();
};

TEST_P(ProfileBoot, aNewOrderHoldsFromTheNextStartOn) {
  const auto before = loop.run(bmc->bootOrder());
  auto wanted = references(before);
  ASSERT_EQ(wanted.size(), 3u);
  std::vector<BootTarget> kinds;
  for (const auto& option : before->options) kinds.push_back(option.starts_from);
  // Without device paths, as on Supermicro's, the name of a disk says nothing.
  const auto disk =
      lab::vbmc::behaviourOf(GetParam()).option_paths ? BootTarget::Disk : BootTarget::None;
  EXPECT_THAT(kinds, testing::UnorderedElementsAre(disk, BootTarget::Pxe, BootTarget::UefiHttp));
  const auto pxe = std::ranges::find(before->options, BootTarget::Pxe, &BootOption::starts_from);
  std::erase(wanted, pxe->reference);
  wanted.insert(wanted.begin(), pxe->reference);
  const auto done = loop.run(bmc->setBootOrder(wanted));
  ASSERT_TRUE(done) << done.error().str();
  ASSERT_TRUE(loop.run(bmc->power(PowerAction::On)));
  EXPECT_EQ(emulator.machine.starts.back().first, BootDevice::Network);
  EXPECT_EQ(references(loop.run(bmc->bootOrder())), wanted);
}

TEST_P(ProfileBoot, theLedIsLitAndPutOut) {
  const auto idle = loop.run(bmc->locateLed());
  ASSERT_TRUE(idle) << idle.error().str();
  EXPECT_FALSE(*idle);
  for (const bool on : {true, false}) {
    const auto set = loop.run(bmc->setLocateLed(on));
    ASSERT_TRUE(set) << set.error().str();
    EXPECT_EQ(emulator.service->state().locating, on);
    EXPECT_EQ(*loop.run(bmc->locateLed()), on);
  }
}

TEST_P(ProfileBoot, anImageInTheVirtualCdIsBootedFrom) {
  // bmcweb reads by HTTPS and CIFS only (its sources); the others take what comes first.
  const std::string by_http = "http://10.20.0.1/rescue.iso",
                    by_https = "https://10.20.0.1/rescue.iso",
                    kImage = GetParam() == "openbmc" ? by_https : by_http;
  const auto drives = loop.run(bmc->virtualMedia());
  if (emulator.service->state().media.empty() && !drives) {
    EXPECT_EQ(drives.error().code(), ErrorCode::NotFound) << drives.error().str();
    EXPECT_EQ(GetParam(), "gb200") << "only its BMC has no virtual media: " << drives.error().str();
    return;
  }
  const auto inserted = loop.run(bmc->insertMedia({by_http, by_https}));
  ASSERT_TRUE(inserted) << inserted.error().str();
  ASSERT_EQ(emulator.service->state().media.size(), 1u);
  EXPECT_EQ(emulator.service->state().media.begin()->second.image, kImage);
  const auto set = loop.run(bmc->boot({BootTarget::Cd}));
  ASSERT_TRUE(set) << set.error().str();
  ASSERT_TRUE(loop.run(bmc->power(PowerAction::On)));
  EXPECT_EQ(emulator.machine.starts.back().cd, kImage);
  const auto ejected = loop.run(bmc->ejectMedia(""));
  ASSERT_TRUE(ejected) << ejected.error().str();
  EXPECT_TRUE(emulator.service->state().media.empty());
  EXPECT_EQ(emulator.machine.drives_emptied, 1) << "the machine sees it";
}

std::vector<std::string> allProfiles() {
  std::vector<std::string> names;
  for (const auto& profile : lab::vbmc::vendorProfiles()) names.emplace_back(profile.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, ProfileBoot, testing::ValuesIn(allProfiles()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace muster::bmc
