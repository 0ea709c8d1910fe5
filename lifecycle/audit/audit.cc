// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/audit/audit.h"

#include "base/io/crypto.h"
#include "base/utf8.h"
#include "lifecycle/model/json.h"

#include <algorithm>
#include <set>

namespace muster::lifecycle {
namespace {

constexpr std::size_t kPageEntries = 10'000;
constexpr std::int64_t kMaxGapsFollowed =
    100'000;  ///< links that are missing and may still turn up out of order

constexpr int kMaxPasses = 5;  ///< a pass is in vain when the log is archived during it

std::string named(const AuditEntry& entry) {
  const auto& event = entry.event;
  return fmt::format("entry #{} (link {}, {}, {} {}: '{}')", event.sequence, entry.link,
                     muster::toString(event.at), toString(event.kind), event.subject.str(),
                     cutToBytes(event.text, 60));
}

/// Follows the chain entry by entry.
class Walk {
 public:
  explicit Walk(AuditReport& report) : report_(report) {
    last_.link = report.ends.archived.link;
    last_.hash = report.ends.archived.hash;
    last_.event.sequence = report.ends.begins_after;
    at_head_ = last_;
  }

  void step(const AuditEntry& entry) {
    if (entry.hash.empty() && entry.link == 0) {
      if (isChained(entry.event.kind)) note(named(entry) + " was inserted: it is not in the chain");
      return;
    }
    ++report_.entries;
    if (entry.link <= last_.link) return outOfOrder(entry);
    const bool follows = entry.link == last_.link + 1;
    for (auto link = last_.link + 1; link < entry.link && missing_.size() < kMaxGapsFollowed;
         ++link)
      missing_.insert(link);
    if (!follows)
      gaps_.push_back({last_.link + 1, entry.link - 1, last_.event.sequence, entry.event.sequence});
    if (follows && chainHash(last_.hash, entry) != entry.hash)
      note(named(entry) + " was changed" +
           (last_.link == 0
                ? ""
                : fmt::format(" (or #{} together with its hash)", last_.event.sequence)));
    last_ = entry;
    if (entry.link == report_.ends.link) at_head_ = entry;
  }

  /// `newest`: the ends as they are now, after the last entry was read.
  void finish(const AuditEnds& newest) {
    for (const auto& gap : gaps_) {
      const auto begin = missing_.lower_bound(gap.first), end = missing_.upper_bound(gap.last);
      const auto count = std::distance(begin, end);
      if (count > 0)
        note(fmt::format("{} {} between #{} and #{} (links {} to {}) {} removed", count,
                         count == 1 ? "entry" : "entries", gap.after, gap.before, *begin,
                         *std::prev(end), count == 1 ? "was" : "were"));
    }
    const auto& ends = report_.ends;
    if (last_.link < ends.link)
      note(fmt::format("the last {} entries, after #{}, were removed", ends.link - last_.link,
                       last_.event.sequence));
    else if (last_.link > newest.link)
      note(fmt::format("{} entries were appended past the head of the chain, up to #{}",
                       last_.link - newest.link, last_.event.sequence));
    if (at_head_.link == ends.link && at_head_.hash != ends.hash)
      note(fmt::format("the head of the chain does not fit entry #{}: one of them was changed",
                       at_head_.event.sequence));
  }

 private:
  struct Gap {
    std::int64_t first, last;    ///< links
    std::int64_t after, before;  ///< sequences around it
  };
  void outOfOrder(const AuditEntry& entry) {
    const bool moved = missing_.erase(entry.link) > 0;
    note(named(entry) + (moved ? " was moved: it" : " was inserted: its link is taken, and it") +
         fmt::format(" stands after link {}", last_.link));
  }
  void note(std::string problem) {
    if (report_.problems.size() < kMaxAuditProblems) report_.problems.push_back(std::move(problem));
  }

  AuditReport& report_;
  AuditEntry last_;
  AuditEntry at_head_;  ///< the one that the head was of when the walk began
  std::set<std::int64_t> missing_;
  std::vector<Gap> gaps_;
};

}  // namespace

std::string chainHash(const std::string& previous, const AuditEntry& entry) {
  const auto& event = entry.event;
  nlohmann::json content = {
      {"link", entry.link},           {"at_ms", event.at.time_since_epoch().count()},
      {"kind", toString(event.kind)}, {"subject", event.subject.str()},
      {"action", event.action_id},    {"text", event.text}};
  return io::sha256Hex(previous + canonical(content));
}

namespace {

/// One pass, while others may write. Nothing: the log's beginning was archived meanwhile.
Result<std::optional<AuditReport>> walkOnce(Store& store, const std::string& expected) {
  AuditReport report;
  TRY(ends, store.auditEnds());
  report.ends = ends;
  report.has_expected = expected.empty() || expected == ends.archived.hash;
  Walk walk(report);
  for (std::int64_t after = ends.begins_after;;) {
    TRY(page, store.auditTrail(after, kPageEntries));
    for (const auto& entry : page) {
      walk.step(entry);
      if (!expected.empty() && entry.hash == expected) report.has_expected = true;
    }
    if (page.size() < kPageEntries) break;
    after = page.back().event.sequence;
  }
  TRY(newest, store.auditEnds());
  if (newest.begins_after != ends.begins_after || newest.archived != ends.archived)
    return std::optional<AuditReport>();
  walk.finish(newest);
  return report;
}

}  // namespace

Result<AuditReport> verifyAudit(Store& store, const std::string& expected) {
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    TRY(report, walkOnce(store, expected));
    if (report) return std::move(*report);
  }
  return fail(ErrorCode::Conflict,
              "the log was archived again and again while it was read; nothing was found out; "
              "verify it once more");
}

}  // namespace muster::lifecycle
