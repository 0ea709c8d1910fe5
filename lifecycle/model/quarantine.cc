// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/model/quarantine.h"

#include "base/json_input.h"
#include "lifecycle/model/json.h"

#include <algorithm>
#include <set>

namespace muster::lifecycle {
namespace {

using nlohmann::json;

constexpr const char* kKey =
    "quarantine";  ///< one value of the store: {NODE: {since, by, reason, evidence}}
constexpr std::size_t kLastWords =
    64;                        ///< events of the node that are searched for what was said already
constexpr int kMaxTries = 16;  ///< another process may change it in between

Result<std::map<NodeName, QuarantineEntry>> parse(const std::optional<std::string>& text) {
  std::map<NodeName, QuarantineEntry> out;
  if (!text) return out;
  const auto list = jsonOrNone(*text, kKeptJson);
  if (!list.is_object())
    return fail(ErrorCode::Corrupt, "the list of quarantined nodes in the store is damaged");
  for (const auto& [name, value] : list.items()) {
    if (!value.is_object())
      return fail(ErrorCode::Corrupt, "the quarantine of " + name + " in the store is damaged");
    QuarantineEntry entry;
    TRY(since, parseWallTime(value.value("since", "")));
    entry.since = since;
    entry.by = value.value("by", "");
    entry.reason = value.value("reason", "");
    entry.evidence = value.value("evidence", "");
    out.emplace(NodeName(name), std::move(entry));
  }
  return out;
}

std::string print(const std::map<NodeName, QuarantineEntry>& entries) {
  json list = json::object();
  for (const auto& [node, entry] : entries)
    list[node.str()] = {{"since", muster::toString(entry.since)},
                        {"by", entry.by},
                        {"reason", entry.reason},
                        {"evidence", entry.evidence}};
  return canonical(list);
}

/// Changes the list in one exchange; `change` answers whether there is anything to write.
Result<bool> update(Store& store,
                    const std::function<bool(std::map<NodeName, QuarantineEntry>&)>& change) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    TRY(before, store.getValue(kKey));
    TRY(entries, parse(before));
    if (!change(entries)) return false;
    TRY(done, store.exchangeValue(kKey, before, print(entries)));
    if (done) return true;
  }
  return fail(ErrorCode::Unavailable,
              "other processes keep changing the list of quarantined nodes");
}

/// Once, and also where an earlier call could not: another controller may have worked on the node,
/// or this one was killed in between.
Result<void> raise(Store& store, const NodeName& node, const QuarantineEntry& entry) {
  const Subject subject(node);
  const FacetRef facet{subject, FacetName(std::string(kQuarantineFacet))};
  TRY(findings, store.findings(&subject));
  if (std::any_of(findings.begin(), findings.end(),
                  [&facet](const Finding& finding) { return finding.facet == facet; }))
    return {};
  const auto text = fmt::format("quarantined by {}: {}", entry.by, entry.reason);
  TRY(events, store.lastEvents(kLastWords, &subject));
  const bool is_said = std::any_of(events.begin(), events.end(), [&](const Event& event) {
    return event.text == text && std::chrono::abs(event.at - entry.since) <
                                     std::chrono::seconds(1);  // the list has whole milliseconds
  });
  if (!is_said)
    if (const auto said =
            store.addEvent({0, entry.since, EventKind::FindingRaised, subject, "", text});
        !said)
      return fail(said.error());
  const auto raised =
      store.addFinding({facet, Severity::Error, "in quarantine: " + entry.reason, entry.evidence,
                        quarantineRemoveAdvice(node), entry.since, kQuarantineSource});
  return raised || raised.error().code() == ErrorCode::Conflict ? Result<void>() : raised;
}

Result<void> endFindings(Store& store, const Subject& subject) {
  const auto cleared = store.clearFindings({subject, FacetName(std::string(kQuarantineFacet))});
  return cleared || cleared.error().code() == ErrorCode::Conflict ? Result<void>() : cleared;
}

}  // namespace

Result<std::map<NodeName, QuarantineEntry>> Quarantine::entries() const {
  TRY(text, store_.getValue(kKey));
  return parse(text);
}

Result<std::optional<QuarantineEntry>> Quarantine::find(const NodeName& node) const {
  TRY(all, entries());
  const auto found = all.find(node);
  return found == all.end() ? std::optional<QuarantineEntry>() : std::optional(found->second);
}

Result<bool> Quarantine::add(const NodeName& node, QuarantineEntry entry) {
  TRY(is_new, update(store_, [&](auto& entries) {
        const auto [held, added] = entries.emplace(node, entry);
        entry = held->second;
        return added;
      }));
  TRY_OK(raise(store_, node, entry));
  return bool{is_new};
}

Result<void> Quarantine::remove(const NodeName& node, const std::string& who,
                                const std::string& reason, WallTime at) {
  if (reason.empty())
    return fail(ErrorCode::InvalidInput, "a quarantine is lifted for a reason; say --reason TEXT");
  TRY(lifted, update(store_, [&](auto& entries) { return entries.erase(node) > 0; }));
  if (!lifted)
    return fail(ErrorCode::NotFound,
                node.str() + " is not in quarantine; `muster quarantine list` shows who is");
  TRY(sequence, store_.addEvent({0, at, EventKind::Note, Subject(node), "",
                                 fmt::format("{} lifts its quarantine: {}", who, reason)}));
  (void)sequence;
  TRY_OK(store_.putFacts({{Subject(node), FacetName(std::string(kQuarantineFacet)),
                           std::string(kQuarantineNone), at, "quarantine list", ""}}));
  return endFindings(store_, Subject(node));
}

/// The findings first: one that was there before the list was read, of a node that is not in it,
/// was let go in between at the latest.
Result<void> Quarantine::reconcileFindings() {
  TRY(findings, store_.findings(nullptr));
  TRY(held, entries());
  std::set<Subject> said;
  for (const auto& finding : findings)
    if (finding.facet.facet.str() == kQuarantineFacet && !finding.facet.subject.isCluster())
      said.insert(finding.facet.subject);
  for (const auto& subject : said)
    if (!held.contains(subject.node())) TRY_OK(endFindings(store_, subject));
  for (const auto& [node, entry] : held)
    if (!said.contains(Subject(node))) TRY_OK(raise(store_, node, entry));
  return {};
}

Result<void> QuarantineGate::requireValid(const NodeName& node) const {
  auto held = quarantine_.find(node);
  if (!held) return fail(Error(ErrorCode::Denied, held.error().text()).within("quarantine"));
  if (*held)
    return fail(ErrorCode::Denied, fmt::format("{} is in quarantine since {}: {}; {}", node.str(),
                                               muster::toString((*held)->since), (*held)->reason,
                                               quarantineRemoveAdvice(node)));
  return certificates_.requireValid(node);
}

std::string quarantineRemoveAdvice(const NodeName& node) {
  return fmt::format(
      "repair it, then `muster quarantine remove {} --reason TEXT`; evidence for a return: `muster "
      "rma {} --out FILE`",
      node.str(), node.str());
}

}  // namespace muster::lifecycle
