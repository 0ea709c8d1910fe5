// SPDX-License-Identifier: Apache-2.0
// Which of several hosts serves a site: answers its agents, serves boots, acts. One at a time; the
// others stand by. docs/adr/0123
//
// One value of the store, changed only by exchange. Who holds it writes it anew every few seconds;
// who wants it takes it when it has stood still for a whole lease by his own monotonic clock. No
// clock of two machines is compared, and none that can be set is used. A host whose value was
// exchanged by another one has lost it, however sure it was.
#pragma once

#include "base/clock.h"
#include "lifecycle/store/store.h"

namespace muster::lifecycle {

inline constexpr std::chrono::seconds kLeaderLease{30};
inline constexpr std::chrono::seconds kLeaderRenewal{5};
/// Who could not renew for so long stops, before anybody else may begin.
inline constexpr std::chrono::seconds kLeaderGivesUp{25};

struct Leader {
  std::string holder;          ///< as controllers sign on: one to a state folder
  std::string address;         ///< where it serves
  std::string api_url = {};    ///< where its API answers other hosts; empty: nowhere
  std::int64_t term = 0;       ///< grows with every change of hands
  std::int64_t heartbeat = 0;  ///< grows with every renewal
  bool ours = false;
  bool alive = false;  ///< another one's, and renewed since it was first seen here
};

class LeaderLease {
 public:
  LeaderLease(Store& store, const Clock& clock, std::string holder, std::string address,
              std::string api_url = {})
      : store_(store),
        clock_(clock),
        holder_(std::move(holder)),
        address_(std::move(address)),
        api_url_(std::move(api_url)) {}

  /// One try: at once when nobody has it or this very holder had it, else when it has stood still
  /// for kLeaderLease.
  Result<Leader> take();
  /// Errors: Conflict (another host has taken it: who), the store's
  Result<void> renew();

 private:
  struct ObservedValue {
    std::string text;
    std::chrono::steady_clock::time_point since;
    bool moved = false;
  };
  Store& store_;
  const Clock& clock_;
  const std::string holder_, address_, api_url_;
  std::optional<ObservedValue> other_;
  std::string own_text_;  ///< as it is stored
};

/// Who serves, or served last; nullopt: nobody ever did. Errors: Corrupt, the store's
Result<std::optional<Leader>> currentLeader(Store& store);

/// Keeps one small fact of a site in the store for all its hosts: the first host says it. Answers
/// what it is.
Result<std::string> agreedSiteValue(Store& store, const std::string& key, const std::string& mine);

}  // namespace muster::lifecycle
