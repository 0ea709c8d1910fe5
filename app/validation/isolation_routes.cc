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

IsolationServices isolationServices(Controller& controller, const inventory::Cluster& cluster,
                                    const Options& options,
                                    const std::optional<lab::LabHandle>& lab,
                                    std::function<void(const std::string&)> notice) {
  return {cluster,
          controller.agents(),
          controller.store(),
          controller.measurements(),
          controller.clock(),
          [&controller](lifecycle::Subject subject) {
            return controller.observePool(std::move(subject));
          },
          [options, lab, &cluster](const isolate::Site& site) {
            return askedRoutes(options, lab, cluster, site);
          },
          std::move(notice),
          options.state / "validation"};
}

}  // namespace muster::app
