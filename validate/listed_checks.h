// SPDX-License-Identifier: Apache-2.0
// Every check that a gate or an isolation can ask for, for people: what it looks at, where what it
// expects comes from, and what to do when it fails. From the same rows that agents run.
#pragma once

#include <string_view>
#include <vector>

namespace muster::validate {

struct ListedCheck {
  std::string_view id, group;
  std::string_view level;   ///< the least thorough gate that asks for it; "isolate": no gate's
  std::string_view what;    ///< what it looks at
  std::string_view needs;   ///< without it there is no data, and no pass
  std::string_view units;   ///< of what it measures; empty: nothing is measured
  std::string_view source;  ///< where the expected value comes from
  std::string_view advice;  ///< what to do when it fails
};

/// With those between two nodes and of the BMC, which no agent runs alone. By group and id.
std::vector<ListedCheck> listedChecks();

}  // namespace muster::validate
