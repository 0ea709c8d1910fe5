// SPDX-License-Identifier: Apache-2.0
// What every Bmc promises, run against the fake, against Redfish in memory, and against Redfish by
// real HTTPS on loopback.
#include "bmc/arbiter.h"
#include "inventory/model/profile.h"
#include "tests/bmc/redfish_rig.h"
#include "tests/bmc/virtual_bmc.h"
#include "tests/fakes/fake_bmc.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;

/// A BMC with components BMC (active at its reset) and BIOS (active at a power cycle), both older
/// than "9.0"; power is off.
class World {
 public:
  virtual ~World() = default;
  virtual Bmc& bmc() = 0;
  virtual std::filesystem::path file(const std::string& component, const std::string& version) = 0;
  /// Firmware images that reached the BMC and were written.
  virtual int flashes(const std::string& component) = 0;
  /// While held, an update that has begun does not end.
  virtual void holdUpdates(bool) {}

  template <class T>
  Result<T> run(Async<T> op) {
    std::optional<Result<T>> answer;
    auto keep = store(std::move(op), answer);
    drive(std::move(keep));
    return std::move(*answer);
  }

 protected:
  virtual void drive(Task<int> task) = 0;

 private:
  template <class T>
  static Task<int> store(Async<T> op, std::optional<Result<T>>& answer) {
    answer = co_await std::move(op);
    co_return 0;
  }
};

class FakeWorld final : public World {
 public:
  FakeWorld() {
    fake_.components["BMC"] = {.version = "2.0.0", .activates = test::FakeBmc::Activates::BmcReset};
    fake_.components["BIOS"] = {.version = "1.4.0",
                                .activates = test::FakeBmc::Activates::PowerCycle};
    char name[] = "/tmp/muster-bmc-test-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~FakeWorld() override { std::filesystem::remove_all(folder_); }
  Bmc& bmc() override { return fake_; }
  std::filesystem::path file(const std::string& component, const std::string& version) override {
    auto path = folder_ / component;
    EXPECT_TRUE(io::writeFileAtomic(path, lab::vbmc::makeFirmware(component, version)));
    return path;
  }
  int flashes(const std::string& component) override { return fake_.components[component].uploads; }

 protected:
  void drive(Task<int> task) override { loop_.run(std::move(task)); }

 private:
  test::VirtualLoop loop_;
  test::FakeBmc fake_;
  std::filesystem::path folder_;
};

class MemoryWorld final : public World {
 public:
  Bmc& bmc() override { return *bmc_; }
  std::filesystem::path file(const std::string& component, const std::string& version) override {
    return virtual_bmc_.firmwareFile(component, version);
  }
  int flashes(const std::string& component) override {
    return static_cast<int>(virtual_bmc_.service->state().slots.at(component).flashes);
  }

 protected:
  void drive(Task<int> task) override { loop_.run(std::move(task)); }

 private:
  test::VirtualLoop loop_;
  test::VirtualBmc virtual_bmc_{loop_};
  test::RedfishRig rig_{loop_, virtual_bmc_.net};
  std::unique_ptr<Bmc> bmc_ = arbitrate(rig_.bmc(), loop_.clock);
};

/// Real time, twenty times as fast: what muster waits for between polls passes quickly, I/O takes
/// what it takes.
class FastClock final : public Clock {
 public:
  WallTime now() const override { return real_.now(); }
  std::chrono::steady_clock::time_point steady() const override {
    return start_ + kSpeed * (real_.steady() - start_);
  }
  using Clock::waitFor;
  Task<bool> waitFor(std::chrono::milliseconds duration, WakeToken* token) override {
    bool passed = true;
    do {
      passed = co_await real_.waitFor(duration / kSpeed, token);
    } while (held && passed);
    co_return passed;
  }
  bool held = false;

