// SPDX-License-Identifier: Apache-2.0
// Old entries of the log, moved into a file without breaking the chain: the file holds them with
// their hashes, the store keeps the hash of the last one, and what comes after it still follows
// from that.
//
// File: one JSON object a line. {"format":"muster-audit/1","after":{"link","hash"}}, then the
// entries as they were, then
// {"end":{"entries","link","hash","sequence"}}. Progress is no evidence and is not kept.
//
// Killed anywhere, nothing is lost: the whole file is on the disk under its name before the store
// lets go of anything, in one commit. The same command again goes on from there.
#pragma once

#include "lifecycle/audit/audit.h"

#include <filesystem>

namespace muster::lifecycle {

struct AuditArchive {
  std::int64_t entries = 0;
  AuditMark after, end;               ///< the chain before the first and at the last entry
  std::int64_t last_sequence = 0;     ///< of the last entry in its store
  std::vector<std::string> problems;  ///< which entry, and what happened to it
  bool ok() const { return problems.empty(); }
};

/// Reads an archive and follows its chain.
/// Errors: NotFound, Corrupt (no such file's format, cut off)
Result<AuditArchive> readArchive(const std::filesystem::path& file);

/// Moves what is older than `before` into the file: entries up to the first that is not.
/// Errors: Conflict (the chain is broken: nothing is moved; the file exists and is something else),
/// NotFound (nothing is so old),
///         those of the disk and of the store
Result<AuditArchive> archiveAudit(Store& store, WallTime before, const std::filesystem::path& file);

}  // namespace muster::lifecycle
