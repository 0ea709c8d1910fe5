// SPDX-License-Identifier: Apache-2.0
// Pairs of HCAs whose packets do not arrive, and at which switch they end. Pure.
#pragma once

#include "fabric/packet_paths/forwarding.h"

namespace muster::fabric {

struct Topology;

enum class WayEnds { NoTable, NoEntry, AtAnEmptyPort, InALoop };

struct LostPairs {
  std::size_t pairs = 0;  ///< HCAs with a LID and a cable, in both directions
  std::size_t lost = 0;
  // Of the switch at which most of them end:
  std::string at;
  WayEnds how = WayEnds::NoEntry;
  std::size_t there = 0;  ///< how many of them
  std::string from, to;   ///< one of them
};

/// Pairs of which neither is `declared` do not count. Time: HCAs × switches.
LostPairs lostPairs(const Topology& found, const ForwardingTables& tables,
                    const Topology& declared);
/// "120 of 992 pairs have no route: gpu001 mlx5_0 to gpu002 mlx5_0, …"; empty: none is lost.
std::string toString(const LostPairs& lost);

/// What lostPairs found, beside what can be its cause.
struct RouteContext {
  const Topology& declared;
  const Topology& found;
  std::string_view routing_engine;  ///< in force; empty: not known
  const std::string* root_guids;    ///< what OpenSM was given; nullptr: another's subnet manager
  std::string deviations;           ///< what the comparison asks for; empty: as declared
};
/// In words, with what to do.
std::string causeOf(const LostPairs& lost, const RouteContext& context);

}  // namespace muster::fabric
