// SPDX-License-Identifier: Apache-2.0
// Ways of updating that no emulator here plays: a BMC that fetches for itself, and a plain HTTP
// push.
#include "base/io/files.h"
#include "tests/bmc/redfish_rig.h"
#include "tests/run_async.h"

#include "base/io/crypto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

class UpdateMethods : public testing::Test {
 protected:
  UpdateMethods() {
    resources = parseLenient(R"({
      "/redfish/v1/": {"Vendor": "Nobody", "Links": {"Sessions": {"@odata.id": "/s"}}},
      "/redfish/v1/SessionService": {},
      "/redfish/v1/Systems": {"Members": [{"@odata.id": "/sys"}]},
      "/sys": {"Id": "1", "PowerState": "On", "Actions": {"#ComputerSystem.Reset": {"target": "/r", "ResetType@Redfish.AllowableValues": ["On"]}}},
      "/redfish/v1/Managers": {"Members": [{"@odata.id": "/m"}]}, "/m": {"Id": "1"},
      "/redfish/v1/TaskService": {"Tasks": {"@odata.id": "/t"}}, "/t": {"Members": []},
      "/redfish/v1/UpdateService": {"FirmwareInventory": {"@odata.id": "/f"}},
      "/f": {"Members": [{"@odata.id": "/f/BIOS", "Id": "BIOS", "Version": "1.0"}]}})");
    net.handle = [this](io::HttpRequest request) -> Async<io::HttpResponse> {
      if (request.method == "POST" && request.url.target == "/s")
        co_return test::FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}, {"Location", "/s/1"}});
      if (request.method == "POST") {
        posted = request;
        co_return test::FakeHttp::json(202, R"({"@odata.id": "/redfish/v1/TaskService/Tasks/7"})");
      }
      const auto found = resources.find(request.url.target);
      co_return found == resources.end() ? test::FakeHttp::json(404, "{}")
                                         : test::FakeHttp::json(200, found->dump());
    };
    EXPECT_TRUE(io::writeFileAtomic(folder / "bios.bin", "image"));
    update = {"BIOS", folder / "bios.bin", io::sha256Hex("image")};
  }

  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  test::TempFolder folder;
  Json resources;
  std::optional<io::HttpRequest> posted;
  FirmwareUpdate update;
};

TEST_F(UpdateMethods, aBmcThatFetchesForItselfIsToldWhere) {
  resources["/redfish/v1/UpdateService"]["Actions"]["#UpdateService.SimpleUpdate"]["target"] =
      "/simple";
  update.url = "http://10.20.0.1:8080/firmware/abc/bios.bin";
  auto bmc = rig.bmc();
  auto task = loop.run(bmc->startUpdate(update));
  ASSERT_TRUE(task) << task.error().str();
  EXPECT_EQ(*task, "/redfish/v1/TaskService/Tasks/7");
  ASSERT_TRUE(posted);
  EXPECT_EQ(posted->url.target, "/simple");
  const auto body = parseLenient(posted->body);
  EXPECT_EQ(textAt(body, "ImageURI"), update.url);
  EXPECT_EQ(textAt(body, "TransferProtocol"), "HTTP");
  EXPECT_EQ(textsAt(body, "Targets"), std::vector<std::string>{"/f/BIOS"});
}

TEST_F(UpdateMethods, withoutAnAddressItIsToldNothing) {
  resources["/redfish/v1/UpdateService"]["Actions"]["#UpdateService.SimpleUpdate"]["target"] =
      "/simple";
  auto bmc = rig.bmc();
  auto task = loop.run(bmc->startUpdate(update));
  ASSERT_FALSE(task);
  EXPECT_EQ(task.error().code(), ErrorCode::InvalidInput);
  EXPECT_FALSE(posted);
}

TEST_F(UpdateMethods, aPackageOfADgxsGpuTrayIsSentToTheTray) {
  resources["/redfish/v1/"]["Vendor"] = "AMI";
  resources["/sys"]["Manufacturer"] = "NVIDIA";
  resources["/sys"]["Model"] = "DGXH100";
  resources["/redfish/v1/UpdateService"]["MultipartHttpPushUri"] = "/multipart";
  resources["/f"]["Members"].push_back(parseLenient(
      R"({"@odata.id": "/f/HGX_FW_FPGA_0", "Id": "HGX_FW_FPGA_0", "Version": "1.0"})"));
  auto bmc = rig.bmc();
  ASSERT_TRUE(loop.run(bmc->startUpdate(update)));
  EXPECT_THAT(posted->body, testing::Not(testing::HasSubstr("Targets")));
  update.component = "HGX_FW_FPGA_0";
  ASSERT_TRUE(loop.run(bmc->startUpdate(update)));
  EXPECT_THAT(posted->body, testing::HasSubstr(R"({"Targets":["/f/HGX_0"]})"));
}

