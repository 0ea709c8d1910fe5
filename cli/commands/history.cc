// history and audit: what the journal and the log say afterwards.
#include "cli/commands/commands.h"

#include "lifecycle/audit_archive.h"
#include "lifecycle/history.h"
#include "lifecycle/json.h"

#include <iostream>

namespace muster::cli {
namespace {

std::string auditText(const lifecycle::AuditReport& report) {
  std::string out;
  for (const auto& problem : report.problems) out += "TAMPERED: " + problem + "\n";
  if (!report.has_expected) out += "TAMPERED: the hash that was asked for is not in the chain: it was written anew, or this is another store\n";
  out += fmt::format("{} entries since #{}; newest link {}, hash {}\n", report.entries, report.ends.begins_after + 1, report.ends.link,
                     report.ends.hash.empty() ? "(none)" : report.ends.hash);
  if (report.ok()) out += "the chain is whole; keep the hash elsewhere and ask for it later: muster audit verify --expect HASH\n";
  return out;
}

std::string auditJson(const lifecycle::AuditReport& report) {
  const nlohmann::json out = {{"ok", report.ok()},
                              {"entries", report.entries},
                              {"begins_after", report.ends.begins_after},
                              {"link", report.ends.link},
                              {"hash", report.ends.hash},
                              {"has_expected", report.has_expected},
                              {"problems", report.problems}};
  return out.dump(2) + "\n";
}

std::string archiveText(const lifecycle::AuditArchive& archive) {
  std::string out;
  for (const auto& problem : archive.problems) out += "TAMPERED: " + problem + "\n";
  return out + fmt::format("{} entries, links {} to {}; it follows from hash {} and ends with hash {}\n", archive.entries, archive.after.link + 1,
                           archive.end.link, archive.after.hash.empty() ? "(none)" : archive.after.hash, archive.end.hash);
}

std::string archiveJson(const lifecycle::AuditArchive& archive) {
  const nlohmann::json out = {{"ok", archive.ok()},
                              {"entries", archive.entries},
                              {"after", {{"link", archive.after.link}, {"hash", archive.after.hash}}},
                              {"end", {{"link", archive.end.link}, {"hash", archive.end.hash}}},
                              {"problems", archive.problems}};
  return out.dump(2) + "\n";
}

}  // namespace

int history(const Options& options, const std::string& what, std::size_t limit) {
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto found = lifecycle::historyOf(**store, what, limit);
  if (!found) return report(found.error());
  std::cout << (options.json ? found->toJson() : found->text());
  return kOk;
}

int auditArchive(const Options& options, const std::string& before, const std::filesystem::path& file) {
  const auto date = parseWallTime(before.find('T') == std::string::npos ? before + "T00:00:00Z" : before);
  if (!date) return report(Error(ErrorCode::InvalidInput, "--before: write a date as 2026-01-31, or a time as 2026-01-31T12:00:00Z"));
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto archived = lifecycle::archiveAudit(**store, *date, file);
  if (!archived) return report(archived.error());
  std::cout << (options.json ? archiveJson(*archived) : fmt::format("{}: {}", file.string(), archiveText(*archived)));
  return kOk;
}

namespace {

/// What an archive proves by itself, and whether this store's log goes on from it.
int verifyFile(const Options& options, const std::string& expected, const std::filesystem::path& file) {
  auto archive = lifecycle::readArchive(file);
  if (!archive) return report(archive.error());
  if (!expected.empty() && archive->end.hash != expected) archive->problems.push_back("it does not end with the hash that was asked for");
  std::cout << (options.json ? archiveJson(*archive) : archiveText(*archive));
  if (options.json) return archive->ok() ? kOk : kFailed;
  auto store = lifecycle::openStore(options.storeUrl());
  const auto ends = store ? (*store)->auditEnds() : Result<lifecycle::AuditEnds>(fail(store.error()));
  if (ends && ends->archived == archive->end) std::cout << "the store's log goes on from there\n";
  if (ends && ends->archived != archive->end) std::cout << fmt::format("the store's log goes on from link {}: from another archive\n", ends->archived.link);
  return archive->ok() ? kOk : kFailed;
}

}  // namespace

int auditVerify(const Options& options, const std::string& expected, const std::filesystem::path& file) {
  if (!file.empty()) return verifyFile(options, expected, file);
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto verified = lifecycle::verifyAudit(**store, expected);
  if (!verified) return report(verified.error());
  std::cout << (options.json ? auditJson(*verified) : auditText(*verified));
  return verified->ok() ? kOk : kFailed;
}

}  // namespace muster::cli
