// SPDX-License-Identifier: Apache-2.0
// The signer's side of its socket. One JSON object a line, one answer each:
//
//   {"sign": STATEMENT, "text": TEXT}                                     → {"signature": BASE64}
//   {"certify": KIND, "name": NAME, "names": [NAME, …], "hours": N, "request": PEM, "ca": SHA-256}
//                                                                         → {"certificate": PEM}
//   {"public": true}                                                      → {"certificates": PEM,
//   "ca": PEM}
//   {"rotate": "certificates"}, {"finish": "certificates"}, {"replace_lost": "certificates"} → as
//   "public" anything else, or what is refused                                     → {"error":
//   CODE, "text": TEXT, "problem"?: "busy"}
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "signer/signature_log.h"

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>

namespace muster::signer {

/// So many at once, and so many more a second. A site of 10,000 nodes enrolls and certifies all of
/// them within the first; who has taken over the service cannot make certificates without end.
struct SigningRate {
  double at_once = 0, each_second = 0;
};

struct SignerServerOptions {
  std::filesystem::path folder;  ///< of the keys and the log: the signer's own
  std::optional<uid_t> asker;    ///< who may ask, besides the socket's mode; nullopt: anybody
  SigningRate statements{50'000, 100}, certificates{25'000, 20}, rotations{4, 1.0 / 600};
  /// A request must be whole, and an answer read, after so long.
  std::chrono::milliseconds patience{5'000};
  SignatureLogLimits log{};
  const Clock* clock = nullptr;  ///< null: the system's
  int stop = -1;                 ///< a descriptor: it ends when that can be read
};

inline constexpr std::size_t kMaxSignerConnections = 32;  ///< without those that are refused

/// Answers on the listening descriptor until it is told to stop. Keys are read when they are first
/// needed and when their files have changed. Errors: Internal (the descriptor is no listening
/// socket)
Result<void> serveSigner(int listening, const SignerServerOptions& options);

}  // namespace muster::signer
