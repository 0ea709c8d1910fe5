// SPDX-License-Identifier: Apache-2.0
// Says again and again that a step without an end in sight still works, so that nobody takes it for
// hung.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace muster::agent {

inline constexpr std::chrono::milliseconds kSayAgainAfter{10'000};

/// Says `text` at once, and with the seconds that it has taken from then on, until it is destroyed.
/// `say` is called on a thread of its own.
class ProgressHeartbeat {
 public:
  ProgressHeartbeat(std::function<void(const std::string&)> notify, std::string text,
                    std::chrono::milliseconds again_after = kSayAgainAfter);

 private:
  void notifyAgain(const std::stop_token& stop);

  std::function<void(const std::string&)> notify_;
  std::string text_;
  std::chrono::milliseconds again_after_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;  ///< last: it ends before what it uses
};

}  // namespace muster::agent
