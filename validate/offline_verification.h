// SPDX-License-Identifier: Apache-2.0
// How new a list of revocations is, for whoever verifies a certificate away from its controller.
//
// List N is the same bytes for ever, so the list cannot say whether list N+1 exists: a signed
// statement beside it says "at this time list N was the newest".
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "validate/revocations.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::validate {

struct ListAsOf {
  std::int64_t number = 0;
  WallTime as_of{};

  Result<std::string> signedJson(const signer::CertificateKey& key) const;
  /// Errors: Corrupt: no such statement, not signed by one of these keys, or not in the one form in
  /// which it is signed
  static Result<ListAsOf> fromJson(std::string_view text, std::string_view public_pem);
};

/// What the verifier asks of a list.
struct ListPolicy {
  std::chrono::hours max_age{0};  ///< 0: any
  std::int64_t least_number = 0;  ///< 0: any
};
/// Errors: Denied: older than asked for, of an unknown age where one is asked for, or older than
/// the statement beside it says
Result<void> requireFresh(const RevocationList& list, const std::optional<ListAsOf>& as_of,
                          const ListPolicy& policy, WallTime now);

}  // namespace muster::validate
