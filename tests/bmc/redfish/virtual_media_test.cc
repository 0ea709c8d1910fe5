// SPDX-License-Identifier: Apache-2.0
// Virtual media against drives of the form of DSP2046, of older services, and of captures.
#include "bmc/redfish/virtual_media.h"

#include "tests/bmc/capture.h"
#include "tests/bmc/redfish_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace muster::bmc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kImage = "https://10.20.0.1:8443/boot/ipxe.iso";

json hrefTo(const std::string& uri) { return {{"@odata.id", uri}}; }

class VirtualCds : public testing::Test {
 protected:
  VirtualCds() {
    net.handle = [this](io::HttpRequest request) { return answer(std::move(request)); };
    tree["/redfish/v1/"] = {{"Systems", hrefTo("/redfish/v1/Systems")},
                            {"Managers", hrefTo("/redfish/v1/Managers")}};
    tree["/redfish/v1/Systems"] = {{"Members", {hrefTo(kSystem)}}};
    tree[kSystem] = {{"@odata.etag", "\"1\""},
                     {"PowerState", "On"},
                     {"Actions", {{"#ComputerSystem.Reset", {{"target", "/reset"}}}}},
                     {"Boot",
                      {{"BootSourceOverrideTarget", "None"},
                       {"BootSourceOverrideEnabled", "Disabled"},
                       {"BootSourceOverrideTarget@Redfish.AllowableValues", {"None", "Cd"}}}}};
    tree["/redfish/v1/Managers"] = {{"Members", {hrefTo("/redfish/v1/Managers/1")}}};
    tree["/redfish/v1/Managers/1"] = {{"Id", "1"}, {"VirtualMedia", hrefTo("/media")}};
    tree["/media"] = {{"Members", {hrefTo("/media/floppy"), hrefTo("/media/cd")}}};
    tree["/media/floppy"] = {{"Id", "floppy"}, {"MediaTypes", {"Floppy"}}, {"Inserted", false}};
    tree["/media/cd"] = {{"Id", "cd"},
                         {"MediaTypes", {"CD", "DVD"}},
                         {"Inserted", false},
                         {"Image", nullptr},
                         {"Actions",
                          {{"#VirtualMedia.InsertMedia", {{"target", "/media/cd/insert"}}},
                           {"#VirtualMedia.EjectMedia", {{"target", "/media/cd/eject"}}}}}};
  }
  Async<io::HttpResponse> answer(io::HttpRequest request) {
    const auto path = io::pathOf(request.url.target);
    if (request.method == "POST" && path.ends_with("Sessions"))
      co_return test::FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
    if (request.method == "POST") {
      posted.push_back(path);
      sent = json::parse(request.body);
      for (const auto& needed : needs)
        if (path.ends_with("insert") && !sent.contains(needed))
          co_return test::FakeHttp::json(
              400, R"({"error":{"code":"Base.1.8.ActionParameterMissing","message":"missing"}})");
      if (reads_image)
        tree["/media/cd"].update(path.ends_with("insert")
                                     ? json{{"Image", sent["Image"]}, {"Inserted", true}}
                                     : json{{"Image", nullptr}, {"Inserted", false}});
      co_return test::FakeHttp::json(204, "");
    }
    const auto found = tree.find(path);
    if (found == tree.end()) co_return test::FakeHttp::json(404, "{}");
    if (request.method == "PATCH") found->second.merge_patch(json::parse(request.body));
    co_return test::FakeHttp::json(200, found->second.dump());
  }

  static constexpr const char* kSystem = "/redfish/v1/Systems/1";
  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  std::unique_ptr<RedfishBmc> bmc = rig.bmc();
  std::map<std::string, json> tree;
  std::vector<std::string> posted;
  json sent;
  bool reads_image = true;
  std::vector<std::string> needs;  ///< parameters without which nothing is inserted
};

