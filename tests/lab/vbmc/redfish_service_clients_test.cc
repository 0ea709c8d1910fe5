// SPDX-License-Identifier: Apache-2.0
// Software of other people against the virtual BMC over real HTTPS: python3-sushy, redfishtool,
// fwupd's redfish plugin. Each is a Debian package; without it its test is skipped with the reason.
#include "base/io/http.h"
#include "base/io/process.h"
#include "lab/vbmc/redfish_service.h"
#include "tests/fakes/fake_machine.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <fstream>

namespace muster::lab::vbmc {
namespace {

using namespace std::chrono_literals;

class OutsideClients : public testing::Test {
 protected:
  void serve(std::string_view vendor_profile) {
    ServiceOptions options;
    options.identity = {.node = "gpu001",
                        .serial = "SN-1",
                        .uuid = "11111111-2222-4333-8444-555555555555",
                        .macs = {"52:54:00:20:00:01"}};
    options.vendor_profile = *findVendorProfile(vendor_profile);
    options.account = Account::make("admin", "right");
    service_ = *RedfishService::make(clock_, workers_, machine_, std::move(options));
    io::ServerOptions listener;
    listener.identity = *io::selfSigned("bmc", {"127.0.0.1"});
    server_ = *io::startHttpServer(io_.get_executor(), listener);
    server_->addRoutes(service_->routes());
    asio::co_spawn(io_, service_->run(), asio::detached);
  }
  ~OutsideClients() override {
    if (service_) service_->stop();
    if (server_) server_->stop();
    io_.restart();
    io_.run_for(200ms);
  }
  std::string url() const { return fmt::format("https://127.0.0.1:{}", server_->port()); }

  io::ProcessExit run(const std::string& program, std::vector<std::string> args,
                      std::map<std::string, std::string> env = {}) {
    io::Command command;
    command.program = program;
    command.args = std::move(args);
    command.env = std::move(env);
    auto ended = test::runAsync(io_, processes_->run(std::move(command)), 60s);
    EXPECT_TRUE(ended) << ended.error().str();
    return ended ? *ended : io::ProcessExit{1, "", ""};
  }
  static bool lacks(const std::string& program, const std::vector<std::string>& args) {
    io::Command command;
    command.program = program;
    command.args = args;
    const auto ended = io::runBlocking(command);
    return !ended || ended->code != 0;
  }

  test::TempFolder folder_;
  asio::io_context io_;
  SystemClock clock_;
  Workers workers_{1};
  FakeMachine machine_;
  std::unique_ptr<RedfishService> service_;
  std::unique_ptr<io::HttpServer> server_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
};

constexpr const char* kPython =
    "/usr/bin/python3";  // Debian's own: another python does not know Debian's packages

class Sushy : public OutsideClients, public testing::WithParamInterface<const char*> {};
TEST_P(Sushy, listsPowersAndSetsTheBootTarget) {
  if (lacks(kPython, {"-c", "import sushy"})) GTEST_SKIP() << "python3-sushy is not installed";
  serve(GetParam());
  const auto ended = run(
      kPython, {(test::sourceFolder() / "tests/lab/outside_clients.py").string(), url(), "right"});
  EXPECT_EQ(ended.code, 0) << ended.err.substr(ended.err.size() > 1500 ? ended.err.size() - 1500
                                                                       : 0);
  EXPECT_THAT(ended.out, testing::HasSubstr("sushy"));
  EXPECT_EQ(machine_.starts.size(), 1u);
}
INSTANTIATE_TEST_SUITE_P(All, Sushy,
                         testing::Values("muster", "idrac", "ilo", "supermicro", "openbmc"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(OutsideClients, redfishtoolReadsSystemsManagersAndAccounts) {
  if (lacks("redfishtool", {"--version"})) GTEST_SKIP() << "redfishtool is not installed";
  serve("muster");
  const auto host = fmt::format("127.0.0.1:{}", server_->port());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"Systems"}, {"Managers"}, {"Chassis"}, {"root"}}) {
    std::vector<std::string> args = {"-r", host, "-S", "Always", "-u", "admin", "-p", "right"};
    args.insert(args.end(), words.begin(), words.end());
    const auto ended = run("redfishtool", args);
    EXPECT_EQ(ended.code, 0) << words.front() << ": " << ended.err;
  }
}

TEST_F(OutsideClients, fwupdSeesEveryComponentAsADevice) {
  if (lacks("fwupdtool", {"--version"})) GTEST_SKIP() << "fwupd is not installed";
  serve("openbmc");
  const auto config = folder_ / "fwupd.conf";
  std::ofstream(config) << "[fwupd]\nVerboseDomains=\n[redfish]\nUri=" << url()
                        << "\nUsername=admin\nPassword=right\nCACheck=false\n";
  const auto ended =
      run("fwupdtool", {"get-devices", "--plugins", "redfish", "--json", "--show-all"},
          {{"FWUPD_SYSCONFDIR", folder_.path().string()},
           {"FWUPD_LOCALSTATEDIR", folder_.path().string()},
           {"CONFIGURATION_DIRECTORY", folder_.path().string()},
           {"CACHE_DIRECTORY", folder_.path().string()},
           {"STATE_DIRECTORY", folder_.path().string()}});
  EXPECT_THAT(ended.out, testing::HasSubstr("BIOS")) << ended.err.substr(0, 2000);
}

}  // namespace
}  // namespace muster::lab::vbmc
