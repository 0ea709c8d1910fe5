// SPDX-License-Identifier: Apache-2.0
// An update from end to end over real HTTPS and in real time: the fleet's own client, the emulated
// BMC's own service.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "bmc/fleet.h"
#include "inventory/model/cluster.h"
#include "lab/vbmc/firmware_file.h"
#include "lab/vbmc/redfish_service.h"
#include "tests/bmc/virtual_bmc.h"
#include "tests/fakes/fake_machine.h"
#include "tests/fakes/memory_store.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;

class HttpsUpdate : public testing::Test {
 protected:
  void serve(std::string_view vendor_profile) {
    auto options = test::virtualBmcOptions(folder_.path(), vendor_profile);
    options.timings.flash_step = 5ms;
    service_ = *lab::vbmc::RedfishService::make(clock_, workers_, machine_, std::move(options));
    io::ServerOptions listener;
    listener.identity = *io::selfSigned("bmc", {"127.0.0.1"});
    server_ = *io::startHttpServer(io_.get_executor(), listener);
    server_->addRoutes(service_->routes());
    asio::co_spawn(io_, service_->run(), asio::detached);
    cluster_ = test::clusterWithBmcAt(server_->port());
    fleet_ = makeBmcFleet(cluster_, store_, clock_, workers_);
  }
  ~HttpsUpdate() override {
    if (fleet_) (void)test::runAsync(io_, fleet_->close(), 10s);
    if (service_) service_->stop();
    if (server_) server_->stop();
  }
  Bmc& bmc() { return fleet_->at(NodeName("gpu001")); }
  template <class T>
  Result<T> run(Async<T> work) {
    return test::runAsync(io_, std::move(work), 60s);
  }
  FirmwareUpdate image(const std::string& component, const std::string& version) {
    const auto bytes = lab::vbmc::makeFirmware(component, version);
    const auto file = folder_ / (component + ".fw");
    EXPECT_TRUE(io::writeFileAtomic(file, bytes));
    return {component, file, io::sha256Hex(bytes)};
  }
  /// As whoever follows it: each place where it goes on is noted before it is asked.
  Result<TaskStatus> follow(std::string uri) {
    for (int look = 0; look < 1000; ++look) {
      uris_.push_back(uri);
      auto status = run(bmc().task(uri));
      if (!status || status->state != TaskState::Running) return status;
      if (!status->moved_to.empty()) uri = status->moved_to;
      io_.restart();
      io_.run_for(10ms);
    }
    return fail(ErrorCode::Timeout, "it does not end");
  }

  SystemClock clock_;
  Workers workers_{2};
  test::TempFolder folder_;
  test::MemoryStore store_{std::make_shared<test::MemoryStore::Data>()};
  lab::vbmc::FakeMachine machine_;
  std::unique_ptr<lab::vbmc::RedfishService> service_;
  inventory::Cluster cluster_;
  std::unique_ptr<BmcFleet> fleet_;
  std::vector<std::string> uris_;
  asio::io_context io_;
  std::unique_ptr<io::HttpServer> server_;
};

TEST_F(HttpsUpdate, anIdracBeforeMultipartTakesTheFileWithItsETagAndIsThenTold) {
  serve("idrac-before-multipart");
  const auto update = image("BIOS.Setup.1-1", "99.1");
  auto task = run(bmc().startUpdate(update));
  ASSERT_TRUE(task) << task.error().str();
  EXPECT_THAT(*task, testing::EndsWith("/FirmwareInventory/Available-1-99.1#ready"));
  EXPECT_EQ(service_->state().slots.at("BIOS.Setup.1-1").uploads, 0u) << "nothing is written yet";
  const auto end = follow(*task);
  ASSERT_TRUE(end) << end.error().str();
  EXPECT_EQ(end->state, TaskState::Completed) << end->message;
  EXPECT_THAT(uris_, testing::Contains(testing::EndsWith("#order")));
  EXPECT_EQ(service_->state().slots.at("BIOS.Setup.1-1").staged_version, "99.1");
  EXPECT_EQ(service_->state().slots.at("BIOS.Setup.1-1").flashes, 1u);
  ASSERT_TRUE(run(bmc().power(PowerAction::On)));
  EXPECT_EQ(service_->state().slots.at("BIOS.Setup.1-1").version, "99.1");
}

TEST_F(HttpsUpdate, anImageThatIsNotTheDeclaredOneIsNotSent) {
  serve("idrac-before-multipart");
  auto update = image("BIOS.Setup.1-1", "99.1");
  ASSERT_TRUE(io::writeFileAtomic(update.file, lab::vbmc::makeFirmware("BIOS.Setup.1-1", "99.2")));
  const auto task = run(bmc().startUpdate(update));
  ASSERT_FALSE(task);
  EXPECT_EQ(task.error().code(), ErrorCode::Corrupt);
  const auto tasks = run(bmc().tasks());
  ASSERT_TRUE(tasks);
  EXPECT_TRUE(tasks->finished.empty());
}

TEST_F(HttpsUpdate, byMultipartToo) {
  serve("supermicro");
  auto task = run(bmc().startUpdate(image("BIOS", "99.1")));
  ASSERT_TRUE(task) << task.error().str();
  const auto end = follow(*task);
  ASSERT_TRUE(end) << end.error().str();
  EXPECT_EQ(service_->state().slots.at("BIOS").staged_version, "99.1");
}

}  // namespace
}  // namespace muster::bmc
