// SPDX-License-Identifier: Apache-2.0
// The table at the end of apply: how long each stage took on each node, and which certificates
// hold.
#pragma once

#include "inventory/model/cluster.h"
#include "lifecycle/store/store.h"

#include <string>

namespace muster::cli {

/// Time by stage from the journal's closed intents since `since`, one row a subject.
Result<std::string> stageTable(const inventory::Cluster& cluster, lifecycle::Store& store,
                               WallTime since);

}  // namespace muster::cli
