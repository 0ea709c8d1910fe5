// SPDX-License-Identifier: Apache-2.0
// Which machine a BMC says it is: by the specification's properties, and by captures of NVIDIA's
// Grace machines, whose ComputerSystem says neither serial nor model nor MAC.
#include "bmc/machine_identity.h"

#include "inventory/model/firmware.h"
#include "tests/bmc/capture.h"
#include "tests/bmc/redfish_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace muster::bmc {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;

constexpr const char* kSystem = "/redfish/v1/Systems/S0";

/// The smallest service that has a host: a system that can be reset, and a manager.
Json smallService() {
  const auto link = [](const char* path) { return Json{{"@odata.id", path}}; };
  const auto members = [&](std::vector<const char*> paths) {
    Json list = Json::array();
    for (const auto* path : paths) list.push_back(link(path));
    return Json{{"Members", list}};
  };
  Json out;
  out["/redfish/v1"] = {{"RedfishVersion", "1.17.0"},
                        {"Vendor", "NVIDIA"},
                        {"Systems", link("/redfish/v1/Systems")},
                        {"Managers", link("/redfish/v1/Managers")},
                        {"Chassis", link("/redfish/v1/Chassis")},
                        {"SessionService", link("/redfish/v1/SessionService")}};
  out["/redfish/v1/Systems"] = members({kSystem});
  out["/redfish/v1/Managers"] = members({"/redfish/v1/Managers/M0"});
  out["/redfish/v1/Chassis"] = members({"/redfish/v1/Chassis/Card", "/redfish/v1/Chassis/Tray"});
  out[kSystem] = {{"Id", "S0"},
                  {"PowerState", "On"},
                  {"Actions", {{"#ComputerSystem.Reset", {{"target", "/reset"}}}}},
                  {"Links", {{"Chassis", Json::array({link("/redfish/v1/Chassis/Card")})}}}};
  out["/redfish/v1/Managers/M0"] = {
      {"Id", "M0"}, {"Model", "OpenBmc"}, {"UUID", "d82de395-0000-4000-8000-0000000000bb"}};
  const auto systems = Json{{"ComputerSystems", Json::array({link(kSystem)})}};
  out["/redfish/v1/Chassis/Card"] = {
      {"Id", "Card"}, {"ChassisType", "Component"}, {"SerialNumber", "CARD-1"}, {"Links", systems}};
  out["/redfish/v1/Chassis/Tray"] = {{"Id", "Tray"},
                                     {"ChassisType", "Shelf"},
                                     {"Model", "A Tray"},
                                     {"Manufacturer", "NVIDIA"},
                                     {"SerialNumber", "TRAY-1  "},
                                     {"Links", systems}};
  return out;
}

class MachineIdentity : public testing::Test {
 protected:
  Result<SystemInfo> read(const Json& resources) {
    net.handle = test::captureHandler(resources);
    bmc = rig.bmc();
    return loop.run(bmc->system());
  }
  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  std::unique_ptr<RedfishBmc> bmc;
};

TEST_F(MachineIdentity, theSystemsOwnWordsComeFirst) {
  auto service = smallService();
  service[kSystem]["SerialNumber"] = "SYSTEM-1";
  service[kSystem]["Model"] = "A Machine";
  service[kSystem]["Manufacturer"] = "Somebody";
  const auto system = read(service);
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_EQ(system->serial, "SYSTEM-1");
  EXPECT_EQ(system->serial_place, IdentityPlace::System);
  EXPECT_EQ(system->model, "A Machine");
  EXPECT_EQ(net.count("GET", "/redfish/v1/Chassis"), 0) << "nothing was left open";
}

