// SPDX-License-Identifier: Apache-2.0
// Software of other people against the virtual BMC over real HTTPS, each on every vendor profile:
// python3-sushy, redfishtool, fwupd's redfish plugin (Debian packages), and DMTF's Service
// Validator, Protocol Validator and Tacklebox (checkouts, docs/development/outside-tools.md). What
// is not there is skipped with the reason.
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

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

namespace muster::lab::vbmc {
namespace {

using namespace std::chrono_literals;

/// A validator reads every resource, on a machine that does other things, too.
constexpr std::chrono::seconds kToolLimit{300};
constexpr const char* kPython =
    "/usr/bin/python3";  // Debian's own: another python does not know Debian's packages
constexpr const char* kPassword = "right1right";

std::vector<std::string> profileNames() {
  std::vector<std::string> names;
  for (const auto& profile : vendorProfiles()) names.emplace_back(profile.name);
  return names;
}
std::string testName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

class OutsideClients : public testing::TestWithParam<std::string> {
 protected:
  void serve(std::string_view vendor_profile) {
    ServiceOptions options;
    options.identity = {.node = "gpu001",
                        .serial = "SN-1",
                        .uuid = "11111111-2222-4333-8444-555555555555",
                        .macs = {"52:54:00:20:00:01"}};
    options.identity.gpu_models = {"NVIDIA H100 80GB HBM3"};
    options.vendor_profile = *findVendorProfile(vendor_profile);
    options.account = Account::make("admin", kPassword);
    service_ = *RedfishService::make(clock_, workers_, machine_, std::move(options));
    io::ServerOptions listener;
    listener.identity = *io::selfSigned("bmc", {"127.0.0.1"});
    std::ofstream(folder_ / "bmc.crt") << listener.identity->certificate_pem;
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
    command.timeout = kToolLimit;
    auto ended = test::runAsync(io_, processes_->run(std::move(command)), kToolLimit + 10s);
    EXPECT_TRUE(ended) << ended.error().str();
    return ended ? *ended : io::ProcessExit{1, "", ""};
  }
  /// A profile's parts that speak only while its host is on do so.
  void switchOn() { machine_.on = true; }

