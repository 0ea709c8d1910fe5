// SPDX-License-Identifier: Apache-2.0
#include "app/records/notifications.h"

#include "app/controller/run_async.h"
#include "app/site/effective_cluster.h"
#include "inventory/model/cluster.h"
#include "inventory/model/notifications.h"
#include "lifecycle/rollout/effective_cluster.h"
#include "monitor/notify/notifier.h"

namespace muster::app {

Result<std::vector<ReceiverState>> notificationReceivers(const Options& options) {
  TRY(live, effectiveCluster(options));
  std::vector<ReceiverState> out;
  std::unique_ptr<lifecycle::Store> store;
  if (storeExists(options)) {
    TRY(opened, openStoreForReading(options));
    store = std::move(opened);
  }
  for (const auto& [name, receiver] : live->cluster().notifications) {
    ReceiverState state{.name = name, .url = monitor::shownUrl(receiver.url)};
    const bool webhook = receiver.format == inventory::NotificationFormat::StandardWebhooks;
    state.format = webhook ? "standard-webhooks" : "alertmanager";
    if (store) {
      TRY(found, monitor::backlogOf(*store, live->cluster(), name));
      state.is_told = found.is_told;
      state.waiting = found.waiting;
      state.trouble = found.trouble;
    }
    // At once, and not when the monitor has tried for minutes.
    if (const auto good = inventory::checkReceiverSecret(receiver); !good)
      state.trouble = good.error().text();
    out.push_back(std::move(state));
  }
  return out;
}

Result<void> tryReceiver(const Options& options, const std::string& name) {
  TRY(live, effectiveCluster(options));
  SystemClock clock;
  Workers workers(1);
  Loop loop;
  const auto make = [](io::TlsTrust trust) { return io::makeHttpClient(std::move(trust)); };
  return loop.run(monitor::sendTrial(live->cluster(), clock, workers, make, name));
}

}  // namespace muster::app
