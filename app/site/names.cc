// SPDX-License-Identifier: Apache-2.0
#include "app/site/names.h"

#include "app/site/effective_cluster.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "lifecycle/rollout/record.h"

#include <set>

namespace muster::app {

Result<std::vector<std::string>> knownNames(const Options& options, const std::string& kind) {
  std::vector<std::string> out;
  if (kind == "rollouts") {
    TRY(store, openStoreForReading(options));
    const auto record = lifecycle::RolloutRecord::current(*store);
    if (record) out.push_back(record->rollout().id);
    return out;
  }
  TRY(cluster, loadCluster(options));
  std::set<std::string> racks;
  if (kind == "nodes")
    for (const auto& node : cluster.nodes) out.push_back(node.name.str());
  else if (kind == "profiles")
    for (const auto& [name, profile] : cluster.profiles) out.push_back(name);
  else if (kind == "pools")
    for (const auto& [name, pool] : cluster.pools) out.push_back(name);
  else if (kind == "racks")
    for (const auto& node : cluster.nodes) racks.insert(node.rack);
  else
    return fail(ErrorCode::InvalidInput, "there are no names of this kind");
  racks.erase("");
  out.insert(out.end(), racks.begin(), racks.end());
  return out;
}

}  // namespace muster::app
