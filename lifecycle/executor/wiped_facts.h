// SPDX-License-Identifier: Apache-2.0
// What was known of a subject and is worth nothing once its disk is wiped: forgotten before the
// effect, so that no crash can leave good facts about what is gone; known again when nothing was
// wiped after all. Internal to lifecycle/.
#pragma once

#include "lifecycle/executor/lease_keeper.h"

namespace muster::lifecycle {

class WipedFacts {
 public:
  /// `facts` is shared by the whole run.
  WipedFacts(const Services& services, FactSet& facts) : services_(services), facts_(facts) {}

  /// Of the facet that is wiped and all that needs it. Errors: of the store
  Async<void> forget(FacetRef wiped);
  /// Best effort: what was seen again meanwhile stays as it was seen.
  Task<void> restore();

 private:
  const Services& services_;
  FactSet& facts_;
  std::vector<Fact> forgotten_;
};

}  // namespace muster::lifecycle
