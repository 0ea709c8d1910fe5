// SPDX-License-Identifier: Apache-2.0
// audit: the log as evidence.
#include "app/site_keys.h"
#include "base/json_output.h"
#include "cli/commands/commands.h"

#include "base/io/files.h"
#include "lifecycle/audit/archive.h"
#include "lifecycle/audit/head.h"
#include "lifecycle/model/json.h"

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

constexpr std::size_t kMaxHeadsFileBytes = 64u << 20;
constexpr std::size_t kMaxKeyFileBytes = 1u << 16;
constexpr std::string_view kShows =
    "shown: every entry that is here is as it was written, in its order, with none missing between "
    "two others\n";
constexpr std::string_view kShowsNot =
    "NOT shown: that no entry was cut off the end, and that the chain was not written anew as a "
    "whole. Only a head that was exported earlier shows that: "
    "muster audit verify --head FILE (the lines that `muster monitor` and `muster apply` wrote to "
    "syslog, or `muster audit head` printed)\n";

/// What heads say of the log, beside what its own chain says.
struct Heads {
  std::vector<lifecycle::HeadReport> given;  ///< from the caller: exported earlier
  std::vector<lifecycle::HeadReport> kept;   ///< the store's own copy of the newest
  bool ok() const {
    const auto bad = [](const auto& report) { return report.contradicts(); };
    return std::none_of(given.begin(), given.end(), bad) &&
           std::none_of(kept.begin(), kept.end(), bad);
  }
};

std::string_view meaning(lifecycle::HeadStanding standing) {
  using lifecycle::HeadStanding;
  switch (standing) {
    case HeadStanding::Holds:
      return "holds: everything up to that entry is as it was then";
    case HeadStanding::Archived:
      return "is older than what the store still has: verify the archive";
    case HeadStanding::Truncated:
      return "does not hold: the log ends before that entry, entries were CUT OFF";
    case HeadStanding::Rewritten:
      return "does not hold: that entry has another hash, the chain was WRITTEN ANEW";
    case HeadStanding::OtherKey:
      return "cannot be believed: it is signed by another key than the site's key for audit (--key "
             "FILE names a key that was retired)";
    case HeadStanding::Forged:
      return "cannot be believed: its signature does NOT FIT";
  }
  return "";
}

std::string headsText(const Heads& heads) {
  std::string out;
  std::size_t good = 0;
  const lifecycle::HeadReport* newest = nullptr;
  for (const auto& report : heads.given) {
    if (report.standing != lifecycle::HeadStanding::Holds) {
      out += fmt::format("{}the head of entry {} from {} (key {}) {}\n",
                         report.contradicts() ? "TAMPERED: " : "", report.head.sequence,
                         toString(report.head.at), report.head.key_id, meaning(report.standing));
      continue;
    }
    ++good;
    if (!newest || newest->head.sequence <= report.head.sequence) newest = &report;
  }
  for (const auto& report : heads.kept)
    if (report.contradicts())
      out += fmt::format("TAMPERED: the store's own copy of the head of entry {} from {} {}\n",
                         report.head.sequence, toString(report.head.at), meaning(report.standing));
  if (newest)
    out += fmt::format(
        "shown by {} exported heads: up to entry {}, as of {}, nothing was cut off or written "
        "anew. NOT shown: what came after it\n",
        good, newest->head.sequence, toString(newest->head.at));
  return out;
}

nlohmann::json headJson(const lifecycle::AuditHead& head) {
  return {{"sequence", head.sequence}, {"hash", head.hash},           {"at", toString(head.at)},
          {"key_id", head.key_id},     {"signature", head.signature}, {"text", toText(head)}};
}

nlohmann::json reportsJson(const std::vector<lifecycle::HeadReport>& reports) {
  auto out = nlohmann::json::array();
  for (const auto& report : reports) {
    auto each = headJson(report.head);
    each["standing"] = toString(report.standing);
    out.push_back(std::move(each));
  }
  return out;
}

std::string auditText(const lifecycle::AuditReport& report, const Heads& heads) {
  std::string out;
  for (const auto& problem : report.problems) out += "TAMPERED: " + problem + "\n";
  if (!report.has_expected)
    out +=
        "TAMPERED: the hash that was asked for is not in the chain: it was written anew, or this "
        "is another store\n";
  out += headsText(heads);
  out += fmt::format("{} entries since #{}; newest link {}, hash {}\n", report.entries,
                     report.ends.begins_after + 1, report.ends.link,
                     report.ends.hash.empty() ? "(none)" : report.ends.hash);
  if (!report.ok() || !heads.ok()) return out;
  out += "the chain is whole\n";
  out += kShows;
  if (heads.given.empty()) out += kShowsNot;
  return out;
}

std::string auditJson(const lifecycle::AuditReport& report, const Heads& heads) {
  const nlohmann::json out = {{"ok", report.ok() && heads.ok()},
                              {"entries", report.entries},
                              {"begins_after", report.ends.begins_after},
                              {"link", report.ends.link},
                              {"hash", report.ends.hash},
                              {"has_expected", report.has_expected},
                              {"problems", report.problems},
                              {"heads", reportsJson(heads.given)},
                              {"kept_head", reportsJson(heads.kept)},
                              {"shows_truncation", !heads.given.empty()}};
  return jsonText(out, 2) + "\n";
}

