// SPDX-License-Identifier: Apache-2.0
#include "bmc/arbiter.h"
#include "tests/virtual_loop.h"

#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;

/// A driver that counts who is inside.
class CountingBmc final : public Bmc {
 public:
  explicit CountingBmc(Clock& clock) : clock_(clock) {}
  std::string address() const override { return "counting"; }
  Async<SystemInfo> system() override {
    co_await inside(readers, most_readers);
    co_return SystemInfo();
  }
  Async<void> power(PowerAction) override {
    co_await inside(writers, most_writers);
    co_return Result<void>();
  }
  Async<void> resetBmc() override {
    met_others = met_others || readers > 0 || writers > 0;
    co_await inside(writers, most_writers);
    met_others = met_others || readers > 0;
    co_return Result<void>();
  }
  Async<void> bootOnce(BootTarget) override {  // never ends
    co_await clock_.sleep(24h);
    co_return Result<void>();
  }
  Async<std::vector<FirmwareItem>> firmware() override { co_return std::vector<FirmwareItem>(); }
  Async<std::string> startUpdate(FirmwareUpdate) override { co_return std::string(); }
  Async<TaskStatus> task(std::string) override { co_return TaskStatus(); }
  Async<TaskList> tasks() override { co_return TaskList(); }

  int readers = 0, writers = 0, most_readers = 0, most_writers = 0;
  bool met_others = false;

 private:
  Task<void> inside(int& now, int& most) {
    most = std::max(most, ++now);
    co_await clock_.sleep(1s);
    --now;
  }
  Clock& clock_;
};

Task<void> ignore(Async<void> op) { (void)co_await std::move(op); }
Task<void> ignore(Async<SystemInfo> op) { (void)co_await std::move(op); }

TEST(Arbiter, oneWriterFewReadersAndNobodyDuringAReset) {
  test::VirtualLoop loop;
  auto driver = std::make_unique<CountingBmc>(loop.clock);
  auto* counts = driver.get();
  auto bmc = arbitrate(std::move(driver), loop.clock);
  for (int i = 0; i < 8; ++i) {
    loop.spawn(ignore(bmc->system()));
    loop.spawn(ignore(bmc->power(PowerAction::On)));
    if (i == 3) loop.spawn(ignore(bmc->resetBmc()));
  }
  ASSERT_TRUE(loop.run(bmc->power(PowerAction::ForceOff)));
  ASSERT_TRUE(loop.run(bmc->resetBmc()));
  EXPECT_EQ(counts->most_writers, 1);
  EXPECT_EQ(counts->most_readers, static_cast<int>(kMaxConcurrentReads));
  EXPECT_FALSE(counts->met_others);
}

TEST(Arbiter, everyOperationHasADeadlineAndGivesItsPlaceBack) {
  test::VirtualLoop loop;
  auto bmc = arbitrate(std::make_unique<CountingBmc>(loop.clock), loop.clock);
  auto stuck = loop.run(bmc->bootOnce(BootTarget::Pxe));
  ASSERT_FALSE(stuck);
  EXPECT_EQ(stuck.error().code(), ErrorCode::Timeout);
  EXPECT_TRUE(loop.run(bmc->power(PowerAction::On)));
}

TEST(Arbiter, whoIsCancelledWhileWaitingLeavesNoGap) {
  test::VirtualLoop loop;
  auto bmc = arbitrate(std::make_unique<CountingBmc>(loop.clock), loop.clock);
  loop.spawn(
      ignore(bmc->bootOnce(BootTarget::Pxe)));  // holds the write place for its whole deadline
  loop.settle();
  auto impatient = withDeadline<void>(loop.clock, 2s, "waiting", bmc->power(PowerAction::On));
  EXPECT_EQ(loop.run(std::move(impatient)).error().code(), ErrorCode::Timeout);
  EXPECT_TRUE(loop.run(bmc->power(PowerAction::On)));
}

}  // namespace
}  // namespace muster::bmc
