// SPDX-License-Identifier: Apache-2.0
// MemoryStore: the Store contract in memory. Runs against the same contract test as SQLite's.
#pragma once

#include "lifecycle/audit/audit.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace muster::test {

class MemoryStore : public lifecycle::Store {
 public:
  /// What several stores share, as processes share a database.
  struct Data {
    lifecycle::FactSet facts;
    std::vector<lifecycle::Intent> intents;
    std::vector<lifecycle::Finding> findings;  ///< newest first
    std::map<NodeName, std::string> wipes;     // node → reason
    std::map<std::string, std::string> values;
    std::vector<lifecycle::Request> requests;
    std::vector<lifecycle::AuditEntry> log;
    lifecycle::AuditEnds ends;
    struct Held {
      std::string holder, session;
      std::int64_t token = 0;
    };
    std::map<lifecycle::Subject, Held> claims;
    std::map<std::string, WallTime> sessions;  ///< session → end of its lease
    int last_session = 0;
  };
  explicit MemoryStore(std::shared_ptr<Data> data = std::make_shared<Data>())
      : data_(std::move(data)) {}

  Result<lifecycle::FactSet> facts() override { return data_->facts; }
  Result<std::vector<lifecycle::Fact>> factsOf(const lifecycle::Subject& subject) override {
    return data_->facts.of(subject);
  }
  Result<void> putFacts(const std::vector<lifecycle::Fact>& facts) override {
    for (const auto& fact : facts)
      if (fact.value.empty() || fact.subject.str().empty() || fact.facet.empty())
        return fail(ErrorCode::InvalidInput, "a fact without subject, facet or value");
    for (const auto& fact : facts)
      if (held_.contains(fact.subject)) TRY_OK(fence(fact.subject));
    for (const auto& fact : facts)
      if (fence(fact.subject)) data_->facts.put(fact);
    return {};
  }
  Result<void> forgetFacts(const lifecycle::Subject& subject,
                           const std::vector<FacetName>& facets) override {
    TRY_OK(fence(subject));
    for (const auto& facet : facets) data_->facts.forget(subject, facet);
    return {};
  }

  Result<void> openIntent(const lifecycle::Intent& intent) override {
    TRY_OK(fence(intent.action.facet.subject));
    if (find(intent.id)) return fail(ErrorCode::Conflict, "the intent exists");
    if (intent.uses_wipe && data_->wipes.erase(intent.action.facet.subject.node()) == 0)
      return fail(ErrorCode::Denied, "nobody allows the wipe");
    data_->intents.push_back(intent);
    data_->intents.back().state = lifecycle::IntentState::Open;
    data_->intents.back().fence = fenceOf(intent.action.facet.subject);
    return {};
  }
  Result<void> recordOperation(const std::string& intent_id,
                               const std::string& operation) override {
    auto* intent = find(intent_id);
    if (!intent || intent->state != lifecycle::IntentState::Open)
      return fail(ErrorCode::NotFound, "no open intent " + intent_id);
    TRY_OK(fence(intent->action.facet.subject));
    intent->operation = operation;
    return {};
  }
  Result<void> closeIntent(const std::string& intent_id, lifecycle::IntentState state,
                           const std::string& outcome, WallTime at) override {
    auto* intent = find(intent_id);
    if (!intent || intent->state != lifecycle::IntentState::Open)
      return fail(ErrorCode::NotFound, "no open intent " + intent_id);
    TRY_OK(fence(intent->action.facet.subject));
    intent->state = state;
    intent->outcome = outcome;
    intent->closed_at = at;
    return {};
  }
  Result<std::vector<lifecycle::Intent>> openIntents() override {
    std::vector<lifecycle::Intent> out;
    std::copy_if(data_->intents.begin(), data_->intents.end(), std::back_inserter(out),
                 [](const auto& i) { return i.state == lifecycle::IntentState::Open; });
    return out;
  }
  Result<std::vector<lifecycle::Intent>> openIntentsOf(const lifecycle::Subject& subject) override {
    std::vector<lifecycle::Intent> out;
    std::copy_if(data_->intents.begin(), data_->intents.end(), std::back_inserter(out),
                 [&subject](const auto& i) {
                   return i.state == lifecycle::IntentState::Open &&
                          i.action.facet.subject == subject;
                 });
    return out;
  }
  Result<std::vector<lifecycle::Intent>> intentsOf(const lifecycle::Subject& subject,
                                                   std::size_t limit) override {
    std::vector<lifecycle::Intent> out;
    for (auto it = data_->intents.rbegin(); it != data_->intents.rend() && out.size() < limit; ++it)
      if (it->action.facet.subject == subject) out.push_back(*it);
    return out;
  }

