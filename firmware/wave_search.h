// SPDX-License-Identifier: Apache-2.0
// The fewest waves that bring components to where one feasible order of single steps brings them.
// A wave is one activation: a reset, a power cycle or an AC cycle of the node.
#pragma once

#include "firmware/activation_policy.h"
#include "firmware/constraint_table.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace muster::firmware {

/// One component on its way: lines 0 … n-1 of the constraint table.
struct WaveLine {
  std::size_t steps = 0;  ///< to its goal
  Activation activation = Activation::None;
  bool alone = false;    ///< shares no wave
  bool ordered = false;  ///< its steps keep the order of the sequence among each other
  std::size_t rank = 0;  ///< who goes first where nothing else decides
};

/// Lines that move in one wave, by rank.
using Moves = std::vector<std::size_t>;

/// Shape:  lines × places × one feasible sequence of single steps (a line each) → waves.
/// Null:   more than `most_states` states would have to be looked at.
std::optional<std::vector<Moves>> fewestWaves(const std::vector<WaveLine>& lines,
                                              const ConstraintTable& constraints,
                                              const Places& start,
                                              const std::vector<std::size_t>& sequence,
                                              std::size_t most_states);

}  // namespace muster::firmware
