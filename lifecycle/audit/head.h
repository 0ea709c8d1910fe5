// SPDX-License-Identifier: Apache-2.0
// The head of the audit chain, signed: what is kept outside the store and shows later that nothing
// was cut from the log's end.
//
// The chain of hashes (audit.h) shows that no entry that is there was changed. Who can write the
// whole database may still cut the newest entries off and write the head row to fit. He cannot make
// a signature for that, nor call back what was exported before. So the head is signed with a key
// that signs nothing else, printed (`muster audit head`), and written to syslog at an interval and
// after each apply.
//
// One line, anywhere in a line of a log:
//   muster-audit-head/1 sequence=412 hash=<64 hex> at=2026-01-31T12:00:00.000Z key=<16 hex>
//   signature=<base64>
// Signed is everything before " signature=". The empty log has sequence=0 hash=none.
#pragma once

#include "base/io/crypto.h"
#include "lifecycle/store/store.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::lifecycle {

inline constexpr std::size_t kMaxAuditHeads =
    100'000;  ///< of one file: the lines of a year, one every five minutes

struct AuditHead {
  std::int64_t sequence =
      0;  ///< the newest entry's link: its place in the chain, from 1 without gaps
  std::string hash;
  WallTime at{};
  std::string key_id;
  std::string signature;
  friend bool operator==(const AuditHead&, const AuditHead&) = default;
};

/// Signs where the chain ends now. Errors: those of the store and of the key
Result<AuditHead> signedHead(Store& store, const io::SigningKey& key, WallTime at);

/// The line, without a line end.
std::string toText(const AuditHead& head);

/// All heads of a text, one a line at most, whatever stands before them on the line (a log's own
/// time and name). Errors: NotFound (none is there), Corrupt (a line begins like one and is
/// damaged, or there are more than kMaxAuditHeads)
Result<std::vector<AuditHead>> parseHeads(std::string_view text);

/// What a head says of a log. Only Holds is good.
enum class HeadStatus {
  Holds,      ///< the entry is there with that hash, so everything up to it is as it was then
  Archived,   ///< it is older than what the store still has: the archive shows it
  Truncated,  ///< the log ends before it: entries were cut off
  Rewritten,  ///< the entry has another hash: the chain was written anew
  OtherKey,   ///< signed by a key that is not among the given ones
  Forged,     ///< the signature does not fit
};
std::string_view toString(HeadStatus status);

struct HeadReport {
  AuditHead head;
  HeadStatus status = HeadStatus::Forged;
  bool contradicts() const { return status != HeadStatus::Holds && status != HeadStatus::Archived; }
};

/// Compares heads with the log of the store. `trusted_pem`: public keys of the purpose audit
/// (io/trusted_keys.h). Shape:  store × heads × keys → a report a head, in the same order Errors:
/// those of the store
Result<std::vector<HeadReport>> checkHeads(Store& store, const std::vector<AuditHead>& heads,
                                           std::string_view trusted_pem);

/// The head that was exported last, as the store itself remembers it; nothing: none was. It shows a
/// careless cut only: who can write the whole database may put an older one back. Errors: Corrupt,
/// those of the store
Result<std::vector<AuditHead>> keptHead(Store& store);
/// Effect: the store remembers it instead of the one before. Errors: those of the store
Result<void> keepHead(Store& store, const AuditHead& head);

}  // namespace muster::lifecycle