TEST_F(MachineIdentity, theEnclosingChassisComesBeforeAPartThatTheSystemNames) {
  const auto system = read(smallService());
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_EQ(system->serial, "TRAY-1") << "without the blanks behind it";
  EXPECT_EQ(system->serial_place, IdentityPlace::Chassis);
  EXPECT_EQ(system->model, "A Tray");
  EXPECT_EQ(system->manufacturer, "NVIDIA");
  EXPECT_THAT(system->reported,
              Contains(AllOf(Field(&ReportedIdentity::place, IdentityPlace::Part),
                             Field(&ReportedIdentity::serial, "CARD-1"),
                             Field(&ReportedIdentity::resource, "/redfish/v1/Chassis/Card"))));
}

TEST_F(MachineIdentity, aPartIsAllThatThereIs) {
  auto service = smallService();
  service["/redfish/v1/Chassis/Tray"]["SerialNumber"] = "N/A";
  const auto system = read(service);
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_EQ(system->serial, "CARD-1");
  EXPECT_EQ(system->serial_place, IdentityPlace::Part);
}

TEST_F(MachineIdentity, aChassisOfSeveralSystemsIsNoIdentityOfOne) {
  auto service = smallService();
  service["/redfish/v1/Chassis/Tray"]["Links"]["ComputerSystems"].push_back(
      {{"@odata.id", "/redfish/v1/Systems/S1"}});
  const auto system = read(service);
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_EQ(system->serial, "CARD-1");
  EXPECT_NE(system->serial_place, IdentityPlace::Chassis);
}

TEST_F(MachineIdentity, productAndManagerSpeakWhereNothingElseDoes) {
  auto service = smallService();
  service["/redfish/v1/Chassis"]["Members"] = Json::array();
  service[kSystem].erase("Links");
  service["/redfish/v1"]["Product"] = "GB200 NVL";
  const auto system = read(service);
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_EQ(system->serial, "");
  EXPECT_EQ(system->model, "GB200 NVL") << "the manager's Model is the BMC's";
  EXPECT_THAT(system->reported,
              Contains(AllOf(Field(&ReportedIdentity::place, IdentityPlace::Service),
                             Field(&ReportedIdentity::model, "GB200 NVL"))));
  EXPECT_THAT(system->reported,
              Contains(Field(&ReportedIdentity::uuid, "d82de395-0000-4000-8000-0000000000bb")));
}

TEST_F(MachineIdentity, macsOfBootOptionsAreReadWithoutThoseBehindUsb) {
  auto service = smallService();
  service[kSystem]["Boot"]["BootOptions"] = {{"@odata.id", "/redfish/v1/Systems/S0/BootOptions"}};
  service["/redfish/v1/Systems/S0/BootOptions"] = {
      {"Members",
       {{{"@odata.id", "/o/1"},
         {"Id", "1"},
         {"UefiDevicePath", "PciRoot(0x5)/Pci(0x6,0x0)/MAC(525400200001,0x1)/IPv4(0.0.0.0)"}},
        {{"@odata.id", "/o/2"},
         {"Id", "2"},
         {"UefiDevicePath", "PciRoot(0x5)/USB(0x4,0x0)/MAC(525400200002,0x1)/IPv4(0.0.0.0)"}},
        {{"@odata.id", "/o/3"}, {"Id", "3"}, {"UefiDevicePath", "HD(1,GPT,…)"}}}}};
  const auto system = read(service);
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_TRUE(system->macs.empty());
  EXPECT_THAT(system->boot_macs, testing::ElementsAre("52:54:00:20:00:01"));
}

TEST_F(MachineIdentity, oneOfSeveralSystemsBehindABmcIsNamed) {
  auto service = smallService();
  auto second = service[kSystem];
  second["Id"] = "S1";
  second["SerialNumber"] = "SYSTEM-2";
  service["/redfish/v1/Systems/S1"] = second;
  service["/redfish/v1/Systems"]["Members"].push_back({{"@odata.id", "/redfish/v1/Systems/S1"}});
  net.handle = test::captureHandler(service);
  RedfishBmc named(rig.session(), inventory::BootMode::Uefi, loop.clock, rig.images, "S1");
  const auto system = loop.run(named.system());
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_EQ(system->serial, "SYSTEM-2");
  RedfishBmc absent(rig.session(), inventory::BootMode::Uefi, loop.clock, rig.images, "S9");
  const auto none = loop.run(absent.system());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(none.error().str(), testing::HasSubstr("it has S0, S1"));
}

