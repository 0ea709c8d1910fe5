// SPDX-License-Identifier: Apache-2.0
// The circuit breakers' durable side: a trip stays until a person has acknowledged it, whatever is
// restarted meanwhile.
#pragma once

#include "lifecycle/store/store.h"
#include "monitor/eviction.h"

namespace muster::monitor {

class Breakers {
 public:
  explicit Breakers(lifecycle::Store& store) : store_(store) {}

  /// Errors: those of the store, Corrupt
  Result<BreakerStates> read() const;
  /// Opens the breaker, or adds to what it holds back; shouts once: an event, and a finding on the
  /// cluster.
  Result<void> trip(const Trip& trip, WallTime at);
  /// A person has looked: what is held back now may be drained, if it still has to be. Answers by
  /// pool what was acknowledged.
  Result<BreakerStates> acknowledge(const std::string& who, const std::string& reason, WallTime at);
  /// Of the findings, those of breakers that are no longer open.
  Result<std::set<lifecycle::FacetRef>> over(const std::vector<lifecycle::Finding>& findings) const;
  /// Nodes that are well again need no permission any more.
  Result<void> forgetHealthy(const std::set<NodeName>& in_trouble);

 private:
  Result<void> publish(const Trip& trip, WallTime at);
  Result<void> raise(const Trip& trip, WallTime at);
  Result<void> update(const std::function<bool(BreakerStates&)>& change);
  lifecycle::Store& store_;
};

/// The finding's place: "monitor.breaker" of the cluster, with the pool's name behind.
lifecycle::FacetRef breakerFacet(const std::string& pool);

}  // namespace muster::monitor
