// SPDX-License-Identifier: Apache-2.0
// Boot order and locate LED against a service whose resources have the form of DSP2046; and what
// captures of real BMCs show.
#include "bmc/redfish/boot_order.h"

#include "tests/bmc/capture.h"
#include "tests/bmc/redfish_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace muster::bmc {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json uriOf(const std::string& uri) { return {{"@odata.id", uri}}; }

class BootOrderService : public testing::Test {
 protected:
  BootOrderService() {
    net.handle = [this](io::HttpRequest request) { return answer(std::move(request)); };
    tree["/redfish/v1/"] = {{"Vendor", "Somebody"},
                            {"Systems", uriOf("/redfish/v1/Systems")},
                            {"Managers", uriOf("/redfish/v1/Managers")}};
    tree["/redfish/v1/Systems"] = {{"Members", {uriOf(kSystem)}}};
    tree[kSystem] = {{"@odata.etag", "\"1\""},
                     {"PowerState", "On"},
                     {"Actions", {{"#ComputerSystem.Reset", {{"target", "/reset"}}}}},
                     {"Links", {{"Chassis", {uriOf("/redfish/v1/Chassis/1")}}}},
                     {"Boot",
                      {{"BootOrder", {"Boot0001", "Boot0002", "Boot0003"}},
                       {"BootOptions", uriOf("/options")}}}};
    tree["/redfish/v1/Chassis/1"] = {{"Id", "1"}, {"IndicatorLED", "Off"}};
    tree["/redfish/v1/Managers"] = {{"Members", {uriOf("/redfish/v1/Managers/1")}}};
    tree["/redfish/v1/Managers/1"] = {{"Id", "1"}};
    tree["/options"] = {
        {"Members", {uriOf("/options/1"), uriOf("/options/2"), uriOf("/options/3")}}};
    tree["/options/1"] = {{"Id", "1"},
                          {"BootOptionReference", "Boot0001"},
                          {"DisplayName", "Linux"},
                          {"UefiDevicePath", "PciRoot(0x0)/Pci(0x1,0x0)/NVMe(0x1,00)/HD(1,GPT)"}};
    tree["/options/2"] = {
        {"Id", "2"},
        {"BootOptionReference", "Boot0002"},
        {"DisplayName", "NIC"},
        {"UefiDevicePath", "PciRoot(0x0)/Pci(0x2,0x0)/MAC(525400200001,0x1)/IPv4(0.0.0.0)/Uri()"}};
    tree["/options/3"] = {
        {"Id", "3"},
        {"BootOptionReference", "Boot0003"},
        {"DisplayName", "UEFI PXEv4"},
        {"UefiDevicePath", "PciRoot(0x0)/Pci(0x2,0x0)/MAC(525400200001,0x1)/IPv4(0.0.0.0)"}};
  }
  Async<io::HttpResponse> answer(io::HttpRequest request) {
    const auto path = io::pathOf(request.url.target);
    if (request.method == "POST")
      co_return test::FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
    const auto found = tree.find(path);
    if (found == tree.end()) co_return test::FakeHttp::json(404, "{}");
    if (request.method == "PATCH") {
      patched.push_back(path);
      if (keeps) found->second.merge_patch(json::parse(request.body));
      co_return test::FakeHttp::json(200, "{}");
    }
    co_return test::FakeHttp::json(200, found->second.dump());
  }
  std::vector<std::string> references() {
    std::vector<std::string> out;
    const auto order = loop.run(bmc->bootOrder());
    EXPECT_TRUE(order) << order.error().str();
    if (order)
      for (const auto& option : order->options) out.push_back(option.reference);
    return out;
  }

  static constexpr const char* kSystem = "/redfish/v1/Systems/1";
  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  std::unique_ptr<RedfishBmc> bmc = rig.bmc();
  std::map<std::string, json> tree;
  std::vector<std::string> patched;
  bool keeps = true;  ///< what is written
};

TEST_F(BootOrderService, optionsAreReadInTheirOrderWithWhatTheyStartFrom) {
  const auto order = loop.run(bmc->bootOrder());
  ASSERT_TRUE(order) << order.error().str();
  ASSERT_EQ(order->options.size(), 3u);
  EXPECT_EQ(order->options[0].starts_from, BootTarget::Disk);
  EXPECT_EQ(order->options[1].starts_from, BootTarget::UefiHttp);
  EXPECT_EQ(order->options[2].starts_from, BootTarget::Pxe);
  EXPECT_EQ(order->options[2].mac, "52:54:00:20:00:01");
  EXPECT_TRUE(order->staged.empty());
}

TEST_F(BootOrderService, aNewOrderIsVerifiedByReadingIt) {
  const auto done = loop.run(bmc->setBootOrder({"Boot0003", "Boot0001", "Boot0002"}));
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_THAT(references(), ElementsAre("Boot0003", "Boot0001", "Boot0002"));
  keeps = false;
  const auto lost = loop.run(bmc->setBootOrder({"Boot0001", "Boot0002", "Boot0003"}));
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().str(), HasSubstr("shows Boot0003, Boot0001, Boot0002"));
}

TEST_F(BootOrderService, anOrderThatLosesAnOptionIsRefusedBeforeAnythingIsSent) {
  for (const auto& wrong :
       {std::vector<std::string>{"Boot0001"}, {"Boot0001", "Boot0002", "Boot0009"}}) {
    const auto refused = loop.run(bmc->setBootOrder(wrong));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
  }
  EXPECT_TRUE(patched.empty());
}

