// SPDX-License-Identifier: Apache-2.0
// Which switches a node hangs on: a failure domain for whoever takes nodes out of work.
#pragma once

#include "inventory/model/fwd.h"

#include <map>
#include <set>
#include <string>

namespace muster::fabric {

/// Node → the switches that its HCAs are cabled to, over all fabrics. Pure. A fabric whose
/// declaration cannot be expanded (declaredTopology says why) has none.
std::map<std::string, std::set<std::string>> leavesOf(const inventory::Cluster& cluster);

}  // namespace muster::fabric
