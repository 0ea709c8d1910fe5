// SPDX-License-Identifier: Apache-2.0
// The cluster as canonical JSON: sorted keys, no comments, no secrets, paths as seen from the
// inventory's folder.
#pragma once

#include "inventory/model/fwd.h"

#include <nlohmann/json_fwd.hpp>

namespace muster::inventory {

/// What the file says, by the tables that read it (spec.h). The digest is over this.
nlohmann::json declaredJson(const Cluster& cluster);

}  // namespace muster::inventory
