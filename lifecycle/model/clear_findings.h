// SPDX-License-Identifier: Apache-2.0
// A person ends findings that nothing else ends: of an older muster, of a repair that nobody looked
// at again. What still holds comes back.
#pragma once

#include "lifecycle/store/store.h"

namespace muster::lifecycle {

struct ClearFindings {
  std::vector<Subject> subjects;  ///< all of them have one
  FacetName facet;
  std::string by, reason;  ///< kept in the log, with what the findings said
};

/// Ends the findings of this facet; answers those that were ended. Nothing is ended unless all can
/// be. Errors: InvalidInput (no reason), NotFound (a subject without such a finding), Denied
/// (raised by what has a way of its own to end it: which one; an action on the facet is under way),
/// the store's
Result<std::vector<Finding>> clearFindings(Store& store, const ClearFindings& what, WallTime at);

}  // namespace muster::lifecycle
