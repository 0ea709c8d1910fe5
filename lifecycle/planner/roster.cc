// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/planner/roster.h"

#include "inventory/model/cluster.h"
#include "inventory/parse/hostlist.h"

#include <algorithm>

namespace muster::lifecycle {

Roster::Roster(const inventory::Cluster& cluster) {
  std::vector<const std::string*> names;
  names.reserve(cluster.nodes.size());
  for (const auto& node : cluster.nodes) names.push_back(&node.name.str());
  auto less = [](const auto* a, const auto* b) { return inventory::naturalLess(*a, *b); };
  if (!std::is_sorted(names.begin(), names.end(), less))
    std::stable_sort(names.begin(), names.end(), less);
  subjects_.reserve(names.size() + 1);
  subjects_.push_back(Subject::cluster());
  for (const auto* name : names) subjects_.push_back(Subject::parse(*name));
  ranks_.reserve(subjects_.size());
  for (Index rank = 0; rank < size(); ++rank) ranks_.emplace(subjects_[rank].str(), rank);
}

}  // namespace muster::lifecycle
