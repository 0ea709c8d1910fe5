// SPDX-License-Identifier: Apache-2.0
// Our client against services that nobody here wrote: the emulator of OpenStack's sushy-tools over
// real HTTPS, and the mockups that DMTF publishes, served as they lie there. Checkouts:
// docs/development/outside-tools.md; without them the tests are skipped with the reason.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "bmc/fleet.h"
#include "inventory/model/cluster.h"
#include "tests/bmc/redfish_rig.h"
#include "tests/bmc/virtual_bmc.h"
#include "tests/fakes/memory_store.h"
#include "tests/free_port.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::filesystem::path outsideToolFolder() {
  if (const char* set = std::getenv("MUSTER_REDFISH_TOOLS")) return set;
  if (const char* cache = std::getenv("MUSTER_CACHE"))
    return std::filesystem::path(cache) / "redfish-tools";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home ? home : "/nonexistent") / ".cache/muster/redfish-tools";
}

// ---- sushy-tools

class SushyTools : public testing::Test {
 protected:
  void SetUp() override {
    const auto tools = outsideToolFolder() / "sushy-tools";
    if (!std::filesystem::exists(tools / "sushy_tools"))
      GTEST_SKIP() << tools << " is not there (docs/development/outside-tools.md)";
    io::Command command;
    command.program = "/usr/bin/python3";
    command.env = {{"PYTHONPATH", tools.string()}, {"PBR_VERSION", "2.0.0"}};
    command.args = {"-c", "import sushy_tools.emulator.main"};
    if (const auto found = io::runBlocking(command); !found || found->code != 0)
      GTEST_SKIP() << "sushy-tools does not start: " << (found ? found->err : found.error().str());
    const auto identity = *io::selfSigned("bmc", {"127.0.0.1"});
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "bmc.crt", identity.certificate_pem));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "bmc.key", identity.key_pem.reveal(), 0600));
    const int port = test::freeLoopbackPort(SOCK_STREAM);
    command.args = {"-m",
                    "sushy_tools.emulator.main",
                    "-i",
                    "127.0.0.1",
                    "-p",
                    std::to_string(port),
                    "--fake",
                    "--ssl-certificate",
                    (folder_ / "bmc.crt").string(),
                    "--ssl-key",
                    (folder_ / "bmc.key").string()};
    command.env["HOME"] = folder_.path().string();
    auto child = processes_->start(std::move(command), folder_ / "log");
    ASSERT_TRUE(child) << child.error().str();
    child_ = std::move(*child);
    for (int tries = 0; !test::isListening(port) && tries < 300; ++tries) {
      io_.restart();
      io_.run_for(100ms);
    }
    ASSERT_TRUE(test::isListening(port)) << io::readFile(folder_ / "log").value_or("");
    cluster_ = test::clusterWithBmcAt(static_cast<std::uint16_t>(port));
    fleet_ = makeBmcFleet(cluster_, store_, clock_, workers_);
  }
  void TearDown() override {
    if (fleet_) (void)test::runAsync(io_, fleet_->close(), 10s);
  }
  Bmc& bmc() { return fleet_->at(NodeName("gpu001")); }
  template <class T>
  Result<T> run(Async<T> work) {
    return test::runAsync(io_, std::move(work), 90s);
  }

  SystemClock clock_;
  Workers workers_{2};
  test::TempFolder folder_;
  test::MemoryStore store_{std::make_shared<test::MemoryStore::Data>()};
  inventory::Cluster cluster_;
  asio::io_context io_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> child_;
  std::unique_ptr<BmcFleet> fleet_;
};

TEST_F(SushyTools, isReadSwitchedAndToldWhereToBootFromWithoutASessionService) {
  auto seen = run(bmc().system());
  ASSERT_TRUE(seen) << seen.error().str();
  const auto other = seen->power == PowerState::On ? PowerAction::ForceOff : PowerAction::On;
  auto switched = run(bmc().power(other));
  ASSERT_TRUE(switched) << switched.error().str();
  seen = run(bmc().system());
  ASSERT_TRUE(seen) << seen.error().str();
  EXPECT_EQ(seen->power, other == PowerAction::On ? PowerState::On : PowerState::Off);
  const auto boot = run(bmc().bootOnce(BootTarget::Pxe));
  ASSERT_TRUE(boot) << boot.error().str();
  const auto order = run(bmc().bootOrder());
  ASSERT_FALSE(order) << "it has none";
  EXPECT_EQ(order.error().code(), ErrorCode::NotFound) << order.error().str();
}

