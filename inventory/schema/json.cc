// SPDX-License-Identifier: Apache-2.0
#include "inventory/schema/json.h"

#include "base/json_output.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"
#include "inventory/schema/spec.h"

#include <nlohmann/json.hpp>

namespace muster::inventory {

namespace {

using nlohmann::json;

constexpr int kIndent = 2;

}  // namespace

json declaredJson(const Cluster& cluster) {
  return printObject(&cluster, *clusterSpec(), {.folder = cluster.folder});
}

std::string toJson(const Cluster& cluster) {
  json out = declaredJson(cluster);
  out["digest"] = cluster.digest;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const Profile& profile = cluster.profileOf(cluster.nodes[i]);
    json& node = out["nodes"][i];
    if (!profile.other_fabrics.empty()) node["other_fabrics"] = profile.other_fabrics;
    node.update(json{{"image", profile.image},
                     {"drivers", profile.drivers},
                     {"firmware", profile.firmware},
                     {"fabric", profile.fabric},
                     {"gates", profile.gates},
                     {"pool", profile.pool}});
  }
  return jsonText(out, kIndent) + "\n";
}

}  // namespace muster::inventory
