// SPDX-License-Identifier: Apache-2.0
// RolloutPolicy: how carefully a change is rolled out, and when nodes count as slower than before.
#pragma once

#include <optional>
#include <vector>

namespace muster::inventory {

/// At most so many nodes; absent: no limit. A percentage of a group is rounded down, but lets one
/// node through.
struct Ceiling {
  std::optional<int> nodes, percent;
  bool limits() const { return nodes || percent; }
  friend bool operator==(const Ceiling&, const Ceiling&) = default;
};

/// What a rollout does when it is not clear whether nodes have become slower.
enum class OnInconclusive { Halt, Continue };
enum class OnFailure { Halt, RollBack };

struct Canary {
  int nodes = 3;
  std::optional<int> racks;  ///< whole racks instead
};
struct Unavailability {
  Ceiling pool{std::nullopt, 10}, rack, su, leaf;
  friend bool operator==(const Unavailability&, const Unavailability&) = default;
};
struct RegressionRule {
  int tolerated_percent = 3;          ///< loss of a rate (bandwidth, GEMM) that is accepted
  int tolerated_slower_percent = 25;  ///< gain of a duration (boot) that is accepted
  int confidence_percent = 95;
  OnInconclusive on_inconclusive = OnInconclusive::Halt;
};
struct RolloutPolicy {
  Canary canary;
  std::vector<int> waves{10, 50, 100};  ///< after the canaries: up to so many percent of the nodes
  Unavailability max_unavailable;
  int max_failed_percent = 5;  ///< of a wave's nodes
  RegressionRule regression;
  OnFailure on_failure = OnFailure::Halt;
  int soak_minutes =
      0;  ///< a wave whose gate has passed is watched for so long before the next one begins
};

}  // namespace muster::inventory
