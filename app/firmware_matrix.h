// SPDX-License-Identifier: Apache-2.0
// Firmware of the whole site as a table: component by component, what profiles declare against what
// their nodes have, by what was seen last.
#pragma once

#include "inventory/model/fwd.h"
#include "lifecycle/model/facet.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::app {

enum class FirmwareState {
  AsDeclared,
  ToUpdate,
  Left,    ///< stays as it is, and `why`
  Unknown  ///< nothing is known of the component
};
std::string_view wordOf(FirmwareState state);

/// Nodes of one profile that are alike in one component.
struct FirmwareCell {
  std::string profile, baseline, component;
  std::size_t place = 0;        ///< of the component in the baseline's order
  std::string declared, found;  ///< found: "" when unknown
  FirmwareState state = FirmwareState::Unknown;
  std::vector<std::string> through;  ///< versions on the way to the declared one
  std::string staged;  ///< an image is on the machine and does not run yet: its version
  std::string why;
  std::vector<std::string> nodes;  ///< in the order of the inventory
};

/// Pure. By profile, then by the baseline's order; what is not as declared comes first.
std::vector<FirmwareCell> firmwareMatrix(const inventory::Cluster& cluster,
                                         const lifecycle::FactSet& facts);

}  // namespace muster::app
