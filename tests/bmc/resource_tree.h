// SPDX-License-Identifier: Apache-2.0
// A service of resources that a test writes down itself, in the form of DSP2046: one system, one
// manager, two chassis. What is in no resource is answered with 404.
#pragma once

#include "base/io/http.h"
#include "tests/bmc/redfish_rig.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::test {

inline nlohmann::json linkTo(const std::string& uri) { return {{"@odata.id", uri}}; }
inline nlohmann::json healthOf(const std::string& word) {
  return {{"State", "Enabled"}, {"Health", word}};
}

class ResourceTree : public testing::Test {
 protected:
  ResourceTree() {
    net.handle = [this](io::HttpRequest request) { return answer(std::move(request)); };
    tree["/redfish/v1/"] = {{"Systems", linkTo("/redfish/v1/Systems")},
                            {"Managers", linkTo("/redfish/v1/Managers")},
                            {"Chassis", linkTo("/redfish/v1/Chassis")}};
    tree["/redfish/v1/Systems"] = {{"Members", {linkTo("/redfish/v1/Systems/1")}}};
    tree["/redfish/v1/Systems/1"] = {
        {"PowerState", "On"}, {"Actions", {{"#ComputerSystem.Reset", {{"target", "/reset"}}}}}};
    tree["/redfish/v1/Managers"] = {{"Members", {linkTo("/redfish/v1/Managers/1")}}};
    tree["/redfish/v1/Managers/1"] = {{"Id", "1"}};
    tree["/redfish/v1/Chassis"] = {{"Members", {linkTo("/host"), linkTo("/gpus")}}};
    tree["/host"] = {{"Id", "Host"}};
    tree["/gpus"] = {{"Id", "Baseboard"}};
  }

  Async<io::HttpResponse> answer(io::HttpRequest request) {
    const auto path = io::pathOf(request.url.target);
    if (request.method == "POST") co_return FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
    if (busy.contains(path)) co_return FakeHttp::json(503, "{}");
    auto found = tree.find(path);
    if (found == tree.end()) found = tree.find(path + "/");
    if (found == tree.end()) co_return FakeHttp::json(404, "{}");
    auto body = found->second;
    if (expand && request.url.target.find("$expand") != std::string::npos)
      for (auto& member : body["Members"]) {
        member = tree[member.at("@odata.id").get<std::string>()];
        for (const auto& name : dropped) member.erase(name);
      }
    co_return FakeHttp::json(200, body.dump());
  }

  VirtualLoop loop;
  FakeHttp net;
  std::map<std::string, nlohmann::json> tree;  ///< URI → resource
  std::set<std::string> busy;                  ///< URIs answered with 503
  bool expand = false;                         ///< whether $expand is obeyed
  std::vector<std::string> dropped;            ///< properties that $expand loses
};

}  // namespace muster::test
