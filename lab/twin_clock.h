// SPDX-License-Identifier: Apache-2.0
// The clock of whoever works on a twin: real time, and limits that follow this machine.
#pragma once

#include "base/limits.h"
#include "lab/slowness_record.h"

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

namespace muster::lab {

/// Measures at once, and again every kMeasureEvery on a thread of its own for as long as it lives.
/// What was seen is kept in the lab's folder: another command, as `muster why`, speaks of the same
/// limits. Effect: 50 ms of each processor for a measurement
class TwinClock final : public SlowClock {
 public:
  explicit TwinClock(const std::filesystem::path& lab_folder);
  ~TwinClock() override;

  WallTime now() const override { return clock_.now(); }
  std::chrono::steady_clock::time_point steady() const override { return clock_.steady(); }
  using Clock::waitFor;
  Task<bool> waitFor(std::chrono::milliseconds duration, WakeToken* token) override {
    return clock_.waitFor(duration, token);
  }
  double slowness() const override { return factor_; }

 private:
  void measure();

  SystemClock clock_;
  const std::filesystem::path file_;
  SlownessRecord record_;  ///< of the measuring thread, once it runs
  std::atomic<double> factor_ = 1;
  std::mutex mutex_;
  std::condition_variable_any ends_;
  std::jthread thread_;
};

/// Measures once, keeps it in the folder, and answers the factor that limits have then.
double measureInto(const std::filesystem::path& lab_folder);

}  // namespace muster::lab
