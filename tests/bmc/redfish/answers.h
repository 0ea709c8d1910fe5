// SPDX-License-Identifier: Apache-2.0
// A Redfish service whose answers a test overrides.
#pragma once

#include "tests/bmc/redfish_rig.h"

#include <gtest/gtest.h>

namespace muster::bmc {

inline constexpr const char* kInventory = "/redfish/v1/UpdateService/FirmwareInventory";
inline constexpr const char* kTasks = "/redfish/v1/TaskService/Tasks";

/// A service whose answers a test overrides, by path without query.
class Answers : public testing::Test {
 public:
  Answers() {
    net.handle = [this](io::HttpRequest request) { return serve(std::move(request)); };
  }
  static Json link(const std::string& path) { return {{"@odata.id", path}}; }

  Async<io::HttpResponse> serve(io::HttpRequest request) {
    const auto target = request.url.target;
    std::string path = target;
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (request.method == "POST") {
      if (resets_at_login-- > 0) co_return fail(ErrorCode::Unavailable, "connection reset");
      co_return test::FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
    }
    if (const auto raw = texts.find(path); raw != texts.end())
      co_return io::HttpResponse{200, {{"Content-Type", "text/html"}}, raw->second};
    const auto found = resources.find(path);
    co_return found == resources.end() ? test::FakeHttp::json(404, "{}")
                                       : test::FakeHttp::json(200, found->dump());
  }

  Json resources = {{"/redfish/v1",
                     {{"RedfishVersion", "1.17.0"},
                      {"Systems", link("/redfish/v1/Systems")},
                      {"Managers", link("/redfish/v1/Managers")},
                      {"Tasks", link("/redfish/v1/TaskService")},
                      {"SessionService", link("/redfish/v1/SessionService")},
                      {"UpdateService", link("/redfish/v1/UpdateService")}}},
                    {"/redfish/v1/Systems", {{"Members", {link("/redfish/v1/Systems/S")}}}},
                    {"/redfish/v1/Systems/S",
                     {{"Id", "S"},
                      {"Model", "M"},
                      {"Manufacturer", "X"},
                      {"SerialNumber", "SN1"},
                      {"PowerState", "On"},
                      {"Actions", {{"#ComputerSystem.Reset", {{"target", "/reset"}}}}}}},
                    {"/redfish/v1/Managers", {{"Members", {link("/redfish/v1/Managers/M")}}}},
                    {"/redfish/v1/Managers/M", {{"Id", "M"}}},
                    {"/redfish/v1/TaskService", {{"Tasks", link(kTasks)}}},
                    {kTasks, {{"Members", Json::array()}}},
                    {"/redfish/v1/UpdateService", {{"FirmwareInventory", link(kInventory)}}},
                    {kInventory, {{"Members", {link(std::string(kInventory) + "/A")}}}},
                    {std::string(kInventory) + "/A", {{"Id", "A"}, {"Version", " 1.0 "}}},
                    {std::string(kInventory) + "/B", {{"Id", "B"}, {"Version", "2.0"}}}};
  std::map<std::string, std::string> texts;
  int resets_at_login = 0;
  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
};

}  // namespace muster::bmc
