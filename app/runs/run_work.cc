// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_work.h"

#include "app/controller/monitor_run.h"
#include "provision/storage/erase.h"

namespace muster::app {

RunWork runWork(Controller& controller, lifecycle::RunStore& runs,
                const inventory::Cluster& cluster, MonitorListener& listener) {
  return {cluster,
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
          &controller.erasures()};
}

}  // namespace muster::app
