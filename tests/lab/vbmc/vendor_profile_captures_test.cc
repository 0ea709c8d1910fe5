// SPDX-License-Identifier: Apache-2.0
// Each vendor profile of the lab's virtual BMC beside a capture of a real one: the resources that a
// client is led to, and the properties that they have. What the virtual BMC shows and the real one
// does not is what a client could come to rely on by mistake: it is printed, and must be in the
// list of what is known. Values are not compared; nothing of what a capture contains is printed but
// names of resources and properties.
#include "bmc/redfish/json_view.h"
#include "tests/bmc/capture.h"
#include "tests/bmc/virtual_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>

namespace muster::lab::vbmc {
namespace {

using bmc::Json;
using bmc::linksAt;

struct Pair {
  const char* profile;
  const char* capture;
  std::vector<const char*> resources;  ///< with the vendor's names
  std::set<std::string> known;         ///< "+RESOURCE PROPERTY" only here, "-…" only there
};

/// Of a GET to the virtual BMC.
Json shown(test::VirtualLoop& loop, test::VirtualBmc& bmc, const std::string& path) {
  io::ServerRequest request;
  request.method = "GET";
  request.target = path;
  request.headers["Authorization"] = "Basic YWRtaW46cmlnaHQ=";  // admin:right
  const auto ask = [](RedfishService& service,
                      io::ServerRequest asked) -> Task<io::ServerResponse> {
    co_return co_await service.handle(std::move(asked));
  };
  const auto answer = loop.run(ask(*bmc.service, std::move(request)));
  const auto* text = std::get_if<std::string>(&answer.body);
  return answer.status == 200 && text ? Json::parse(*text, nullptr, false) : Json();
}

class EmulatorCaptures : public testing::TestWithParam<Pair> {};

TEST_P(EmulatorCaptures, differencesAreKnown) {
  const auto& pair = GetParam();
  const auto capture = test::readCapture(pair.capture);
  if (!capture) GTEST_SKIP() << test::noCapture(pair.capture);
  test::VirtualLoop loop;
  test::VirtualBmc bmc(loop, pair.profile);
  std::set<std::string> found;
  const auto differs = [&](char sign, const std::string& path, const std::string& property) {
    found.insert(sign + path.substr(std::string("/redfish/v1").size()) + " " + property);
  };
  for (const std::string path : pair.resources) {
    const auto real = capture->find(path);
    const auto emulated = shown(loop, bmc, path);
    ASSERT_TRUE(real != capture->end()) << "the capture has no " << path;
    EXPECT_TRUE(emulated.is_object()) << "the virtual BMC has no " << path;
    if (!emulated.is_object()) continue;
    for (const auto& [property, value] : emulated.items())
      if (!real->contains(property)) differs('+', path, property);
    // Only what identifies a machine or leads on: a virtual BMC need not have all of the rest.
    for (const char* property : {"SerialNumber", "Model", "Manufacturer", "UUID", "Boot", "Bios",
                                 "EthernetInterfaces", "LogServices", "Links", "Product", "Vendor",
                                 "MultipartHttpPushUri", "HttpPushUri", "@Redfish.Settings"})
      if (real->contains(property) && !emulated.contains(property)) differs('-', path, property);
  }
  for (const auto& one : found)
    if (pair.known.contains(one)) std::printf("known difference  %s\n", one.c_str());
  std::set<std::string> fresh, gone;
  std::ranges::set_difference(found, pair.known, std::inserter(fresh, fresh.end()));
  std::ranges::set_difference(pair.known, found, std::inserter(gone, gone.end()));
  EXPECT_THAT(fresh, testing::IsEmpty()) << "differences that nobody has accepted";
  EXPECT_THAT(gone, testing::IsEmpty()) << "accepted differences that are none any more";
}

TEST(EmulatorNames, ofAGraceTrayAreThoseOfTheCapture) {
  const auto capture = test::readCapture("nvidia_gb200");
  if (!capture) GTEST_SKIP() << test::noCapture("nvidia_gb200");
  const auto profile = *findVendorProfile("gb200");
  for (const auto& row : profile->components) {
    const auto path = "/redfish/v1/UpdateService/FirmwareInventory/" + std::string(row.name);
    EXPECT_TRUE(capture->contains(path)) << path;
  }
  test::VirtualLoop loop;
  test::VirtualBmc bmc(loop, "gb200");
  const auto chassis = shown(loop, bmc, "/redfish/v1/Chassis");
  for (const auto& path : linksAt(chassis, "Members")) EXPECT_TRUE(capture->contains(path)) << path;
}

INSTANTIATE_TEST_SUITE_P(
    All, EmulatorCaptures,
    testing::Values(
        Pair{
            "gb200",
            "nvidia_gb200",
            {"/redfish/v1", "/redfish/v1/Systems/System_0", "/redfish/v1/Systems/System_0/Settings",
             "/redfish/v1/Managers/BMC_0", "/redfish/v1/Chassis/BMC_0",
             "/redfish/v1/Chassis/Chassis_0", "/redfish/v1/Chassis/HGX_ERoT_FPGA_0",
             "/redfish/v1/UpdateService", "/redfish/v1/UpdateService/FirmwareInventory/FW_BMC_0"},
            {"+/Chassis/Chassis_0 NetworkAdapters",
             "+/UpdateService/FirmwareInventory/FW_BMC_0 Oem", "-/Chassis/HGX_ERoT_FPGA_0 Links",
             "-/Chassis/HGX_ERoT_FPGA_0 Manufacturer", "-/Chassis/HGX_ERoT_FPGA_0 SerialNumber",
             "-/Chassis/HGX_ERoT_FPGA_0 UUID", "-/Managers/BMC_0 EthernetInterfaces",
             "-/Managers/BMC_0 LogServices", "-/Managers/BMC_0 Model", "-/Managers/BMC_0 UUID",
             "-/UpdateService HttpPushUri",
             "-/UpdateService/FirmwareInventory/FW_BMC_0 Manufacturer"}},
        Pair{"dgx-h100",
             "nvidia_viking",
             {"/redfish/v1", "/redfish/v1/Systems/DGX", "/redfish/v1/Managers/BMC",
              "/redfish/v1/Chassis/DGX", "/redfish/v1/UpdateService"},
             {"- Product", "-/Chassis/DGX LogServices", "-/Chassis/DGX Manufacturer",
              "-/Chassis/DGX Model", "-/Chassis/DGX SerialNumber",
              "-/Managers/BMC EthernetInterfaces", "-/Managers/BMC LogServices",
              "-/Managers/BMC Model", "-/Managers/BMC UUID"}},
        Pair{"idrac",
             "dell",
             {"/redfish/v1", "/redfish/v1/Systems/System.Embedded.1",
              "/redfish/v1/Managers/iDRAC.Embedded.1", "/redfish/v1/Chassis/System.Embedded.1",
              "/redfish/v1/UpdateService"},
             {"+ UUID", "+/Systems/System.Embedded.1 LogServices", "- Product",
              "-/Chassis/System.Embedded.1 Manufacturer", "-/Chassis/System.Embedded.1 Model",
              "-/Chassis/System.Embedded.1 SerialNumber", "-/Chassis/System.Embedded.1 UUID",
              "-/Managers/iDRAC.Embedded.1 EthernetInterfaces",
              "-/Managers/iDRAC.Embedded.1 LogServices", "-/Managers/iDRAC.Embedded.1 Model",
              "-/Managers/iDRAC.Embedded.1 UUID", "-/UpdateService HttpPushUri"}},
        Pair{"ilo",
             "hpe",
             {"/redfish/v1", "/redfish/v1/Systems/1", "/redfish/v1/Managers/1",
              "/redfish/v1/Chassis/1", "/redfish/v1/UpdateService"},
             {"+/Chassis/1 PowerSubsystem", "+/Chassis/1 Sensors",
              "+/UpdateService MaxImageSizeBytes", "+/UpdateService Status", "- Product",
              "-/Chassis/1 Manufacturer", "-/Chassis/1 Model", "-/Chassis/1 SerialNumber",
              "-/Managers/1 EthernetInterfaces", "-/Managers/1 LogServices", "-/Managers/1 Model",
              "-/Managers/1 UUID"}},
        Pair{"supermicro",
             "supermicro",
             {"/redfish/v1", "/redfish/v1/Systems/1", "/redfish/v1/Managers/1",
              "/redfish/v1/Chassis/1", "/redfish/v1/UpdateService"},
             {"+/Chassis/1 PowerSubsystem", "+/Systems/1 HostName",
              "+/UpdateService MaxImageSizeBytes", "-/Chassis/1 Manufacturer", "-/Chassis/1 Model",
              "-/Chassis/1 SerialNumber", "-/Managers/1 EthernetInterfaces",
              "-/Managers/1 LogServices", "-/Managers/1 Model", "-/Managers/1 UUID"}}),
    [](const auto& info) {
      std::string name = info.param.profile;
      std::ranges::replace(name, '-', '_');
      return name;
    });

}  // namespace
}  // namespace muster::lab::vbmc
