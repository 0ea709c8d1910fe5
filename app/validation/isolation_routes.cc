// SPDX-License-Identifier: Apache-2.0
#include "app/validation/isolation_routes.h"

#include "app/controller/controller.h"
#include "app/validation/isolation_paths.h"
#include "fabric/discovery/tools.h"
#include "fabric/fabric_diff.h"
#include "fabric/options.h"
#include "inventory/model/cluster.h"

namespace muster::app {
namespace {

namespace isolate = validate::isolate;

Async<isolate::SiteRoutes> askedRoutes(const Options& options, std::optional<lab::LabHandle> lab,
                                       const inventory::Cluster& cluster,
                                       const isolate::Site& site) {
  const auto where = fabricOptions(options, lab, cluster, site.fabric);
  const auto processes = io::makeProcessRunner();
  CO_TRY(seen, co_await fabric::discover(*processes, where));
  CO_TRY(found, fabric::withDeclaredNames(cluster, std::move(seen), site.fabric));
  fabric::Tools tools(*processes, where);
  CO_TRY(tables, co_await tools.forwardingTables());
  co_return siteRoutes(site, fabric::Routes(found, tables));
}

}  // namespace

std::function<Async<isolate::SiteRoutes>(const isolate::Site&)> routesOfSite(
    const Options& options, const inventory::Cluster& cluster,
    const std::optional<lab::LabHandle>& lab) {
  return [options, lab, &cluster](const isolate::Site& site) {
    return askedRoutes(options, lab, cluster, site);
  };
}

std::filesystem::path isolationFolder(const Options& options) {
  return options.state / "validation";
}

}  // namespace muster::app
