// SPDX-License-Identifier: Apache-2.0
// What an isolation takes from the host that it runs on: the fabric's tables, and a folder.
// Internal to app/.
#pragma once

#include "app/validation/isolation_work.h"
#include "lab/lab.h"

namespace muster::app {

/// Asks the fabric that this host, or its twin, sits on. `cluster` is borrowed.
std::function<Async<validate::isolate::SiteRoutes>(const validate::isolate::Site&)> routesOfSite(
    const Options& options, const inventory::Cluster& cluster,
    const std::optional<lab::LabHandle>& lab);
std::filesystem::path isolationFolder(const Options& options);

}  // namespace muster::app