 private:
  static constexpr int kSpeed = 20;
  SystemClock real_;
  std::chrono::steady_clock::time_point start_ = real_.steady();
};

/// Real sockets and real TLS.
class HttpsWorld final : public World {
 public:
  HttpsWorld() {
    char name[] = "/tmp/muster-bmc-test-XXXXXX";
    folder_ = ::mkdtemp(name);
    auto options = test::virtualBmcOptions(folder_);
    options.timings = {
        .flash_step = 20ms, .flash_steps = 4, .reset_delay = 1ms, .reset_duration = 3s};
    options.went_away = [this] { server_->stop(); };
    options.came_back = [this] { listen(); };
    service_ =
        *lab::vbmc::RedfishService::make(service_clock_, workers_, machine_, std::move(options));
    listen();
    asio::co_spawn(io_, service_->run(), asio::detached);
    RedfishSession::Options session;
    session.node = NodeName("gpu001");
    session.base_url = fmt::format("https://127.0.0.1:{}", server_->port());
    session.username = "admin";
    session.password = []() -> Result<Secret> { return Secret("right"); };
    auto http = [](io::TlsTrust trust) { return io::makeHttpClient(std::move(trust)); };
    auto driver = std::make_unique<RedfishBmc>(
        std::make_unique<RedfishSession>(std::move(session), store_, clock_, http),
        inventory::BootMode::Uefi, clock_, images_);
    bmc_ = arbitrate(std::move(driver), clock_);
  }
  ~HttpsWorld() override {
    service_->stop();
    server_->stop();
    io_.restart();
    io_.run_for(1s);
    std::filesystem::remove_all(folder_);
  }
  Bmc& bmc() override { return *bmc_; }
  std::filesystem::path file(const std::string& component, const std::string& version) override {
    auto path = folder_ / (component + ".fw");
    EXPECT_TRUE(io::writeFileAtomic(path, lab::vbmc::makeFirmware(component, version)));
    return path;
  }
  int flashes(const std::string& component) override {
    return static_cast<int>(service_->state().slots.at(component).flashes);
  }
  void holdUpdates(bool held) override { service_clock_.held = held; }

 protected:
  void drive(Task<int> task) override {
    bool done = false;
    asio::co_spawn(io_, std::move(task), [&](std::exception_ptr thrown, int) {
      done = true;
      if (thrown) std::rethrow_exception(thrown);
    });
    io_.restart();
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!done && std::chrono::steady_clock::now() < until) io_.run_one_for(1s);
    if (!done) throw std::runtime_error("no answer within 60 s");
  }

 private:
  void listen() {
    io::ServerOptions options;
    options.port = server_ ? server_->port() : 0;
    if (!identity_) identity_ = *io::selfSigned("bmc", std::vector<std::string>(1, "127.0.0.1"));
    options.identity = identity_;
    auto started = io::startHttpServer(io_.get_executor(), std::move(options));
    if (!started) throw std::runtime_error(started.error().str());
    server_ = std::move(*started);
    server_->addRoutes(service_->routes());
  }

  asio::io_context io_;
  FastClock clock_;
  FastClock service_clock_;
  Workers workers_{1};
  FirmwareImages images_{workers_};
  lab::vbmc::FakeMachine machine_;
  std::filesystem::path folder_;
  std::optional<io::TlsIdentity> identity_;
  std::unique_ptr<lab::vbmc::RedfishService> service_;
  std::unique_ptr<io::HttpServer> server_;
  test::ValuesStore store_;
  std::unique_ptr<Bmc> bmc_;
};

using MakeWorld = std::unique_ptr<World> (*)();

class BmcContract : public testing::TestWithParam<std::pair<const char*, MakeWorld>> {
 protected:
  std::unique_ptr<World> world = GetParam().second();
  Bmc& bmc = world->bmc();

  PowerState powerNow() { return world->run(bmc.system())->power; }
  std::string version(const std::string& component) {
    auto list = world->run(bmc.firmware());
    for (const auto& item : list.value_or(std::vector<FirmwareItem>())) {
      if (item.name == component) return item.version;
    }
    return "absent";
  }
  FirmwareUpdate update(const std::string& component, const std::string& version) {
    auto path = world->file(component, version);
    return {component, path, *io::sha256File(path)};
  }
  /// Polls as a phase would.
  TaskStatus finish(const std::string& uri) {
    TaskStatus status;
    for (int i = 0; i < 500; ++i) {
      auto now = world->run(bmc.task(uri));
      if (!now) return {TaskState::Failed, 0, now.error().str()};
      status = *now;
      if (status.state != TaskState::Running) break;
      (void)world->run(bmc.system());  // time passes
    }
    return status;
  }
};

TEST_P(BmcContract, powerIsWhatItSaysItIs) {
  EXPECT_EQ(powerNow(), PowerState::Off);
  ASSERT_TRUE(world->run(bmc.power(PowerAction::On)));
  EXPECT_EQ(powerNow(), PowerState::On);
  ASSERT_TRUE(world->run(bmc.power(PowerAction::On)));
  EXPECT_EQ(powerNow(), PowerState::On);
  ASSERT_TRUE(world->run(bmc.power(PowerAction::ForceRestart)));
  EXPECT_EQ(powerNow(), PowerState::On);
  ASSERT_TRUE(world->run(bmc.power(PowerAction::GracefulShutdown)));
  EXPECT_EQ(powerNow(), PowerState::Off);
  ASSERT_TRUE(world->run(bmc.power(PowerAction::ForceOff)));
  ASSERT_TRUE(world->run(bmc.power(PowerAction::ForceRestart)));
  EXPECT_EQ(powerNow(), PowerState::On);
}

