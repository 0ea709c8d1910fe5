// SPDX-License-Identifier: Apache-2.0
// Runs on a simulated rack: what the process that serves a site does, the executor and the monitor
// on one engine, with the real phases.
#pragma once

#include "app/runs/run_executor.h"
#include "app/runs/runs.h"
#include "tests/crash/kill_points.h"
#include "tests/crash/simulated_rack.h"
#include "tests/fakes/memory_runs.h"
#include "tests/fakes/memory_store.h"

namespace muster::test {

inline const lifecycle::RunActor kAnna{"anna", "local", "ctl1"}, kBen{"ben", "local", "ctl1"};

enum class Beside { Nothing, Monitor };

/// One process that serves the site: it lives until `until` holds, and fails if that is not so
/// within hours.
LifeEnd serve(SimulatedRack& rack, lifecycle::Store& store, std::shared_ptr<MemoryRuns::Data> rows,
              Death death, std::function<bool()> until, Beside beside = Beside::Nothing);

/// A rack whose nodes are all in their pool, and a run that anna asks for there.
class RackRun : public Trial {
 public:
  explicit RackRun(std::vector<std::string> nodes);
  LifeEnd live(Death death) override;
  std::string story() override { return storyOf(store_); }
  virtual bool over() { return isEnd(run().state); }

 protected:
  lifecycle::Run run() { return *app::readRun(runs_, id_); }
  /// From now on the run is this one.
  void ask(const app::RunRequest& request);
  /// Ben agrees to the plan that waits for somebody; anna, who has asked for it, may not. Answers
  /// whether it waited.
  bool approve();
  /// Nothing that must never happen has happened, and nothing is left open.
  void expectClean();

  SimulatedRack rack_;
  MemoryStore store_;
  std::shared_ptr<MemoryRuns::Data> rows_ = std::make_shared<MemoryRuns::Data>();
  MemoryRuns runs_{store_, rows_};
  std::string id_;
};

}  // namespace muster::test
