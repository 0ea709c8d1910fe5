// SPDX-License-Identifier: Apache-2.0
// Firmware of NICs, NVMe drives and fwupd's devices: what the tools say is read fail-closed, only
// what fits is written, never twice.
#include "agent/tasks/device_firmware.h"

#include "agent/tasks/firmware_tools.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "tests/fakes/fake_http.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"
#include "tests/virtual_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using muster::test::ScriptedPrograms;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kPsid = "MT_0000000838";
constexpr const char* kGuid = "b585990a-003e-5270-89d5-3705a17f9a43";
constexpr const char* kWebcam = "08d460be0f1f9f128413f816022a6439e0078018";

/// As mstflint 4.21 prints a ConnectX-7; "FW Version(Running)" only when the flash holds another
/// one.
std::string query(const std::string& version, const std::string& running = "",
                  const std::string& psid = kPsid) {
  return fmt::format(
      "Image type:            FS4\nFW Version:            {}\n{}FW Release Date:       "
      "8.5.2025\nProduct Version:       {}\n"
      "Rom Info:              type=UEFI version=14.37.14 cpu=AMD64,AARCH64\n                       "
      "type=PXE version=3.7.500 cpu=AMD64\n"
      "Description:           UID                GuidsNumber\nBase GUID:             "
      "0200000000000001        4\n"
      "Base MAC:              020000000001            4\nImage VSD:             N/A\nDevice VSD:   "
      "         N/A\nPSID:                  {}\nSecurity Attributes:   secure-fw\n",
      version, running.empty() ? "" : fmt::format("FW Version(Running):   {}\n", running), version,
      psid);
}

/// Log page 3: slot 1 runs, `next` runs after the next reset.
std::string page(unsigned next, const std::string& second = "") {
  std::string out(512, '\0');
  out[0] = static_cast<char>(1 | next << 4);
  const auto put = [&out](std::size_t slot, std::string text) {
    text.resize(8, ' ');
    out.replace(slot * 8, 8, text);
  };
  put(1, "GDC5302Q");
  if (!second.empty()) put(2, second);
  return out;
}

