// SPDX-License-Identifier: Apache-2.0
// The fabric as a picture: one SVG file that needs nothing else, faults in red with what to do as
// tooltip.
#pragma once

#include "fabric/compare/compare.h"
#include "fabric/exports/sheet.h"

namespace muster::fabric {

/// What a plot shows beside the declaration.
struct FoundFabric {
  const Topology& topology;
  const Comparison& comparison;
};

/// Rows from cores to hosts, the same place for the same device in every plot. Cables between the
/// same two boxes are one line. `found`: cables that are not there are dashed red, those that
/// should not be red, slow ones orange. A fabric of more than 160 nodes or switches is a table of
/// its pods instead (plot_overview.h). Pure.
std::string plotSvg(const std::string& title, const Topology& declared,
                    const std::map<std::string, Place>& places, const FoundFabric* found = nullptr);

}  // namespace muster::fabric
