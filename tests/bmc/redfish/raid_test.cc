// SPDX-License-Identifier: Apache-2.0
// RAID controllers as real BMCs show them (captures), and what single resources say.
#include "bmc/redfish/raid_resources.h"
#include "tests/bmc/capture.h"
#include "tests/bmc/redfish_rig.h"
#include "tests/virtual_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using testing::HasSubstr;

/// A BMC that answers what the capture has.
struct CapturedRaid {
  explicit CapturedRaid(Json resources) : resources(std::move(resources)) {
    net.handle = [this](io::HttpRequest request) -> Async<io::HttpResponse> {
      auto path = io::pathOf(request.url.target);
      while (path.size() > 1 && path.back() == '/') path.pop_back();
      if (request.method == "POST") co_return FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
      const auto found = this->resources.find(path);
      if (found == this->resources.end()) co_return FakeHttp::json(404, "{}");
      co_return FakeHttp::json(200, test::withoutPages(*found).dump());
    };
  }
  using FakeHttp = test::FakeHttp;
  test::VirtualLoop loop;
  test::FakeHttp net;
  Json resources;
  test::RedfishRig rig{loop, net};
};

TEST(RedfishRaidCapture, hpesControllerShowsItsVolumeItsLevelsAndItsDrives) {
  auto resources = test::readCapture("hpe");
  if (!resources) GTEST_SKIP() << "no capture of HPE here";
  CapturedRaid captured(std::move(*resources));
  auto bmc = captured.rig.bmc();
  const auto all = captured.loop.run(bmc->raidControllers());
  ASSERT_TRUE(all) << all.error().str();
  const auto card =
      std::ranges::find_if(*all, [](const RaidController& each) { return !each.levels.empty(); });
  ASSERT_NE(card, all->end());
  EXPECT_THAT(card->levels, testing::IsSupersetOf({"RAID1", "RAID10", "RAID5", "RAID6"}));
  EXPECT_FALSE(card->at_restart);
  ASSERT_EQ(card->drives.size(), 2u);
  for (const auto& drive : card->drives) {
    EXPECT_EQ(drive.unusable, "");
    EXPECT_GT(drive.size_bytes, 400'000'000'000u);
    EXPECT_FALSE(drive.serial.empty());
  }
  ASSERT_EQ(card->volumes.size(), 1u);
  EXPECT_EQ(card->volumes[0].level, "RAID1");
  EXPECT_EQ(card->volumes[0].drives.size(), 2u);
  EXPECT_EQ(card->volumes[0].drives[0], card->drives[0].uri);
  EXPECT_EQ(card->volumes[0].wwn.size(), 34u);  // 0x and 32 digits
  EXPECT_TRUE(card->volumes[0].is_settled);
}

TEST(RedfishRaidCapture, dellsNvmeDrivesAreRawAndItsOrdersWaitForARestart) {
  auto resources = test::readCapture("dell");
  if (!resources) GTEST_SKIP() << "no capture of Dell here";
  CapturedRaid captured(std::move(*resources));
  auto bmc = captured.rig.bmc();
  const auto all = captured.loop.run(bmc->raidControllers());
  ASSERT_TRUE(all) << all.error().str();
  const auto cpu = std::ranges::find(*all, "CPU.1", &RaidController::id);
  ASSERT_NE(cpu, all->end());
  EXPECT_TRUE(cpu->at_restart);
  EXPECT_TRUE(cpu->levels.empty());  // it says none: it is no RAID controller
  ASSERT_EQ(cpu->volumes.size(), 3u);
  for (const auto& volume : cpu->volumes) EXPECT_TRUE(volume.is_raw && volume.drives.size() == 1);
  for (const auto& request : captured.net.requests)
    EXPECT_TRUE(request.method == "GET" ||
                request.url.target.find("Sessions") != std::string::npos);
}

/// Supermicro's has drives and no volumes; the DGX's list of Storage lists nothing at all.
TEST(RedfishRaidCapture, machinesWithoutAControllerSaySo) {
  for (const auto& [name, code] : {std::pair{"supermicro", ErrorCode::NotFound},
                                   std::pair{"nvidia_viking", ErrorCode::Unavailable}}) {
    auto resources = test::readCapture(name);
    if (!resources) GTEST_SKIP() << "no capture " << name << " here";
    CapturedRaid captured(std::move(*resources));
    auto bmc = captured.rig.bmc();
    const auto all = captured.loop.run(bmc->raidControllers());
    ASSERT_FALSE(all) << name;
    EXPECT_EQ(all.error().code(), code) << all.error().str();
  }
}

TEST(RaidResources, aDriveSaysWhyNoVolumeCanBeMadeOfIt) {
  const auto why = [](const char* text) {
    return raidDriveOf(Json::parse(text), "/drive/").unusable;
  };
  EXPECT_EQ(why(R"({"Status": {"State": "Enabled", "Health": "OK"}})"), "");
  EXPECT_EQ(why(R"({"Status": {"State": "Absent"}})"), "Absent");
  EXPECT_THAT(why(R"({"Status": {"Health": "Critical"}})"), HasSubstr("Critical"));
  EXPECT_THAT(why(R"({"FailurePredicted": true})"), HasSubstr("will fail"));
  EXPECT_THAT(why(R"({"HotspareType": "Dedicated"})"), HasSubstr("spare"));
  EXPECT_THAT(why(R"({"Oem": {"Dell": {"DellPhysicalDisk": {"RaidStatus": "NonRAID"}}}})"),
              HasSubstr("NonRAID"));
}

TEST(RaidResources, levelsOfOldServicesAreTakenFromTheVolumeTypeWhereItIsClear) {
  const auto level = [](const char* text) { return raidVolumeOf(Json::parse(text), "/v").level; };
  EXPECT_EQ(level(R"({"RAIDType": "RAID6", "VolumeType": "StripedWithParity"})"), "RAID6");
  EXPECT_EQ(level(R"({"VolumeType": "Mirrored"})"), "RAID1");
  EXPECT_EQ(level(R"({"VolumeType": "StripedWithParity"})"), "");
  EXPECT_TRUE(raidVolumeOf(Json::parse(R"({"VolumeType": "RawDevice"})"), "/v").is_raw);
}

TEST(RaidResources, aDriveOfAVolumeThatIsNotListedIsNotFree) {
  RaidController card;
  card.drives = {{"/d/0", "0", "", "", 1}, {"/d/1", "1", "", "", 1}};
  card.volumes = {raidVolumeOf(Json::parse("{}"), "/v/1")};
  markHiddenUse(card, {Json::parse(R"({"Links": {"Volumes": [{"@odata.id": "/v/1/"}]}})"),
                       Json::parse(R"({"Links": {"Volumes": [{"@odata.id": "/v/2"}]}})")});
  EXPECT_EQ(card.volumes[0].drives, std::vector<std::string>{"/d/0"});
  EXPECT_EQ(card.drives[0].unusable, "");
  EXPECT_THAT(card.drives[1].unusable, HasSubstr("/v/2"));
}

TEST(RaidResources, onlyWhatTheServiceNamesIsSent) {
  const VolumeOrder order{"/v", "system", "RAID1", {"/d/0", "/d/1"}};
  const auto plain = volumeBody(order, Json(), {});
  EXPECT_EQ(
      plain.dump(),
      R"({"Links":{"Drives":[{"@odata.id":"/d/0"},{"@odata.id":"/d/1"}]},"RAIDType":"RAID1"})");
  const auto named =
      volumeBody(order, Json::parse(R"({"DisplayName@Redfish.OptionalOnCreate": true})"),
                 applyTimeOf(Json::parse(
                     R"({"@Redfish.OperationApplyTimeSupport":
                                        {"SupportedValues": ["OnReset", "Immediate"]}})")));
  EXPECT_EQ(named.at("DisplayName"), "system");
  EXPECT_EQ(named.at("@Redfish.OperationApplyTime"), "Immediate");
}

}  // namespace
}  // namespace muster::bmc
