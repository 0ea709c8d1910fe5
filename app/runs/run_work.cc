// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_work.h"

#include "app/controller/monitor_run.h"
#include "app/runs/bmc_changer.h"
#include "app/runs/image_builder.h"
#include "app/runs/rollout_plans.h"
#include "app/site/effective_cluster.h"
#include "app/validation/isolation_routes.h"
#include "lifecycle/rollout/effective_cluster.h"
#include "provision/storage/erase.h"

namespace muster::app {

Result<std::unique_ptr<lifecycle::EffectiveCluster>> servedCluster(const Options& options) {
  TRY(live, effectiveCluster(options));
  if (!storeExists(options)) return std::move(live);
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY(runs, lifecycle::openRuns(options.storeUrl()));
  TRY_OK(layRolloutRuns(*live, *runs, *store));
  return std::move(live);
}

RunWork runWork(Controller& controller, lifecycle::RunStore& runs,
                lifecycle::EffectiveCluster& live, MonitorListener& listener,
                const Options& options, const std::optional<lab::LabHandle>& lab) {
  auto isolation = std::make_shared<const IsolationServices>(
      isolationServices(controller, live.cluster(), options, lab, {}));
  return {live.cluster(),
          runs,
          controller.store(),
          controller.engine(),
          controller.clock(),
          controller.holder(),
          [&controller](lifecycle::Policy policy) { return controller.observe(std::move(policy)); },
          [&controller](const lifecycle::FactSet& facts, const lifecycle::Policy& policy) {
            return controller.plan(facts, policy);
          },
          [&controller](lifecycle::Subject subject) {
            return controller.observePool(std::move(subject));
          },
          [&listener](const std::string& text) { listener.onNotice(text); },
          [] { requestReload(); },
          &controller.erasures(),
          &live,
          &controller.phases(),
          {},
          &controller.synchronizedLoad(),
          std::move(isolation),
          makeImageBuilder(options, controller.workers()),
          makeBmcChanger(controller, live.cluster())};
}

}  // namespace muster::app
