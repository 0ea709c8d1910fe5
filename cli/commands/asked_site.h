// SPDX-License-Identifier: Apache-2.0
// The site that a command asks: by a server that serves it, or by this process.
#pragma once

#include "app/site_client.h"

#include <memory>

namespace muster::cli {

/// Says on standard error when a server answers and is not asked. Errors: as api::chooseSite
Result<std::unique_ptr<app::SiteClient>> askedSite(const app::Options& options);

}  // namespace muster::cli
