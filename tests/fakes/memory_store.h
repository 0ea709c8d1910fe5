// MemoryStore: the Store contract in memory. Runs against the same contract test as SQLite's.
#pragma once

#include "lifecycle/store.h"

#include <algorithm>
#include <map>
#include <set>

namespace muster::test {

class MemoryStore : public lifecycle::Store {
 public:
  Result<lifecycle::FactSet> facts() override { return facts_; }
  Result<void> putFacts(const std::vector<lifecycle::Fact>& facts) override {
    for (const auto& fact : facts)
      if (fact.value.empty() || fact.subject.str().empty() || fact.facet.empty())
        return fail(ErrorCode::InvalidInput, "a fact without subject, facet or value");
    for (const auto& fact : facts) facts_.put(fact);
    return {};
  }
  Result<void> forgetFacts(const lifecycle::Subject& subject, const std::vector<FacetName>& facets) override {
    for (const auto& facet : facets) facts_.forget(subject, facet);
    return {};
  }

  Result<void> openIntent(const lifecycle::Intent& intent) override {
    if (find(intent.id)) return fail(ErrorCode::Conflict, "the intent exists");
    if (intent.uses_wipe && wipes_.erase(intent.action.facet.subject.node()) == 0) return fail(ErrorCode::Denied, "nobody allows the wipe");
    intents_.push_back(intent);
    intents_.back().state = lifecycle::IntentState::Open;
    return {};
  }
  Result<void> recordOperation(const std::string& intent_id, const std::string& operation) override {
    auto* intent = find(intent_id);
    if (!intent || intent->state != lifecycle::IntentState::Open) return fail(ErrorCode::NotFound, "no open intent " + intent_id);
    intent->operation = operation;
    return {};
  }
  Result<void> closeIntent(const std::string& intent_id, lifecycle::IntentState state, const std::string& outcome, WallTime at) override {
    auto* intent = find(intent_id);
    if (!intent || intent->state != lifecycle::IntentState::Open) return fail(ErrorCode::NotFound, "no open intent " + intent_id);
    intent->state = state;
    intent->outcome = outcome;
    intent->closed_at = at;
    return {};
  }
  Result<std::vector<lifecycle::Intent>> openIntents() override {
    std::vector<lifecycle::Intent> out;
    std::copy_if(intents_.begin(), intents_.end(), std::back_inserter(out),
                 [](const auto& i) { return i.state == lifecycle::IntentState::Open; });
    return out;
  }
  Result<std::vector<lifecycle::Intent>> intentsOf(const lifecycle::Subject& subject, std::size_t limit) override {
    std::vector<lifecycle::Intent> out;
    for (auto it = intents_.rbegin(); it != intents_.rend() && out.size() < limit; ++it)
      if (it->action.facet.subject == subject) out.push_back(*it);
    return out;
  }

  Result<std::int64_t> addEvent(const lifecycle::Event& event) override {
    events_.push_back(event);
    return events_.back().sequence = static_cast<std::int64_t>(events_.size());
  }
  Result<std::vector<lifecycle::Event>> events(std::int64_t after, std::size_t limit, const lifecycle::Subject* subject) override {
    std::vector<lifecycle::Event> out;
    for (const auto& event : events_)
      if (event.sequence > after && (!subject || event.subject == *subject) && out.size() < limit) out.push_back(event);
    return out;
  }
  Result<std::vector<lifecycle::Event>> lastEvents(std::size_t limit, const lifecycle::Subject* subject) override {
    std::vector<lifecycle::Event> out;
    for (auto it = events_.rbegin(); it != events_.rend() && out.size() < limit; ++it)
      if (!subject || it->subject == *subject) out.push_back(*it);
    std::reverse(out.begin(), out.end());
    return out;
  }

  Result<void> addFinding(const lifecycle::Finding& finding) override {
    findings_.insert(findings_.begin(), finding);
    return {};
  }
  Result<std::vector<lifecycle::Finding>> findings(const lifecycle::Subject* subject) override {
    std::vector<lifecycle::Finding> out;
    for (const auto& finding : findings_)
      if (!subject || finding.facet.subject == *subject) out.push_back(finding);
    return out;
  }
  Result<void> clearFindings(const lifecycle::FacetRef& facet) override {
    std::erase_if(findings_, [&facet](const auto& finding) { return finding.facet == facet; });
    return {};
  }

  Result<void> allowWipe(const NodeName& node, const std::string&, WallTime) override {
    wipes_.insert(node);
    return {};
  }
  Result<std::vector<NodeName>> wipesAllowed() override { return std::vector<NodeName>(wipes_.begin(), wipes_.end()); }

  Result<void> putValue(const std::string& key, const std::string& value) override {
    values_[key] = value;
    return {};
  }
  Result<std::optional<std::string>> getValue(const std::string& key) override {
    auto it = values_.find(key);
    return it == values_.end() ? std::optional<std::string>() : std::optional(it->second);
  }
  Result<bool> exchangeValue(const std::string& key, const std::optional<std::string>& expected, const std::string& value) override {
    TRY(now, getValue(key));
    if (now != expected) return false;
    values_[key] = value;
    return true;
  }

 private:
  lifecycle::Intent* find(const std::string& id) {
    auto it = std::find_if(intents_.begin(), intents_.end(), [&id](const auto& intent) { return intent.id == id; });
    return it == intents_.end() ? nullptr : &*it;
  }

  lifecycle::FactSet facts_;
  std::vector<lifecycle::Intent> intents_;
  std::vector<lifecycle::Event> events_;
  std::vector<lifecycle::Finding> findings_;  ///< newest first
  std::set<NodeName> wipes_;
  std::map<std::string, std::string> values_;
};

}  // namespace muster::test
