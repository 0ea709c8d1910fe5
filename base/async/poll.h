// SPDX-License-Identifier: Apache-2.0
// How soon to look again at something that takes seconds or many minutes.
#pragma once

#include <algorithm>
#include <chrono>

namespace muster {

/// A quarter of the time waited so far: a quick end is seen at once, a slow one costs few looks and
/// at most a quarter more.
inline std::chrono::milliseconds nextPollDelay(std::chrono::steady_clock::duration waited,
                                               std::chrono::milliseconds first,
                                               std::chrono::milliseconds most) {
  return std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(waited / 4), first, most);
}

}  // namespace muster
