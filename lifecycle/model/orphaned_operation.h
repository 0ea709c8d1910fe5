// SPDX-License-Identifier: Apache-2.0
// What an action that is abandoned may have left outside: its operation becomes a fact, for its
// phase to read before anything else is done there.
#pragma once

#include "lifecycle/store/store.h"

namespace muster::lifecycle {

inline constexpr const char* kNoOrphanedOperation = "nothing";

/// "left.firmware.BIOS": "TO|OPERATION" as the journal had them, or kNoOrphanedOperation once it
/// was seen to.
inline FacetName orphanedOperationFacet(const FacetName& facet) {
  return FacetName("left." + facet.str());
}

/// Null: it had begun nothing.
inline std::optional<Fact> orphanedOperationOf(const Intent& intent, WallTime at) {
  if (intent.operation.empty()) return std::nullopt;
  return Fact{intent.action.facet.subject,
              orphanedOperationFacet(intent.action.facet.facet),
              intent.action.to + "|" + intent.operation,
              at,
              "journal",
              {}};
}

}  // namespace muster::lifecycle
