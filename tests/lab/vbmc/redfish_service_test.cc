// SPDX-License-Identifier: Apache-2.0
// The virtual BMC's service without a server: requests go straight into handle().
#include "lab/vbmc/redfish_service.h"

#include "base/io/files.h"
#include "lab/vbmc/firmware_file.h"
#include "lab/vbmc/messages.h"
#include "tests/fakes/fake_machine.h"

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdlib>
#include <functional>
#include <set>

namespace muster::lab::vbmc {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

class RedfishServiceTest : public testing::Test {
 protected:
  RedfishServiceTest() {
    char name[] = "/tmp/vbmc-test-XXXXXX";
    folder_ = ::mkdtemp(name);
    build();
  }
  ~RedfishServiceTest() override {
    service_->stop();
    io_.restart();
    io_.run();
    std::filesystem::remove_all(folder_);
  }

  void build() {
    ServiceOptions options;
    options.identity = {.node = "gpu001",
                        .serial = "MST-1",
                        .uuid = "11111111-2222-4333-8444-555555555555",
                        .macs = {"52:54:00:20:00:01"}};
    options.account = Account::make("admin", "secret");
    options.logins.max_sessions = 2;
    options.timings = {
        .flash_step = 2ms, .flash_steps = 4, .reset_delay = 1ms, .reset_duration = 5ms};
    options.state_file = folder_ / "gpu001.json";
    options.staging_folder = folder_;
    options.went_away = [this] { ++went_away_; };
    options.came_back = [this] { ++came_back_; };
    options.deliver = [this](std::string url, std::string body) {
      delivered_.emplace_back(std::move(url), std::move(body));
    };
    auto made = RedfishService::make(clock_, workers_, machine_, std::move(options));
    if (!made) throw std::runtime_error(made.error().str());
    service_ = std::move(*made);
    asio::co_spawn(io_, service_->run(), asio::detached);
  }

  io::ServerResponse send(std::string method, std::string target, std::string body = {},
                          io::Headers headers = {}) {
    io::ServerRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.body = std::move(body);
    request.headers = std::move(headers);
    if (!token_.empty() && !request.headers.contains("X-Auth-Token"))
      request.headers["X-Auth-Token"] = token_;
    std::optional<io::ServerResponse> answer;
    asio::co_spawn(
        io_, service_->handle(std::move(request)),
        [&](std::exception_ptr, io::ServerResponse response) { answer = std::move(response); });
    io_.restart();
    while (!answer && io_.run_one() > 0) {
    }
    return std::move(*answer);
  }
  static json bodyOf(const io::ServerResponse& response) {
    return json::parse(std::get<std::string>(response.body), nullptr, false);
  }
  json get(const std::string& path) { return bodyOf(send("GET", path)); }

  int login(const std::string& password) {
    auto response =
        send("POST", kSessions, json{{"UserName", "admin"}, {"Password", password}}.dump());
    if (response.status == 201) token_ = response.headers.at("X-Auth-Token");
    return response.status;
  }
  io::ServerResponse upload(const std::string& image, const std::string& target) {
    std::string body = "--b\r\nContent-Disposition: form-data; name=\"UpdateParameters\"\r\n\r\n" +
                       json{{"Targets", {kInventory + "/" + target}}}.dump() +
                       "\r\n--b\r\nContent-Disposition: form-data; name=\"UpdateFile\"; "
                       "filename=\"f.fw\"\r\n\r\n" +
                       image + "\r\n--b--\r\n";
    return send("POST", kUpload, std::move(body),
                {{"Content-Type", "multipart/form-data; boundary=b"}});
  }
  /// Runs the service until the condition holds; each step is one event of the executor.
  template <class Condition>
  bool runUntil(Condition holds) {
    for (int events = 0; events < 10000; ++events) {
      if (holds()) return true;
      io_.restart();
      io_.run_one_for(1s);
    }
    return false;
  }
  json finishedTask(const std::string& uri) {
    json task;
    runUntil([&] {
      task = get(uri);
      return task["TaskState"] == "Completed" || task["TaskState"] == "Exception";
    });
    runUntil([&] { return !service_->busy(); });
    return task;
  }
  int reset(const std::string& type) {
    return send("POST", kSystem + "/Actions/ComputerSystem.Reset", json{{"ResetType", type}}.dump())
        .status;
  }
  int resetBmc() {
    return send("POST", kManager + "/Actions/Manager.Reset", R"({"ResetType":"GracefulRestart"})")
        .status;
  }

