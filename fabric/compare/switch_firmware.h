// SPDX-License-Identifier: Apache-2.0
// The firmware that switches run against the declared one. Pure.
#pragma once

#include "fabric/compare/compare.h"
#include "inventory/model/fabric.h"

namespace muster::fabric {

/// By the switch's name; switches of which nothing is declared are not in it.
std::map<std::string, std::string> declaredFirmware(const inventory::Fabric& fabric,
                                                    const Topology& declared);
/// By the numbers: "27.2012.0010" is "27.2012.10".
bool isSameFirmware(std::string_view one, std::string_view other);

/// What a switch told.
struct ReportedFirmware {
  int lid = 0;
  std::string version;  ///< "31.2012.1024"; empty: nothing
  std::string psid;     ///< of its board; empty: not told
  std::string why_not;  ///< it could not be asked
};

/// Adds a deviation for each of these switches that runs another version, or does not tell it: not
/// known is not as declared.
void compareFirmware(const std::map<std::string, std::string>& wanted,
                     const std::map<std::string, ReportedFirmware>& told,
                     const std::vector<inventory::FabricExclusion>& excused, Comparison& out);

}  // namespace muster::fabric
