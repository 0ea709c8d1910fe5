// SPDX-License-Identifier: Apache-2.0
// The claims of one run: taken when work on a subject starts, kept while the run lasts, given back
// when the subject is done. Internal to lifecycle/. docs/adr/0010
#pragma once

#include "lifecycle/executor/engine.h"

namespace muster::lifecycle {

class LeaseKeeper {
 public:
  explicit LeaseKeeper(const Services& services) : services_(services) {}
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;

  /// Signs this controller on, unless a run of it is under way: signing on gives back what an
  /// earlier session held.
  static Result<void> signOn(const Services& services);
  /// Signs on, and counts as a run from here on.
  Result<void> begin();
  /// What another worker of this controller has is not ours either. What one had last is ours as if
  /// it was taken from another controller: what was planned for it may be over.
  Async<Claim> claim(Subject subject);
  Task<void> release(Subject subject);
  /// Renews the lease for ever; ends by cancellation.
  Task<void> renewForever();
  /// Before an outside effect: is the subject still ours? Asks the store when the lease may have
  /// run out meanwhile, as it has for a process that was stopped and wakes up. Errors: Conflict
  /// (another controller has it)
  Result<void> ensureHeld(const Subject& subject);

 private:
  void renewed() { held_until_ = services_.clock.steady() + services_.origin.lease / 2; }

  const Services& services_;
  std::chrono::steady_clock::time_point held_until_{};
  bool begun_ = false;
  std::set<Subject> mine_;  ///< entries of ours in the book
};

/// What has moved of a subject since the plan was made, one line each.
std::vector<std::string> changedFacts(const Plan& plan, const Subject& subject,
                                      const std::vector<Fact>& now);

}  // namespace muster::lifecycle