class DeviceFirmwareTest : public ::testing::Test {
 protected:
  DeviceFirmwareTest() {
    http_.handle = [this](io::HttpRequest request) -> Async<io::HttpResponse> {
      return serve(std::move(request));
    };
    nic("0000:18:00.0", "0x15b3", "0x020700");
    nic("0000:18:00.1", "0x15b3", "0x020700");  // its second port: the same flash
    nic("0000:3b:00.0", "0x15b3", "0x020000");
    nic("0000:5e:00.0", "0x8086", "0x020000");  // of another vendor
    nic("0000:18:01.0", "0x15b3", "0x020700");
    std::filesystem::create_directory(
        folder_ / "sys/bus/pci/devices/0000:18:01.0/physfn");  // a virtual function
    programs_.on("mstflint -d 0000:18:00.0 query", query("28.39.1002"));
    programs_.on("mstflint -d 0000:3b:00.0 query", query("28.39.1002"));
    programs_.on("mstflint -i", query("28.41.1000"));
  }
  void nic(const std::string& address, const std::string& vendor, const std::string& klass) {
    const auto device = folder_ / "sys/bus/pci/devices" / address;
    write(device / "vendor", vendor + "\n");
    write(device / "class", klass + "\n");
  }
  void drive(const std::string& name, const std::string& model, const std::string& revision) {
    const auto controller = folder_ / "sys/class/nvme" / name;
    write(controller / "model", model + "   \n");
    write(controller / "firmware_rev", revision + "\n");
  }
  void write(const std::filesystem::path& file, const std::string& text) {
    ASSERT_TRUE(io::makeDirs(file.parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(file, text));
  }
  /// A burn puts the version into the flash; what runs stays.
  void burns(const std::string& pci) {
    programs_.on(
        "mstflint -d " + pci + " -i", [this, pci](const io::Command&) -> Result<io::ProcessExit> {
          programs_.on("mstflint -d " + pci + " query", query("28.41.1000", "28.39.1002"));
          return io::ProcessExit{
              0, "Burning FS4 image without signatures - OK\nRestoring signature - OK\n", ""};
        });
  }
  Async<io::HttpResponse> serve(io::HttpRequest) {
    co_return io::HttpResponse{status_, {}, image_};
  }

  Result<json> install(const std::string& way, const std::string& match,
                       const std::string& version) {
    const wire::FirmwareTask task{way, match, version, "http://10.20.0.1:8080/firmware/x/nic.bin",
                                  sha256_};
    auto context = std::make_shared<TaskContext>("t", std::chrono::seconds(3600));
    return loop_.run(firmware_.install(json::parse(toJson(task)), context));
  }
  Result<wire::DeviceFirmware> list(std::vector<std::string> ways) {
    auto answer = loop_.run(firmware_.list(json{{"ways", std::move(ways)}}));
    return answer ? wire::parseDeviceFirmware(answer->dump())
                  : Result<wire::DeviceFirmware>(fail(answer.error()));
  }
  std::size_t burnt() {
    return programs_.count("mstflint -d 0000:18:00.0 -i") +
           programs_.count("mstflint -d 0000:3b:00.0 -i");
  }

  muster::test::TempFolder folder_;
  muster::test::VirtualLoop loop_;
  ScriptedPrograms programs_;
  muster::test::FakeHttp http_;
  std::string image_ = "an image";
  std::string sha256_ = io::sha256Hex(image_);
  int status_ = 200;
  TaskTools tools_{folder_.path(), "", programs_, loop_.workers, loop_.clock};
  DeviceFirmwareTasks firmware_{
      tools_, [this] { return http_.factory()(io::TlsTrust{.accept_first = true}); }};
};

TEST_F(DeviceFirmwareTest, listsEachCardOnceWithWhatRunsAndWhatWaits) {
  programs_.on("mstflint -d 0000:3b:00.0 query", query("28.41.1000", "28.39.1002"));
  const auto seen = list({"mstflint"});
  ASSERT_TRUE(seen) << seen.error().str();
  ASSERT_EQ(seen->devices.size(), 2u);
  EXPECT_EQ(seen->devices[0].id, "0000:18:00.0");
  EXPECT_EQ(seen->devices[0].version, "28.39.1002");
  EXPECT_EQ(seen->devices[0].pending, "");
  EXPECT_THAT(seen->devices[0].keys, ElementsAre(kPsid));
  EXPECT_EQ(seen->devices[1].version, "28.39.1002");
  EXPECT_EQ(seen->devices[1].pending, "28.41.1000");
}

TEST_F(DeviceFirmwareTest, aToolThatIsMissingOrNotUnderstoodIsATroubleNotAnEmptyList) {
  programs_.on("mstflint -d 0000:18:00.0 query", [](const io::Command&) -> Result<io::ProcessExit> {
    return fail(ErrorCode::NotFound, "mstflint: not found");
  });
  EXPECT_THAT(list({"mstflint"})->troubles.at("mstflint"), HasSubstr("add its package"));
  for (const char* words : {"", "-W- something new\n", "FW Version: 1\n", "PSID: MT_1\n",
                            "FW Version: 1\nPSID: N/A\n"}) {
    programs_.on("mstflint -d 0000:18:00.0 query", words);
    EXPECT_THAT(list({"mstflint"})->troubles.at("mstflint"), HasSubstr("not understood")) << words;
  }
  programs_.fails(
      "mstflint -d 0000:18:00.0 query", 1,
      "-E- Cannot open Device: 0000:18:00.0. No such file or directory. MFE_CR_ERROR\n");
  EXPECT_THAT(list({"mstflint"})->troubles.at("mstflint"), HasSubstr("MFE_CR_ERROR"));
  EXPECT_FALSE(list({"flashrom"}));
}

TEST_F(DeviceFirmwareTest, writesEveryCardThatFitsOnceAndNothingTheSecondTime) {
  burns("0000:18:00.0");
  burns("0000:3b:00.0");
  auto done = install("mstflint", kPsid, "28.41.1000");
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(done->dump(), R"({"had":[],"written":["0000:18:00.0","0000:3b:00.0"]})");
  EXPECT_EQ(burnt(), 2u);
  for (const auto& command :
       programs_.commands())  // the words that make a burn unsafe are never said
    EXPECT_THAT(ScriptedPrograms::wordsOf(command),
                ::testing::Not(::testing::AnyOf(HasSubstr("nofs"), HasSubstr("allow_psid"),
                                                HasSubstr("--force"))));
  done = install("mstflint", kPsid, "28.41.1000");
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(done->dump(), R"({"had":["0000:18:00.0","0000:3b:00.0"],"written":[]})");
  EXPECT_EQ(burnt(), 2u);
  EXPECT_THAT(std::filesystem::is_empty(folder_ / "run"), true) << "the image is gone afterwards";
}

TEST_F(DeviceFirmwareTest, nothingIsWrittenWhenTheFileIsAnotherOrForAnotherCard) {
  image_ = "another image";
  auto done = install("mstflint", kPsid, "28.41.1000");
  EXPECT_THAT(done.error().str(), HasSubstr("SHA-256"));
  image_ = "an image";
  programs_.on("mstflint -i", query("28.41.1000", "", "MT_0000000222"));
  EXPECT_THAT(install("mstflint", kPsid, "28.41.1000").error().str(), HasSubstr("MT_0000000222"));
  programs_.on("mstflint -i", query("28.40.1000"));
  EXPECT_THAT(install("mstflint", kPsid, "28.41.1000").error().str(), HasSubstr("28.40.1000"));
  programs_.fails("mstflint -i", 1, "-E- Failed to query image: /x. No valid image found\n");
  EXPECT_THAT(install("mstflint", kPsid, "28.41.1000").error().str(),
              HasSubstr("No valid image found"));
  status_ = 404;
  EXPECT_EQ(install("mstflint", kPsid, "28.41.1000").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(burnt(), 0u);
}

TEST_F(DeviceFirmwareTest, oneCardThatCannotBeReadStopsAllBeforeAnythingIsWritten) {
  programs_.on("mstflint -d 0000:3b:00.0 query", "garbage");
  const auto done = install("mstflint", kPsid, "28.41.1000");
  EXPECT_THAT(done.error().str(), HasSubstr("nothing was written"));
  EXPECT_EQ(burnt(), 0u);
  programs_.on("mstflint -d 0000:3b:00.0 query", query("28.39.1002"));
  EXPECT_THAT(install("mstflint", "MT_0000000999", "28.41.1000").error().str(),
              testing::AllOf(HasSubstr("no device fits"), HasSubstr(kPsid)));
}

TEST_F(DeviceFirmwareTest, aBurnThatSaysOkButDidNotTakeIsAFailureAndTheNextCardIsLeftAlone) {
  programs_.on("mstflint -d 0000:18:00.0 -i", "Burning FS4 image without signatures - OK\n");
  const auto done = install("mstflint", kPsid, "28.41.1000");
  EXPECT_THAT(done.error().str(),
              testing::AllOf(HasSubstr("0 of 2 devices"), HasSubstr("runs 28.39.1002")));
  EXPECT_EQ(burnt(), 1u);
}

TEST_F(DeviceFirmwareTest, anNvmeDriveIsCommittedForTheNextResetAndBelievedByItsLog) {
  drive("nvme0", "SAMSUNG MZQL23T8HCLS-00A07", "GDC5302Q");
  drive("nvme1", "INTEL SSDPE2KX080T8", "VDV10170");
  programs_.on("nvme fw-log /dev/nvme0", page(0));
  programs_.on("nvme fw-log /dev/nvme1", page(0));
  programs_.on("nvme fw-download", "Firmware download success\n");
  programs_.on("nvme fw-commit", [this](const io::Command&) -> Result<io::ProcessExit> {
    programs_.on("nvme fw-log /dev/nvme0", page(2, "GDC5602Q"));
    return io::ProcessExit{
        11, "Success activating firmware action:1 slot:0, but a conventional reset is required\n",
        ""};  // as nvme-cli ends then
  });
  auto done = install("nvme", "SAMSUNG MZQL2*", "GDC5602Q");
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(done->at("written").dump(), R"(["nvme0"])");
  EXPECT_EQ(programs_.count("nvme fw-commit /dev/nvme0 --slot=0 --action=1"), 1u);
  EXPECT_EQ(programs_.count("nvme fw-download /dev/nvme1"), 0u);
  done = install("nvme", "SAMSUNG MZQL2*", "GDC5602Q");
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(programs_.count("nvme fw-commit"), 1u);
}

TEST_F(DeviceFirmwareTest, anImageThatWasNotTransferredWholeIsNotCommitted) {
  drive("nvme0", "SAMSUNG MZQL23T8HCLS-00A07", "GDC5302Q");
  programs_.on("nvme fw-log /dev/nvme0", page(0));
  programs_.fails("nvme fw-download", 1, "fw-download: Input/output error\n");
  const auto done = install("nvme", "SAMSUNG*", "GDC5602Q");
  EXPECT_THAT(done.error().str(), HasSubstr("Input/output error"));
  EXPECT_EQ(programs_.count("nvme fw-commit"), 0u);
}

TEST(NvmeFirmwareLog, isReadFailClosed) {
  EXPECT_EQ(*nvmePending(page(0)), "");
  EXPECT_EQ(*nvmePending(page(1)), "");
  EXPECT_EQ(*nvmePending(page(2, "NEW")), "NEW");
  EXPECT_FALSE(nvmePending(""));
  EXPECT_FALSE(nvmePending(page(0).substr(0, 511)));
  EXPECT_FALSE(nvmePending(std::string(512, '\0'))) << "no slot runs";
}

TEST_F(DeviceFirmwareTest, fwupdsDevicesAreReadWithWhatItsHistorySaysWaitsForAReboot) {
  const json device{{"Name", "System Firmware"},
                    {"DeviceId", kWebcam},
                    {"Guid", {kGuid}},
                    {"Version", "1.2.2"},
                    {"Flags", {"updatable"}}};
  const json old{{"DeviceId", kWebcam},
                 {"Version", "1.2.2"},
                 {"UpdateState", 4},
                 {"Releases", {{{"Version", "1.2.4"}}}}};
  programs_.on("fwupdtool get-devices",
               json{{"Devices", {device, {{"Name", "no version"}, {"DeviceId", "1"}}}}}.dump());
  programs_.on("fwupdtool get-history", json{{"Devices", {old}}}.dump());
  auto seen = list({"fwupd"});
  ASSERT_EQ(seen->devices.size(), 1u);
  EXPECT_EQ(seen->devices.front().pending, "1.2.4");
  programs_.fails("fwupdtool get-history", 2, "No history\n");
  EXPECT_EQ(list({"fwupd"})->devices.front().pending, "");
  programs_.on("fwupdtool get-devices",
               R"({"Error":{"Domain":"FwupdError","Code":9,"Message":"No detected devices"}})");
  seen = list({"fwupd"});
  EXPECT_THAT(seen->devices, IsEmpty());
  EXPECT_THAT(seen->troubles, IsEmpty());
  for (const char* words : {"", "[]", "{}", R"({"Devices":[{"Name":"x"}]})",
                            R"({"Error":{"Code":1,"Message":"Failed to connect"}})"}) {
    programs_.on("fwupdtool get-devices", words);
    EXPECT_TRUE(list({"fwupd"})->troubles.contains("fwupd")) << words;
  }
}

// ---- the programs themselves, as Debian has them, without hardware

/// The real programs; fwupd with its test plugin, and folders of its own.
class RealPrograms final : public io::ProcessRunner {
 public:
  explicit RealPrograms(const std::filesystem::path& folder) : folder_(folder) {}
  Async<io::ProcessExit> run(io::Command command) override {
    return real_->run(prepared(std::move(command)));
  }
  Result<std::unique_ptr<io::Child>> start(io::Command, std::filesystem::path) override {
    return fail(ErrorCode::Internal, "not here");
  }
  Result<pid_t> startDetached(io::Command, std::filesystem::path) override {
    return fail(ErrorCode::Internal, "not here");
  }
  io::Command prepared(io::Command command) const {
    if (command.program != "fwupdtool") return command;
    command.args.insert(command.args.begin(), {"--plugins", "test"});
    for (const auto& [name, folder] : {std::pair{"CONFIGURATION_DIRECTORY", "etc"},
                                       {"STATE_DIRECTORY", "state"},
                                       {"CACHE_DIRECTORY", "cache"}})
      command.env[name] = (folder_ / folder).string();
    return command;
  }

 private:
  const std::filesystem::path folder_;
  std::unique_ptr<io::ProcessRunner> real_ = io::makeProcessRunner();
};

constexpr const char* kMetainfo = R"(<?xml version="1.0" encoding="UTF-8"?>
<component type="firmware">
  <id>org.muster.test.webcam</id><name>Test webcam</name><summary>Firmware of a test device</summary><developer_name>muster</developer_name>
  <metadata_license>CC0-1.0</metadata_license><project_license>proprietary</project_license>
  <provides><firmware type="flashed">b585990a-003e-5270-89d5-3705a17f9a43</firmware></provides>
  <releases><release version="1.2.4" date="2026-01-01"><checksum filename="firmware.bin" target="content"/></release></releases>
  <custom><value key="LVFS::VersionFormat">triplet</value><value key="LVFS::UpdateProtocol">com.acme.test</value></custom>
</component>
)";

class RealFirmwarePrograms : public ::testing::Test {
 protected:
  RealFirmwarePrograms() {
    for (const char* name : {"etc", "state", "cache"})
      std::filesystem::create_directory(folder_ / name);
    EXPECT_TRUE(
        io::writeFileAtomic(folder_ / "etc/fwupd.conf",
                            "[fwupd]\nTestDevices=true\nOnlyTrusted=false\nVerboseDomains=\n"));
    http_.handle = [this](io::HttpRequest) -> Async<io::HttpResponse> { return image(); };
  }
  Async<io::HttpResponse> image() { co_return io::HttpResponse{200, {}, image_}; }
  bool lacks(const std::string& program, const std::vector<std::string>& args) {
    io::Command command;
    command.program = program;
    command.args = args;
    const auto ended = io::runBlocking(programs_.prepared(std::move(command)));
    return !ended || ended->code != 0;
  }
  std::string cabinet() {
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "firmware.bin", "0x1020004"));
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "firmware.metainfo.xml", kMetainfo));
    EXPECT_FALSE(lacks("fwupdtool", {"build-cabinet", (folder_ / "f.cab").string(),
                                     (folder_ / "firmware.bin").string(),
                                     (folder_ / "firmware.metainfo.xml").string()}));
    return *io::readFile(folder_ / "f.cab");
  }
  Result<json> install(const std::string& way, const std::string& match,
                       const std::string& version) {
    const wire::FirmwareTask task{way, match, version, "http://10.20.0.1:8080/f",
                                  io::sha256Hex(image_)};
    auto context = std::make_shared<TaskContext>("t", std::chrono::seconds(3600));
    return muster::test::runAsync(io_, firmware_.install(json::parse(toJson(task)), context),
                                  std::chrono::seconds(120));
  }
  wire::DeviceFirmware list(const std::string& way) {
    const auto answer = muster::test::runAsync(io_, firmware_.list(json{{"ways", {way}}}),
                                               std::chrono::seconds(120));
    EXPECT_TRUE(answer) << answer.error().str();
    return *wire::parseDeviceFirmware(answer->dump());
  }

  muster::test::TempFolder folder_;
  asio::io_context io_;
  SystemClock clock_;
  Workers workers_{1};
  RealPrograms programs_{folder_.path()};
  muster::test::FakeHttp http_;
  std::string image_ = "an image";
  TaskTools tools_{folder_.path(), "", programs_, workers_, clock_};
  DeviceFirmwareTasks firmware_{
      tools_, [this] { return http_.factory()(io::TlsTrust{.accept_first = true}); }};
};

