// SPDX-License-Identifier: Apache-2.0
// What a BMC says of a failure, in its own words: messages of weight, and message ids by its
// registries. The resources have the form of DSP0266 and DSP2046.
#include "bmc/redfish/message_registry.h"

#include "tests/bmc/redfish_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace muster::bmc {
namespace {

nlohmann::json linked(const std::string& uri) { return {{"@odata.id", uri}}; }

class FailureWords : public testing::Test {
 protected:
  FailureWords() {
    net.handle = [this](io::HttpRequest request) -> Async<io::HttpResponse> {
      if (request.method == "POST")
        co_return test::FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
      const auto found = tree.find(io::pathOf(request.url.target));
      co_return found == tree.end() ? test::FakeHttp::json(404, "{}")
                                    : test::FakeHttp::json(200, found->second.dump());
    };
    tree["/redfish/v1/"] = {{"Systems", linked("/redfish/v1/Systems")},
                            {"Managers", linked("/redfish/v1/Managers")},
                            {"Registries", linked("/redfish/v1/Registries")}};
    tree["/redfish/v1/Systems"] = {{"Members", {linked("/redfish/v1/Systems/1")}}};
    tree["/redfish/v1/Systems/1"] = {{"Actions", {{"#ComputerSystem.Reset", {{"target", "/r"}}}}}};
    tree["/redfish/v1/Managers"] = {{"Members", {linked("/redfish/v1/Managers/1")}}};
    tree["/redfish/v1/Managers/1"] = {{"Id", "1"}};
    tree["/redfish/v1/Registries"] = {{"Members",
                                       {linked("/redfish/v1/Registries/Base.1.13.0"),
                                        linked("/redfish/v1/Registries/UpdateMessages")}}};
    tree["/redfish/v1/Registries/UpdateMessages"] = {
        {"Registry", "Update.1.0"},
        {"Location",
         {{{"Language", "ja"}, {"Uri", "/none"}},
          {{"Language", "en"}, {"Uri", "/registries/update.json"}}}}};
    tree["/registries/update.json"] = {
        {"Messages",
         {{"ApplyFailed",
           {{"Message", "Installation of image '%1' to '%2' failed."},
            {"Severity", "Critical"},
            {"Resolution", "Reset the BMC and send the image again."}}}}}};
    tree[kTask] = {{"Id", "7"}, {"TaskState", "Exception"}};
  }
  TaskStatus read() { return *loop.run(bmc->task(kTask)); }

  static constexpr const char* kTask = "/redfish/v1/TaskService/Tasks/7";
  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  std::unique_ptr<RedfishBmc> bmc = rig.bmc();
  std::map<std::string, nlohmann::json> tree;
};

TEST_F(FailureWords, whatIsFineIsNotPartOfAFailure) {
  tree[kTask]["Messages"] = {
      {{"MessageId", "Update.1.0.TargetDetermined"},
       {"Severity", "OK"},
       {"Message", "The target device 'BIOS' will be updated with image 'x'."}},
      {{"MessageId", "Update.1.0.VerificationFailed"},
       {"MessageSeverity", "Critical"},
       {"Message", "Verification of image 'x' at 'BIOS' failed."},
       {"Resolution", "Get the image from the vendor again."}}};
  const auto status = read();
  EXPECT_EQ(status.state, TaskState::Failed);
  EXPECT_EQ(status.message, "Verification of image 'x' at 'BIOS' failed.");
  EXPECT_EQ(status.resolution, "Get the image from the vendor again.");
}

TEST_F(FailureWords, anIdWithoutWordsIsLookedUpInTheServicesRegistriesOnce) {
  tree[kTask]["Messages"] = {{{"MessageId", "Update.1.0.ApplyFailed"},
                              {"MessageArgs", {"img-7", "BIOS"}},
                              {"Severity", "Critical"}}};
  auto status = read();
  EXPECT_EQ(status.message, "Installation of image 'img-7' to 'BIOS' failed.");
  EXPECT_EQ(status.resolution, "Reset the BMC and send the image again.");
  EXPECT_EQ(net.count("GET", "/redfish/v1/Registries/Base.1.13.0"), 0) << "by its name another";
  read();
  EXPECT_EQ(net.count("GET", "/registries/update.json"), 1);
}

TEST_F(FailureWords, anIdThatNobodyExplainsIsSaidAsItIs) {
  tree[kTask]["Messages"] = {{{"MessageId", "Oem.1.0.Strange"}, {"Severity", "Critical"}}};
  const auto status = read();
  EXPECT_EQ(status.message, "Oem.1.0.Strange");
  EXPECT_EQ(status.resolution, "");
}

TEST(RegistryMessages, argumentsThatAreMissingStayMarks) {
  EXPECT_EQ(filledMessage("%1 of %2 failed, 100%", {"A"}), "A of %2 failed, 100%");
  EXPECT_EQ(filledMessage("%2 %1", {"a", "b\n"}), "b  a");
}

}  // namespace
}  // namespace muster::bmc
