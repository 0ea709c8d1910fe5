// SPDX-License-Identifier: Apache-2.0
// `muster history`: what was asked for, by whom, and every action with its outcome and duration,
// from the journal.
#pragma once

#include "lifecycle/store/store.h"

#include <string>
#include <vector>

namespace muster::lifecycle {

inline constexpr std::size_t kShortestPlanPrefix = 6;  ///< hex digits of a plan's hash

struct History {
  std::vector<Request> requests;  ///< oldest first; for a node those that touched it
  std::vector<Intent> intents;    ///< oldest first

  std::string text() const;
  std::string toJson() const;
};

/// `what`: a node, "@cluster", or the beginning of a plan's hash; empty: the requests alone. The
/// newest `limit` of each. Errors: NotFound (neither node nor plan), those of the store
Result<History> historyOf(Store& store, const std::string& what, std::size_t limit);

}  // namespace muster::lifecycle
