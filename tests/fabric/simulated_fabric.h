// SPDX-License-Identifier: Apache-2.0
// A real ibsim with the declared (or a spoiled) fabric for tests that do not wait in coroutines,
// and faults through its console.
#pragma once

#include "fabric/rehearsal/simulator.h"
#include "tests/fabric/clusters.h"
#include "tests/run_async.h"

#include "base/io/files.h"

#include <thread>

namespace muster::fabric::test {

inline constexpr std::chrono::seconds kSimulatorLimit{20};
inline constexpr std::chrono::milliseconds kLookEvery{10};

/// Polls a condition of the outside world; false when it does not come true in time.
inline bool eventually(const std::function<bool()>& holds,
                       std::chrono::seconds limit = kSimulatorLimit) {
  for (auto until = std::chrono::steady_clock::now() + limit;
       std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(kLookEvery))
    if (holds()) return true;
  return holds();
}

class SimulatedFabric {
 public:
  /// `seat`: the device that muster's tools sit on.
  explicit SimulatedFabric(const Topology& topology, std::string_view seat = kControllerHca)
      : processes_(io::makeProcessRunner()), seat_(seat) {
    auto started = muster::test::runAsync(
        Simulator::start(topology, *processes_, clock_, folder_.path()), kSimulatorLimit);
    if (!started) {
      ADD_FAILURE() << started.error().str();
      std::abort();  // nothing of the test would make sense
    }
    simulator_ = std::move(*started);
  }
  ~SimulatedFabric() {
    auto stopped =
        io::PidFile{options().run_folder / "opensm.pid"}.terminate(std::chrono::seconds(5));
    EXPECT_TRUE(stopped);
  }

  FabricOptions options() const { return simulator_->seat(seat_); }
  io::ProcessRunner& processes() { return *processes_; }

  void say(const std::string& line) { done(simulator_->say(line)); }
  void unlink(const Port& port) { done(simulator_->unlink(port)); }
  void link(const Port& one, const Port& other) { done(simulator_->link(one, other)); }
  void carryOut(const std::vector<Repair>& repairs) { done(simulator_->carryOut(repairs)); }
  /// ibsim drops this share of the MADs at all ports of the device.
  void dropMads(const std::string& device, int percent) {
    say(fmt::format("Error \"{}\" {}", ibsimNodeId(device), percent));
  }

 private:
  static void done(Async<void> work) {
    auto result = muster::test::runAsync(std::move(work), kSimulatorLimit);
    EXPECT_TRUE(result) << result.error().str();
  }

  muster::test::TempFolder folder_;
  SystemClock clock_;
  std::unique_ptr<io::ProcessRunner> processes_;
  const std::string seat_;
  std::unique_ptr<Simulator> simulator_;
};

}  // namespace muster::fabric::test
