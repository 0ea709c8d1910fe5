// SPDX-License-Identifier: Apache-2.0
// The console recorder in virtual time: every boot is kept, nothing waits for long, and what it
// hears last is there for findings.
#include "bmc/console/console_recorder.h"
#include "bmc/console/boot_log.h"
#include "bmc/redfish/event_stream.h"
#include "lifecycle/model/consoles.h"
#include "tests/bmc/console/node.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/fakes/fake_console.h"
#include "tests/run_async.h"
#include "tests/virtual_loop.h"

#include <gmock/gmock.h>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ConsoleRecorderTest : public testing::Test {
 protected:
  void TearDown() override {
    if (recorder) close();
  }
  void begin(const NodeName& node = kNode) {
    loop.run(begun(*recorder, node));
    loop.settle();
  }
  static Task<bool> begun(Consoles& recorder, NodeName node) {
    co_await recorder.bootBegins(std::move(node), "restart");
    co_return true;
  }
  /// What a finding gets, without the line that says of which boot.
  std::vector<std::string> lines() {
    auto out = recorder->lastLines(kNode);
    EXPECT_TRUE(out.empty() || lifecycle::consoleBootBegan(out));
    if (!out.empty()) out.erase(out.begin());
    return out;
  }
  void close() { ASSERT_TRUE(loop.run(recorder->close())); }
  void hear(std::string text) {
    serial->say(std::move(text));
    loop.settle();
  }
  void pass(std::chrono::milliseconds time) { loop.run(passing(loop.clock, time)); }
  static Task<bool> passing(Clock& clock, std::chrono::milliseconds time) {
    co_return co_await clock.waitFor(time);
  }
  std::vector<std::string> kept() {
    std::vector<std::string> out;
    const BootLogArchive shelf(folder.path(), kNode);
    const auto boots = *shelf.boots();
    for (const auto& boot : boots) out.push_back(*shelf.read(boot.number));
    return out;
  }

  test::TempFolder folder;
  test::VirtualLoop loop;
  std::shared_ptr<test::FakeSerial> serial = std::make_shared<test::FakeSerial>();
  bool has_console = true;
  std::unique_ptr<Consoles> recorder = makeConsoles(
      [this](const NodeName&) -> std::unique_ptr<ConsoleSource> {
        return has_console ? std::make_unique<test::FakeConsole>(serial) : nullptr;
      },
      folder.path(), loop.clock, loop.workers);
};

TEST_F(ConsoleRecorderTest, keepsEachBootForItself) {
  begin();
  hear("SeaBIOS\r\nfirst");
  begin();
  hear("second\r\n");
  EXPECT_THAT(kept(), ElementsAre("SeaBIOS\r\nfirst", "second\r\n"));
  EXPECT_THAT(lines(), ElementsAre("second"));
  EXPECT_EQ(serial->opened, 1) << "the session goes on over a restart";
}

TEST_F(ConsoleRecorderTest, findingsGetPlainLines) {
  begin();
  hear("\x1b]0;gotcha\x07\x1b[2JKernel panic\r\n");
  EXPECT_THAT(lines(), ElementsAre("Kernel panic"));
}