  Result<std::vector<lifecycle::Intent>> intentsOfPlan(const std::string& prefix,
                                                       std::size_t limit) override {
    std::vector<lifecycle::Intent> out;
    for (const auto& intent : data_->intents)
      if (intent.plan_hash.starts_with(prefix) && out.size() < limit) out.push_back(intent);
    return out;
  }
  Result<void> openRequest(const lifecycle::Request& request) override {
    data_->requests.push_back(request);
    return {};
  }
  Result<void> closeRequest(const std::string& id, const std::string& outcome,
                            WallTime at) override {
    for (auto& request : data_->requests) {
      if (request.id != id) continue;
      request.outcome = outcome;
      request.ended_at = at;
      return {};
    }
    return fail(ErrorCode::NotFound, "no request " + id);
  }
  Result<std::vector<lifecycle::Request>> requests(std::size_t limit) override {
    std::vector<lifecycle::Request> out(data_->requests.rbegin(), data_->requests.rend());
    if (out.size() > limit) out.resize(limit);
    return out;
  }

  Result<std::int64_t> addEvent(const lifecycle::Event& event) override {
    lifecycle::AuditEntry entry{event, 0, ""};
    entry.event.sequence =
        (data_->log.empty() ? data_->ends.begins_after : data_->log.back().event.sequence) + 1;
    if (lifecycle::isChained(event.kind)) {
      entry.link = ++data_->ends.link;
      entry.hash = data_->ends.hash = lifecycle::chainHash(data_->ends.hash, entry);
    }
    data_->log.push_back(entry);
    return entry.event.sequence;
  }
  Result<std::vector<lifecycle::Event>> events(std::int64_t after, std::size_t limit,
                                               const lifecycle::Subject* subject) override {
    std::vector<lifecycle::Event> out;
    for (const auto& [event, link, hash] : data_->log)
      if (event.sequence > after && (!subject || event.subject == *subject) && out.size() < limit)
        out.push_back(event);
    return out;
  }
  Result<std::vector<lifecycle::Event>> lastEvents(std::size_t limit,
                                                   const lifecycle::Subject* subject) override {
    std::vector<lifecycle::Event> out;
    for (auto it = data_->log.rbegin(); it != data_->log.rend() && out.size() < limit; ++it)
      if (!subject || it->event.subject == *subject) out.push_back(it->event);
    std::reverse(out.begin(), out.end());
    return out;
  }
  Result<std::vector<lifecycle::AuditEntry>> auditTrail(std::int64_t after,
                                                        std::size_t limit) override {
    std::vector<lifecycle::AuditEntry> out;
    for (const auto& entry : data_->log)
      if (entry.event.sequence > after && out.size() < limit) out.push_back(entry);
    return out;
  }
  Result<lifecycle::AuditEnds> auditEnds() override { return data_->ends; }
  Result<void> dropArchived(std::int64_t through, const lifecycle::AuditMark& end) override {
    const auto last = std::find_if(data_->log.begin(), data_->log.end(), [&](const auto& entry) {
      return entry.event.sequence == through;
    });
    if (last == data_->log.end() || last->link != end.link || last->hash != end.hash)
      return fail(ErrorCode::Conflict, "no such entry");
    data_->log.erase(data_->log.begin(), last + 1);
    data_->ends.begins_after = through;
    data_->ends.archived = end;
    return {};
  }

  Result<void> signOn(const std::string& holder, std::chrono::milliseconds lease) override {
    for (auto& [subject, claim] : data_->claims)
      if (claim.holder == holder && !claim.session.empty()) {
        data_->sessions.erase(claim.session);
        claim.session.clear();
        ++claim.token;
      }
    holder_ = holder;
    lease_ = lease;
    session_ = std::to_string(++data_->last_session);
    held_.clear();
    data_->sessions[session_] = now() + lease_;
    return {};
  }
  Result<void> renewLease() override {
    if (!data_->sessions.contains(session_))
      return fail(ErrorCode::Conflict, "another process has signed on as " + holder_);
    data_->sessions[session_] = now() + lease_;
    return {};
  }
  Result<lifecycle::Claim> claim(const lifecycle::Subject& subject) override {
    if (session_.empty())
      return fail(ErrorCode::Internal, "a controller signs on before it claims");
    TRY_OK(renewLease());
    auto& row = data_->claims[subject];
    lifecycle::Claim out{subject, row.holder, row.token,
                         row.session == session_ && held_.contains(subject), ""};
    if (out.ours || (!row.session.empty() && row.session != session_ && isLive(row.session)))
      return out;
    if (row.holder != holder_) out.taken_from = row.holder;
    row = {holder_, session_, row.token + 1};
    held_[subject] = out.token = row.token;
    out.holder = holder_;
    out.ours = true;
    return out;
  }
  Result<void> release(const lifecycle::Subject& subject) override {
    if (held_.contains(subject) && fence(subject)) data_->claims[subject].session.clear();
    held_.erase(subject);
    return {};
  }
  Result<void> checkClaim(const lifecycle::Subject& subject) override {
    if (!held_.contains(subject))
      return fail(ErrorCode::Conflict, subject.str() + " is not claimed");
    TRY_OK(fence(subject));
    return renewLease();
  }
  Result<std::vector<lifecycle::Claim>> claims() override {
    std::vector<lifecycle::Claim> out;
    for (const auto& [subject, row] : data_->claims)
      if (isLive(row.session))
        out.push_back({subject, row.holder, row.token, row.session == session_, ""});
    return out;
  }
  std::int64_t fenceOf(const lifecycle::Subject& subject) const override {
    auto it = held_.find(subject);
    return it == held_.end() ? 0 : it->second;
  }

