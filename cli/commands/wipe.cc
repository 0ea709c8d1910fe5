// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/wipe.h"

#include "app/site/site_records.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/lifecycle.h"

#include <iostream>

namespace muster::cli {

int wipe(const app::Options& options, const app::WipeRequest& request) {
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  const auto granted = (*site)->records().grantWipe(request);
  if (!granted) return report(granted.error());
  std::cout << fmt::format("{} may be wiped once: {}\n", request.nodes, request.reason);
  if (request.data)
    std::cout << "The data on the disks of their storage sets is wiped too, unless a disk holds a "
                 "finished set as declared.\n";
  else if (granted->has_storage_sets)
    std::cout << "This covers system disks. Disks of storage sets that hold anything but a "
                 "finished set as declared stay as they are; to wipe those too: --data\n";
  return kOk;
}

}  // namespace muster::cli
