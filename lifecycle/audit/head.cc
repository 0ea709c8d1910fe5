// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/audit/head.h"

#include "base/io/trusted_keys.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

namespace muster::lifecycle {
namespace {

constexpr std::string_view kMark = "muster-audit-head/1 ";
constexpr std::string_view kSignature = " signature=";
constexpr std::string_view kNoHash = "none";
constexpr const char* kKept = "audit.head";
constexpr std::size_t kPageEntries = 10'000;
constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kMaxWordBytes = 256;

std::string signedPart(const AuditHead& head) {
  return fmt::format("{}sequence={} hash={} at={} key={}", kMark, head.sequence,
                     head.hash.empty() ? kNoHash : std::string_view(head.hash),
                     muster::toString(head.at), head.key_id);
}

/// Takes "name=VALUE" and the blank behind it off the text.
std::optional<std::string> take(std::string_view& text, std::string_view name) {
  if (!text.starts_with(name)) return std::nullopt;
  text.remove_prefix(name.size());
  const auto value = text.substr(0, text.find(' '));
  if (value.empty() || value.size() > kMaxWordBytes) return std::nullopt;
  text.remove_prefix(std::min(text.size(), value.size() + 1));
  return std::string(value);
}

bool isHash(std::string_view text) {
  return text.size() == kHashDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<AuditHead> headFrom(std::string_view words) {
  AuditHead head;
  const auto sequence = take(words, "sequence="), hash = take(words, "hash="),
             at = take(words, "at="), key = take(words, "key="),
             signature = take(words, "signature=");
  if (!sequence || !hash || !at || !key || !signature) return std::nullopt;
  const auto [end, error] =
      std::from_chars(sequence->data(), sequence->data() + sequence->size(), head.sequence);
  if (error != std::errc() || end != sequence->data() + sequence->size() || head.sequence < 0)
    return std::nullopt;
  if (*hash != kNoHash) head.hash = *hash;
  if (head.hash.empty() != (head.sequence == 0) || (!head.hash.empty() && !isHash(head.hash)))
    return std::nullopt;
  const auto time = parseWallTime(*at);
  if (!time) return std::nullopt;
  head.at = *time;
  head.key_id = *key;
  head.signature = *signature;
  return head;
}

/// Of those whose signature holds: where each stands in the log. The log is read once.
Result<void> compare(Store& store, std::vector<HeadReport>& reports) {
  TRY(ends, store.auditEnds());
  std::map<std::int64_t, std::string> hashes;  // of the links that are asked for
  for (const auto& report : reports)
    if (report.status == HeadStatus::Holds) hashes.emplace(report.head.sequence, "");
  if (hashes.empty()) return {};
  for (std::int64_t after = ends.begins_after;;) {
    TRY(page, store.auditTrail(after, kPageEntries));
    for (const auto& entry : page)
      if (const auto asked = hashes.find(entry.link); asked != hashes.end())
        asked->second = entry.hash;
    if (page.size() < kPageEntries) break;
    after = page.back().event.sequence;
  }
  for (auto& report : reports) {
    if (report.status != HeadStatus::Holds) continue;
    const auto& head = report.head;
    if (head.sequence == 0) continue;  // the log was empty then: anything follows from that
    if (head.sequence < ends.archived.link)
      report.status = HeadStatus::Archived;
    else if (head.sequence == ends.archived.link)
      report.status = head.hash == ends.archived.hash ? HeadStatus::Holds : HeadStatus::Rewritten;
    else if (head.sequence > ends.link || hashes[head.sequence].empty())
      report.status = HeadStatus::Truncated;
    else if (hashes[head.sequence] != head.hash)
      report.status = HeadStatus::Rewritten;
  }
  return {};
}

}  // namespace

Result<AuditHead> signedHead(Store& store, const io::SigningKey& key, WallTime at) {
  TRY(ends, store.auditEnds());
  AuditHead head{ends.link, ends.hash, at, key.id(), ""};
  if (head.sequence == 0) head.hash.clear();
  TRY(signature, io::sign(key, signedPart(head)));
  head.signature = std::move(signature);
  return head;
}

std::string toText(const AuditHead& head) {
  return fmt::format("{}{}{}", signedPart(head), kSignature, head.signature);
}

Result<std::vector<AuditHead>> parseHeads(std::string_view text) {
  std::vector<AuditHead> out;
  for (std::size_t number = 1; !text.empty(); ++number) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto mark = line.find(kMark);
    if (mark == std::string_view::npos) continue;
    line.remove_prefix(mark + kMark.size());
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    auto head = headFrom(line);
    if (!head)
      return fail(ErrorCode::Corrupt,
                  fmt::format("line {} begins like a signed head and is damaged; give it as "
                              "`muster audit head` printed it",
                              number));
    if (out.size() == kMaxAuditHeads)
      return fail(ErrorCode::Corrupt,
                  fmt::format("more than {} heads; give fewer at once", kMaxAuditHeads));
    out.push_back(std::move(*head));
  }
  if (out.empty())
    return fail(ErrorCode::NotFound, fmt::format("there is no line with \"{}\" in it",
                                                 kMark.substr(0, kMark.size() - 1)));
  return out;
}

std::string_view toString(HeadStatus status) {
  switch (status) {
    case HeadStatus::Holds:
      return "holds";
    case HeadStatus::Archived:
      return "archived";
    case HeadStatus::Truncated:
      return "truncated";
    case HeadStatus::Rewritten:
      return "rewritten";
    case HeadStatus::OtherKey:
      return "other-key";
    case HeadStatus::Forged:
      return "forged";
  }
  return "";
}

Result<std::vector<HeadReport>> checkHeads(Store& store, const std::vector<AuditHead>& heads,
                                           std::string_view trusted_pem) {
  std::vector<HeadReport> out;
  for (const auto& head : heads) {
    const auto pem = io::trustedPemOf(trusted_pem, head.key_id);
    HeadReport report{head, HeadStatus::OtherKey};
    if (pem)
      report.status = io::verify(*pem, signedPart(head), head.signature) ? HeadStatus::Holds
                                                                         : HeadStatus::Forged;
    out.push_back(std::move(report));
  }
  TRY_OK(compare(store, out));
  return out;
}

Result<std::vector<AuditHead>> keptHead(Store& store) {
  TRY(text, store.getValue(kKept));
  if (!text) return std::vector<AuditHead>();
  return parseHeads(*text);
}

Result<void> keepHead(Store& store, const AuditHead& head) {
  return store.putValue(kKept, toText(head));
}

}  // namespace muster::lifecycle
