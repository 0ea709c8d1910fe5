// SPDX-License-Identifier: Apache-2.0
// The emulated RAID controller, asked as a client without any knowledge of muster's would.
#include "lab/vbmc/storage_service.h"

#include "tests/bmc/virtual_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lab::vbmc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kVolumes = "/redfish/v1/Systems/system/Storage/RAID0/Volumes";

class EmulatedRaid : public testing::Test {
 protected:
  struct Answer {
    int status = 0;
    json body;
    std::string location;
  };
  Answer ask(const std::string& method, const std::string& path, const json& body = {}) {
    io::ServerRequest request;
    request.method = method;
    request.target = path;
    request.headers["Authorization"] = "Basic YWRtaW46cmlnaHQ=";  // admin:right
    if (!body.is_null()) request.body = body.dump();
    const auto handle = [](RedfishService& service,
                           io::ServerRequest asked) -> Task<io::ServerResponse> {
      co_return co_await service.handle(std::move(asked));
    };
    auto answer = loop.run(handle(*bmc.service, std::move(request)));
    const auto* text = std::get_if<std::string>(&answer.body);
    const auto location = answer.headers.find("Location");
    return {answer.status, json::parse(text ? *text : "", nullptr, false),
            location == answer.headers.end() ? "" : location->second};
  }
  static json order(const std::string& level, std::vector<int> drives) {
    json body = {{"RAIDType", level}, {"Links", {{"Drives", json::array()}}}};
    for (const int drive : drives)
      body["Links"]["Drives"].push_back(
          {{"@odata.id",
            fmt::format("/redfish/v1/Systems/system/Storage/RAID0/Drives/Bay{}", drive)}});
    return body;
  }
  Task<int> pause(std::chrono::seconds time) {
    co_await loop.clock.sleep(time);
    co_return 0;
  }

  test::VirtualLoop loop;
  test::VirtualBmc bmc{loop, "muster", {}, {{"A"}, {"B"}, {"C"}, {"D", 480'103'981'056, false}}};
};

TEST_F(EmulatedRaid, isFoundFromTheSystemAndOnlyWhereThereAreDrives) {
  const auto system = ask("GET", "/redfish/v1/Systems/system").body;
  EXPECT_EQ(system.at("Storage").at("@odata.id"), "/redfish/v1/Systems/system/Storage");
  EXPECT_EQ(ask("GET", kVolumes).body.at("Members"), json::array());
  const auto drive = ask("GET", "/redfish/v1/Systems/system/Storage/RAID0/Drives/Bay3").body;
  EXPECT_EQ(drive.at("Status").at("Health"), "Critical");
  test::VirtualBmc without(loop);
  EXPECT_EQ(without.service->state().volumes.size(), 0u);
}

TEST_F(EmulatedRaid, aVolumeIsMadeByATaskAndDeletedByAnother) {
  const auto made = ask("POST", kVolumes, order("RAID1", {0, 1}));
  ASSERT_EQ(made.status, 202) << made.body.dump();
  EXPECT_EQ(ask("GET", made.location).body.at("TaskState"), "Running");
  EXPECT_EQ(ask("GET", kVolumes).body.at("Members").size(), 0u);
  loop.run(pause(std::chrono::seconds(5)));
  EXPECT_EQ(ask("GET", made.location).body.at("TaskState"), "Completed");
  const auto uri = ask("GET", kVolumes).body.at("Members").at(0).at("@odata.id");
  EXPECT_EQ(ask("GET", uri).body.at("RAIDType"), "RAID1");
  EXPECT_EQ(ask("DELETE", uri).status, 202);
  loop.run(pause(std::chrono::seconds(5)));
  EXPECT_EQ(ask("GET", uri).status, 404);
}

TEST_F(EmulatedRaid, whatDsp0268DoesNotAllowIsRefused) {
  EXPECT_EQ(ask("POST", kVolumes, order("RAID1", {0})).status, 400);
  EXPECT_EQ(ask("POST", kVolumes, order("RAID5", {0, 1})).status, 400);
  EXPECT_EQ(ask("POST", kVolumes, order("RAID60", {0, 1})).status, 400);
  EXPECT_EQ(ask("POST", kVolumes, order("RAID1", {0, 9})).status, 400);
  auto unknown = order("RAID1", {0, 1});
  unknown["Colour"] = "red";
  EXPECT_THAT(ask("POST", kVolumes, unknown).body.dump(), HasSubstr("PropertyUnknown"));
  auto later = order("RAID1", {0, 1});
  later["@Redfish.OperationApplyTime"] = "OnReset";
  EXPECT_EQ(ask("POST", kVolumes, later).status, 400);
  bmc.service->setVolumes({{"5", "x", "RAID0", {"Bay0"}}});
  EXPECT_EQ(ask("POST", kVolumes, order("RAID1", {0, 1})).status, 409);
  EXPECT_EQ(bmc.service->state().volume_orders, 0u);
}

}  // namespace
}  // namespace muster::lab::vbmc
