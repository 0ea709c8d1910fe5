// SPDX-License-Identifier: Apache-2.0
// A fabric too large to draw every device: its pods as rows, the switches above them as columns, in
// each cell how many of the declared cables are there.
#pragma once

#include "fabric/exports/plot.h"

namespace muster::fabric {

/// Pods: what hangs together without the roots, and parts of one SU (by the names of the shape) are
/// one. At most kMostRows and kMostColumns; more are put together in their order. Pure.
std::string plotOverviewSvg(const std::string& title, const Topology& declared,
                            const FoundFabric* found);
inline constexpr std::size_t kMostRows = 40, kMostColumns = 24;

}  // namespace muster::fabric
