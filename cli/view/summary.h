// SPDX-License-Identifier: Apache-2.0
// The table at the end of apply: how long each stage took on each node.
#pragma once

#include "app/plans/apply.h"

#include <string>
#include <vector>

namespace muster::cli {

/// One row a subject, or how they spread where they are many; "" where nothing was done.
std::string stageTable(const std::vector<app::StageTimes>& stages);

}  // namespace muster::cli
