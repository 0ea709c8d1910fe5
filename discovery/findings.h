// SPDX-License-Identifier: Apache-2.0
// What does not fit among the machines that were seen, kept as findings beside all others.
#pragma once

#include "discovery/classify.h"
#include "lifecycle/store/store.h"

namespace muster::discovery {

inline constexpr std::string_view kDiscoveryFacet = "discovery";

/// Those that hold no more are cleared; nothing is written where nothing is new. Under the declared
/// node that an oddity is about, else under the cluster.
Result<void> updateFindings(lifecycle::Store& store, const std::vector<Anomaly>& anomalies,
                            WallTime now);

}  // namespace muster::discovery
