// SPDX-License-Identifier: Apache-2.0
// `muster bmc …` by the real program, against an emulated BMC over real HTTPS.
#include "base/io/files.h"
#include "tests/cli/emulated_bmc.h"
#include "tests/cli/muster_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <future>
#include <thread>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char *kOld = EmulatedBmc::kPassword, *kNew = "new-password";

class BmcCommands : public ::testing::Test {
 protected:
  explicit BmcCommands(std::string_view vendor_profile = "muster") : bmc_(vendor_profile) {
    secret("bmc-password", kOld);
    inventory("");
  }
  void secret(const std::string& name, const std::string& text) {
    folder_.write(name, text + "\n");
    std::filesystem::permissions(
        folder_ / name, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  void script(const std::string& name, const std::string& text) {
    folder_.write(name, "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  void inventory(const std::string& next) {
    std::string text(MusterFolder::kInventory);
    const auto replace = [&text](const std::string& what, const std::string& by) {
      text.replace(text.find(what), what.size(), by);
    };
    replace("https://10.20.250.1\"", fmt::format("https://127.0.0.1:{}\"", bmc_.port()));
    if (!next.empty())
      replace("password: {file: bmc-password}",
              "password: {file: bmc-password}, rotate_to: {file: " + next + "}");
    folder_.write("cluster.yaml", text);
  }

  EmulatedBmc bmc_;
  MusterFolder folder_;
};

/// A BMC that answers late must not keep whoever asks: Ctrl-C ends the command, with words.
TEST_F(BmcCommands, aCommandThatWaitsForItsBmcCanBeStopped) {
  bmc_.expect({.method = "GET", .path = "*", .latency = 120s, .count = -1});
  io::ProcessExit ended;
  for (const char* limit : {"1", "5", "25"}) {  // a busy machine may not have begun to ask
    auto asked = folder_.command({"bmc", "power", "gpu001", "on"});
    asked.args.insert(asked.args.begin(), {"--preserve-status", "--signal=TERM", "--kill-after=5",
                                           limit, asked.program});
    asked.program = "timeout";
    ended = *io::runBlocking(asked);
    if (ended.err.find("stopped") != std::string::npos) break;
  }
  EXPECT_THAT(ended.err, HasSubstr("stopped; nothing is lost"));
  EXPECT_EQ(ended.code, 128 + SIGTERM);
}

TEST_F(BmcCommands, powerIsShownFirstAndDoneWithTheNamesConfirmation) {
  auto on = folder_.muster({"bmc", "power", "gpu001", "on"});
  ASSERT_EQ(on.code, 0) << on.err;
  EXPECT_EQ(on.out, "gpu001: power was off, is on\n");
  EXPECT_TRUE(bmc_.on());
  auto shown = folder_.muster({"bmc", "power", "gpu001", "off"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("Nothing was done"), HasSubstr("--confirm gpu001")));
  EXPECT_TRUE(bmc_.on());
  EXPECT_NE(
      folder_.muster({"bmc", "power", "gpu001", "off", "--reason", "x", "--confirm", "gpu002"})
          .code,
      0);
  EXPECT_NE(folder_.muster({"bmc", "power", "gpu001", "off", "--confirm", "gpu001"}).code, 0)
      << "without a reason";
  EXPECT_TRUE(bmc_.on());
  auto off = folder_.muster(
      {"bmc", "power", "gpu001", "off", "--reason", "loose cable", "--confirm", "gpu001"});
  ASSERT_EQ(off.code, 0) << off.err;
  EXPECT_FALSE(bmc_.on());
  EXPECT_THAT(folder_.muster({"events"}).out,
              AllOf(HasSubstr("bmc power off"), HasSubstr("loose cable")));
  EXPECT_THAT(folder_.muster({"bmc", "power", "gpu003", "on"}).err,
              HasSubstr("not in the inventory"));
  for (const auto& said : {on, shown, off}) EXPECT_THAT(said.out + said.err, Not(HasSubstr(kOld)));
}

/// A monitor, or a command that works with the site, goes on meanwhile.
TEST_F(BmcCommands, locatingAMachineInterruptsNobody) {
  ASSERT_TRUE(io::makeDirs(folder_ / "state", 0700));
  const auto request = io::FileLock::take(folder_ / "state/turn");
  const auto works = io::FileLock::take(folder_ / "state/lock");
  ASSERT_TRUE(request && works) << "as a command holds them that works";
  const auto on = folder_.muster({"bmc", "locate", "gpu001", "on"});
  EXPECT_EQ(on.code, 0) << on.err;
  EXPECT_EQ(on.out, "gpu001: its locate LED is on\n");
  EXPECT_EQ(folder_.muster({"bmc", "locate", "gpu001"}).out, "gpu001: its locate LED is on\n");
  EXPECT_EQ(folder_.muster({"bmc", "locate", "gpu001", "off"}).out,
            "gpu001: its locate LED is off\n");
  EXPECT_THAT(folder_.muster({"events"}).out, HasSubstr("bmc locate on"));
  EXPECT_THAT(folder_.muster({"bmc", "locate", "gpu003"}).err, HasSubstr("gpu003"));
}

class BmcCommandsOfDgx : public BmcCommands {
 protected:
  BmcCommandsOfDgx() : BmcCommands("dgx-h100") {}
};

TEST_F(BmcCommandsOfDgx, standbyPowerThatADeadProcessCutIsGivenBackBySwitchingOn) {
  script("off", "kill -9 $PPID");
  script("on", "echo on $1 >> " + (folder_ / "switched").string());
  auto text = io::readFile(folder_ / "cluster.yaml").value();
  const std::string_view image = "image: bookworm}";
  text.replace(text.find(image), image.size(),
               fmt::format("image: bookworm, pdu: {{off: [{0}/off, \"{{node}}\"], on: [{0}/on, "
                           "\"{{node}}\"], seconds_off: 1}}}}",
                           (folder_ / "").parent_path().string()));
  folder_.write("cluster.yaml", text);
  ASSERT_EQ(folder_.muster({"bmc", "power", "gpu001", "on"}).code, 0);
  const auto cut = folder_.muster(
      {"bmc", "power", "gpu001", "ac-cycle", "--reason", "x", "--confirm", "gpu001"});
  ASSERT_THAT(cut.out + cut.err, testing::IsEmpty()) << "it dies between off and on";
  bmc_.goDark();
  auto outlets = std::async(std::launch::async, [this] {
    while (!std::filesystem::exists(folder_ / "switched")) std::this_thread::sleep_for(20ms);
    bmc_.answer();
  });
  const auto on = folder_.muster({"bmc", "power", "gpu001", "on"});
  if (!std::filesystem::exists(folder_ / "switched")) folder_.write("switched", "never");
  outlets.get();
  EXPECT_EQ(on.code, 0) << on.err;
  EXPECT_THAT(on.err, HasSubstr("not restored"));
  EXPECT_TRUE(bmc_.on());
  EXPECT_EQ(folder_.muster({"bmc", "power", "gpu001", "on"}).code, 0);
  EXPECT_EQ(io::readFile(folder_ / "switched").value(), "on gpu001\n") << "once";
}

class BmcCommandsOfGb200 : public BmcCommands {
 protected:
  BmcCommandsOfGb200() : BmcCommands("gb200") {}
};

TEST_F(BmcCommandsOfGb200, powerStaysWhileAnImageIsWrittenOrASecondSlotFilled) {
  ASSERT_EQ(folder_.muster({"bmc", "power", "gpu001", "on"}).code, 0);
  const auto off = [this] {
    return folder_.muster(
        {"bmc", "power", "gpu001", "off", "--reason", "x", "--confirm", "gpu001"});
  };
  bmc_.expect({.method = "GET",
               .path = "*/Chassis/HGX_ERoT_FPGA_0",
               .merge = {{"Oem", {{"Nvidia", {{"BackgroundCopyStatus", "InProgress"}}}}}},
               .count = 1});
  EXPECT_THAT(off().err, HasSubstr("second slot of HGX_ERoT_FPGA_0"));
  const auto writing = nlohmann::json::parse(
      R"({"Members": [{"@odata.id": "/redfish/v1/UpdateService/FirmwareInventory/NIC_0", "Id": "NIC_0", "Status": {"State": "Updating"}}]})");
  bmc_.expect({.method = "GET", .path = "*/FirmwareInventory", .merge = writing, .count = 1});
  EXPECT_THAT(off().err, HasSubstr("writes an image of NIC_0"));
  EXPECT_TRUE(bmc_.on());
  EXPECT_EQ(off().code, 0);
  EXPECT_FALSE(bmc_.on());
}

TEST_F(BmcCommands, bootOrderLedAndVirtualCdAreShownAndChanged) {
  const auto order = folder_.muster({"bmc", "boot-order", "gpu001"});
  ASSERT_EQ(order.code, 0) << order.err;
  EXPECT_THAT(order.out, ::testing::StartsWith("Boot0000   disk "));
  const auto wrong = folder_.muster({"bmc", "boot-order", "gpu001", "--first", "pxe"});
  EXPECT_NE(wrong.code, 0);
  EXPECT_THAT(wrong.err, HasSubstr("name network, http, disk or its references (Boot0000, "));
  const auto first = folder_.muster({"bmc", "boot-order", "gpu001", "--first", "http,Boot0000"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, ::testing::StartsWith("Boot0010   http "));
  const auto again = folder_.muster({"bmc", "boot-order", "gpu001", "--first", "http,Boot0000"});
  EXPECT_THAT(again.out, HasSubstr("The order was so already."));

  EXPECT_THAT(folder_.muster({"bmc", "media", "gpu001", "--insert", "http://h/x.iso"}).out,
              HasSubstr("http://h/x.iso"));
  const auto full = folder_.muster({"bmc", "media", "gpu001", "--insert", "http://h/y.iso"});
  EXPECT_NE(full.code, 0);
  EXPECT_THAT(full.err, HasSubstr("eject it first"));
  EXPECT_EQ(folder_.muster({"bmc", "media", "gpu001", "--eject"}).code, 0);
  const auto events = folder_.muster({"events"}).out;
  EXPECT_THAT(events, HasSubstr("bmc media insert http://h/x.iso: done"));
  EXPECT_THAT(events, HasSubstr("bmc media insert http://h/y.iso: failed: "));
  EXPECT_THAT(events, HasSubstr("bmc media eject: done"));
}

TEST_F(BmcCommands, urlsThatNoBmcReadsAreRefusedAndPasswordsAreNotRepeated) {
  const auto no_url = folder_.muster({"bmc", "media", "gpu001", "--insert", "ipxe.iso"});
  EXPECT_NE(no_url.code, 0);
  EXPECT_THAT(no_url.err, HasSubstr("is no URL"));
  for (const auto& [url, said] :
       {std::pair<std::string, const char*>{"file:///etc/passwd", "is no URL"},
        {"http://h/a b.iso", "has a blank"},
        {"http://user:s3cret@h/x.iso", "has a password"},
        {"http://h/x.iso?token=s3cret", "has a password, a query"},
        {"http://", "names no host"},
        {"http://h", "names no file"},
        {"http://h/" + std::string(3'000, 'x'), "2048 bytes"}}) {
    const auto refused = folder_.muster({"bmc", "media", "gpu001", "--insert", url});
    EXPECT_NE(refused.code, 0) << url;
    EXPECT_THAT(refused.err, HasSubstr(said));
    EXPECT_THAT(refused.err, ::testing::Not(HasSubstr("s3cret")));
  }
  EXPECT_THAT(folder_.muster({"--json", "events"}).out, ::testing::Not(HasSubstr("s3cret")));
  bmc_.expect({.method = "GET",
               .path = "/redfish/v1/Systems/system",
               .merge = {{"LocationIndicatorActive", true}},
               .count = -1});
  const auto led = folder_.muster({"bmc", "locate", "gpu001"});
  EXPECT_EQ(led.code, 0) << led.err;
  EXPECT_THAT(led.out, HasSubstr("its locate LED is on"));
}

TEST_F(BmcCommands, bootSetsTheOverrideAndShowKnowsTheCertificate) {
  auto boot = folder_.muster(
      {"bmc", "boot", "gpu001", "http", "--uri", "http://10.20.0.1:8080/rescue.efi"});
  ASSERT_EQ(boot.code, 0) << boot.err;
  EXPECT_THAT(folder_.muster({"bmc", "show", "--nodes", "gpu002"}).out, HasSubstr("not met yet"));
  EXPECT_EQ(bmc_.state().boot_once, "UefiHttp");
  EXPECT_EQ(bmc_.state().boot_uri, "http://10.20.0.1:8080/rescue.efi");
  EXPECT_NE(folder_.muster({"bmc", "boot", "gpu001", "pxe", "--uri", "http://x/"}).code, 0);
  const auto shown = folder_.muster({"--json", "bmc", "show", "--nodes", "gpu001"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto rows = nlohmann::json::parse(shown.out);
  EXPECT_EQ(rows[0].at("pin").get<std::string>().size(), 64u);
  EXPECT_FALSE(rows[0].at("password_refused").get<bool>());
}

TEST_F(BmcCommands, eachSpeaksJsonWhereThatIsAskedFor) {
  secret("bmc-next", kNew);
  inventory("bmc-next");
  const auto said = [this](std::vector<std::string> words) {
    words.insert(words.begin(), {"--json", "bmc"});
    const auto ended = folder_.muster(words);
    EXPECT_EQ(ended.code, 0) << words[2] << ": " << ended.out << ended.err;
    auto out = nlohmann::json::parse(ended.out, nullptr, false);
    EXPECT_FALSE(out.is_discarded()) << words[2] << ": " << ended.out;
    return out;
  };
  EXPECT_EQ(said({"power", "gpu001", "on"})["power"], "on");
  EXPECT_EQ(said({"power", "gpu001", "off"})["done"], false);
  EXPECT_EQ(said({"locate", "gpu001", "on"})["led"], "on");
  EXPECT_EQ(said({"boot", "gpu001", "pxe"})["from"], "pxe");
  EXPECT_FALSE(said({"boot-order", "gpu001"})["options"].empty());
  EXPECT_TRUE(said({"media", "gpu001"}).is_array());
  EXPECT_EQ(said({"rotate", "gpu001"})[0]["rotation"], "none");
  const auto rotated = said({"rotate", "gpu001", "--yes"});
  EXPECT_EQ(rotated["done"], nlohmann::json{"gpu001"});
  EXPECT_TRUE(rotated["failed"].empty());
  EXPECT_EQ(said({"rotate", "gpu001"})[0]["rotation"], "done");
  EXPECT_EQ(said({"certificate", "gpu001", "--yes"})["done"], nlohmann::json{"gpu001"});
}

TEST_F(BmcCommands, rotateChangesThePasswordOnceItIsConfirmed) {
  EXPECT_THAT(folder_.muster({"bmc", "rotate", "gpu001", "--yes"}).err,
              HasSubstr("no next password is declared"));
  secret("bmc-next", kNew);
  inventory("bmc-next");
  EXPECT_THAT(folder_.muster({"bmc", "rotate", "gpu001"}).out,
              AllOf(HasSubstr("has the old password"), HasSubstr("Nothing was done")));
  const auto changed = folder_.muster({"bmc", "rotate", "gpu001", "--yes"});
  ASSERT_EQ(changed.code, 0) << changed.out << changed.err;
  EXPECT_THAT(changed.out, HasSubstr("1 of 1 done"));
  EXPECT_THAT(folder_.muster({"bmc", "show", "--nodes", "gpu001"}).out,
              HasSubstr("has the next password"));
  EXPECT_EQ(folder_.muster({"bmc", "power", "gpu001", "on"}).code, 0) << "logs in with the new one";
  EXPECT_EQ(bmc_.state().failed_logins, 0u);
  EXPECT_THAT(changed.out + changed.err, AllOf(Not(HasSubstr(kOld)), Not(HasSubstr(kNew))));
}

TEST_F(BmcCommands, certificateIsSignedInstalledAndPinned) {
  ASSERT_EQ(folder_.muster({"bmc", "power", "gpu001", "on"}).code, 0);
  const auto pin = [this] {
    return nlohmann::json::parse(
               folder_.muster({"--json", "bmc", "show", "--nodes", "gpu001"}).out)[0]
        .at("pin")
        .get<std::string>();
  };
  const auto before = pin();
  EXPECT_THAT(folder_.muster({"bmc", "certificate", "gpu001"}).out, HasSubstr("Nothing was done"));
  EXPECT_EQ(pin(), before);
  const auto done = folder_.muster({"bmc", "certificate", "gpu001", "--yes"});
  ASSERT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_NE(pin(), before);
  EXPECT_EQ(folder_.muster({"bmc", "power", "gpu001", "on"}).code, 0)
      << "the new certificate is trusted";
}

TEST_F(BmcCommands, aRefusedPasswordIsTriedOnceAndNeverAgainUntilSomebodySaysSo) {
  secret("bmc-password", "wrong");
  EXPECT_NE(folder_.muster({"bmc", "power", "gpu001", "on"}).code, 0);
  const auto again = folder_.muster({"bmc", "power", "gpu001", "on"});
  EXPECT_THAT(again.err, HasSubstr("bmc auth reset"));
  EXPECT_EQ(bmc_.state().failed_logins, 1u);
  secret("bmc-password", kOld);
  EXPECT_EQ(folder_.muster({"bmc", "power", "gpu001", "on"}).code, 0)
      << "another password is another matter";
}

}  // namespace
}  // namespace muster::test
