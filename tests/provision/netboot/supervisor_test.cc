// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/supervisor.h"

#include "base/io/files.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/run_async.h"

#include <csignal>

namespace muster::provision {
namespace {

using namespace std::chrono_literals;

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorOptions quick() { return {"dnsmasq", 1ms, 1ms, 4, 600s}; }
  Daemon daemon() {
    return childDaemon(processes, {.program = "dnsmasq"}, folder / "log", folder / "pid");
  }
  template <class Condition>
  bool runUntil(Condition condition) {
    for (int i = 0; i < 5000 && !condition(); ++i) io.run_one_for(2ms);
    return condition();
  }
  asio::io_context io;
  muster::test::TempFolder folder;
  muster::test::FakeProcessRunner processes;
};

TEST_F(SupervisorTest, restartsWhatDiedAndGivesUpAfterTooMany) {
  Supervisor supervisor(io.get_executor(), quick());
  ASSERT_TRUE(supervisor.start(daemon()));
  for (std::size_t n = 1; n <= 3; ++n) {
    ASSERT_TRUE(runUntil([&] { return processes.daemons.size() == n; }));
    EXPECT_EQ(supervisor.gaveUp(), std::nullopt);
    processes.daemons.back()->running = false;
  }
  ASSERT_TRUE(runUntil([&] { return processes.daemons.size() == 4; }));
  processes.daemons.back()->running = false;
  ASSERT_TRUE(runUntil([&] { return supervisor.gaveUp().has_value(); }));
  EXPECT_NE(supervisor.gaveUp()->find("died 4 times"), std::string::npos);
  EXPECT_EQ(processes.daemons.size(), 4u);
}

TEST_F(SupervisorTest, stopEndsItAndTheWatching) {
  {
    Supervisor supervisor(io.get_executor(), quick());
    ASSERT_TRUE(supervisor.start(daemon()));
    EXPECT_FALSE(supervisor.start(daemon())) << "one at a time";
    io.run_one_for(5ms);
  }
  EXPECT_TRUE(processes.daemons[0]->terminated);
  io.run_for(1s);
  EXPECT_TRUE(io.stopped());
  EXPECT_EQ(processes.daemons.size(), 1u);
}

TEST_F(SupervisorTest, endsWhatAKilledControllerLeftBehind) {
  auto real = io::makeProcessRunner();
  io::Command sleep;
  sleep.program = "sleep";
  sleep.args = {"1000"};
  const auto orphan = real->startDetached(sleep, {});
  ASSERT_TRUE(orphan);
  const io::PidFile file{folder / "pid"};
  ASSERT_TRUE(file.write(*orphan));
  Supervisor supervisor(io.get_executor(), quick());
  ASSERT_TRUE(supervisor.start(daemon()));
  EXPECT_NE(::kill(*orphan, 0), 0);
}

TEST_F(SupervisorTest, oneThatCannotOutliveItsControllerLeavesNoPid) {
  auto unit = daemon();
  unit.keeps_pid = false;
  Supervisor supervisor(io.get_executor(), quick());
  ASSERT_TRUE(supervisor.start(std::move(unit)));
  EXPECT_FALSE(std::filesystem::exists(folder / "pid")) << "another's process is never signalled";
}

TEST_F(SupervisorTest, programThatCannotStartIsAnError) {
  processes.refuse_start = Error(ErrorCode::NotFound, "program dnsmasq is not installed");
  Supervisor supervisor(io.get_executor(), quick());
  const auto started = supervisor.start(daemon());
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::provision
