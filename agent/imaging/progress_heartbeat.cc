// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/progress_heartbeat.h"

#include <fmt/format.h>

namespace muster::agent {

ProgressHeartbeat::ProgressHeartbeat(std::function<void(const std::string&)> notify,
                                     std::string text, std::chrono::milliseconds again_after)
    : notify_(std::move(notify)), text_(std::move(text)), again_after_(again_after) {
  notify_(text_);
  thread_ = std::jthread([this](const std::stop_token& stop) { notifyAgain(stop); });
}

void ProgressHeartbeat::notifyAgain(const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    ended_.wait_for(lock, stop, again_after_, [] { return false; });
    if (stop.stop_requested()) return;
    notify_(fmt::format(
        "{} ({} s)", text_,
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start)
            .count()));
  }
}

}  // namespace muster::agent
