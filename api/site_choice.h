// SPDX-License-Identifier: Apache-2.0
// Who answers a command: a server that serves the site, or this process.
#pragma once

#include "app/site/site_client.h"

#include <functional>
#include <memory>
#include <string>

namespace muster::api {

/// Options::server where it is said; else the socket of this state folder, where a server answers
/// on it and serves the inventory that the command means; else, and with Options::direct, this
/// process. `notice`: hears why a server that answers is not asked.
/// Errors: InvalidInput (--direct with --server; neither https:// nor a path; no CA, a token file
/// that is not there), those of RemoteSite::connect but for a socket that nobody listens on
Result<std::unique_ptr<app::SiteClient>> chooseSite(
    const app::Options& options, const std::function<void(const std::string&)>& notice);

/// Whether this names a server. Errors: InvalidInput (neither https:// nor the whole path of a Unix
/// socket)
Result<void> checkServerName(const std::string& server);

/// Where a server of this state folder listens when nobody says where; any user may ask.
std::vector<std::filesystem::path> usualSockets(const app::Options& options);

}  // namespace muster::api
