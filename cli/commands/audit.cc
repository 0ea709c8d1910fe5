// SPDX-License-Identifier: Apache-2.0
// audit: the log as evidence.
#include "app/records/audit.h"

#include "app/site/site_records.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/records.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

constexpr std::string_view kShows =
    "shown: every entry that is here is as it was written, in its order, with none missing between "
    "two others\n";
constexpr std::string_view kShowsNot =
    "NOT shown: that no entry was cut off the end, and that the chain was not written anew as a "
    "whole. Only a head that was exported earlier shows that: "
    "muster audit verify --head FILE (the lines that `muster monitor` and `muster apply` wrote to "
    "syslog, or `muster audit head` printed)\n";

std::string_view meaning(lifecycle::HeadStatus status) {
  using lifecycle::HeadStatus;
  switch (status) {
    case HeadStatus::Holds:
      return "holds: everything up to that entry is as it was then";
    case HeadStatus::Archived:
      return "is older than what the store still has: verify the archive";
    case HeadStatus::Truncated:
      return "does not hold: the log ends before that entry, entries were CUT OFF";
    case HeadStatus::Rewritten:
      return "does not hold: that entry has another hash, the chain was WRITTEN ANEW";
    case HeadStatus::OtherKey:
      return "cannot be believed: it is signed by another key than the site's key for audit (--key "
             "FILE names a key that was retired)";
    case HeadStatus::Forged:
      return "cannot be believed: its signature does NOT FIT";
  }
  return "";
}

std::string headsText(const app::AuditVerdict& heads) {
  std::string out;
  std::size_t good = 0;
  const lifecycle::HeadReport* newest = nullptr;
  for (const auto& report : heads.given) {
    if (report.status != lifecycle::HeadStatus::Holds) {
      out += fmt::format("{}the head of entry {} from {} (key {}) {}\n",
                         report.contradicts() ? "TAMPERED: " : "", report.head.sequence,
                         toString(report.head.at), report.head.key_id, meaning(report.status));
      continue;
    }
    ++good;
    if (!newest || newest->head.sequence <= report.head.sequence) newest = &report;
  }
  for (const auto& report : heads.kept)
    if (report.contradicts())
      out += fmt::format("TAMPERED: the store's own copy of the head of entry {} from {} {}\n",
                         report.head.sequence, toString(report.head.at), meaning(report.status));
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
    each["standing"] = toString(report.status);
    out.push_back(std::move(each));
  }
  return out;
}

std::string auditText(const app::AuditVerdict& heads) {
  const auto& report = heads.chain;
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
  if (!report.ok() || !heads.headsOk()) return out;
  out += "the chain is whole\n";
  out += kShows;
  if (heads.given.empty()) out += kShowsNot;
  return out;
}

std::string auditJson(const app::AuditVerdict& heads) {
  const auto& report = heads.chain;
  const nlohmann::json out = {{"ok", heads.ok()},
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

/// What an archive proves by itself, and whether this store's log goes on from it.
int verifyArchive(const app::Options& options, const AuditVerifyArgs& args) {
  using Next = app::ArchiveVerdict::Next;
  const auto verdict = app::verifyAuditArchive(options, args.archive, args.request.expected);
  if (!verdict) return report(verdict.error());
  const auto& archive = verdict->archive;
  std::cout << (options.json ? archiveJson(archive) : archiveText(archive));
  if (!options.json && verdict->next == Next::ThisStore)
    std::cout << "the store's log goes on from there\n";
  if (!options.json && verdict->next == Next::OtherArchive)
    std::cout << fmt::format("the store's log goes on from link {}: from another archive\n",
                             verdict->store_begins_at_link);
  return archive.ok() ? kOk : kFailed;
}

}  // namespace

int auditArchive(const app::Options& options, const AuditArchiveArgs& args) {
  const auto& before = args.before;
  const auto date =
      parseWallTime(before.find('T') == std::string::npos ? before + "T00:00:00Z" : before);
  if (!date)
    return report(Error(ErrorCode::InvalidInput,
                        "--before: write a date as 2026-01-31, or a time as 2026-01-31T12:00:00Z"));
  const auto archived = app::archiveAudit(options, *date, args.to);
  if (!archived) return report(archived.error());
  std::cout << (options.json ? archiveJson(*archived)
                             : fmt::format("{}: {}", args.to.string(), archiveText(*archived)));
  return kOk;
}

int auditVerify(const app::Options& options, const AuditVerifyArgs& args) {
  if (!args.archive.empty()) return verifyArchive(options, args);
  const auto verdict = app::verifyAudit(options, args.request);
  if (!verdict) return report(verdict.error());
  std::cout << (options.json ? auditJson(*verdict) : auditText(*verdict));
  return verdict->ok() ? kOk : kFailed;
}

int auditHead(const app::Options& options) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto head = (*site)->records().auditHead();
  if (!head) return report(head.error());
  std::cout << (options.json ? jsonText(headJson(*head), 2) : toText(*head)) << "\n";
  return kOk;
}

}  // namespace muster::cli
