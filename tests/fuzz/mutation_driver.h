// SPDX-License-Identifier: Apache-2.0
// Fuzz targets without libFuzzer: every corpus entry, then mutations of them in the order that the
// seed gives, for a share of the time each. Runs in any build, so that the tests need no second one
// (adr/0211). A target works in a child process: what ends by a signal or does not end is reported
// with its input, and the others go on.
#pragma once

#include "tests/fuzz/targets.h"

#include <chrono>
#include <filesystem>

namespace muster::fuzz {

/// Of one input; past them the target hangs.
struct Limits {
  std::chrono::milliseconds processor{15'000};
  std::chrono::milliseconds wall{600'000};  ///< for what sleeps; the machine may be busy
};

/// Answers whether the target kept its promises; what is wrong is printed, with the input's file.
/// `corpus`: the folder of the corpora of all targets.
bool tryTarget(const Target& target, const std::filesystem::path& corpus,
               std::chrono::milliseconds share, unsigned long long seed, const Limits& limits = {});

}  // namespace muster::fuzz
