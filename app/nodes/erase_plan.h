// SPDX-License-Identifier: Apache-2.0
// What an erasure would do: the request that the node would be told, and the plan of its one
// action. Nothing is asked for by it. Internal to app/.
#pragma once

#include "lifecycle/model/plan.h"
#include "lifecycle/store/store.h"
#include "provision/storage/erase.h"

#include <string>
#include <vector>

namespace muster::app {

struct ErasureOrder {
  NodeName node;
  std::string id;                  ///< of a new request
  std::vector<std::string> disks;  ///< serials; empty: all that are built in
  std::string who, reason;
};

struct PlannedErasure {
  provision::EraseRequest request;
  lifecycle::Plan plan;
};

/// Only the node, which may be wiped; whatever else is open on it belongs to others.
lifecycle::Policy erasurePolicy(const NodeName& node);
/// Errors: Denied (why it must not be erased), NotFound (its serial is not known), Conflict
/// (another erasure of it is under way), of the store
Result<PlannedErasure> planErasure(const inventory::Cluster& cluster, lifecycle::Store& store,
                                   const lifecycle::FactSet& facts, const ErasureOrder& order);

}  // namespace muster::app
