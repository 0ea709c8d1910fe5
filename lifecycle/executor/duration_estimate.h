// SPDX-License-Identifier: Apache-2.0
// How long a kind of action usually takes, learned from the journal: what `muster why` compares
// with, and what stall_watch.h reports by.
//
// A kind is phase and facet ("firmware firmware.BMC", "pool pool#drain"). Only actions that ended
// well count. The phase's own estimate is worth kPriorSamples of them, so that two lucky runs do
// not make the third one late.
#pragma once

#include "base/result.h"
#include "inventory/model/fwd.h"
#include "lifecycle/store/store.h"

#include <map>
#include <string>
#include <vector>

namespace muster::lifecycle {

inline constexpr double kEstimateQuantile = 0.9;  ///< a slow tenth neither moves it nor is late
inline constexpr std::size_t kPriorSamples = 4;
inline constexpr std::size_t kMaxSamples = 200;  ///< of a kind, the newest
inline constexpr double kLateFactor = 1.5;
inline constexpr std::chrono::seconds kLateSlack{10};
inline constexpr std::size_t kPeersAsked =
    32;  ///< nodes of the same profile whose journal is read, the node's own first
inline constexpr std::size_t kIntentsOfPeer = 100;

struct DurationEstimate {
  std::chrono::milliseconds expected{0};
  std::size_t samples = 0;  ///< 0: only the phase's estimate

  /// `slowness`: of the place (base/limits.h); what is that much slower is not late there.
  bool isLate(std::chrono::milliseconds taken, double slowness = 1) const;
  std::string text() const;  ///< "usually 90 s (of 37 like it, nine in ten took no longer)"
};

class DurationEstimates {
 public:
  static std::string kindOf(const Action& action);
  /// Takes in an intent that ended well; all others, and those whose clock jumped, are left out.
  void add(const Intent& intent);
  DurationEstimate of(const Action& action) const;

 private:
  std::map<std::string, std::vector<std::chrono::milliseconds>> samples_;
};

/// From the journal of the node and of its peers. Errors: those of the store
Result<DurationEstimates> learnDurations(const inventory::Cluster& cluster, Store& store,
                                         const Subject& subject);

/// What learnDurations said of a profile, kept for a while: asked once for all of its nodes.
class KnownDurations {
 public:
  explicit KnownDurations(std::chrono::seconds kept) : kept_(kept) {}

  /// Of the profile of this subject; `now` by a steady clock. Good until the next call. Errors:
  /// those of the store
  Result<const DurationEstimates*> of(const inventory::Cluster& cluster, Store& store,
                                      const Subject& subject,
                                      std::chrono::steady_clock::time_point now);

 private:
  struct Known {
    std::chrono::steady_clock::time_point at;
    DurationEstimates estimates;
  };
  std::chrono::seconds kept_;
  std::map<std::string, Known> known_;  ///< by profile; "" for the cluster
};

/// What a person looks at when an action of this facet takes longer than it should. Data
/// (duration_estimate.cc).
std::string_view lateAdvice(const Action& action);

}  // namespace muster::lifecycle
