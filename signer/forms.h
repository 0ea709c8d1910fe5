// SPDX-License-Identifier: Apache-2.0
// The forms of what is signed, and their bounds. A text is read by its form and written anew; what
// is signed is that. A text that differs from it in one byte is refused: a member that the form
// does not have, a key twice, another order, spaces, escapes or numbers.
#pragma once

#include "base/clock.h"
#include "signer/site_signer.h"

#include <cstdint>

namespace muster::signer {

// Bounds. Of what the program itself asks for each is the largest that it ever does.
inline constexpr std::size_t kMaxStatementBytes = 256u << 10;
inline constexpr std::size_t kMaxListBytes = 12u << 20;  ///< about 60,000 revocations
inline constexpr std::size_t kMaxNameBytes = 64;         ///< RFC 5280 ub-common-name
inline constexpr std::size_t kMaxNames = 64;
inline constexpr std::chrono::hours kMaxNodeCertificateLife{24 * 366 * 5};
inline constexpr std::chrono::hours kMaxOverrideLife{72};
inline constexpr std::chrono::hours kMaxAgentLife{24 * 365 * 2};
inline constexpr std::chrono::hours kMaxControllerLife{24 * 365};
inline constexpr std::chrono::hours kMaxBmcLife{24 * 365 * 2};
/// By which the time in a statement may differ from the signer's clock.
inline constexpr std::chrono::minutes kClockSkew{10};

struct SignedForm {
  std::string bytes;  ///< what is signed
  std::string about;  ///< for the log: "node=gpu001 expires=…"
};

/// `key_id`: of the key that signs. `now`: nullopt where the clock of whoever asks is believed (in
/// one process with it). Errors: as SiteSigner::sign
Result<SignedForm> formOf(Statement statement, std::string_view text, const std::string& key_id,
                          std::optional<WallTime> now);

/// Names, lifetime and kind; the request itself is the CA's to look at. Errors: Denied
Result<void> checkOrder(const CertificateOrder& order);

/// The hash of revocations 1 to `number`, when `before` is that of those before it and `revocation`
/// the canonical JSON of the newest.
std::string revocationChain(std::string_view before, std::int64_t number,
                            std::string_view revocation);
/// What is signed of a revocation.
std::string revocationWords(std::int64_t number, std::string_view chain);

}  // namespace muster::signer
