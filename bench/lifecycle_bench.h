// SPDX-License-Identifier: Apache-2.0
// The parts of the lifecycle bench, and how they count time.
#pragma once

#include "bench/bench.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>

namespace muster::bench {

void benchScaleOfPlans(Report& report);
void benchScaleOfRuns(Report& report);
void benchBudgets(Report& report);

inline double secondsOf(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// What pure functions cost is counted in CPU time: it says the same on a busy machine.
template <class Work>
double fastestCpuSeconds(int runs, Work work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    const double begin = secondsOf(CLOCK_PROCESS_CPUTIME_ID);
    work();
    best = std::min(best, secondsOf(CLOCK_PROCESS_CPUTIME_ID) - begin);
  }
  return best;
}

inline double peakMebibytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

/// On the disk that the benches run from; gone at the end.
class Folder {
 public:
  Folder() {
    auto pattern = (std::filesystem::current_path() / "bench-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) std::abort();
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace muster::bench
