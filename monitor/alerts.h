// SPDX-License-Identifier: Apache-2.0
// What the monitor tells people of nodes: findings, raised once and cleared when they are over, and
// notes.
#pragma once

#include "monitor/breakers.h"
#include "monitor/fleet_poll.h"

#include <map>
#include <string>

namespace muster::monitor {

class AlertPublisher {
 public:
  AlertPublisher(lifecycle::Store& store, Clock& clock, lifecycle::EventSink sink,
                 std::map<NodeName, std::string>& waiting)
      : store_(store), clock_(clock), sink_(std::move(sink)), waiting_(waiting) {}

  Result<void> raise(const Decision& decision);
  Result<void> clearResolved(const FleetSnapshot& snapshot, const Breakers& breakers);
  /// What is not done on a node, and why: an event of each, until the words change.
  void waiting(const std::map<NodeName, std::string>& words);

 private:
  Result<void> warnOfSilentAgents(const FleetSnapshot& snapshot,
                                  const std::vector<lifecycle::Finding>& findings);
  void note(const lifecycle::Subject& subject, std::string text);

  lifecycle::Store& store_;
  Clock& clock_;
  const lifecycle::EventSink sink_;
  std::map<lifecycle::FacetRef, std::string> raised_;  ///< findings of this process
  std::map<NodeName, std::string>& waiting_;           ///< as told
};

}  // namespace muster::monitor
