// SPDX-License-Identifier: Apache-2.0
// Fitness: whether this node may start a job, as its agent says in a file in memory that a
// scheduler's hook reads (`muster-agent fit`). The agent evaluates each look at the node's health
// by the controller's rules (wire/health_rules.h). docs/pools.md, docs/adr/0339
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::agent {

/// Below the machine's root. In memory: it says nothing of an earlier boot, and a disk that is
/// read-only does not matter.
inline constexpr std::string_view kFitnessFile = "run/muster/fitness.json";
/// Of a look. Longer than the agent needs from one to the next, also while its tools hang.
inline constexpr std::chrono::seconds kFitnessHolds{150};

enum class FitnessState { Fit, Unfit, Unknown };
std::string_view toString(FitnessState state);

struct Fitness {
  FitnessState state = FitnessState::Unknown;
  std::string reason;  ///< of Unfit and Unknown; one line
  std::string boot_id;
  std::uint64_t looked_at_ms = 0;  ///< since the boot, sleep included

  friend bool operator==(const Fitness&, const Fitness&) = default;
};

/// Grows through the life of a boot, also across restarts of the agent.
std::uint64_t bootMilliseconds();
/// Errors: NotFound, Corrupt
Result<std::string> bootIdOf(const std::filesystem::path& root);

Result<void> writeFitness(const std::filesystem::path& root, const Fitness& fitness);
/// What the file says, or Unknown with why: no agent has run, it is away, its file cannot be read.
/// Never waits.
Fitness readFitness(const std::filesystem::path& root, std::uint64_t now_ms);

}  // namespace muster::agent
