// SPDX-License-Identifier: Apache-2.0
// RunExecutor: carries runs out, beside the monitor, in the process that serves the site. One after
// the other, oldest first; what waits for people stops nobody. It lives on rows: dropped anywhere,
// the next one goes on. docs/runs.md
#pragma once

#include "app/runs/run_rounds.h"

#include <memory>
#include <string>

namespace muster::app {

class RunExecutor {
 public:
  RunExecutor(RunWork work, std::shared_ptr<RunMemory> memory);
  ~RunExecutor();
  RunExecutor(const RunExecutor&) = delete;

  /// Never ends by itself; ends by cancellation, as by a crash.
  Task<void> run();
  /// Takes one run as far as it goes now. Answers whether there was one. Errors: of the store, and
  /// others that can be retried; the run is as it was
  Async<bool> step();

 private:
  Result<std::optional<lifecycle::Run>> next();
  /// What an earlier process has left. Answers the run when it is to be worked on.
  Result<std::optional<lifecycle::Run>> adopt(lifecycle::Run run, bool begin_none);
  Task<lifecycle::RunOrder> awaitOrder(std::string id);
  Result<void> giveUp(const std::string& id, const Error& error);
  Result<void> obey(const std::string& id);

  RunWork work_;
  RunRows rows_;
  std::shared_ptr<RunMemory> memory_;
  RunRounds rounds_;
  std::string last_trouble_;
};

}  // namespace muster::app