TEST_F(ConsoleRecorderTest, whoHasNoConsoleLeavesNoTrace) {
  has_console = false;
  begin();
  EXPECT_THAT(lines(), IsEmpty());
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(ConsoleRecorderTest, aLineThatCannotBeOpenedHoldsUpNoBootAndSaysWhy) {
  serial->refuse = Error(ErrorCode::Conflict, "another session has it");
  const auto before = loop.clock.steady();
  begin();
  EXPECT_LE(loop.clock.steady() - before, kOpenWait);
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_THAT(lines()[0], HasSubstr("another session has it"));
  EXPECT_EQ(serial->evicted, 0) << "nobody's session is ended for a capture";
  serial->refuse.reset();
  pass(1min);
  hear("late, but here\r\n");
  EXPECT_THAT(lines(), ElementsAre("late, but here"));
}

TEST_F(ConsoleRecorderTest, aLineThatEndsIsOpenedAgain) {
  begin();
  hear("before\r\n");
  serial->close();
  pass(10s);
  hear("after\r\n");
  EXPECT_THAT(kept(), ElementsAre("before\r\nafter\r\n"));
  EXPECT_EQ(serial->opened, 2);
}

TEST_F(ConsoleRecorderTest, aBmcThatGreetsAndTurnsAwayIsNotLoggedInAtAllTheTime) {
  serial->turned_away = "console in use\r\n";
  begin();
  pass(60s);
  EXPECT_LE(serial->opened, 9);
  const int so_far = serial->opened;
  serial->turned_away.clear();
  pass(31s);
  EXPECT_EQ(serial->opened, so_far + 1) << "it is tried again all the same";
  hear("second wind\r\n");
  EXPECT_THAT(lines(), testing::Contains("second wind"));
}

TEST_F(ConsoleRecorderTest, aRefusedPasswordIsNotTriedAgain) {
  serial->refuse = Error(ErrorCode::Denied, "the BMC does not take the password");
  begin();
  pass(5min);
  serial->refuse.reset();
  pass(5min);
  EXPECT_EQ(serial->opened, 0);
}

TEST_F(ConsoleRecorderTest, afterTheBootItGoesOnForAMomentAndGivesTheLineBack) {
  begin();
  hear("login:");
  recorder->bootEnded(kNode);
  pass(30s);
  hear(" panic after all");
  EXPECT_EQ(serial->open_now, 1);
  pass(kCaptureLinger);
  EXPECT_EQ(serial->open_now, 0);
  EXPECT_THAT(lines(), ElementsAre("login: panic after all")) << "from what is kept";
  begin();
  hear("next boot");
  EXPECT_EQ(kept().size(), 2u);
}

TEST_F(ConsoleRecorderTest, linesSayOfWhichBootTheyAre) {
  begin();
  hear("first");
  pass(1h);
  const auto second = loop.clock.now();
  begin();
  EXPECT_THAT(recorder->lastLines(kNode), IsEmpty()) << "not what the boot before has said";
  hear("second");
  EXPECT_THAT(recorder->lastLines(kNode),
              ElementsAre(lifecycle::consoleBootLine(2, second, "restart"), "second"));
  pass(1h);
  EXPECT_THAT(recorder->lastLines(kNode),
              ElementsAre(lifecycle::consoleBootLine(2, second, "restart"), "second"))
      << "from what is kept";
}

TEST_F(ConsoleRecorderTest, aBootEndsWhenItsSystemIsSeenUp) {
  bool up = false;
  const auto restart = [&]() -> Task<bool> {
    std::function<bool()> is_up = [&up] { return up; };
    co_await recorder->bootBegins(kNode, "restart for driver tune", is_up);
    co_return true;
  };
  loop.run(restart());
  pass(5min);
  EXPECT_EQ(serial->open_now, 1);
  up = true;
  pass(30s);
  EXPECT_EQ(serial->open_now, 1) << "a panic may follow";
  pass(kCaptureLinger);
  EXPECT_EQ(serial->open_now, 0);
}

TEST_F(ConsoleRecorderTest, aBootThatNeverEndsIsNotListenedToForEver) {
  begin();
  pass(kCaptureLimit + 10s);
  EXPECT_EQ(serial->open_now, 0);
}

TEST_F(ConsoleRecorderTest, aLineThatDoesNotHangUpIsCutOff) {
  serial->closes_when_hung_up = false;
  begin();
  pass(kCaptureLimit + 20s);
  EXPECT_EQ(serial->open_now, 0);
}

TEST_F(ConsoleRecorderTest, aMachineThatTalksForEverTakesNoMemory) {
  begin();
  for (int i = 0; i < 2000; ++i) hear(std::string(4096, 'x') + "\r\n");
  EXPECT_LE(kept()[0].size(), kHeadBytes + 2 * kTailBytes + 100);
  EXPECT_LE(lines().size(), kFindingLines);
}

TEST_F(ConsoleRecorderTest, everyWayOfStartingAMachineIsListenedTo) {
  auto bmcs = std::make_unique<test::FakeBmcFleet>();
  auto fleet = listenAtBoot(std::move(bmcs), *recorder);
  auto& bmc = fleet->at(kNode);
  ASSERT_TRUE(loop.run(bmc.power(PowerAction::On)));
  loop.settle();
  hear("one");
  ASSERT_TRUE(loop.run(bmc.power(PowerAction::ForceRestart)));
  hear("two");
  ASSERT_TRUE(loop.run(bmc.power(PowerAction::ForceOff)));
  hear(" off");
  EXPECT_THAT(kept(), ElementsAre("one", "two off"));
  (void)loop.run(bmc.acCycle());
  EXPECT_EQ(kept().size(), 3u);
}

/// A fleet whose BMCs report events.
class EventfulFleet final : public BmcFleet, public EventSource {
 public:
  Bmc& at(const NodeName&) override { return bmc; }
  EventSource* eventsOf(const NodeName&) override { return this; }
  Async<void> close() override { co_return Result<void>(); }
  Async<EventStreamPosition> listen(EventStreamPosition from, std::function<void()>,
                                    std::function<void(std::vector<LogEntry>)>) override {
    co_return from;
  }
  test::FakeBmc bmc;
};

TEST_F(ConsoleRecorderTest, theFleetThatIsListenedToStillHasItsStreamsOfEvents) {
  auto inner = std::make_unique<EventfulFleet>();
  EventSource* const source = inner.get();
  const auto fleet = listenAtBoot(std::move(inner), *recorder);
  EXPECT_EQ(fleet->eventsOf(kNode), source);
}

}  // namespace
}  // namespace muster::bmc
