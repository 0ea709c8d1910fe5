// SPDX-License-Identifier: Apache-2.0
// Work on every core at once, each lane pinned to its own.
#pragma once

#include <functional>
#include <vector>

namespace muster::burn::cpu {

/// The processors that this process may run on.
std::vector<int> allowedCpus();
/// Calls work(lane) on a thread a processor, and waits for all. Throws what a lane has
/// thrown, and std::system_error where there is no memory for the threads.
void onEach(const std::vector<int>& cpus, const std::function<void(int lane)>& work);

}  // namespace muster::burn::cpu