  std::filesystem::path folder_;
  asio::io_context io_;
  SystemClock clock_;
  Workers workers_{1};
  FakeMachine machine_;
  std::unique_ptr<RedfishService> service_;
  std::string token_;
  int went_away_ = 0, came_back_ = 0;
  std::vector<std::pair<std::string, std::string>> delivered_;
};

TEST_F(RedfishServiceTest, onlyTheRootIsOpenToUnknownSenders) {
  EXPECT_EQ(send("GET", "/redfish/v1/").status, 200);
  EXPECT_EQ(send("GET", kSystem).status, 401);
  EXPECT_EQ(login("secret"), 201);
  EXPECT_EQ(get(kSystem)["SerialNumber"], "MST-1");
  EXPECT_EQ(get(kSystem)["UUID"], "11111111-2222-4333-8444-555555555555");
  EXPECT_EQ(get(kSystem + "/EthernetInterfaces/nic0")["MACAddress"], "52:54:00:20:00:01");
  EXPECT_EQ(send("GET", "/redfish/v1/Systems/other").status, 404);
}

TEST_F(RedfishServiceTest, sessionsAreCappedAndEndAtLogout) {
  auto first = send("POST", kSessions, R"({"UserName":"admin","Password":"secret"})");
  ASSERT_EQ(first.status, 201);
  ASSERT_EQ(login("secret"), 201);
  EXPECT_EQ(send("POST", kSessions, R"({"UserName":"admin","Password":"secret"})").status, 503);
  EXPECT_EQ(send("DELETE", first.headers.at("Location")).status, 204);
  EXPECT_EQ(send("GET", kSystem, "", {{"X-Auth-Token", first.headers.at("X-Auth-Token")}}).status,
            401);
  EXPECT_EQ(send("POST", kSessions, R"({"UserName":"admin","Password":"secret"})").status, 201);
}

TEST_F(RedfishServiceTest, fiveWrongPasswordsLockTheAccount) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(login("wrong"), 401);
  auto locked = send("POST", kSessions, R"({"UserName":"admin","Password":"secret"})");
  EXPECT_EQ(locked.status, 401);
  EXPECT_EQ(bodyOf(locked)["error"]["code"], "MusterBmc.1.0.AccountLocked");
  EXPECT_EQ(service_->state().failed_logins, 5u);
}

TEST_F(RedfishServiceTest, theOverrideHoldsForOneStart) {
  login("secret");
  EXPECT_EQ(
      send("PATCH", kSystem,
           R"({"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}})")
          .status,
      204);
  EXPECT_EQ(get(kSystem)["Boot"]["BootSourceOverrideTarget"], "Pxe");
  EXPECT_EQ(reset("On"), 204);
  EXPECT_EQ(get(kSystem)["PowerState"], "On");
  EXPECT_EQ(get(kSystem)["Boot"]["BootSourceOverrideEnabled"], "Disabled");
  EXPECT_EQ(reset("ForceRestart"), 204);
  ASSERT_EQ(machine_.starts.size(), 2u);
  EXPECT_EQ(machine_.starts[0].first, BootDevice::Network);
  EXPECT_EQ(machine_.starts[1].first, BootDevice::Disk);
  EXPECT_EQ(reset("ForceOff"), 204);
  EXPECT_EQ(get(kSystem)["PowerState"], "Off");
}

TEST_F(RedfishServiceTest, refusesValuesThatItDoesNotOffer) {
  login("secret");
  EXPECT_EQ(send("PATCH", kSystem, R"({"Boot":{"BootSourceOverrideTarget":"Floppy"}})").status,
            400);
  EXPECT_EQ(send("PATCH", kSystem, "[]").status, 400);
  EXPECT_EQ(reset("PushPowerButton"), 400);
  EXPECT_EQ(send("POST", kUpload, "no multipart").status, 400);
}

