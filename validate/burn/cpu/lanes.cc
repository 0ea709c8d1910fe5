// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cpu/lanes.h"

#include "validate/burn/first_error.h"

#include <sched.h>

#include <thread>

namespace muster::burn::cpu {

std::vector<int> allowedCpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

void onEach(const std::vector<int>& cpus, const std::function<void(int lane)>& work) {
  FirstError error;
  std::vector<std::jthread> threads;
  for (std::size_t lane = 0; lane < cpus.size(); ++lane)
    threads.emplace_back([&work, &error, lane, cpu = cpus[lane]] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cpu, &set);
      sched_setaffinity(0, sizeof set,
                        &set);  // refused in some containers: then the kernel places it
      error.guard([&work, lane] { work(static_cast<int>(lane)); });
    });
  threads.clear();
  error.rethrow();
}

}  // namespace muster::burn::cpu
