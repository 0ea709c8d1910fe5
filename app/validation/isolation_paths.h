// SPDX-License-Identifier: Apache-2.0
// From the switches' tables to the cables that an isolation may accuse: where fabric/ and validate/
// meet.
#pragma once

#include "fabric/packet_paths/routes.h"
#include "validate/isolate/site.h"

namespace muster::app {

/// For every rail of the site: nodes by their HCAs "NODE DEVICE". Errors: Unavailable (an HCA is
/// not found, or packets do not arrive; named)
Result<validate::isolate::SiteRoutes> siteRoutes(const validate::isolate::Site& site,
                                                 const fabric::Routes& routes);

}  // namespace muster::app
