// SPDX-License-Identifier: Apache-2.0
// Limits: how much of a kind may be under way at once. Ceilings, never targets: below them the
// number is found by trying (docs/adr/0014).
#pragma once

#include "inventory/model/rollout_policy.h"

#include <optional>

namespace muster::inventory {

/// What is not declared has muster's own ceiling.
struct Limits {
  std::optional<int> bmc_requests;  ///< to all BMCs together
  std::optional<int> uploads;       ///< of firmware files
  std::optional<int> imagings;      ///< disks being written
  std::optional<int> restarts;      ///< machines that go down and up
  Unavailability max_unavailable;   ///< nodes that one apply may take out of work
  std::optional<int> per_run;       ///< of all domains together
  friend bool operator==(const Limits&, const Limits&) = default;
};

}  // namespace muster::inventory