std::string archiveText(const lifecycle::AuditArchive& archive) {
  std::string out;
  for (const auto& problem : archive.problems) out += "TAMPERED: " + problem + "\n";
  return out +
         fmt::format("{} entries, links {} to {}; it follows from hash {} and ends with hash {}\n",
                     archive.entries, archive.after.link + 1, archive.end.link,
                     archive.after.hash.empty() ? "(none)" : archive.after.hash, archive.end.hash);
}

std::string archiveJson(const lifecycle::AuditArchive& archive) {
  const nlohmann::json out = {
      {"ok", archive.ok()},
      {"entries", archive.entries},
      {"after", {{"link", archive.after.link}, {"hash", archive.after.hash}}},
      {"end", {{"link", archive.end.link}, {"hash", archive.end.hash}}},
      {"problems", archive.problems}};
  return jsonText(out, 2) + "\n";
}

}  // namespace

int auditArchive(const app::Options& options, const std::string& before,
                 const std::filesystem::path& file) {
  const auto date =
      parseWallTime(before.find('T') == std::string::npos ? before + "T00:00:00Z" : before);
  if (!date)
    return report(Error(ErrorCode::InvalidInput,
                        "--before: write a date as 2026-01-31, or a time as 2026-01-31T12:00:00Z"));
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto archived = lifecycle::archiveAudit(**store, *date, file);
  if (!archived) return report(archived.error());
  std::cout << (options.json ? archiveJson(*archived)
                             : fmt::format("{}: {}", file.string(), archiveText(*archived)));
  return kOk;
}

namespace {

/// What an archive proves by itself, and whether this store's log goes on from it.
int verifyFile(const app::Options& options, const std::string& expected,
               const std::filesystem::path& file) {
  auto archive = lifecycle::readArchive(file);
  if (!archive) return report(archive.error());
  if (!expected.empty() && archive->end.hash != expected)
    archive->problems.push_back("it does not end with the hash that was asked for");
  std::cout << (options.json ? archiveJson(*archive) : archiveText(*archive));
  if (options.json) return archive->ok() ? kOk : kFailed;
  auto store = lifecycle::openStore(options.storeUrl());
  const auto ends =
      store ? (*store)->auditEnds() : Result<lifecycle::AuditEnds>(fail(store.error()));
  if (ends && ends->archived == archive->end) std::cout << "the store's log goes on from there\n";
  if (ends && ends->archived != archive->end)
    std::cout << fmt::format("the store's log goes on from link {}: from another archive\n",
                             ends->archived.link);
  return archive->ok() ? kOk : kFailed;
}

}  // namespace

namespace {

/// A file with such lines, or the line itself.
Result<std::vector<lifecycle::AuditHead>> givenHeads(const std::string& head) {
  if (head.empty()) return std::vector<lifecycle::AuditHead>();
  if (auto typed = lifecycle::parseHeads(head);
      typed || typed.error().code() != ErrorCode::NotFound)
    return typed;
  TRY(text, io::readFile(head, kMaxHeadsFileBytes));
  auto heads = lifecycle::parseHeads(text);
  if (!heads) return fail(std::move(heads).error().within(head));
  return heads;
}

/// The site's, and one that was retired or belongs to another host's state folder. None: heads
/// cannot be believed.
Result<std::string> trustedKeys(const app::Options& options, const std::filesystem::path& file) {
  std::string out;
  if (auto own = app::publicKeyOf(options.state, app::KeyPurpose::Audit))
    out = std::move(*own);
  else if (own.error().code() != ErrorCode::NotFound)
    return fail(std::move(own).error());
  if (file.empty()) return std::move(out);
  TRY(extra, io::readFile(file, kMaxKeyFileBytes));
  return extra + out;
}

Result<Heads> headsOf(const app::Options& options, lifecycle::Store& store,
                      const AuditFlags& flags) {
  TRY(given, givenHeads(flags.head));
  TRY(kept, lifecycle::keptHead(store));
  TRY(trusted, trustedKeys(options, flags.key));
  Heads out;
  TRY(of_given, lifecycle::checkHeads(store, given, trusted));
  out.given = std::move(of_given);
  TRY(of_kept, lifecycle::checkHeads(store, kept, trusted));
  // Who looks from a machine without the key cannot judge the copy; that is no sign of anything.
  for (auto& report : of_kept)
    if (report.standing != lifecycle::HeadStanding::OtherKey) out.kept.push_back(std::move(report));
  return out;
}

}  // namespace

int auditVerify(const app::Options& options, const AuditFlags& flags) {
  if (!flags.file.empty()) return verifyFile(options, flags.expected, flags.file);
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto verified = lifecycle::verifyAudit(**store, flags.expected);
  if (!verified) return report(verified.error());
  const auto heads = headsOf(options, **store, flags);
  if (!heads) return report(heads.error());
  std::cout << (options.json ? auditJson(*verified, *heads) : auditText(*verified, *heads));
  return verified->ok() && heads->ok() ? kOk : kFailed;
}

int auditHead(const app::Options& options) {
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto key = app::loadKey(options.state, app::KeyPurpose::Audit);
  if (!key) return report(key.error());
  const auto head = lifecycle::signedHead(**store, *key, SystemClock().now());
  if (!head) return report(head.error());
  std::cout << (options.json ? jsonText(headJson(*head), 2) : toText(*head)) << "\n";
  return kOk;
}

}  // namespace muster::cli
