// SPDX-License-Identifier: Apache-2.0
// findings: what is wrong, and ending what nothing else ends.
#include "app/records.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/lifecycle.h"
#include "cli/view/findings_view.h"

#include <iostream>

namespace muster::cli {

int findings(const app::Options& options, const FindingsArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const bool clears = !args.clear.empty();
  const auto found = clears ? (*site)->clearFindings({args.nodes, args.clear, args.reason})
                            : (*site)->findings(args.nodes);
  if (!found) return report(found.error());
  if (options.json)
    std::cout << findingsJson(*found);
  else if (clears)
    std::cout << fmt::format("cleared {} findings; what still holds is found again\n",
                             found->size());
  else
    std::cout << findingsText(*found);
  return kOk;
}

}  // namespace muster::cli
