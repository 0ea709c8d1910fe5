// SPDX-License-Identifier: Apache-2.0
// What has to leave its pool, and whether that is still a few bad nodes or a mistake about all of
// them. Pure.
#pragma once

#include "base/ids.h"
#include "inventory/model/fwd.h"
#include "inventory/model/node.h"
#include "lifecycle/model/facet.h"
#include "lifecycle/model/quarantine.h"
#include "monitor/symptoms.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::monitor {

/// A node that may not take jobs, and why.
struct Exclusion {
  NodeName node;
  std::string pool;
  lifecycle::FacetRef facet;  ///< what it is about: certificate, health.gpu, quarantine
  std::string reason;         ///< "its certificate expired at …"
  std::string evidence;
  std::string what_to_do;
  bool quarantine = false;  ///< goes into quarantine
  bool ordered = false;     ///< its pool has been told already; only its jobs are waited for
};

/// More of a pool would be out than the policy lets go without a person.
struct Trip {
  std::string pool;
  int would_be_out = 0, of = 0, allowed = 0;
  std::set<NodeName> nodes;          ///< that are held back
  std::vector<std::string> reasons;  ///< of the first of them, one line each

  std::string text() const;
};

struct Decision {
  std::vector<Exclusion> drain;       ///< to be drained, or still draining
  std::vector<Exclusion> suppressed;  ///< as bad, but the breaker of their pool is open
  std::vector<Exclusion> quarantine;  ///< take no jobs, and go into quarantine
  std::vector<Trip> trips;
  std::set<NodeName> in_trouble;  ///< all that may not take jobs, whether they do or not
  std::set<NodeName> unknown;     ///< their pool could not be read: nothing is concluded
};

/// What a person has said, or still has to: by pool.
struct BreakerState {
  bool open = false;  ///< tripped, and not acknowledged
  std::set<NodeName>
      nodes;               ///< held back when it tripped; after the acknowledgement: may be drained
  bool published = false;  ///< its event is in the log
  friend bool operator==(const BreakerState&, const BreakerState&) = default;
};
using BreakerStates = std::map<std::string, BreakerState>;

/// Why it may not by quarantine or health alone.
std::optional<Exclusion> unhealthy(const inventory::Cluster& cluster, const inventory::Node& node,
                                   const lifecycle::FactSet& facts);

/// Why this node may not take jobs by what is known of it; nothing: it may. Fails closed on a
/// certificate that was looked for and is not there.
std::optional<Exclusion> excluded(const inventory::Cluster& cluster, const inventory::Node& node,
                                  const lifecycle::FactSet& facts);

/// Looks at every node whose pool's state is among `facts`.
Decision decide(const inventory::Cluster& cluster, const lifecycle::FactSet& facts,
                const BreakerStates& breakers);

}  // namespace muster::monitor