TEST_F(RealFirmwarePrograms, fwupdInstallsACabinetIntoItsTestDevice) {
  if (lacks("fwupdtool", {"--version"})) GTEST_SKIP() << "fwupd is not installed";
  const auto seen = list("fwupd");
  if (seen.devices.empty()) GTEST_SKIP() << "this fwupd has no test plugin";
  EXPECT_EQ(seen.devices.front().id, kWebcam);
  EXPECT_EQ(seen.devices.front().version, "1.2.2");
  EXPECT_THAT(seen.devices.front().keys, ElementsAre(kGuid));
  image_ = cabinet();
  EXPECT_THAT(install("fwupd", kGuid, "1.2.5").error().str(),
              HasSubstr("the cabinet brings 1.2.4"));
  const auto done = install("fwupd", kGuid, "1.2.4");
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(done->at("written").dump(), fmt::format(R"(["{}"])", kWebcam));
  image_ = std::string(3000, 'x');
  EXPECT_THAT(install("fwupd", kGuid, "1.2.4").error().str(), HasSubstr("MSCF"));
}

TEST_F(RealFirmwarePrograms, mstflintRefusesWhatIsNoImageAndWhatIsNoDevice) {
  if (lacks("mstflint", {"--version"})) GTEST_SKIP() << "mstflint is not installed";
  const auto device = folder_ / "sys/bus/pci/devices/0000:99:00.0";
  ASSERT_TRUE(io::makeDirs(device));
  ASSERT_TRUE(io::writeFileAtomic(device / "vendor", "0x15b3\n"));
  ASSERT_TRUE(io::writeFileAtomic(device / "class", "0x020000\n"));
  EXPECT_THAT(list("mstflint").troubles.at("mstflint"),
              testing::AnyOf(HasSubstr("MFE_CR_ERROR"), HasSubstr("Cannot open Device")));
  const auto file = folder_ / "x.bin";
  ASSERT_TRUE(io::writeFileAtomic(file, std::string(70'000, 'x')));
  const auto call = mstflintQueryImage(file);
  const auto said = muster::test::runAsync(
      io_, runTool(tools_, call.program, call.args, call.limit), std::chrono::seconds(60));
  ASSERT_FALSE(said);
  EXPECT_THAT(said.error().str(), HasSubstr("No valid image found"));
}

TEST_F(RealFirmwarePrograms, nvmeCliKnowsTheWordsAndMissesTheDrive) {
  if (lacks("nvme", {"version"})) GTEST_SKIP() << "nvme-cli is not installed";
  const auto controller = folder_ / "sys/class/nvme/nvme63";
  ASSERT_TRUE(io::makeDirs(controller));
  ASSERT_TRUE(io::writeFileAtomic(controller / "model", "NONE\n"));
  ASSERT_TRUE(io::writeFileAtomic(controller / "firmware_rev", "1\n"));
  EXPECT_THAT(list("nvme").troubles.at("nvme"),
              testing::AnyOf(HasSubstr("No such file"), HasSubstr("not found")));
  for (const auto& call : {nvmeDownload("nvme63", "/x"), nvmeCommit("nvme63")}) {
    const auto said = muster::test::runAsync(
        io_, runTool(tools_, call.program, call.args, call.limit), std::chrono::seconds(60));
    ASSERT_FALSE(said);
    EXPECT_THAT(said.error().str(),
                testing::AllOf(testing::Not(HasSubstr("nrecognized option")),
                               testing::Not(HasSubstr("nvalid option")), HasSubstr("/dev/nvme63")));
  }
}

}  // namespace
}  // namespace muster::agent
