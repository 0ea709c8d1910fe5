// SPDX-License-Identifier: Apache-2.0
// The build unit (docs/adr/0343): root, for one connection, with the inventory of this host's
// settings.
#pragma once

#include "app/site/options.h"

#include <filesystem>

namespace muster::app {

/// Answers the request on `connection` in a folder below `folder`. `fetch_socket`: of the fetch
/// unit (docs/adr/0437), where this one has no network; empty: packages are fetched here. Errors:
/// Denied (not root), those of the build; whoever asked has been told
Result<void> serveBuild(const Options& options, int connection, const std::filesystem::path& folder,
                        const std::filesystem::path& fetch_socket);

}  // namespace muster::app
