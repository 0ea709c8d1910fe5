// SPDX-License-Identifier: Apache-2.0
// audit: the log as evidence: its chain of hashes, its signed heads, its archives.
#pragma once

#include "app/site/options.h"
#include "lifecycle/audit/archive.h"
#include "lifecycle/audit/audit.h"
#include "lifecycle/audit/head.h"

#include <string>
#include <vector>

namespace muster::app {

struct AuditRequest {
  std::string expected;       ///< a hash that was noted elsewhere
  std::string head;           ///< signed heads that were exported: a file, or the line itself
  std::filesystem::path key;  ///< a public key for audit that this state folder does not have
};
/// What exported heads say of the log, beside what its own chain says.
struct AuditVerdict {
  lifecycle::AuditReport chain;
  std::vector<lifecycle::HeadReport> given;  ///< from the caller: exported earlier
  std::vector<lifecycle::HeadReport> kept;   ///< the store's own copy of the newest
  bool headsOk() const;
  bool ok() const { return chain.ok() && headsOk(); }
};
Result<AuditVerdict> verifyAudit(const Options& options, const AuditRequest& request);

/// Signs where the log ends now.
Result<lifecycle::AuditHead> signAuditHead(const Options& options);

/// Moves entries older than `before` into a new file. The same again goes on after a crash.
Result<lifecycle::AuditArchive> archiveAudit(const Options& options, WallTime before,
                                             const std::filesystem::path& file);

struct ArchiveVerdict {
  lifecycle::AuditArchive archive;
  enum class Next { Unknown, ThisStore, OtherArchive } next = Next::Unknown;
  std::int64_t store_begins_at_link = 0;  ///< of OtherArchive
};
/// What an archive proves by itself, and whether this store's log continues it. `expected`: a hash
/// that it must end with; empty: any.
Result<ArchiveVerdict> verifyAuditArchive(const Options& options, const std::filesystem::path& file,
                                          const std::string& expected);

}  // namespace muster::app
