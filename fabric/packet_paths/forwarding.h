// SPDX-License-Identifier: Apache-2.0
// Where packets really go: the tables of all switches, walked for every pair of HCAs.
#pragma once

#include "base/result.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fabric {

struct Topology;

inline constexpr int kNoRoute = -1;
/// Switch node GUID → the port out by LID, or kNoRoute.
using ForwardingTables = std::map<std::string, std::vector<int>>;
/// Output of `dump_fts -n`. Errors: Corrupt
Result<ForwardingTables> parseForwardingTables(std::string_view text);

struct Reachability {
  std::size_t pairs = 0;     ///< of HCAs with a LID, in both directions
  std::size_t lost = 0;      ///< no way, or a way that never arrives
  std::size_t down_up = 0;   ///< ways that go down and up again: in a tree they can lock each other
  std::size_t reversed = 0;  ///< of these, not in `down_up`: between two HCAs above the leaves,
                             ///< which have no other way (max_reverse_hops)
  int busiest_uplink = 0;    ///< ways over the busiest cable between switches
  std::vector<std::string> examples;  ///< of lost pairs, at most kMaxExamples
};
inline constexpr std::size_t kMaxExamples = 3;

/// `levels` as switchLevels of the declaration, by device name. Time: pairs × hops.
Reachability walk(const Topology& found, const ForwardingTables& tables,
                  const std::map<std::string, int>& levels);

}  // namespace muster::fabric
