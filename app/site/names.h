// SPDX-License-Identifier: Apache-2.0
// Names that a person may mean, for completion.
#pragma once

#include "app/site/options.h"
#include "base/result.h"

#include <string>
#include <vector>

namespace muster::app {

/// `kind`: nodes, profiles, pools, racks, rollouts. Nothing is made and nothing is observed.
/// Errors: InvalidInput (another kind, an inventory that does not load)
Result<std::vector<std::string>> knownNames(const Options& options, const std::string& kind);

}  // namespace muster::app
