// SPDX-License-Identifier: Apache-2.0
// A look at the sensors of a machine whose sensors have a resource each: in few requests, and what
// cannot be read now is neither lost nor well.
#include "bmc/redfish/sensors.h"

#include "tests/bmc/resource_tree.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::healthOf;
using test::linkTo;

constexpr int kGpus = 150;

/// A host chassis with Thermal, a baseboard with a sensor for each GPU, and a report of the first
/// forty (DSP2046: MetricReport). $expand is obeyed where `expand` says so.
class RedfishSensorLooks : public test::ResourceTree {
 protected:
  RedfishSensorLooks() {
    tree["/redfish/v1/"]["TelemetryService"] = linkTo("/redfish/v1/TelemetryService");
    tree["/host"]["Thermal"] = linkTo("/host/Thermal");
    tree["/host/Thermal"] = {
        {"Temperatures",
         {{{"Name", "Inlet"}, {"ReadingCelsius", 24}, {"Status", healthOf("OK")}}}}};
    tree["/gpus"]["Sensors"] = linkTo("/gpus/Sensors");
    auto members = json::array(), values = json::array();
    for (int i = 0; i < kGpus; ++i) {
      members.push_back(linkTo(sensor(i)));
      tree[sensor(i)] = {{"@odata.id", sensor(i)},
                         {"Id", fmt::format("GPU_{}", i)},
                         {"Name", fmt::format("GPU {}", i)},
                         {"Reading", 50},
                         {"ReadingType", "Temperature"},
                         {"Status", healthOf("OK")},
                         {"Thresholds", {{"UpperCritical", {{"Reading", 90}}}}}};
      if (i < 40)
        values.push_back({{"MetricProperty", sensor(i) + "#/Reading"}, {"MetricValue", "51.5"}});
    }
    tree["/gpus/Sensors"] = {{"Members", members}};
    tree["/redfish/v1/TelemetryService"] = {{"MetricReports", linkTo("/reports")}};
    tree["/reports"] = {{"Members", {linkTo("/reports/other"), linkTo("/reports/gpus")}}};
    tree["/reports/other"] = {
        {"Id", "other"},
        {"MetricValues",
         {{{"MetricProperty", "/redfish/v1/Systems/1/Memory/1#/X"}, {"MetricValue", "1"}}}}};
    tree["/reports/gpus"] = {{"Id", "gpus"}, {"MetricValues", values}};
  }
  static std::string sensor(int i) { return fmt::format("/gpus/Sensors/GPU_{}", i); }
  void offerExpand() {
    tree["/redfish/v1/"]["ProtocolFeaturesSupported"] = {{"ExpandQuery", {{"NoLinks", true}}}};
    expand = true;
  }
  std::size_t look() {
    const auto before = net.requests.size();
    auto read = loop.run(bmc->sensors());
    error = read ? "" : read.error().str();
    readings = read ? std::move(*read) : std::vector<SensorReading>();
    loop.clock.advance(5min);
    return net.requests.size() - before;
  }
  const SensorReading* named(const std::string& name) const {
    for (const auto& reading : readings)
      if (reading.name == name) return &reading;
    return nullptr;
  }

  test::RedfishRig rig{loop, net};
  std::unique_ptr<RedfishBmc> bmc = rig.bmc();
  std::vector<SensorReading> readings;
  std::string error;
};

TEST_F(RedfishSensorLooks, expandGivesACollectionInOneAnswer) {
  offerExpand();
  look();
  EXPECT_EQ(readings.size(), kGpus + 1u) << error;
  EXPECT_EQ(look(), 2u) << "Thermal, and all sensors of the baseboard";
  EXPECT_EQ(readings.size(), kGpus + 1u);
}

TEST_F(RedfishSensorLooks, anExpandThatLosesReadingsIsNotBelieved) {
  offerExpand();
  dropped = {"Reading", "Status"};
  for (int i = 0; i < 4; ++i) look();
  EXPECT_EQ(readings.size(), kGpus + 1u) << error;
  ASSERT_NE(named("GPU 149"), nullptr);
  EXPECT_EQ(named("GPU 149")->value, 50);
}