TEST_F(VirtualCds, anImageIsInsertedOnceShownAndEjected) {
  ASSERT_TRUE(loop.run(bmc->insertMedia({kImage})));
  EXPECT_EQ(sent["Image"], kImage);
  EXPECT_FALSE(sent.contains("Inserted")) << "Supermicro X11 and X12 refuse it";
  EXPECT_FALSE(sent.contains("TransferProtocolType")) << "where it is not asked for";
  ASSERT_TRUE(loop.run(bmc->insertMedia({kImage})));
  EXPECT_EQ(posted.size(), 1u) << "it is there already";
  const auto media = loop.run(bmc->virtualMedia());
  ASSERT_TRUE(media);
  ASSERT_EQ(media->size(), 1u) << "the floppy takes no CD";
  EXPECT_EQ(media->front().image, kImage);
  tree["/media/cd"]["Image"] = "smb://ops:hunter2@nas/rescue.iso";  // by somebody else
  EXPECT_EQ(loop.run(bmc->virtualMedia())->front().image, "smb://(withheld)@nas/rescue.iso");
  EXPECT_EQ(loop.run(bmc->insertMedia({"https://10.20.0.1/other.iso"})).error().code(),
            ErrorCode::Conflict);
  ASSERT_TRUE(loop.run(bmc->ejectMedia("")));
  EXPECT_FALSE(loop.run(bmc->virtualMedia())->front().inserted);
}

TEST_F(VirtualCds, aBmcThatListsItsProtocolsIsToldOneOrNothingIsSent) {
  tree["/media/cd"]["Actions"]["#VirtualMedia.InsertMedia"]
      ["TransferProtocolType@Redfish.AllowableValues"] = {"NFS", "HTTPS"};
  EXPECT_EQ(loop.run(bmc->insertMedia({"http://10.20.0.1/ipxe.iso"})).error().code(),
            ErrorCode::InvalidInput);
  EXPECT_TRUE(posted.empty());
  ASSERT_TRUE(loop.run(bmc->insertMedia({kImage})));
  EXPECT_EQ(sent["TransferProtocolType"], "HTTPS");
}

TEST_F(VirtualCds, theFirstUrlThatTheBmcReadsIsTaken) {
  tree["/media/cd"]["Actions"]["#VirtualMedia.InsertMedia"]["@Redfish.ActionInfo"] = "/media/info";
  tree["/media/info"] = {
      {"Parameters",
       {{{"Name", "Image"}, {"Required", true}},
        {{"Name", "TransferProtocolType"}, {"AllowableValues", {"CIFS", "HTTPS"}}}}}};
  const auto medium = loop.run(bmc->insertMedia({"http://10.20.0.1/m.iso", kImage}));
  ASSERT_TRUE(medium) << medium.error().str();
  EXPECT_EQ(medium->image, kImage);
  EXPECT_EQ(medium->id, "cd");
  EXPECT_EQ(medium->boots_by, BootTarget::Cd);
  EXPECT_EQ(sent["TransferProtocolType"], "HTTPS");
}

/// As some of Nokia's and Cisco's (OpenStack's sushy).
TEST_F(VirtualCds, aBmcThatWantsAProtocolAndDoesNotSaySoIsToldOne) {
  needs = {"TransferProtocolType"};
  ASSERT_TRUE(loop.run(bmc->insertMedia({kImage})));
  EXPECT_EQ(posted.size(), 2u);
  EXPECT_EQ(sent["TransferProtocolType"], "HTTPS");
}

TEST_F(VirtualCds, whatIsMissingBesidesIsAnError) {
  needs = {"Signature"};
  EXPECT_EQ(loop.run(bmc->insertMedia({kImage})).error().code(), ErrorCode::InvalidInput);
  EXPECT_LE(posted.size(), 2u);
}

TEST_F(VirtualCds, aBmcWithoutACdGetsAUsbStick) {
  tree["/media/cd"]["MediaTypes"] = {"USBStick"};
  const auto medium = loop.run(bmc->insertMedia({kImage}));
  ASSERT_TRUE(medium) << medium.error().str();
  EXPECT_EQ(medium->boots_by, BootTarget::Usb);
  tree[kSystem]["Boot"]["BootSourceOverrideTarget@Redfish.AllowableValues"].push_back("Usb");
  ASSERT_TRUE(loop.run(bmc->bootOnce(medium->boots_by)));
  EXPECT_EQ(tree[kSystem]["Boot"]["BootSourceOverrideTarget"], "Usb");
}