  /// Where the checkouts of outside tools are.
  static std::filesystem::path toolFolder() {
    if (const char* set = std::getenv("MUSTER_REDFISH_TOOLS")) return set;
    if (const char* cache = std::getenv("MUSTER_CACHE"))
      return std::filesystem::path(cache) / "redfish-tools";
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home ? home : "/nonexistent") / ".cache/muster/redfish-tools";
  }
  /// Why a tool cannot run; empty: it can. `program`: below the folder.
  static std::string missing(const std::string& program) {
    if (!std::filesystem::exists(toolFolder() / program))
      return (toolFolder() / program).string() +
             " is not there (docs/development/outside-tools.md says how to get it)";
    io::Command help;
    help.program = kPython;
    help.args = {(toolFolder() / program).string(), "--help"};
    help.env = toolEnvironment();
    const auto ended = io::runBlocking(help);
    if (!ended || ended->code != 0)
      return program + " does not start: " + (ended ? ended->err : ended.error().str());
    return {};
  }
  /// Libraries that Debian does not have, from their checkouts; and no trust that a shell sets.
  static std::map<std::string, std::string> toolEnvironment() {
    std::string path;
    for (const char* library :
         {"python-redfish-library/src", "Redfish-Tacklebox", "sseclient", "aenum", "jsonpath-ng"})
      path += (toolFolder() / library).string() + ":";
    return {{"PYTHONPATH", path}, {"REQUESTS_CA_BUNDLE", ""}, {"CURL_CA_BUNDLE", ""}};
  }
  io::ProcessExit runTool(const std::string& program, std::vector<std::string> args) {
    args.insert(args.begin(), (toolFolder() / program).string());
    return run(kPython, std::move(args), toolEnvironment());
  }
  std::string host() const { return fmt::format("127.0.0.1:{}", server_->port()); }

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

INSTANTIATE_TEST_SUITE_P(All, OutsideClients, testing::ValuesIn(profileNames()), testName);

TEST_P(OutsideClients, sushyListsPowersAndSetsTheBootTarget) {
  if (lacks(kPython, {"-c", "import sushy"})) GTEST_SKIP() << "python3-sushy is not installed";
  serve(GetParam());
  const auto ended =
      run(kPython, {(test::sourceFolder() / "tests/lab/outside_clients.py").string(), url(),
                    kPassword, behaviourOf(GetParam()).if_match_required ? "if-match" : ""});
  EXPECT_EQ(ended.code, 0) << ended.err.substr(ended.err.size() > 1500 ? ended.err.size() - 1500
                                                                       : 0);
  EXPECT_THAT(ended.out, testing::HasSubstr("sushy"));
  EXPECT_EQ(machine_.starts.size(), 1u);
}

TEST_P(OutsideClients, redfishtoolReadsAndSwitches) {
  if (lacks("redfishtool", {"-V"})) GTEST_SKIP() << "redfishtool is not installed";
  serve(GetParam());
  for (const std::vector<std::string>& words : {std::vector<std::string>{"Systems"},
                                                {"Managers"},
                                                {"Chassis"},
                                                {"root"},
                                                {"AccountService"},
                                                {"AccountService", "Accounts"},
                                                {"SessionService"},
                                                {"Systems", "reset", "On"},
                                                {"Systems", "setBootOverride", "Once", "Pxe"}}) {
    if (words.back() == "Pxe" && GetParam() != "muster") continue;  // settings objects, If-Match
    std::vector<std::string> args = {"-r", host(), "-S", "Always", "-u", "admin", "-p", kPassword};
    args.insert(args.end(), words.begin(), words.end());
    const auto ended = run("redfishtool", args);
    EXPECT_EQ(ended.code, 0) << fmt::format("{}", fmt::join(words, " ")) << ": " << ended.err;
  }
  EXPECT_TRUE(machine_.on);
}

TEST_P(OutsideClients, fwupdSeesEveryUpdateableComponentAsADevice) {
  if (lacks("fwupdtool", {"--version"})) GTEST_SKIP() << "fwupd is not installed";
  serve(GetParam());
  switchOn();
  const auto config = folder_ / "fwupd.conf";
  std::ofstream(config) << "[fwupd]\nVerboseDomains=\n[redfish]\nUri=" << url()
                        << "\nUsername=admin\nPassword=" << kPassword << "\nCACheck=false\n";
  const auto ended =
      run("fwupdtool", {"get-devices", "--plugins", "redfish", "--json", "--show-all", "--verbose"},
          {{"FWUPD_SYSCONFDIR", folder_.path().string()},
           {"FWUPD_LOCALSTATEDIR", folder_.path().string()},
           {"CONFIGURATION_DIRECTORY", folder_.path().string()},
           {"CACHE_DIRECTORY", folder_.path().string()},
           {"STATE_DIRECTORY", folder_.path().string()}});
  const auto* profile = *findVendorProfile(GetParam());
  if (profile->takes == Takes::Fetch) {  // fwupd only uploads
    EXPECT_THAT(ended.err, testing::HasSubstr("HttpPushUri")) << ended.out;
    return;
  }
  for (const auto& row : profile->components) {
    std::string shown(row.name);  // fwupd makes names of names
    std::ranges::replace(shown, '_', ' ');
    EXPECT_THAT(ended.out, testing::HasSubstr(shown)) << ended.err.substr(0, 2000);
  }
}

/// The validator's own closing line, whole: a run that breaks off prints none.
std::map<std::string, int> countsOf(const std::string& text, const std::string& pattern) {
  std::map<std::string, int> counts;
  std::smatch found;
  std::string last;
  for (std::istringstream lines(text); std::getline(lines, last);)
    if (std::regex_search(last, found, std::regex(pattern)) && found.size() >= 4)
      counts = {{"pass", std::stoi(found[1])},
                {"warn", std::stoi(found[2])},
                {"fail", std::stoi(found[3])}};
  return counts;
}

std::string linesWith(const std::string& text, const std::string& word) {
  std::string out, line;
  for (std::istringstream lines(text); std::getline(lines, line);)
    if (line.find(word) != std::string::npos) out += line + "\n";
  return out;
}

TEST_P(OutsideClients, serviceValidatorFindsNoFault) {
  const std::string program = "Redfish-Service-Validator/RedfishServiceValidator.py";
  if (const auto why = missing(program); !why.empty()) GTEST_SKIP() << why;
  const auto schemas = toolFolder() / "Redfish-Publications/csdl";
  if (!std::filesystem::exists(schemas)) GTEST_SKIP() << schemas << " is not there";
  serve(GetParam());
  switchOn();
  const auto ended =
      runTool(program, {"-r", url(), "-u", "admin", "-p", kPassword, "--authtype", "Session",
                        "--schema_directory", schemas.string(), "--skipschema", "--nooemcheck",
                        "--logdir", (folder_ / "logs").string()});
  const auto text = ended.out + ended.err;
  const auto counts = countsOf(text, R"(\|\s+(\d+)\s+\|\s+(\d+)\s+\|\s+(\d+)\s+\|\s+\d+\s+\|)");
  ASSERT_FALSE(counts.empty()) << text.substr(0, 3000);
  EXPECT_EQ(counts.at("fail"), 0) << linesWith(text, "Fail: ") << linesWith(text, "FAIL");
  EXPECT_GT(counts.at("pass"), 400) << "it was led to few resources";
}

TEST_P(OutsideClients, protocolValidatorFindsNoFault) {
  const std::string program = "Redfish-Protocol-Validator/rf_protocol_validator.py";
  if (const auto why = missing(program); !why.empty()) GTEST_SKIP() << why;
  serve(GetParam());
  switchOn();
  const auto ended =
      runTool(program, {"-r", url(), "-u", "admin", "-p", kPassword, "--ca-bundle",
                        (folder_ / "bmc.crt").string(), "--avoid-http-redirect", "--report-type",
                        "tsv", "--report-dir", (folder_ / "report").string()});
  const auto text = ended.out + ended.err;
  const auto counts = countsOf(text, R"(PASS: (\d+), WARN: (\d+), FAIL: (\d+))");
  ASSERT_FALSE(counts.empty()) << text.substr(0, 3000);
  std::string faults;
  for (const auto& report : std::filesystem::directory_iterator(folder_ / "report")) {
    std::ifstream file(report.path());
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    faults += linesWith(whole, "\tFAIL\t");
  }
  EXPECT_EQ(counts.at("fail"), 0) << faults;
  EXPECT_GT(counts.at("pass"), 250) << "it was led to few resources";
}

TEST_P(OutsideClients, tackleboxReadsAndSwitches) {
  const std::string scripts = "Redfish-Tacklebox/scripts/";
  if (const auto why = missing(scripts + "rf_power_reset.py"); !why.empty()) GTEST_SKIP() << why;
  serve(GetParam());
  switchOn();
  const std::vector<std::string> who = {"-r", url(), "-u", "admin", "-p", kPassword};
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"rf_sys_inventory.py", "-details"},
        {"rf_sensor_list.py"},
        {"rf_logs.py", "-s"},
        {"rf_accounts.py"},
        {"rf_update.py", "--help"},
        {"rf_bios_settings.py"},
        {"rf_boot_override.py"},
        {"rf_manager_config.py", "info"},
        {"rf_event_service.py"},
        {"rf_power_reset.py", "--info"},
        {"rf_power_reset.py", "-t", "ForceOff"}}) {
    auto args = who;
    args.insert(args.end(), words.begin() + 1, words.end());
    const auto ended = runTool(scripts + words.front(), args);
    EXPECT_EQ(ended.code, 0) << fmt::format("{}", fmt::join(words, " ")) << ": " << ended.out
                             << ended.err;
  }
  EXPECT_FALSE(machine_.on);
}

}  // namespace
}  // namespace muster::lab::vbmc
