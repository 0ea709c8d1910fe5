// SPDX-License-Identifier: Apache-2.0
// The site that a command asks: by a server that serves it, or by this process.
#pragma once

#include "app/site/site_client.h"

#include <memory>
#include <string_view>

namespace muster::cli {

/// Says on standard error when a server answers and is not asked. Errors: as api::chooseSite
Result<std::unique_ptr<app::SiteClient>> askedSite(const app::Options& options);

/// Of a command that asks a server only in some of its forms: whether none was named for this one.
/// `what`: "the image is written here". Errors: InvalidInput
Result<void> requireNoServer(const app::Options& options, std::string_view what);

/// The site that orders are given to: a server that was named; else this process, whose orders have
/// the name of who has logged in (a server on the socket knows the user alone, who is root for all
/// that use sudo); the server of the socket for who may not use the state folder. Errors: as
/// api::chooseSite
Result<std::unique_ptr<app::SiteClient>> orderedSite(const app::Options& options);
/// The same, where somebody carries runs out: a server that was named, or whoever monitors the
/// state folder; a server that only answers the API does not. Null: this process has to do the
/// work.
Result<std::unique_ptr<app::SiteClient>> siteForRuns(const app::Options& options);

}  // namespace muster::cli
