// SPDX-License-Identifier: Apache-2.0
// wipe: a person's permission that disks are overwritten, once.
#pragma once

#include "app/site/options.h"

#include <string>
#include <vector>

namespace muster::app {

struct WipeRequest {
  std::string nodes;  ///< hostlist
  std::string reason;
  bool data = false;  ///< the disks of storage sets too, whatever they hold
};

struct WipeGrant {
  std::vector<NodeName> nodes;
  bool has_storage_sets = false;  ///< a profile of these nodes declares some
};

/// Effect: journaled; the next plan may wipe these nodes. Errors: NotFound (not in the inventory;
/// none is allowed)
Result<WipeGrant> grantWipe(const Options& options, const WipeRequest& request);

}  // namespace muster::app