TEST_F(RedfishServiceTest, aFailedStartKeepsTheOverride) {
  login("secret");
  send("PATCH", kSystem, R"({"Boot":{"BootSourceOverrideTarget":"Pxe"}})");
  machine_.refuse_start = true;
  EXPECT_EQ(reset("On"), 500);
  EXPECT_EQ(get(kSystem)["Boot"]["BootSourceOverrideTarget"], "Pxe");
}

TEST_F(RedfishServiceTest, bmcFirmwareIsActiveOnlyAfterTheBmcsReset) {
  login("secret");
  auto accepted = upload(makeFirmware("BMC", "2.1.0"), "BMC");
  ASSERT_EQ(accepted.status, 202);
  EXPECT_EQ(upload(makeFirmware("BIOS", "1.4.2"), "BIOS").status, 503);
  auto task = finishedTask(accepted.headers.at("Location"));
  EXPECT_EQ(task["TaskState"], "Completed") << task.dump(2);
  EXPECT_EQ(get(kInventory + "/BMC")["Version"], "2.0.0");
  EXPECT_EQ(resetBmc(), 204);
  ASSERT_TRUE(runUntil([&] { return service_->away(); }));
  EXPECT_EQ(send("GET", "/redfish/v1").status, 503);
  ASSERT_TRUE(runUntil([&] { return !service_->away(); }));
  EXPECT_EQ(went_away_, 1);
  EXPECT_EQ(came_back_, 1);
  EXPECT_EQ(send("GET", kSystem).status, 401) << "sessions end with the reset";
  token_.clear();
  login("secret");
  EXPECT_EQ(get(kInventory + "/BMC")["Version"], "2.1.0");
  EXPECT_EQ(service_->state().slots.at("BMC").flashes, 1u);
}

TEST_F(RedfishServiceTest, biosFirmwareIsActiveAfterAPowerCycle) {
  login("secret");
  reset("On");
  auto accepted = upload(makeFirmware("BIOS", "1.4.2"), "BIOS");
  finishedTask(accepted.headers.at("Location"));
  EXPECT_EQ(get(kInventory + "/BIOS")["Version"], "1.4.0");
  reset("ForceRestart");
  EXPECT_EQ(get(kInventory + "/BIOS")["Version"], "1.4.2");
  EXPECT_EQ(machine_.starts.back().bios_version, "1.4.2");
}

TEST_F(RedfishServiceTest, aBadImageIsNeverStaged) {
  login("secret");
  auto corrupt = makeFirmware("BMC", "2.1.0");
  corrupt.back() ^= 1;
  auto task = finishedTask(upload(corrupt, "BMC").headers.at("Location"));
  EXPECT_EQ(task["TaskState"], "Exception");
  EXPECT_EQ(task["TaskStatus"], "Critical");
  task = finishedTask(upload(makeFirmware("BIOS", "9.9"), "BMC").headers.at("Location"));
  EXPECT_EQ(task["TaskState"], "Exception") << "an image for another component";
  EXPECT_EQ(service_->state().slots.at("BMC").uploads, 2u);
  EXPECT_EQ(service_->state().slots.at("BMC").flashes, 0u);
  EXPECT_TRUE(service_->state().slots.at("BMC").staged_version.empty());
}

TEST_F(RedfishServiceTest, remembersOverItsOwnRestart) {
  login("secret");
  login("wrong");
  finishedTask(upload(makeFirmware("BIOS", "1.4.2"), "BIOS").headers.at("Location"));
  service_->stop();
  io_.restart();
  io_.run();
  build();
  token_.clear();
  login("secret");
  auto bios = get(kInventory + "/BIOS");
  EXPECT_EQ(bios["Version"], "1.4.0");
  EXPECT_EQ(bios["Oem"]["Muster"]["StagedVersion"], "1.4.2");
  EXPECT_EQ(get(kAccount)["Oem"]["Muster"]["FailedLogins"], 1);
  reset("On");
  EXPECT_EQ(get(kInventory + "/BIOS")["Version"], "1.4.2");
}