TEST_P(BmcContract, theBootOverrideHoldsForOneBoot) {
  ASSERT_TRUE(world->run(bmc.bootOnce(BootTarget::Pxe)));
  EXPECT_EQ(world->run(bmc.system())->boot_override, BootTarget::Pxe);
  ASSERT_TRUE(world->run(bmc.power(PowerAction::On)));
  EXPECT_EQ(world->run(bmc.system())->boot_override, BootTarget::None);
  ASSERT_TRUE(world->run(bmc.bootOnce(BootTarget::Disk)));
  ASSERT_TRUE(world->run(bmc.bootOnce(BootTarget::None)));
  EXPECT_EQ(world->run(bmc.system())->boot_override, BootTarget::None);
}

TEST_P(BmcContract, theSystemTellsWhoItIs) {
  auto system = world->run(bmc.system());
  ASSERT_TRUE(system);
  EXPECT_EQ(system->serial, "SN-1");
  EXPECT_FALSE(bmc.address().empty());
}

TEST_P(BmcContract, firmwareIsStagedAndActiveAfterTheResetOfWhatItBelongsTo) {
  auto uri = world->run(bmc.startUpdate(update("BMC", "9.0")));
  ASSERT_TRUE(uri) << uri.error().str();
  ASSERT_EQ(finish(*uri).state, TaskState::Completed);
  EXPECT_EQ(version("BMC"), "2.0.0");  // completed is not installed
  ASSERT_TRUE(world->run(bmc.resetBmc()));
  EXPECT_EQ(version("BMC"), "9.0");

  auto bios = world->run(bmc.startUpdate(update("BIOS", "9.0")));
  ASSERT_TRUE(bios);
  ASSERT_EQ(finish(*bios).state, TaskState::Completed);
  ASSERT_TRUE(world->run(bmc.resetBmc()));
  EXPECT_EQ(version("BIOS"), "1.4.0");
  ASSERT_TRUE(world->run(bmc.power(PowerAction::On)));
  EXPECT_EQ(version("BIOS"), "9.0");
  EXPECT_EQ(world->flashes("BIOS"), 1);
}

TEST_P(BmcContract, aWrongHashSendsNothing) {
  auto wrong = update("BMC", "9.0");
  wrong.sha256 = std::string(64, '0');
  auto answer = world->run(bmc.startUpdate(wrong));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Corrupt);
  auto tasks = world->run(bmc.tasks());
  ASSERT_TRUE(tasks);
  EXPECT_TRUE(tasks->running.empty() && tasks->finished.empty());
  EXPECT_EQ(world->flashes("BMC"), 0);
}

TEST_P(BmcContract, oneUpdateAtATime) {
  world->holdUpdates(true);
  auto first = world->run(bmc.startUpdate(update("BIOS", "9.0")));
  ASSERT_TRUE(first);
  auto second = world->run(bmc.startUpdate(update("BMC", "9.0")));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(world->run(bmc.tasks())->running, testing::ElementsAre(*first));
  world->holdUpdates(false);
  EXPECT_EQ(finish(*first).state, TaskState::Completed);
  EXPECT_THAT(world->run(bmc.tasks())->finished, testing::ElementsAre(*first));
}

TEST_P(BmcContract, whatIsNotThereIsNotFound) {
  EXPECT_EQ(world->run(bmc.startUpdate(update("CPLD_7", "9.0"))).error().code(),
            ErrorCode::NotFound);
  EXPECT_EQ(world->run(bmc.task("/redfish/v1/TaskService/Tasks/none")).error().code(),
            ErrorCode::NotFound);
}

INSTANTIATE_TEST_SUITE_P(
    All, BmcContract,
    testing::Values(
        std::pair<const char*, MakeWorld>("fake",
                                          [] { return std::unique_ptr<World>(new FakeWorld); }),
        std::pair<const char*, MakeWorld>("redfish",
                                          [] { return std::unique_ptr<World>(new MemoryWorld); }),
        std::pair<const char*, MakeWorld>("https",
                                          [] { return std::unique_ptr<World>(new HttpsWorld); })),
    [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace muster::bmc
