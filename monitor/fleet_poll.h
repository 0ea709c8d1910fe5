// SPDX-License-Identifier: Apache-2.0
// The light look of `muster keep`: some phases (pool, certificates, health) over all nodes, often.
// Unlike the engine's observation it stores only what has changed or grown old, and says a trouble
// once, not once a node and look.
#pragma once

#include "lifecycle/executor/engine.h"

#include <map>
#include <set>
#include <string>

namespace muster::monitor {

inline constexpr std::chrono::minutes kStoreAnyway{
    10};  ///< an unchanged fact is stored again after so long, so that its age says something

struct Seen {
  lifecycle::FactSet
      facts;  ///< of the light phases, as read in this look; what could not be read is not there
  std::map<std::string, std::string>
      troubles;  ///< "pool: slurmctld does not answer: …" → the first node that it was said for
};

class LightLook {
 public:
  LightLook(const inventory::Cluster& cluster, lifecycle::Phases phases, lifecycle::Store& store,
            Clock& clock, lifecycle::EventSink sink);

  /// Errors: only of the store
  Async<Seen> all();
  /// Somebody else has stored facts of this node: what is remembered of it is not trusted for the
  /// next look.
  void doubt(const lifecycle::Subject& subject) { doubted_.insert(subject); }

 private:
  Task<void> readAll(lifecycle::Phase* phase, Seen& seen);
  Task<void> readOne(lifecycle::Phase* phase, lifecycle::Subject subject, Seen& seen);
  void carryOver(Seen& seen) const;
  Result<void> keep(const Seen& seen);
  void say(const std::map<std::string, std::string>& troubles);
  void emit(const lifecycle::Subject& subject, std::string text, lifecycle::EventKind kind);

  const inventory::Cluster& cluster_;
  const lifecycle::Phases phases_;
  lifecycle::Store& store_;
  Clock& clock_;
  const lifecycle::EventSink sink_;
  lifecycle::FactSet stored_;  ///< as this process stored them
  std::set<lifecycle::Subject> doubted_;
  bool primed_ = false;
  std::set<std::string> said_;
};

}  // namespace muster::monitor
