// SPDX-License-Identifier: Apache-2.0
// Two hosts without RDMA: bandwidth and data over TCP, several streams at once, every block
// compared with what was sent.
#pragma once

#include "base/result.h"

#include <chrono>
#include <string>

namespace muster::collective {

struct TcpPair {
  std::string peer;  ///< where the server listens; empty: be the server, on all addresses
  int port = 0;
  int streams = 4;
  std::uint64_t bytes = 256u << 20;  ///< of each stream
  std::uint64_t seed = 1;
  std::chrono::seconds limit{60};
};
struct TcpMeasured {
  double gbits = 0;  ///< Gb/s over all streams, until the last block had been checked
  std::uint64_t bytes = 0;
  std::uint64_t wrong_blocks = 0;
};
/// One side; both are told the same bytes, streams and seed. The client may come first: it tries
/// again until the limit. Errors: Timeout (nobody came, or it stood still), Conflict (the other
/// side means another test), Unavailable (address, broken stream)
Result<TcpMeasured> runTcpPair(const TcpPair& pair);

}  // namespace muster::collective
