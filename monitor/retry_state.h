// SPDX-License-Identifier: Apache-2.0
// What one session of the monitor hands to the next: how long a node has been well, what is not
// tried again yet, what was said. In memory only: a restart of the process begins anew.
#pragma once

#include "base/ids.h"

#include <chrono>
#include <map>
#include <string>

namespace muster::monitor {

inline constexpr std::chrono::seconds kFirstRetry{
    20};  ///< after a drain or a repair that failed; doubles
inline constexpr std::chrono::seconds kLongestRetry{600};

struct RetryState {
  using Moment = std::chrono::steady_clock::time_point;
  struct Backoff {
    Moment not_before{};
    std::chrono::seconds next = kFirstRetry;
  };
  struct Refusal {
    std::string why;  ///< it is well and does not come back; told once
    Moment ask_again{};
  };
  std::map<std::string, Backoff> backoff;  ///< by action id
  std::map<NodeName, Moment> well_since;
  Moment last_look{};  ///< zero: there was none
  std::map<NodeName, Refusal> refused;
  std::map<NodeName, std::string> waiting;  ///< as told
};

}  // namespace muster::monitor
