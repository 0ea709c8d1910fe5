// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/fabric_membership.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster::inventory {

bool isOn(const Profile& profile, std::string_view fabric) {
  if (fabric.empty()) return false;
  return profile.fabric == fabric ||
         std::find(profile.other_fabrics.begin(), profile.other_fabrics.end(), fabric) !=
             profile.other_fabrics.end();
}

std::vector<std::string> fabricsOf(const Profile& profile) {
  std::vector<std::string> out;
  if (!profile.fabric.empty()) out.push_back(profile.fabric);
  out.insert(out.end(), profile.other_fabrics.begin(), profile.other_fabrics.end());
  return out;
}

std::vector<std::string> hcasOn(const Profile& profile, const Fabric& fabric) {
  std::vector<std::string> hcas;
  if (!isOn(profile, fabric.name)) return hcas;
  for (const auto& rail : profile.rails)
    if (fabricOfHca(profile, rail.hca) == fabric.name) hcas.push_back(rail.hca);
  for (int rail = 0; profile.rails.empty() && rail < fabric.rails; ++rail)
    hcas.push_back(fmt::format("mlx5_{}", rail));
  return hcas;
}

std::string fabricOfHca(const Profile& profile, std::string_view hca) {
  for (const auto& rail : profile.rails)
    if (rail.hca == hca && !rail.fabric.empty()) return rail.fabric;
  return profile.other_fabrics.empty() ? profile.fabric : std::string();
}

std::vector<const Fabric*> managedFabrics(const Cluster& cluster) {
  std::set<std::string> used;
  if (cluster.fabrics.size() == 1)
    used.insert(cluster.fabrics.begin()->first);
  else
    for (const auto& node : cluster.nodes)
      if (const auto profile = cluster.profiles.find(node.profile);
          profile != cluster.profiles.end())
        for (auto& name : fabricsOf(profile->second)) used.insert(std::move(name));
  std::vector<const Fabric*> out;
  for (const auto purpose : {FabricPurpose::Compute, FabricPurpose::Storage})
    for (const auto& [name, fabric] : cluster.fabrics)
      if (fabric.purpose == purpose && used.contains(name)) out.push_back(&fabric);
  return out;
}

std::vector<const Fabric*> infiniBandFabrics(const Cluster& cluster) {
  auto out = managedFabrics(cluster);
  std::erase_if(out, [](const Fabric* fabric) { return fabric->roce.has_value(); });
  return out;
}

const Fabric* mainFabric(const Cluster& cluster) {
  const auto managed = managedFabrics(cluster);
  if (managed.size() == 1) return managed.front();
  const auto isCompute = [](const Fabric* fabric) {
    return fabric->purpose == FabricPurpose::Compute;
  };
  return std::count_if(managed.begin(), managed.end(), isCompute) == 1 ? managed.front() : nullptr;
}

}  // namespace muster::inventory