/// DSP0266 9.10: what the settings object has applies at the next boot.
TEST_F(BootOrderService, anEntryThatIsNoReferenceIsAnErrorAndNoneIsLost) {
  for (const auto& bad :
       {json(nullptr), json(7), json::object(), json::array({"Boot0001"}), json("")}) {
    tree[kSystem]["Boot"]["BootOrder"] = {"Boot0001", bad, "Boot0003"};
    const auto order = loop.run(bmc->bootOrder());
    ASSERT_FALSE(order) << bad;
    EXPECT_EQ(order.error().code(), ErrorCode::Unavailable) << bad;
    EXPECT_THAT(order.error().text(), HasSubstr("no references")) << bad;
    EXPECT_FALSE(loop.run(bmc->setBootOrder({"Boot0003", "Boot0001"}))) << bad;
  }
  EXPECT_TRUE(patched.empty()) << "an order without it would lose an option";
}

TEST_F(BootOrderService, whereASettingsObjectHasTheOrderItIsStagedThere) {
  tree[kSystem]["@Redfish.Settings"] = {{"SettingsObject", uriOf("/redfish/v1/Systems/1/SD")}};
  tree["/redfish/v1/Systems/1/SD"] = {
      {"@odata.etag", "\"9\""}, {"Boot", {{"BootOrder", {"Boot0001", "Boot0002", "Boot0003"}}}}};
  ASSERT_TRUE(loop.run(bmc->setBootOrder({"Boot0003", "Boot0001", "Boot0002"})));
  EXPECT_THAT(patched, ElementsAre("/redfish/v1/Systems/1/SD"));
  const auto order = loop.run(bmc->bootOrder());
  ASSERT_TRUE(order);
  EXPECT_EQ(order->options.front().reference, "Boot0001");
  EXPECT_THAT(order->staged, ElementsAre("Boot0003", "Boot0001", "Boot0002"));
}

TEST_F(BootOrderService, theLedOfOlderServicesIsAWordOnTheChassis) {
  EXPECT_FALSE(*loop.run(bmc->locateLed()));
  ASSERT_TRUE(loop.run(bmc->setLocateLed(true)));
  EXPECT_EQ(tree["/redfish/v1/Chassis/1"]["IndicatorLED"], "Lit");
  EXPECT_TRUE(*loop.run(bmc->locateLed()));
  ASSERT_TRUE(loop.run(bmc->setLocateLed(false)));
  EXPECT_EQ(tree["/redfish/v1/Chassis/1"]["IndicatorLED"], "Off");
}

TEST_F(BootOrderService, theLedOfNewerServicesIsASwitchAndTheSystemsComesFirst) {
  tree[kSystem]["LocationIndicatorActive"] = false;
  ASSERT_TRUE(loop.run(bmc->setLocateLed(true)));
  EXPECT_EQ(tree[kSystem]["LocationIndicatorActive"], true);
  EXPECT_EQ(tree["/redfish/v1/Chassis/1"]["IndicatorLED"], "Off");
  const auto writes = patched.size();
  ASSERT_TRUE(loop.run(bmc->setLocateLed(true)));
  EXPECT_EQ(patched.size(), writes) << "it is on already";
}

TEST_F(BootOrderService, anLedThatStaysAsItWasIsAnErrorAndNoneIsSaid) {
  keeps = false;
  EXPECT_THAT(loop.run(bmc->setLocateLed(true)).error().str(), HasSubstr("still shows it off"));
  tree["/redfish/v1/Chassis/1"].erase("IndicatorLED");
  EXPECT_EQ(loop.run(bmc->locateLed()).error().code(), ErrorCode::NotFound);
}

struct Shown {
  const char* name;
  std::size_t network, disk;  ///< options, at least
  bool led;
};
class BootOrderCaptures : public testing::TestWithParam<Shown> {};
TEST_P(BootOrderCaptures, optionsAreKnownByWhatTheyStartFrom) {
  const auto& want = GetParam();
  const auto resources = test::readCapture(want.name);
  if (!resources) GTEST_SKIP() << test::noCapture(want.name);
  test::VirtualLoop loop;
  test::FakeHttp net;
  net.handle = test::captureHandler(*resources, true);
  test::RedfishRig rig{loop, net};
  const auto bmc = rig.bmc();
  const auto order = loop.run(bmc->bootOrder());
  const auto led = loop.run(bmc->locateLed());
  EXPECT_EQ(led.has_value(), want.led);
  if (led) EXPECT_FALSE(*led);
  if (want.network + want.disk == 0) {
    EXPECT_EQ(order.error().code(), ErrorCode::NotFound);
    return;
  }
  ASSERT_TRUE(order) << order.error().str();
  std::size_t network = 0, disk = 0;
  for (const auto& option : order->options) {
    network += option.starts_from == BootTarget::Pxe || option.starts_from == BootTarget::UefiHttp;
    disk += option.starts_from == BootTarget::Disk;
  }
  EXPECT_GE(network, want.network);
  EXPECT_GE(disk, want.disk);
}
INSTANTIATE_TEST_SUITE_P(
    All, BootOrderCaptures,
    testing::Values(Shown{"dell", 0, 3, true}, Shown{"hpe", 4, 10, true},
                    Shown{"lenovo", 1, 1, true}, Shown{"supermicro", 4, 0, true},
                    Shown{"nvidia_viking", 4, 0, true}, Shown{"nvidia_gb200", 2, 1, true},
                    Shown{"nvidia_gh200", 2, 1, true}, Shown{"nvidia_gbswitch", 0, 0, false},
                    Shown{"nvidia_dpu", 4, 0, false}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster::bmc