TEST_F(RedfishServiceTest, aDamagedStateFileIsAnError) {
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "bad.json", "{}"));
  auto state = BmcState::load(folder_ / "bad.json", vendorProfiles().front());
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code(), ErrorCode::Corrupt);
}

TEST_F(RedfishServiceTest, accountsAreMadeUsedAndDeletedAndARoleLimitsWhatTheyDo) {
  login("secret");
  const auto made = send("POST", kAccounts,
                         R"({"UserName":"eye","Password":"looks-only-1","RoleId":"ReadOnly"})");
  ASSERT_EQ(made.status, 201);
  const auto account = made.headers.at("Location");
  EXPECT_EQ(get(account)["RoleId"], "ReadOnly");
  EXPECT_EQ(get(account)["Password"], nullptr);
  EXPECT_EQ(
      send("POST", kAccounts, R"({"UserName":"eye","Password":"looks-only-2","RoleId":"ReadOnly"})")
          .status,
      400)
      << "the name is taken";
  const io::Headers eye = {{"X-Auth-Token", "none"},
                           {"Authorization", "Basic ZXllOmxvb2tzLW9ubHktMQ=="}};
  EXPECT_EQ(send("GET", kSystem, "", eye).status, 200);
  EXPECT_EQ(
      send("POST", kSystem + "/Actions/ComputerSystem.Reset", R"({"ResetType":"On"})", eye).status,
      403);
  EXPECT_EQ(send("GET", kAccount, "", eye).status, 403) << "another's account";
  EXPECT_EQ(send("PATCH", account, R"({"RoleId":"Administrator"})", eye).status, 403);
  EXPECT_EQ(send("PATCH", account, R"({"Password":"looks-only-2"})", eye).status, 204);
  EXPECT_EQ(send("GET", kSystem, "", eye).status, 401) << "the old password";
  service_->stop();
  io_.restart();
  io_.run();
  build();
  token_.clear();
  login("secret");
  EXPECT_EQ(get(account)["UserName"], "eye") << "it outlives a restart of the BMC";
  EXPECT_EQ(send("DELETE", kAccount).status, 400) << "the first account stays";
  EXPECT_EQ(send("DELETE", account).status, 204);
  EXPECT_EQ(send("GET", account).status, 404);
}

TEST_F(RedfishServiceTest, oneAccountsWrongPasswordsDoNotLockAnother) {
  login("secret");
  send("POST", kAccounts, R"({"UserName":"eye","Password":"looks-only-1","RoleId":"ReadOnly"})");
  for (int i = 0; i < 9; ++i) send("POST", kSessions, R"({"UserName":"eye","Password":"wrong"})");
  EXPECT_TRUE(get(kAccounts + "/2")["Locked"].get<bool>());
  EXPECT_EQ(send("POST", kSessions, R"({"UserName":"admin","Password":"secret"})").status, 201);
  EXPECT_EQ(send("PATCH", kAccounts + "/2", R"({"Locked":false})").status, 204);
  EXPECT_FALSE(get(kAccounts + "/2")["Locked"].get<bool>());
}

TEST_F(RedfishServiceTest, everyResourceTakesTheMethodsThatItNamesAndRefusesTheOthers) {
  login("secret");
  std::vector<std::string> open = {kRoot};
  std::set<std::string> seen;
  while (!open.empty()) {
    const auto path = open.back();
    open.pop_back();
    if (!seen.insert(path).second) continue;
    const auto shown = send("GET", path);
    ASSERT_EQ(shown.status, 200) << path;
    const auto allowed = shown.headers.at("Allow");
    for (const std::string method : {"PATCH", "POST", "DELETE", "PUT"}) {
      if (allowed.find(method) != std::string::npos && method == "DELETE") continue;
      const auto status = send(method, path, "[]").status;
      EXPECT_EQ(status == 405, allowed.find(method) == std::string::npos)
          << method << " " << path << " answered " << status << ", Allow: " << allowed;
    }
    const std::function<void(const json&)> follow = [&](const json& value) {
      if (value.is_object() && value.contains("@odata.id"))
        open.push_back(value["@odata.id"].get<std::string>());
      if (value.is_structured())
        for (const auto& part : value) follow(part);
    };
    follow(bodyOf(shown));
  }
  EXPECT_GT(seen.size(), 40u);
}

