// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/wipe.h"

#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "inventory/model/cluster.h"
#include "inventory/model/disk_layout.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"
#include "provision/storage/data_wipe.h"

namespace muster::app {

Result<WipeGrant> grantWipe(const Options& options, const WipeRequest& request) {
  TRY(cluster, loadCluster(options));
  TRY(names, inventory::expandHostlist(request.nodes));
  WipeGrant out;
  for (auto& name : names) {
    const auto* node = cluster.findNode(NodeName(name));
    if (!node)
      return fail(ErrorCode::NotFound,
                  fmt::format("node {} is not in the inventory; nothing was allowed", name));
    out.has_storage_sets = out.has_storage_sets || !cluster.profileOf(*node).storage.empty();
    out.nodes.emplace_back(std::move(name));
  }
  TRY(store, openStoreForWriting(options));
  if (request.data)  // before the other, without which it is worth nothing
    for (const auto& node : out.nodes)
      TRY_OK(provision::allowDataWipe(*store, node, request.reason));
  for (const auto& node : out.nodes)
    TRY_OK(store->grantWipe(node, request.reason, SystemClock().now()));
  for (const auto& node : out.nodes)
    TRY_OK(addNote(
        *store, lifecycle::Subject(node),
        fmt::format("{} allows it to be wiped once{}: {}", actorText(options),
                    request.data ? ", with the data of its storage sets" : "", request.reason)));
  return out;
}

}  // namespace muster::app
