// SPDX-License-Identifier: Apache-2.0
// Two hosts of one site: a server on the one that stands by looks and takes orders that are rows of
// the store; what needs the process that works (its BMCs, its recordings, the inventory that it has
// read) is answered with who does it. docs/adr/0390
#pragma once

#include "api/problem.h"
#include "api/site_reader.h"

#include <expected>

namespace muster::api {

/// Whether this host serves the site: the only host of a site does. Errors: 409 `not-serving` (with
/// the host that does), 503 (none does yet), those of the store
std::expected<void, Problem> requireServingHost(SiteReader& reader);

}  // namespace muster::api
