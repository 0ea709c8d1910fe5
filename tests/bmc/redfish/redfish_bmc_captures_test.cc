// SPDX-License-Identifier: Apache-2.0
// Captures of real BMCs (tests/bmc/capture.h), replayed path by path. Nothing of what they contain
// is printed.
#include "tests/bmc/capture.h"
#include "tests/bmc/redfish_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace muster::bmc {
namespace {

struct Capture {
  const char* name;
  int min_firmware;
  const char* component;  ///< as the inventory names it under this vendor's rule
};

class RedfishCaptures : public testing::TestWithParam<Capture> {
 protected:
  void SetUp() override {
    auto read = test::readCapture(GetParam().name);
    if (!read) GTEST_SKIP() << test::noCapture(GetParam().name);
    resources = std::move(*read);
    net.handle = test::captureHandler(resources);
  }

  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  Json resources;
};

TEST_P(RedfishCaptures, systemPowerAndMacsAreRead) {
  auto bmc = rig.bmc();
  auto system = loop.run(bmc->system());
  ASSERT_TRUE(system) << system.error().str();
  EXPECT_EQ(system->power, PowerState::On);
  EXPECT_FALSE(system->manufacturer.empty());
  EXPECT_FALSE(system->model.empty());
  EXPECT_FALSE(system->serial.empty());
  EXPECT_FALSE(system->uuid.empty());
  EXPECT_FALSE(system->macs.empty());
  EXPECT_EQ(system->boot_override, BootTarget::None);
}

TEST_P(RedfishCaptures, theFirmwareInventoryHasStableUniqueNamesWithVersions) {
  auto bmc = rig.bmc();
  auto items = loop.run(bmc->firmware());
  ASSERT_TRUE(items) << items.error().str();
  EXPECT_GE(static_cast<int>(items->size()), GetParam().min_firmware);
  std::set<std::string> names;
  for (const auto& item : *items) {
    EXPECT_TRUE(names.insert(item.name).second);
    EXPECT_FALSE(item.version.empty());
  }
  EXPECT_TRUE(names.contains(GetParam().component));
}

/// iLO: sixteen drives of one Name; DeviceContext says where each is.
TEST_P(RedfishCaptures, partsOfOneNameAreToldApartByTheirPlace) {
  if (std::string(GetParam().name) != "hpe") GTEST_SKIP() << "HPE's way";
  auto bmc = rig.bmc();
  const auto items = loop.run(bmc->firmware());
  ASSERT_TRUE(items) << items.error().str();
  std::set<std::string> names;
  for (const auto& item : *items) names.insert(item.name);
  for (const char* name : {"NVMe Drive Port 2A Box 2 Bay 3", "Power Supply Firmware (Bay 1)",
                           "ConnectX-6 100GE 1P NIC (PCI-E Slot 4)", "System ROM"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_FALSE(names.contains("NVMe Drive"));
}

TEST_P(RedfishCaptures, onWhenItIsOnNeedsNoRequestThatChangesAnything) {
  auto bmc = rig.bmc();
  EXPECT_TRUE(loop.run(bmc->power(PowerAction::On)));
  for (const auto& request : net.requests)
    EXPECT_TRUE(request.method == "GET" ||
                request.url.target.find("Sessions") != std::string::npos);
}

TEST_P(RedfishCaptures, tasksAreListedOrAbsentButNeverAnError) {
  auto bmc = rig.bmc();
  auto tasks = loop.run(bmc->tasks());
  ASSERT_TRUE(tasks) << tasks.error().str();
  EXPECT_TRUE(tasks->running.empty());
}

TEST_P(RedfishCaptures, sensorsAreReadWithUnitsAndNoneIsNonsense) {
  auto bmc = rig.bmc();
  auto readings = loop.run(bmc->sensors());
  ASSERT_TRUE(readings) << readings.error().str();
  EXPECT_GE(readings->size(), 10u);
  bool temperature = false, power = false;
  for (const auto& reading : *readings) {
    EXPECT_FALSE(reading.name.empty());
    temperature =
        temperature || (reading.kind == "Temperature" && reading.value > 5 && reading.value < 120);
    power = power || (reading.kind == "Power" && reading.value > 0);
  }
  EXPECT_TRUE(temperature);
  EXPECT_TRUE(power);
}

TEST_P(RedfishCaptures, powerSuppliesShowTheirHealthAlsoWithoutAWattageOrByTheirGroup) {
  auto bmc = rig.bmc();
  auto readings = loop.run(bmc->sensors());
  ASSERT_TRUE(readings) << readings.error().str();
  EXPECT_GE(std::count_if(readings->begin(), readings->end(),
                          [](const SensorReading& reading) {
                            return reading.kind == "PowerSupply" && reading.health == "OK";
                          }),
            2);
}

TEST_P(RedfishCaptures, networkAdaptersAreReadAndAllOfThemAreReady) {
  auto bmc = rig.bmc();
  const auto late = loop.run(bmc->devicesNotReady());
  ASSERT_TRUE(late) << late.error().str();
  EXPECT_TRUE(late->empty());
  EXPECT_TRUE(std::any_of(net.requests.begin(), net.requests.end(), [](const auto& request) {
    return request.url.target.find("NetworkAdapters") != std::string::npos;
  }));
}

TEST_P(RedfishCaptures, biosAttributesAreReadAndUnknownOnesAreRefusedBeforeAnythingIsSent) {
  auto bmc = rig.bmc();
  auto attributes = loop.run(bmc->biosAttributes());
  ASSERT_TRUE(attributes) << attributes.error().str();
  EXPECT_GE(attributes->size(), 100u);
  auto refused = loop.run(bmc->stageBios({{"NoSuchAttribute", "1"}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
  for (const auto& request : net.requests) EXPECT_NE(request.method, "PATCH");
}

TEST_P(RedfishCaptures, theSurveyKnowsTheMachineAndItsNics) {
  auto bmc = rig.bmc();
  auto survey = loop.run(bmc->survey());
  ASSERT_TRUE(survey) << survey.error().str();
  EXPECT_FALSE(survey->system.macs.empty());
  EXPECT_FALSE(survey->bmc_version.empty());
}

TEST_P(RedfishCaptures, backgroundCopiesAndTheEventLogAreReadOrSaidToBeMissing) {
  auto bmc = rig.bmc();
  auto copies = loop.run(bmc->backgroundCopies());
  ASSERT_TRUE(copies) << copies.error().str();
  EXPECT_EQ(copies->empty(), std::string(GetParam().name) != "nvidia_viking");
  for (const auto& copy : *copies) EXPECT_FALSE(copy.running);
  auto log = loop.run(bmc->eventLog(20));
  ASSERT_TRUE(log) << log.error().str();
  EXPECT_GE(log->entries.size(), 5u) << "a log that is empty was taken for the event log";
}

TEST_P(RedfishCaptures, anImageToGoBackToIsFoundWhereTheVendorKeepsOne) {
  auto bmc = rig.bmc();
  const auto previous = loop.run(bmc->previousImage(GetParam().component));
  if (std::string(GetParam().name) != "dell") {
    ASSERT_FALSE(previous);
    EXPECT_EQ(previous.error().code(), ErrorCode::NotFound);
    return;
  }
  ASSERT_TRUE(previous) << previous.error().str();
  const auto items = loop.run(bmc->firmware());
  ASSERT_TRUE(items);
  const auto now = std::find_if(items->begin(), items->end(), [](const FirmwareItem& item) {
    return item.name == GetParam().component;
  });
  ASSERT_NE(now, items->end());
  EXPECT_NE(*previous, now->version);
  EXPECT_FALSE(now->being_written);
  EXPECT_FALSE(loop.run(bmc->rollBack(GetParam().component)));  // a capture refuses every write
}

TEST_P(RedfishCaptures, whereTheSerialConsoleIsIsReadOrSaidToBeMissing) {
  auto bmc = rig.bmc();
  const auto place = loop.run(bmc->serialConsole());
  ASSERT_TRUE(place) << place.error().str();
  const std::string vendor = GetParam().name;
  EXPECT_EQ(place->ssh, vendor == "hpe" || vendor == "supermicro")
      << "iDRAC has it switched off; a DGX offers IPMI";
  EXPECT_EQ(place->ssh_command.value_or("").empty(), vendor != "supermicro")
      << "iLO does not say by what command";
}

TEST_P(RedfishCaptures, anAcCycleIsOnlyAskedForWhereTheVendorHasOne) {
  auto bmc = rig.bmc();
  auto cut = loop.run(bmc->acCycle());  // a capture refuses every write, so none succeeds
  ASSERT_FALSE(cut);
  const bool none = std::string(GetParam().name) == "nvidia_viking";
  EXPECT_EQ(cut.error().code() == ErrorCode::NotFound &&
                cut.error().text().find("no full power cycle") != std::string::npos,
            none)
      << cut.error().str();
}

INSTANTIATE_TEST_SUITE_P(All, RedfishCaptures,
                         testing::Values(Capture{"dell", 20, "BIOS.Setup.1-1"},
                                         Capture{"hpe", 40, "System ROM"},
                                         Capture{"supermicro", 100, "HGX_FW_BMC_0"},
                                         Capture{"nvidia_viking", 60, "HostBIOS_0"}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster::bmc
