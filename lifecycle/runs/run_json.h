// SPDX-License-Identifier: Apache-2.0
// A run as commands and the API show it.
#pragma once

#include "lifecycle/runs/run.h"

#include <nlohmann/json.hpp>

namespace muster::lifecycle {

/// What the row keeps (recordOf) and what it has columns for, in one object.
nlohmann::json toJson(const Run& run);

}  // namespace muster::lifecycle
