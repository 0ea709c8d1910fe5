// SPDX-License-Identifier: Apache-2.0
// muster's own Redfish driver against the lab's BMC: two implementations of one protocol, over real
// HTTPS.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "bmc/bmc.h"
#include "lab/lab.h"
#include "lab/netns.h"
#include "lab/vbmc/firmware_file.h"
#include "tests/fakes/memory_store.h"
#include "tests/lab/lab_cluster.h"

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <unistd.h>
#include <cstdlib>

namespace muster::lab {
namespace {

using namespace std::chrono_literals;

/// What a controller does to a fresh node, in one go.
Async<void> drive(bmc::Bmc& bmc, Clock& clock, std::filesystem::path image) {
  CO_TRY(before, co_await bmc.system());
  EXPECT_EQ(before.power, bmc::PowerState::Off);
  EXPECT_FALSE(before.serial.empty());
  EXPECT_EQ(before.macs, std::vector<std::string>{"52:54:00:77:00:02"});

  CO_TRY_OK(co_await bmc.bootOnce(bmc::BootTarget::Pxe));
  CO_TRY_OK(co_await bmc.power(bmc::PowerAction::On));
  CO_TRY(after, co_await bmc.system());
  EXPECT_EQ(after.power, bmc::PowerState::On);
  EXPECT_EQ(after.boot_override, bmc::BootTarget::None);

  bmc::FirmwareUpdate update{"BMC", image, *io::sha256File(image)};
  CO_TRY(uri, co_await bmc.startUpdate(update));
  for (int polls = 0; polls < 200; ++polls) {
    CO_TRY(task, co_await bmc.task(uri));
    EXPECT_NE(task.state, bmc::TaskState::Failed) << task.message;
    if (task.state != bmc::TaskState::Running) break;
    co_await clock.sleep(100ms);
  }
  CO_TRY_OK(co_await bmc.resetBmc());
  CO_TRY(firmware, co_await bmc.firmware());
  std::map<std::string, std::string> versions;
  for (const auto& item : firmware) versions[item.name] = item.version;
  EXPECT_EQ(versions["BMC"], "2.1.0");
  EXPECT_EQ(versions["BIOS"], "1.4.0");

  CO_TRY_OK(co_await bmc.power(bmc::PowerAction::ForceOff));
  co_return Result<void>();
}

TEST(BmcDriver, drivesTheLabsBmc) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  char name[] = "/tmp/muster-lab-XXXXXX";
  std::filesystem::path base = ::mkdtemp(name);
  ::setenv("MUSTER_LAB_TEST_PASSWORD", "secret-1", 1);
  auto cluster = labCluster(fmt::format("d{}", ::getpid()));
  auto lab = up(cluster, base / "lab", [](std::string_view) {});
  ASSERT_TRUE(lab) << lab.error().str();
  auto image = base / "bmc.fw";
  ASSERT_TRUE(io::writeFileAtomic(image, vbmc::makeFirmware("BMC", "2.1.0")));

  auto done = insideNamespace(lab->netns, [&]() -> Result<void> {
    asio::io_context context;
    SystemClock clock;
    Workers workers(1);
    test::MemoryStore store;
    auto fleet = bmc::makeBmcFleet(cluster, store, clock, workers);
    Result<void> outcome = fail(ErrorCode::Internal, "it did not end");
    asio::co_spawn(context, drive(fleet->at(NodeName("gpu002")), clock, image),
                   [&](std::exception_ptr thrown, Result<void> result) {
                     if (!thrown) outcome = std::move(result);
                     context.stop();
                   });
    context.run_for(60s);
    fleet.reset();
    return outcome;
  });
  EXPECT_TRUE(done) << done.error().str();
  auto state = io::readFile(base / "lab" / "bmc" / "gpu002.json").value_or("");
  EXPECT_EQ(nlohmann::json::parse(state)["components"]["BMC"]["flashes"], 1) << state;
  EXPECT_EQ(nlohmann::json::parse(state)["failed_logins"], 0) << state;
  EXPECT_TRUE(down(base / "lab", [](std::string_view) {}));
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace muster::lab
