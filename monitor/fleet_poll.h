// SPDX-License-Identifier: Apache-2.0
// The light poll of `muster monitor`: some phases (pool, certificates, health) over all nodes,
// often. Unlike the engine's observation it stores only what has changed or grown old, and says a
// trouble once, not once a node and look.
#pragma once

#include "lifecycle/executor/engine.h"

#include <map>
#include <set>
#include <string>

namespace muster::monitor {

inline constexpr std::chrono::minutes kStoreUnchangedAfter{
    10};  ///< an unchanged fact is stored again after so long, so that its age says something

struct FleetSnapshot {
  lifecycle::FactSet
      facts;  ///< of the light phases, as read in this look; what could not be read is not there
  std::map<std::string, std::string>
      troubles;  ///< "pool: slurmctld does not answer: …" → the first node that it was said for
};

class FleetPoll {
 public:
  FleetPoll(const inventory::Cluster& cluster, lifecycle::Phases phases, lifecycle::Store& store,
            Clock& clock, lifecycle::EventSink sink);

  /// Errors: only of the store
  Async<FleetSnapshot> poll();
  /// Somebody else has stored facts of this node: what is remembered of it is not trusted for the
  /// next look.
  void invalidate(const lifecycle::Subject& subject) { invalidated_.insert(subject); }

 private:
  Task<void> readAll(lifecycle::Phase* phase, FleetSnapshot& snapshot);
  Task<void> readOne(lifecycle::Phase* phase, lifecycle::Subject subject, FleetSnapshot& snapshot);
  void carryOver(FleetSnapshot& snapshot) const;
  Result<void> store(const FleetSnapshot& snapshot);
  void reportTroubles(const std::map<std::string, std::string>& troubles);
  void emit(const lifecycle::Subject& subject, std::string text, lifecycle::EventKind kind);

  const inventory::Cluster& cluster_;
  const lifecycle::Phases phases_;
  lifecycle::Store& store_;
  Clock& clock_;
  const lifecycle::EventSink sink_;
  lifecycle::FactSet stored_;  ///< as this process stored them
  std::set<lifecycle::Subject> invalidated_;
  bool primed_ = false;
  std::set<std::string> reported_;
};

}  // namespace muster::monitor
