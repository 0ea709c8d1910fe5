// SPDX-License-Identifier: Apache-2.0
// history: what the journal says afterwards.
#include "cli/commands/commands.h"

#include "lifecycle/audit/history.h"

#include <iostream>

namespace muster::cli {

int history(const app::Options& options, const std::string& what, std::size_t limit) {
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto found = lifecycle::historyOf(**store, what, limit);
  if (!found) return report(found.error());
  std::cout << (options.json ? found->toJson() : found->text());
  return kOk;
}

}  // namespace muster::cli
