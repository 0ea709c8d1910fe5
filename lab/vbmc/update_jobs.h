// SPDX-License-Identifier: Apache-2.0
// Firmware updates and manager resets: the slow work of the virtual BMC, one job at a time. An
// update is staged in steps and becomes active only at a reset of what it belongs to.
#pragma once

#include "lab/vbmc/bmc_runtime.h"

namespace muster::lab::vbmc {

class UpdateJobs {
 public:
  explicit UpdateJobs(BmcRuntime& bmc) : bmc_(bmc) {}

  /// Carries out the runtime's jobs, one after the other, until it is stopping.
  Task<void> run();
  /// What is staged and waits for this runs.
  void activate(Becomes how);
  /// Power goes, whatever is being written.
  void noteCut(const std::string& what);

 private:
  Task<void> carryOut(Job job);
  Task<void> update(Job job);
  Task<void> away(std::chrono::milliseconds duration);
  Task<void> managerReset();
  Task<void> acCycle();
  Async<void> verifyAndStage(Job job);
  Async<void> rollBack(Job job);
  Async<void> stage(Job job, std::string component, std::vector<std::string> others,
                    std::string version);
  Async<void> write(Job job, std::string component);
  Async<void> writeOthers(Job job, std::vector<std::string> components, std::string version);
  void finish(const Job& job, const Result<void>& done);
  void loseConfiguration(const std::string& component);

  BmcRuntime& bmc_;
  std::string loses_next_version_;             ///< component whose activation will not take
  std::set<std::string> loses_configuration_;  ///< components whose staged image does not keep it
  std::set<std::string> breaks_;               ///< components whose staged image leaves them worse
};

}  // namespace muster::lab::vbmc