TEST_F(UpdateMethods, aSupermicroIsToldToKeepWhatItHasAndNamesWhatTheMemberIsRelatedTo) {
  resources["/redfish/v1/"]["Vendor"] = "Supermicro";
  resources["/redfish/v1/UpdateService"]["MultipartHttpPushUri"] = "/multipart";
  resources["/f/BIOS"] = parseLenient(
      R"({"@odata.id": "/f/BIOS", "Id": "BIOS", "Version": "1.0", "RelatedItem": [{"@odata.id": "/sys/Bios"}]})");
  resources["/f"]["Members"] = parseLenient(
      R"([{"@odata.id": "/f/BIOS"}, {"@odata.id": "/f/BMC", "Id": "BMC", "Version": "1.0", "RelatedItem": [{"@odata.id": "/m"}]},
                                               {"@odata.id": "/f/CPLD_Motherboard", "Id": "CPLD_Motherboard", "Version": "1.0"}])");
  const auto sent = [&](const char* component) {
    update.component = component;
    auto bmc = rig.bmc();
    EXPECT_TRUE(loop.run(bmc->startUpdate(update)));
    const auto begin = posted->body.find("\r\n\r\n{") + 4;
    return parseLenient(posted->body.substr(begin, posted->body.find("\r\n--", begin) - begin));
  };
  const auto bios = sent("BIOS"), bmc = sent("BMC"), cpld = sent("CPLD_Motherboard");
  for (const char* flag : {"PreserveME", "PreserveNVRAM", "PreserveSMBIOS"})
    EXPECT_EQ(boolAt(bios, std::string("Oem/Supermicro/BIOS/") + flag), true) << flag;
  for (const char* flag : {"PreserveCfg", "PreserveSdr", "PreserveSsl"})
    EXPECT_EQ(boolAt(bmc, std::string("Oem/Supermicro/BMC/") + flag), true) << flag;
  EXPECT_EQ(textsAt(bios, "Targets"), std::vector<std::string>{"/sys/Bios"});
  EXPECT_EQ(textsAt(bmc, "Targets"), std::vector<std::string>{"/m"});
  EXPECT_EQ(textsAt(cpld, "Targets"), std::vector<std::string>{"/f/CPLD_Motherboard"});
  EXPECT_FALSE(cpld.contains("Oem"));
}

class ILoUpdateMethods : public UpdateMethods {
 protected:
  ILoUpdateMethods() {
    resources["/redfish/v1/"]["Vendor"] = "HPE";
    resources["/redfish/v1/UpdateService"]["HttpPushUri"] = "/cgi-bin/uploadFile";
    resources["/redfish/v1/UpdateService"]["Oem"]["Hpe"] = {{"State", "Idle"}};
    resources["/f"]["Members"][0]["Name"] = "BIOS";
    const auto serve = net.handle;
    net.handle = [this, serve](io::HttpRequest request) -> Async<io::HttpResponse> {
      if (request.method != "POST" || request.url.target != "/cgi-bin/uploadFile") {
        co_return co_await serve(std::move(request));
      }
      pieces.push_back(std::move(request));
      if (static_cast<int>(pieces.size()) == lost_piece)
        co_return fail(ErrorCode::Unavailable, "connection reset");
      co_return test::FakeHttp::json(200, "");
    };
  }
  void write(std::size_t bytes) {
    const std::string image(bytes, 'x');
    ASSERT_TRUE(io::writeFileAtomic(update.file, image));
    update.sha256 = io::sha256Hex(image);
  }
  void sign(const std::string& name) {
    ASSERT_TRUE(io::writeFileAtomic(folder / name, "signed: " + name));
  }

  static constexpr std::size_t kPiece = 32u << 20;
  std::vector<io::HttpRequest> pieces;
  int lost_piece = 0;
};

TEST_F(ILoUpdateMethods, aLargeComponentGoesInPiecesEachWithItsSignature) {
  write(kPiece + 5);
  sign("bios_part1.compsig");
  sign("bios_part2.compsig");
  auto bmc = rig.bmc();
  auto task = loop.run(bmc->startUpdate(update));
  ASSERT_TRUE(task) << task.error().str();
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].attachment->size(), kPiece);
  EXPECT_EQ(pieces[1].attachment->size(), 5u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(
        pieces[i].body,
        testing::AllOf(testing::HasSubstr(fmt::format("signed: bios_part{}.compsig", i + 1)),
                       testing::HasSubstr(fmt::format("\"Section\":{}", i)),
                       testing::HasSubstr("name=\"compsig\"; filename=\"bios.compsig\""),
                       testing::HasSubstr("name=\"file\"; filename=\"bios.bin\"")));
    EXPECT_EQ(pieces[i].headers.at("Cookie"), "sessionKey=t");
  }
}