TEST_F(RedfishServiceTest, aPatchNamesWhatItDidNotTake) {
  login("secret");
  EXPECT_EQ(send("PATCH", kSystem, "{}").status, 400);
  EXPECT_EQ(send("PATCH", kSystem, R"({"@odata.id":"/x"})").status, 400);
  EXPECT_EQ(send("PATCH", kSystem, R"({"AssetTag":"x"})").status, 400);
  const auto mixed = send("PATCH", kSystem, R"({"AssetTag":"x","LocationIndicatorActive":true})");
  EXPECT_EQ(mixed.status, 200);
  EXPECT_EQ(bodyOf(mixed)["LocationIndicatorActive"], true);
  EXPECT_NE(bodyOf(mixed)["@Message.ExtendedInfo"].dump().find("AssetTag"), std::string::npos);
  const auto etag = send("GET", kSystem).headers.at("ETag");
  EXPECT_EQ(
      send("PATCH", kSystem, R"({"LocationIndicatorActive":false})", {{"If-Match", etag}}).status,
      204);
  EXPECT_EQ(
      send("PATCH", kSystem, R"({"LocationIndicatorActive":true})", {{"If-Match", etag}}).status,
      412)
      << "that one is old now";
}

TEST_F(RedfishServiceTest, theBootOrderIsTakenWholeOrNotAtAll) {
  login("secret");
  const auto order = get(kSystem)["Boot"]["BootOrder"];
  ASSERT_EQ(order.size(), 3u);
  for (const auto& bad :
       {json::array({order[0]}), json::array({order[0], order[0], order[1]}),
        json::array({order[0], order[1], order[2], "Boot9999"}), json("Boot0000"), json(nullptr)}) {
    const auto body = json{{"Boot", {{"BootOrder", bad}, {"BootSourceOverrideTarget", "Pxe"}}}};
    EXPECT_EQ(send("PATCH", kSystem, body.dump()).status, 400) << bad;
  }
  EXPECT_EQ(get(kSystem)["Boot"]["BootOrder"], order);
  EXPECT_EQ(get(kSystem)["Boot"]["BootSourceOverrideTarget"], "None") << "nor half of it";
  EXPECT_EQ(send("PATCH", kBootOptions + "/" + order[0].get<std::string>(),
                 R"({"BootOptionEnabled":false})")
                .status,
            204);
  reset("On");
  EXPECT_EQ(machine_.starts.back().first, BootDevice::Network) << "the disk is skipped";
}

TEST_F(RedfishServiceTest, subscribersGetWhatHappens) {
  login("secret");
  EXPECT_EQ(send("POST", kSubscriptions, R"({"Protocol":"FTP","Destination":"http://h/x"})").status,
            400);
  EXPECT_EQ(send("POST", kSubscriptions, R"({"Protocol":"Redfish","Destination":"gopher"})").status,
            400);
  const auto made = send("POST", kSubscriptions,
                         R"({"Protocol":"Redfish","Destination":"http://h/x","Context":"c"})");
  ASSERT_EQ(made.status, 201);
  service_->report("Warning", "a fan is slow");
  ASSERT_EQ(delivered_.size(), 1u);
  EXPECT_EQ(delivered_[0].first, "http://h/x");
  EXPECT_EQ(json::parse(delivered_[0].second)["Context"], "c");
  EXPECT_EQ(json::parse(delivered_[0].second)["Events"][0]["Message"], "a fan is slow");
  EXPECT_EQ(send("DELETE", made.headers.at("Location")).status, 204);
  service_->report("Warning", "a fan is slow");
  EXPECT_EQ(delivered_.size(), 1u);
}

}  // namespace
}  // namespace muster::lab::vbmc
