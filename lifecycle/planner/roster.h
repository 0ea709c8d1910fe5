// SPDX-License-Identifier: Apache-2.0
// The subjects of an inventory as numbers, in the order of plans.
#pragma once

#include "lifecycle/model/plan.h"

#include <unordered_map>

namespace muster::lifecycle {

using Index = std::uint32_t;
inline constexpr Index kNone = ~Index{0};

/// The subjects of an inventory in the order of plans: the cluster, then nodes naturally.
class Roster {
 public:
  explicit Roster(const inventory::Cluster& cluster);
  Index size() const { return static_cast<Index>(subjects_.size()); }
  const Subject& operator[](Index rank) const { return subjects_[rank]; }
  Index rankOf(const Subject& subject) const {
    auto it = ranks_.find(subject.str());
    return it == ranks_.end() ? kNone : it->second;
  }

 private:
  std::vector<Subject> subjects_;
  std::unordered_map<std::string, Index> ranks_;
};

/// As makePlan of plan.h, for who makes many plans of one inventory: the roster is `cluster`'s, and
/// a plan of one node does not cost one of the site.
Result<Plan> makePlan(const inventory::Cluster& cluster, const Roster& roster, const FactSet& facts,
                      const Policy& policy, const Phases& phases);

}  // namespace muster::lifecycle
