// SPDX-License-Identifier: Apache-2.0
// The log that shows when it was tampered with: a chain of hashes over all events but progress.
//
// hash = SHA-256 of (hash of the entry before, then the entry as canonical JSON: link, time, kind,
// subject, action, text). The first entry follows the empty text. What somebody who can write the
// whole database could still do is write a whole new chain, so an operator may keep a hash
// elsewhere (`muster audit verify` prints the newest) and ask later whether it is in the chain.
#pragma once

#include "lifecycle/store/store.h"

#include <string>
#include <vector>

namespace muster::lifecycle {

inline constexpr std::size_t kMaxAuditProblems = 100;

inline bool isChained(EventKind kind) { return kind != EventKind::ActionProgress; }

/// The hash that an entry must have after `previous`. Reads everything of the entry but its hash
/// and its event's sequence.
std::string chainHash(const std::string& previous, const AuditEntry& entry);

struct AuditReport {
  std::int64_t entries = 0;  ///< chained ones that were read
  AuditEnds ends;
  bool has_expected = true;           ///< the hash that was asked for is in the chain
  std::vector<std::string> problems;  ///< which entry, and what happened to it
  bool ok() const { return problems.empty() && has_expected; }
};

/// Reads the whole log, page by page, also while others write. `expected`: a hash kept elsewhere;
/// empty: none.
/// Errors: those of the store; Conflict (it was archived again and again meanwhile)
Result<AuditReport> verifyAudit(Store& store, const std::string& expected);

}  // namespace muster::lifecycle