TEST_F(ILoUpdateMethods, withoutASignatureNothingIsSent) {
  write(kPiece + 1);
  sign("bios_part1.compsig");
  auto bmc = rig.bmc();
  auto task = loop.run(bmc->startUpdate(update));
  ASSERT_FALSE(task);
  EXPECT_THAT(task.error().str(), testing::HasSubstr("bios_part2.compsig is missing"));
  EXPECT_TRUE(pieces.empty());
}

TEST_F(ILoUpdateMethods, withoutASessionThePasswordDoesNotStandForItsKey) {
  write(8);
  resources["/redfish/v1/"].erase("Links");
  resources["/redfish/v1/"]["RedfishVersion"] = "1.17.0";
  auto bmc = rig.bmc();
  auto task = loop.run(bmc->startUpdate(update));
  ASSERT_FALSE(task);
  EXPECT_THAT(task.error().str(), testing::HasSubstr("it has no sessions; nothing was sent"));
  EXPECT_TRUE(pieces.empty());
}

TEST_F(ILoUpdateMethods, aPieceThatIsLostBeforeTheLastMeansThatNothingWasWritten) {
  write(2 * kPiece + 1);
  for (int i = 1; i <= 3; ++i) sign(fmt::format("bios_part{}.compsig", i));
  lost_piece = 2;
  auto bmc = rig.bmc();
  auto task = loop.run(bmc->startUpdate(update));
  ASSERT_FALSE(task);
  EXPECT_EQ(task.error().code(),
            ErrorCode::Conflict);  // so it is sent again, from the first piece on
  EXPECT_EQ(pieces.size(), 2u);
}

TEST_F(ILoUpdateMethods, aSmallOneGoesWholeWithItsSignatureWhereThereIsOne) {
  for (const bool is_signed : {false, true}) {
    pieces.clear();
    if (is_signed) sign("bios.compsig");
    auto bmc = rig.bmc();
    ASSERT_TRUE(loop.run(bmc->startUpdate(update)));
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].body.find("compsig") != std::string::npos, is_signed);
  }
}

TEST_F(UpdateMethods, aPlainPushIsTheFileAndNothingElse) {
  resources["/redfish/v1/UpdateService"]["HttpPushUri"] = "/push";
  auto bmc = rig.bmc();
  ASSERT_TRUE(loop.run(bmc->startUpdate(update)));
  ASSERT_TRUE(posted);
  EXPECT_EQ(posted->url.target, "/push");
  EXPECT_EQ(posted->headers.at("Content-Type"), "application/octet-stream");
  EXPECT_EQ(posted->body + *posted->attachment + posted->body_end, "image");
}

TEST_F(UpdateMethods, multipartGoesBeforeTheOthers) {
  resources["/redfish/v1/UpdateService"]["HttpPushUri"] = "/push";
  resources["/redfish/v1/UpdateService"]["MultipartHttpPushUri"] = "/multi";
  auto bmc = rig.bmc();
  ASSERT_TRUE(loop.run(bmc->startUpdate(update)));
  EXPECT_EQ(posted->url.target, "/multi");
}

TEST_F(UpdateMethods, whatTheInspectionRefusesIsNotSent) {
  resources["/redfish/v1/UpdateService"]["MultipartHttpPushUri"] = "/multi";
  update.inspect = [](std::string_view bytes) -> Result<void> {
    return fail(ErrorCode::Corrupt, fmt::format("{} bytes of something else", bytes.size()));
  };
  auto bmc = rig.bmc();
  auto task = loop.run(bmc->startUpdate(update));
  ASSERT_FALSE(task);
  EXPECT_EQ(task.error().text(), "5 bytes of something else");
  EXPECT_FALSE(posted);
}

TEST_F(UpdateMethods, aSessionThatAKilledProcessLeftIsClosed) {
  std::vector<std::string> deleted;
  const auto serve = net.handle;
  net.handle = [&](io::HttpRequest request) -> Async<io::HttpResponse> {
    if (request.method == "DELETE") deleted.push_back(request.url.target);
    co_return co_await serve(std::move(request));
  };
  rig.store.values["bmc.session.gpu001"] = "/s/0";
  auto bmc = rig.bmc();
  ASSERT_TRUE(loop.run(bmc->system()));
  EXPECT_THAT(deleted, testing::ElementsAre("/s/0"));
  EXPECT_EQ(rig.store.values["bmc.session.gpu001"], "/s/1");
  ASSERT_TRUE(loop.run(bmc->logout()));
  EXPECT_EQ(rig.store.values["bmc.session.gpu001"], "");
}

}  // namespace
}  // namespace muster::bmc
