// SPDX-License-Identifier: Apache-2.0
#include "app/records/audit.h"

#include "app/site/effective_cluster.h"
#include "app/site/site_keys.h"
#include "base/io/regular_file.h"
#include "base/io/trusted_keys.h"

#include <algorithm>

namespace muster::app {
namespace {

constexpr std::size_t kMaxHeadsFileBytes = 64u << 20;

/// A file with such lines, or the line itself.
Result<std::vector<lifecycle::AuditHead>> givenHeads(const std::string& head) {
  if (head.empty()) return std::vector<lifecycle::AuditHead>();
  if (auto typed = lifecycle::parseHeads(head);
      typed || typed.error().code() != ErrorCode::NotFound)
    return typed;
  TRY(text, io::readRegularFile(head, kMaxHeadsFileBytes));
  auto heads = lifecycle::parseHeads(text);
  if (!heads) return fail(std::move(heads).error().within(head));
  return heads;
}

/// The site's, and one that was retired or belongs to another host's state folder. None: heads
/// cannot be verified.
Result<std::string> trustedKeys(const Options& options, const std::filesystem::path& file) {
  std::string out;
  if (auto own = publicKeyOf(options.state, KeyPurpose::Audit))
    out = std::move(*own);
  else if (own.error().code() != ErrorCode::NotFound)
    return fail(std::move(own).error());
  if (file.empty()) return std::move(out);
  TRY(extra, io::readPublicKeys(file));
  return extra + out;
}

bool noneContradicts(const std::vector<lifecycle::HeadReport>& reports) {
  return std::none_of(reports.begin(), reports.end(),
                      [](const auto& report) { return report.contradicts(); });
}

}  // namespace

bool AuditVerdict::headsOk() const { return noneContradicts(given) && noneContradicts(kept); }

Result<AuditVerdict> verifyAudit(const Options& options, const AuditRequest& request) {
  TRY(store, openStoreForReading(options));
  TRY(chain, lifecycle::verifyAudit(*store, request.expected));
  AuditVerdict out{std::move(chain), {}, {}};
  TRY(given, givenHeads(request.head));
  TRY(kept, lifecycle::keptHead(*store));
  TRY(trusted, trustedKeys(options, request.key));
  TRY(of_given, lifecycle::checkHeads(*store, given, trusted));
  out.given = std::move(of_given);
  TRY(of_kept, lifecycle::checkHeads(*store, kept, trusted));
  // Who looks from a machine without the key cannot evaluate the copy; that is no sign of anything.
  for (auto& report : of_kept)
    if (report.status != lifecycle::HeadStatus::OtherKey) out.kept.push_back(std::move(report));
  return out;
}

Result<lifecycle::AuditHead> signAuditHead(const Options& options) {
  TRY(store, openStoreForReading(options));
  TRY(key, loadKey(options.state, KeyPurpose::Audit));
  return lifecycle::signedHead(*store, key, SystemClock().now());
}

Result<lifecycle::AuditArchive> archiveAudit(const Options& options, WallTime before,
                                             const std::filesystem::path& file) {
  TRY(store, openStoreForReading(options));
  return lifecycle::archiveAudit(*store, before, file);
}

Result<ArchiveVerdict> verifyAuditArchive(const Options& options, const std::filesystem::path& file,
                                          const std::string& expected) {
  TRY(archive, lifecycle::readArchive(file));
  if (!expected.empty() && archive.end.hash != expected)
    archive.problems.push_back("it does not end with the hash that was asked for");
  ArchiveVerdict out{std::move(archive)};
  const auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return out;
  const auto ends = (*store)->auditEnds();
  if (!ends) return out;
  out.next = ends->archived == out.archive.end ? ArchiveVerdict::Next::ThisStore
                                               : ArchiveVerdict::Next::OtherArchive;
  out.store_begins_at_link = static_cast<std::int64_t>(ends->archived.link);
  return out;
}

}  // namespace muster::app
