// SPDX-License-Identifier: Apache-2.0
#include "app/site/effective_cluster.h"

#include "app/site/actor.h"
#include "app/site/state_folder.h"
#include "inventory/model/cluster.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/rollout/overlay.h"

namespace muster::app {

bool storeExists(const Options& options) {
  std::error_code error;  // a loop of links is told when the store is opened
  return !options.store.empty() || std::filesystem::exists(options.state / "muster.db", error) ||
         error || wasUsed(options.state);
}

Result<std::unique_ptr<lifecycle::Store>> openStoreForWriting(const Options& options) {
  TRY_OK(prepareStateFolder(options.state));
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY_OK(holderOf(options.state, hostName()));  // from now on a store that is missing was lost
  return std::move(store);
}

Result<void> requireUsed(const Options& options) {
  if (storeExists(options)) return {};
  return fail(ErrorCode::NotFound,
              fmt::format("nothing has been done yet in {}; start with: muster plan",
                          options.state.string()));
}

Result<std::unique_ptr<lifecycle::Store>> openStoreForReading(const Options& options) {
  TRY_OK(requireUsed(options));
  return lifecycle::openStore(options.storeUrl());
}

Result<std::unique_ptr<lifecycle::EffectiveCluster>> effectiveCluster(const Options& options) {
  TRY(declared, loadCluster(options));
  auto live = std::make_unique<lifecycle::EffectiveCluster>(std::move(declared));
  if (!storeExists(options)) return live;
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY_OK(lifecycle::applyOverlays(*live, *store));
  return live;
}

Result<std::vector<NodeName>> selectedNodes(const inventory::Cluster& cluster,
                                            const std::string& hostlist) {
  std::vector<NodeName> out;
  if (hostlist.empty()) return out;
  TRY(names, inventory::expandHostlist(hostlist));
  for (auto& name : names) {
    TRY_OK(requireNode(cluster, name));
    out.emplace_back(std::move(name));
  }
  return out;
}

Result<const inventory::Node*> requireNode(const inventory::Cluster& cluster,
                                           const std::string& name) {
  if (const auto* node = cluster.findNode(NodeName(name))) return node;
  return fail(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", name));
}

Result<void> addNote(lifecycle::Store& store, const lifecycle::Subject& subject, std::string text) {
  const lifecycle::Event event{0,  SystemClock().now(), lifecycle::EventKind::Note, subject,
                               "", std::move(text)};
  TRY(sequence, store.addEvent(event));
  (void)sequence;
  return {};
}

}  // namespace muster::app
