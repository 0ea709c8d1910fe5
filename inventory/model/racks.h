// SPDX-License-Identifier: Apache-2.0
// Racks, as far as more is known of them than their names: what they may draw and what can be
// cooled away.
#pragma once

#include <optional>
#include <string>

namespace muster::inventory {

struct Rack {
  std::string name;
  int power_watts = 0;               ///< that all its nodes may draw together
  std::optional<int> cooling_watts;  ///< that can be cooled away; absent: as much as it may draw
};

}  // namespace muster::inventory
