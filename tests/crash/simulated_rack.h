// SPDX-License-Identifier: Apache-2.0
// A rack in memory and virtual time that outlives muster: BMCs, disks, agents and a scheduler
// behind the seams that the real phases use. A Life is one process of muster: the real phases and
// engine on a store; it can die at any write of the store.
//
//   SimulatedRack rack({"gpu001"});
//   Life first(rack, store, {.crash_at = 17});   // dies in the middle
//   Life second(rack, store);                    // goes on
//   EXPECT_TRUE(rack.violations.empty());        // no power cut under a write, no job killed, …
#pragma once

#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/fakes/fake_netboot.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/fakes/memory_measurements.h"
#include "tests/lifecycle/crash_store.h"
#include "tests/run_async.h"

#include "base/ids.h"
#include "base/result.h"
#include "lifecycle/executor/engine.h"
#include "lifecycle/rollout/effective_cluster.h"

namespace muster::app {
class BmcChanger;
class ImageBuilder;
}  // namespace muster::app

namespace muster::test {

class FakeImageStore;

/// One machine: what is on its disk and what runs there.
struct Machine {
  std::string image;                            ///< digest on the disk; empty: nothing
  std::map<std::string, std::string> software;  ///< probe → what runs
  std::optional<std::chrono::steady_clock::time_point> boots_at;
  wire::Mode boots_into = wire::Mode::Ram;
  int boots = 0;
  int image_writes = 0;
  int erasures = 0;          ///< of its disks, by its agent
  bool erase_fails = false;  ///< its disk refuses
  std::map<std::string, int> driver_installs;
  bool slurmd = false, drained = false;
  std::string drain_reason;
  int drains = 0;                       ///< orders to take nothing new
  std::vector<wire::Symptom> symptoms;  ///< that its agent tells of
  bool reset_heals = false, reboot_heals = false;
  int reboots = 0, gpu_resets = 0;  ///< by its agent
  std::optional<std::chrono::steady_clock::time_point> job_ends_at;
};

/// Virtual time under a wall clock that somebody sets anew.
class JumpyClock final : public Clock {
 public:
  explicit JumpyClock(FakeClock& time) : time_(time) {}
  WallTime now() const override { return time_.now() + offset; }
  std::chrono::steady_clock::time_point steady() const override { return time_.steady(); }
  using Clock::waitFor;
  Task<bool> waitFor(std::chrono::milliseconds duration, WakeToken* token) override {
    return time_.waitFor(duration, token);
  }
  std::chrono::milliseconds offset{0};

 private:
  FakeClock& time_;
};

class SimulatedRack {
 public:
  explicit SimulatedRack(std::vector<std::string> names);
  SimulatedRack(const SimulatedRack&) = delete;
  ~SimulatedRack();

  /// Writes the inventory anew with this BIOS and driver version, and loads it.
  void declare(const std::string& bios, const std::string& driver);
  /// A job that runs on the node for so long from now on.
  void startJob(const std::string& node, std::chrono::seconds duration);
  /// Its agent tells of this from now on, in whatever it boots.
  void injectSymptom(const std::string& node, wire::Symptom symptom);
  /// What happens by itself in the time that has passed: boots, tasks of agents, jobs.
  void tick();
  int uploads(const std::string& node, const std::string& component) {
    return bmcs.fake(node).components[component].uploads;
  }
  /// Sets the wall clock by `jump` once, as soon as it is due.
  void jumpWhen(std::function<bool()> due, std::chrono::hours jump);
  bool inPool(const std::string& node) const;
  void forgetCounts();

  std::string broken_bios;              ///< gates of nodes that run it fail
  std::function<void()> on_tick;        ///< what a test lets happen
  std::function<bool()> is_reload_due;  ///< of runs' executors; empty: never
  inventory::Cluster cluster;
  FakeClock clock;
  JumpyClock wall{clock};  ///< what muster sees
  FakeBmcFleet bmcs;
  FakeAgentGateway agents;
  std::unique_ptr<FakeImageStore> images;
  std::shared_ptr<app::ImageBuilder> image_builder;  ///< of tests that build; null: none
  std::shared_ptr<app::BmcChanger> bmc_changer;      ///< of tests that change BMCs; null: none
  FakeProcessRunner processes;
  MemoryMeasurements measurements;
  std::set<FakeNetboot*> netboots;  ///< of the musters that live now
  io::SigningKey key;
  std::map<NodeName, Machine> machines;
  std::vector<std::string> violations;  ///< what must never happen, as it happened
  TempFolder folder;
  std::string state = "state";  ///< whose folder the next Process has: a host's

 private:
  struct Held {
    NodeName node;
    wire::AgentTask task;
    std::chrono::steady_clock::time_point ends_at;
  };
  void power(const NodeName& node, bmc::PowerState state);
  void boot(const NodeName& node, Machine& machine);
  void tellHealth(const NodeName& node);
  Result<std::string> reboot(const NodeName& node);
  Result<std::string> resetGpus(const NodeName& node);
  void resumeTasks();
  void endTask(const Held& held);
  void eraseDisks(const NodeName& node, Machine& machine, const wire::AgentTask& task);
  void violate(const NodeName& node, const std::string& what);
  bool jobRuns(const Machine& machine) const {
    return machine.job_ends_at && clock.steady() < *machine.job_ends_at;
  }
  wire::Hardware hardwareOf(const NodeName& node) const;
  Result<std::string> runChecks(const NodeName& node, const wire::AgentTask& task);
  Result<io::ProcessExit> slurm(const io::Command& command);
  std::string slurmRecord(const NodeName& node) const;

  std::function<bool()> jump_due_;
  std::chrono::hours jump_{0};
  std::vector<Held> held_;
  std::size_t submissions_seen_ = 0;
};

/// The real phases and the engine of one process of muster. Destroying it is kill -9.
class Process {
 public:
  Process(SimulatedRack& rack, const inventory::Cluster& cluster, lifecycle::Store& store);
  ~Process();
  Process(const Process&) = delete;

  Workers workers{1};
  lifecycle::Phases phases;
  std::unique_ptr<lifecycle::Engine> engine;

 private:
  SimulatedRack& rack_;
  FakeNetboot netboot_;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

struct Death {
  int crash_at = CrashStore::kNever;   ///< the number of the write
  bool lost = false;                   ///< that write did not reach the store
  int full_from = CrashStore::kNever;  ///< instead of dying: from this write on the store is full
  int clock_jumps_at = CrashStore::kNever;
  std::chrono::hours jump{0};             ///< of the wall clock, while time itself goes on
  int trouble_from = CrashStore::kNever;  ///< instead of dying: from this write on the store
                                          ///< refuses, for so many writes or so long
  int trouble_writes = 0;
  std::chrono::seconds trouble_lasts{0};
  CrashStore::Refusal trouble{Error(ErrorCode::Unavailable, "no answer"), false, false};
};

/// How a life of muster ended.
struct LifeEnd {
  bool crashed = false;
  int writes = 0;
  bool ok = false;  ///< planned and applied until nothing was left to do
  int refused = 0;  ///< writes
  std::string problems;
};

/// What a life does, with the inventory as rollouts have made it.
using Work = std::function<Async<lifecycle::ApplyReport>(
    lifecycle::EffectiveCluster&, lifecycle::Engine&, lifecycle::Store&, const lifecycle::Phases&)>;

LifeEnd live(SimulatedRack& rack, lifecycle::Store& durable, Death death, const Work& work);
/// Rounds of observe, plan and apply, as `muster apply` does.
LifeEnd live(SimulatedRack& rack, lifecycle::Store& durable, Death death = {});

}  // namespace muster::test
