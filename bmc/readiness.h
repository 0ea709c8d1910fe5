// SPDX-License-Identifier: Apache-2.0
// When is a BMC back that was restarted or had no power? When it answers several times in a row:
// the first answers of one that is still starting are often its last for a while (Ironic asks three
// times, too).
#pragma once

#include "base/clock.h"
#include "bmc/bmc.h"

namespace muster::bmc {

inline constexpr int kReadsUntilReady = 3;

struct ReadyWithin {
  std::chrono::seconds limit;
  std::chrono::milliseconds gap;  ///< between two reads
  bool new_session = false;       ///< each read begins anew: nothing of an old conversation counts
};

/// Errors: Denied at once (more of the same would lock the account), Timeout with the last error
inline Async<void> waitUntilReady(Bmc& bmc, Clock& clock, ReadyWithin within) {
  const auto until = clock.steady() + within.limit;
  std::string last = "no answer";
  for (int good = 0; good < kReadsUntilReady;) {
    co_await clock.sleep(within.gap);
    if (within.new_session) {
      (void)co_await bmc.newSession();
    }
    auto seen = co_await bmc.system();
    if (!seen && seen.error().code() == ErrorCode::Denied) co_return fail(std::move(seen.error()));
    good = seen ? good + 1 : 0;
    if (!seen) last = seen.error().str();
    if (good < kReadsUntilReady && clock.steady() >= until)
      co_return fail(ErrorCode::Timeout, fmt::format("{} did not come back within {} s; last: {}",
                                                     bmc.address(), within.limit.count(), last));
  }
  co_return Result<void>();
}

}  // namespace muster::bmc