// ---- captures

struct GraceCapture {
  const char* name;
  IdentityPlace serial;
};
class GraceCaptures : public MachineIdentity, public testing::WithParamInterface<GraceCapture> {
 protected:
  void SetUp() override {
    auto found = test::readCapture(GetParam().name);
    if (!found) GTEST_SKIP() << test::noCapture(GetParam().name);
    resources = std::move(*found);
  }
  Json resources;
};

TEST_P(GraceCaptures, theMachineIsIdentifiedAlthoughItsSystemSaysNothing) {
  const auto& host = resources["/redfish/v1/Systems/System_0"];
  for (const char* field : {"SerialNumber", "Model", "Manufacturer", "EthernetInterfaces"})
    ASSERT_FALSE(host.contains(field)) << field;
  const auto system = read(resources);
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_EQ(system->power, PowerState::On);
  EXPECT_TRUE(isRealSerial(system->serial));
  EXPECT_EQ(system->serial_place, GetParam().serial);
  EXPECT_EQ(system->manufacturer, "NVIDIA");
  EXPECT_FALSE(system->model.empty());
  EXPECT_FALSE(system->boot_macs.empty());
  EXPECT_FALSE(system->uuid.empty());
  for (const auto& each : system->reported)
    EXPECT_EQ(each.resource.find("HGX_"), std::string::npos);
}

TEST_P(GraceCaptures, theQuirkRowFires) {
  (void)read(resources);
  // Standby power is cut by the row's action; a capture refuses the write, and nothing else does.
  const auto cut = loop.run(bmc->acCycle());
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().str(), testing::Not(testing::HasSubstr("no full power cycle")));
  const auto copies = loop.run(bmc->backgroundCopies());
  ASSERT_TRUE(copies) << copies.error().str();
  EXPECT_GE(copies->size(), 4u) << "roots of trust";
}

TEST_P(GraceCaptures, itsFirmwareIsReadWithoutPadding) {
  net.handle = test::captureHandler(resources);
  const auto driver = rig.bmc();
  const auto items = loop.run(driver->firmware());
  ASSERT_TRUE(items) << items.error().str();
  EXPECT_GE(items->size(), 20u);
  std::set<std::string> names;
  for (const auto& item : *items) {
    names.insert(item.name);
    EXPECT_EQ(item.version, inventory::trimmedVersion(item.version)) << item.name;
  }
  for (const char* name : {"FW_BMC_0", "HGX_FW_BMC_0", "HGX_FW_ERoT_FPGA_0", "FW_CPLD_0"})
    EXPECT_TRUE(names.contains(name)) << name;
}

INSTANTIATE_TEST_SUITE_P(All, GraceCaptures,
                         testing::Values(GraceCapture{"nvidia_gb200", IdentityPlace::Chassis},
                                         GraceCapture{"nvidia_gh200", IdentityPlace::Part}),
                         [](const auto& info) { return std::string(info.param.name); });

/// Every other capture says it in the system itself.
class OtherCaptures : public MachineIdentity, public testing::WithParamInterface<const char*> {};
TEST_P(OtherCaptures, theSystemIdentifiesItself) {
  const auto resources = test::readCapture(GetParam());
  if (!resources) GTEST_SKIP() << test::noCapture(GetParam());
  const auto system = read(*resources);
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_TRUE(isRealSerial(system->serial));
  EXPECT_EQ(system->serial_place, IdentityPlace::System);
  EXPECT_FALSE(system->model.empty());
}
INSTANTIATE_TEST_SUITE_P(All, OtherCaptures,
                         testing::Values("dell", "hpe", "lenovo", "supermicro", "nvidia_viking",
                                         "nvidia_gbswitch", "nvidia_dpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace muster::bmc