TEST_F(RedfishSensorLooks, withoutExpandAReportGivesValuesAndTheRestTakesTurns) {
  look();
  EXPECT_THAT(readings.size(), testing::AllOf(testing::Ge(129u), testing::Lt(kGpus + 1u)));
  for (int i = 0; i < 3; ++i) EXPECT_LE(look(), 30u);
  ASSERT_EQ(readings.size(), kGpus + 1u) << error;
  EXPECT_EQ(named("GPU 3")->value, 51.5) << "by the report";
  EXPECT_EQ(named("GPU 3")->upper_critical, 90) << "by its own resource, read once";
  EXPECT_EQ(net.count("GET", "/reports/other"), 1) << "it holds nothing of ours";
}

TEST_F(RedfishSensorLooks, whatLookedBadIsReadAtEachLook) {
  for (int i = 0; i < 3; ++i) look();
  tree[sensor(149)]["Status"] = healthOf("Critical");
  const auto isBad = [this] { return named("GPU 149") && named("GPU 149")->health == "Critical"; };
  int looks = 0;
  for (; !isBad() && looks < 8; ++looks) look();
  EXPECT_LE(looks, 7) << "all have had their turn";
  const auto reads = net.count("GET", sensor(149));
  look();
  EXPECT_EQ(net.count("GET", sensor(149)), reads + 1);
  tree[sensor(149)]["Status"] = healthOf("OK");
  look();
  EXPECT_EQ(named("GPU 149")->health, "OK") << "at the very next look";
}

TEST_F(RedfishSensorLooks, whatCannotBeReadNowIsNotTakenForWell) {
  offerExpand();
  tree["/host/Thermal"]["Temperatures"][0]["Status"] = healthOf("Critical");
  look();
  busy.insert("/host/Thermal");
  look();
  ASSERT_NE(named("Inlet"), nullptr) << error;
  EXPECT_EQ(named("Inlet")->health, "Critical") << "as it was read last";
  EXPECT_TRUE(named("Inlet")->stale);
  for (int i = 0; i < 7; ++i) look();
  EXPECT_EQ(named("Inlet"), nullptr) << "after half an hour nobody knows";
  EXPECT_EQ(readings.size(), static_cast<std::size_t>(kGpus)) << "the others still count";
}

TEST_F(RedfishSensorLooks, aTrayWithoutItsHostIsNotLookedForAtEachLook) {
  offerExpand();
  busy = {"/gpus"};
  look();
  EXPECT_EQ(readings.size(), 1u) << error;
  EXPECT_EQ(look(), 1u) << "Thermal alone";
  busy.clear();
  for (int i = 0; i < 3; ++i) look();
  EXPECT_EQ(readings.size(), kGpus + 1u) << "found again within ten minutes";
}

TEST_F(RedfishSensorLooks, nothingReadableIsAnErrorAndNotAMachineWithoutSensors) {
  busy = {"/host/Thermal", "/gpus/Sensors"};
  look();
  EXPECT_THAT(error, testing::HasSubstr("503"));
}

/// DGX H100: the CPU baseboard's chassis lists the same 120 temperatures as the host's Thermal.
TEST_F(RedfishSensorLooks, aCopyOfAnotherChassisListsIsReadOnce) {
  offerExpand();
  tree["/redfish/v1/Chassis"]["Members"].push_back(linkTo("/copy"));
  tree["/copy"] = {{"Id", "Copy"}, {"Sensors", linkTo("/copy/Sensors")}};
  tree["/copy/Sensors"] = {{"Members", {linkTo("/copy/Sensors/Inlet")}}};
  tree["/copy/Sensors/Inlet"] = {{"@odata.id", "/copy/Sensors/Inlet"},
                                 {"Id", "Inlet"},
                                 {"Name", "Inlet"},
                                 {"Reading", 24},
                                 {"Status", healthOf("OK")}};
  look();
  EXPECT_EQ(readings.size(), kGpus + 1u) << error;
  EXPECT_EQ(look(), 2u);
}

}  // namespace
}  // namespace muster::bmc
