// SPDX-License-Identifier: Apache-2.0
// Who stands still, when a collective over TCP does: at the limit rank 0 hears where every other
// rank is, and tells all of them. A rank that stands still lets all others wait, each for its
// neighbour; only together do they know for whom.
#pragma once

#include "validate/collective/tcp_streams.h"

#include <cstdint>
#include <vector>

namespace muster::collective {

/// How long rank 0 listens beyond the limit, for ranks whose clocks and ends are not quite its own.
inline constexpr std::chrono::seconds kRollCall{3};

/// Where a rank is.
struct RankStatus {
  std::int32_t rank = -1;
  std::int32_t waits_for = -1;  ///< the rank whose data it wants, or that does not take its own
  std::uint64_t exchanges = 0;  ///< that it has done: the same for all ranks of a job
};

/// "rank 2, rank 5": the first few of them, and how many more there are.
std::string someOf(std::vector<std::string> names);

/// Who of `ranks` is the cause, in words: those without a status, else whom the one that has come
/// least far waits for. `addresses`: by rank, "" where it is not known.
std::string evaluateRollCall(const std::vector<RankStatus>& statuses, int ranks,
                             const std::vector<std::string>& addresses);

/// Rank 0: hears the others until all have answered or `end`, and tells each what came of it.
/// Connections that are none of the job's count for nothing.
std::string takeRollCall(int listener, std::uint64_t job, const RankStatus& own, int ranks,
                         const std::vector<std::string>& addresses, StreamClock::time_point end);
/// All others. Errors: Timeout, Unavailable: rank 0 gave no answer until `end`
Result<std::string> answerRollCall(const std::string& host, int port, std::uint64_t job,
                                   const RankStatus& own, StreamClock::time_point end);

}  // namespace muster::collective