  Result<void> addFinding(const lifecycle::Finding& finding) override {
    TRY_OK(fence(finding.facet.subject));
    data_->findings.insert(data_->findings.begin(), finding);
    return {};
  }
  Result<std::vector<lifecycle::Finding>> findings(const lifecycle::Subject* subject) override {
    std::vector<lifecycle::Finding> out;
    for (const auto& finding : data_->findings)
      if (!subject || finding.facet.subject == *subject) out.push_back(finding);
    return out;
  }
  Result<void> clearFindings(const lifecycle::FacetRef& facet) override {
    TRY_OK(fence(facet.subject));
    std::erase_if(data_->findings,
                  [&facet](const auto& finding) { return finding.facet == facet; });
    return {};
  }
  Result<void> clearFindingsOf(const lifecycle::FacetRef& facet,
                               const std::string& source) override {
    TRY_OK(fence(facet.subject));
    std::erase_if(data_->findings, [&](const auto& finding) {
      return finding.facet == facet && finding.source == source;
    });
    return {};
  }

  Result<void> grantWipe(const NodeName& node, const std::string& reason, WallTime) override {
    data_->wipes.try_emplace(node, reason);
    return {};
  }
  Result<bool> revokeWipe(const NodeName& node, const std::string& reason) override {
    const auto it = data_->wipes.find(node);
    if (it == data_->wipes.end() || it->second != reason) return false;
    data_->wipes.erase(it);
    return true;
  }
  Result<std::vector<NodeName>> wipeGrants() override {
    std::vector<NodeName> out;
    for (const auto& [node, reason] : data_->wipes) out.push_back(node);
    return out;
  }

  Result<void> putValue(const std::string& key, const std::string& value) override {
    data_->values[key] = value;
    return {};
  }
  Result<std::optional<std::string>> getValue(const std::string& key) override {
    auto it = data_->values.find(key);
    return it == data_->values.end() ? std::optional<std::string>() : std::optional(it->second);
  }
  Result<bool> exchangeValue(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& value) override {
    TRY(now, getValue(key));
    if (now != expected) return false;
    data_->values[key] = value;
    return true;
  }

 private:
  lifecycle::Intent* find(const std::string& id) {
    auto it = std::find_if(data_->intents.begin(), data_->intents.end(),
                           [&id](const auto& intent) { return intent.id == id; });
    return it == data_->intents.end() ? nullptr : &*it;
  }

  static WallTime now() {
    return SystemClock().now();
  }  ///< the database's clock is nobody's virtual time
  bool isLive(const std::string& session) const {
    auto it = data_->sessions.find(session);
    return it != data_->sessions.end() && it->second > now();
  }
  Result<void> fence(const lifecycle::Subject& subject) const {
    auto row = data_->claims.find(subject);
    if (auto mine = held_.find(subject); mine != held_.end()) {
      if (row->second.session == session_ && row->second.token == mine->second) return {};
      return fail(ErrorCode::Conflict, subject.str() + " was taken over by " + row->second.holder);
    }
    if (row == data_->claims.end() || row->second.session == session_ ||
        !isLive(row->second.session))
      return {};
    return fail(ErrorCode::Conflict, subject.str() + " is worked on by " + row->second.holder);
  }

  std::shared_ptr<Data> data_;
  std::string holder_, session_;
  std::chrono::milliseconds lease_{};
  std::map<lifecycle::Subject, std::int64_t> held_;
};

}  // namespace muster::test