// ---- DMTF's mockups

struct Mockup {
  const char* folder;
  const char* serial;  ///< "": several systems, or none
  PowerState power = PowerState::On;
};

class DmtfMockups : public testing::TestWithParam<Mockup> {};

/// GET gives the file, anything else but a login is refused: a mockup has no behaviour.
Async<io::HttpResponse> fromFile(std::filesystem::path folder, io::HttpRequest request) {
  auto path = io::pathOf(request.url.target);
  constexpr std::string_view kPrefix = "/redfish/v1";
  if (request.method == "POST" && path.ends_with("/Sessions"))
    co_return test::FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
  if (request.method == "DELETE") co_return test::FakeHttp::json(204, "");
  if (request.method != "GET") co_return test::FakeHttp::json(405, "{}");
  if (!path.starts_with(kPrefix)) co_return test::FakeHttp::json(404, "{}");
  path = path.substr(kPrefix.size());
  while (path.starts_with('/')) path.erase(0, 1);
  const auto text = io::readFile(folder / path / "index.json");
  if (!text) co_return test::FakeHttp::json(404, "{}");
  co_return test::FakeHttp::json(200, *text);
}

/// Nothing that a mockup shows may look like a fault of ours.
template <class T>
void answersOrSaysThatThereIsNone(const char* what, const Result<T>& answer) {
  if (answer) return;
  EXPECT_NE(answer.error().code(), ErrorCode::Internal) << what << ": " << answer.error().str();
  EXPECT_NE(answer.error().code(), ErrorCode::Corrupt) << what << ": " << answer.error().str();
  std::printf("%s: %s\n", what, answer.error().str().c_str());
}

TEST_P(DmtfMockups, areReadOrSaidToHaveNone) {
  const auto& mockup = GetParam();
  const auto folder = outsideToolFolder() / "Redfish-Publications/mockups" / mockup.folder;
  if (!std::filesystem::exists(folder / "index.json"))
    GTEST_SKIP() << folder << " is not there (docs/development/outside-tools.md)";
  test::VirtualLoop loop;
  test::FakeHttp net;
  net.handle = [folder](io::HttpRequest request) { return fromFile(folder, std::move(request)); };
  test::RedfishRig rig(loop, net);
  auto bmc = rig.bmc();
  const auto system = loop.run(bmc->system());
  if (*mockup.serial) {
    ASSERT_TRUE(system) << system.error().str();
    EXPECT_EQ(system->serial, mockup.serial);
    EXPECT_EQ(system->power, mockup.power);
  } else {
    ASSERT_FALSE(system);
    EXPECT_THAT(system.error().str(), HasSubstr("system"));
  }
  answersOrSaysThatThereIsNone("firmware", loop.run(bmc->firmware()));
  answersOrSaysThatThereIsNone("boot order", loop.run(bmc->bootOrder()));
  answersOrSaysThatThereIsNone("sensors", loop.run(bmc->sensors()));
  answersOrSaysThatThereIsNone("virtual media", loop.run(bmc->virtualMedia()));
  answersOrSaysThatThereIsNone("LED", loop.run(bmc->locateLed()));
  answersOrSaysThatThereIsNone("tasks", loop.run(bmc->tasks()));
}

INSTANTIATE_TEST_SUITE_P(All, DmtfMockups,
                         testing::Values(Mockup{"public-rackmount1", "437XR1138R2"},
                                         Mockup{"public-tower", "437XR1238R2"},
                                         Mockup{"public-localstorage", "437XR1138R2"},
                                         Mockup{"public-bladed", ""}),
                         [](const auto& info) {
                           std::string name = info.param.folder;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace muster::bmc