TEST_F(VirtualCds, oneDriveIsEmptiedAndTheOtherIsLeftAlone) {
  auto second = tree["/media/cd"];
  second["Id"] = "cd2";
  second["Inserted"] = true;
  second["Image"] = "nfs://10.20.0.9/a-persons.iso";
  second["Actions"]["#VirtualMedia.EjectMedia"]["target"] = "/media/cd2/eject";
  tree["/media/cd2"] = second;
  tree["/media"]["Members"].push_back(hrefTo("/media/cd2"));
  ASSERT_TRUE(loop.run(bmc->insertMedia({kImage})));
  ASSERT_TRUE(loop.run(bmc->ejectMedia("cd")));
  EXPECT_EQ(tree["/media/cd"]["Inserted"], false);
  EXPECT_EQ(tree["/media/cd2"]["Inserted"], true);
  EXPECT_THAT(posted, testing::Not(testing::Contains("/media/cd2/eject")));
}

/// Lenovo's drives have no actions (capture): Image and Inserted are written.
TEST_F(VirtualCds, aDriveWithoutActionsIsWrittenTo) {
  tree["/media/cd"].erase("Actions");
  ASSERT_TRUE(loop.run(bmc->insertMedia({kImage})));
  EXPECT_TRUE(posted.empty());
  EXPECT_EQ(tree["/media/cd"]["Image"], kImage);
  EXPECT_EQ(tree["/media/cd"]["Inserted"], true) << "Lenovo SD530 inserts nothing without it";
  ASSERT_TRUE(loop.run(bmc->ejectMedia("")));
  EXPECT_EQ(tree["/media/cd"]["Inserted"], false);
}

TEST_F(VirtualCds, anAnswerThatChangesNothingIsAnError) {
  reads_image = false;
  EXPECT_THAT(loop.run(bmc->insertMedia({kImage})).error().str(), HasSubstr("does not hold"));
}

TEST_F(VirtualCds, theNextBootIsFromItAndSupermicrosWordIsTaken) {
  ASSERT_TRUE(loop.run(bmc->bootOnce(BootTarget::Cd)));
  EXPECT_EQ(tree[kSystem]["Boot"]["BootSourceOverrideTarget"], "Cd");
  EXPECT_EQ(loop.run(bmc->system())->boot_override, BootTarget::Cd);
  tree[kSystem]["Boot"]["BootSourceOverrideTarget@Redfish.AllowableValues"].push_back("UsbCd");
  loop.clock.advance(std::chrono::seconds(1));
  ASSERT_TRUE(loop.run(bmc->bootOnce(BootTarget::Cd)));
  EXPECT_EQ(tree[kSystem]["Boot"]["BootSourceOverrideTarget"], "UsbCd");
}

struct Drives {
  const char* name;
  std::size_t cds;
};
class VirtualMediaCaptures : public testing::TestWithParam<Drives> {};
TEST_P(VirtualMediaCaptures, drivesThatTakeACdAreFound) {
  const auto resources = test::readCapture(GetParam().name);
  if (!resources) GTEST_SKIP() << test::noCapture(GetParam().name);
  test::VirtualLoop loop;
  test::FakeHttp net;
  net.handle = test::captureHandler(*resources);
  test::RedfishRig rig{loop, net};
  const auto bmc = rig.bmc();
  const auto media = loop.run(bmc->virtualMedia());
  EXPECT_EQ(media.value_or(std::vector<VirtualMedium>()).size(), GetParam().cds);
  if (!media) EXPECT_EQ(media.error().code(), ErrorCode::NotFound) << media.error().str();
}
INSTANTIATE_TEST_SUITE_P(All, VirtualMediaCaptures,
                         testing::Values(Drives{"dell", 2}, Drives{"hpe", 1}, Drives{"lenovo", 10},
                                         Drives{"supermicro", 3}, Drives{"nvidia_viking", 0},
                                         Drives{"nvidia_gb200", 2}, Drives{"nvidia_gh200", 2},
                                         Drives{"nvidia_gbswitch", 0}, Drives{"nvidia_dpu", 0}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster::bmc
