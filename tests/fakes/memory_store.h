// MemoryStore: the Store contract in memory. Runs against the same contract test as SQLite's.
#pragma once

#include "lifecycle/store.h"

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
    std::vector<lifecycle::Event> events;
    std::vector<lifecycle::Finding> findings;  ///< newest first
    std::set<NodeName> wipes;
    std::map<std::string, std::string> values;
  };
  explicit MemoryStore(std::shared_ptr<Data> data = std::make_shared<Data>()) : data_(std::move(data)) {}

  Result<lifecycle::FactSet> facts() override { return data_->facts; }
  Result<void> putFacts(const std::vector<lifecycle::Fact>& facts) override {
    for (const auto& fact : facts)
      if (fact.value.empty() || fact.subject.str().empty() || fact.facet.empty())
        return fail(ErrorCode::InvalidInput, "a fact without subject, facet or value");
    for (const auto& fact : facts) data_->facts.put(fact);
    return {};
  }
  Result<void> forgetFacts(const lifecycle::Subject& subject, const std::vector<FacetName>& facets) override {
    for (const auto& facet : facets) data_->facts.forget(subject, facet);
    return {};
  }

  Result<void> openIntent(const lifecycle::Intent& intent) override {
    if (find(intent.id)) return fail(ErrorCode::Conflict, "the intent exists");
    if (intent.uses_wipe && data_->wipes.erase(intent.action.facet.subject.node()) == 0)
      return fail(ErrorCode::Denied, "nobody allows the wipe");
    data_->intents.push_back(intent);
    data_->intents.back().state = lifecycle::IntentState::Open;
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
    std::copy_if(data_->intents.begin(), data_->intents.end(), std::back_inserter(out),
                 [](const auto& i) { return i.state == lifecycle::IntentState::Open; });
    return out;
  }
  Result<std::vector<lifecycle::Intent>> intentsOf(const lifecycle::Subject& subject, std::size_t limit) override {
    std::vector<lifecycle::Intent> out;
    for (auto it = data_->intents.rbegin(); it != data_->intents.rend() && out.size() < limit; ++it)
      if (it->action.facet.subject == subject) out.push_back(*it);
    return out;
  }

  Result<std::int64_t> addEvent(const lifecycle::Event& event) override {
    data_->events.push_back(event);
    return data_->events.back().sequence = static_cast<std::int64_t>(data_->events.size());
  }
  Result<std::vector<lifecycle::Event>> events(std::int64_t after, std::size_t limit, const lifecycle::Subject* subject) override {
    std::vector<lifecycle::Event> out;
    for (const auto& event : data_->events)
      if (event.sequence > after && (!subject || event.subject == *subject) && out.size() < limit) out.push_back(event);
    return out;
  }
  Result<std::vector<lifecycle::Event>> lastEvents(std::size_t limit, const lifecycle::Subject* subject) override {
    std::vector<lifecycle::Event> out;
    for (auto it = data_->events.rbegin(); it != data_->events.rend() && out.size() < limit; ++it)
      if (!subject || it->subject == *subject) out.push_back(*it);
    std::reverse(out.begin(), out.end());
    return out;
  }

  Result<void> addFinding(const lifecycle::Finding& finding) override {
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
    std::erase_if(data_->findings, [&facet](const auto& finding) { return finding.facet == facet; });
    return {};
  }

  Result<void> allowWipe(const NodeName& node, const std::string&, WallTime) override {
    data_->wipes.insert(node);
    return {};
  }
  Result<std::vector<NodeName>> wipesAllowed() override { return std::vector<NodeName>(data_->wipes.begin(), data_->wipes.end()); }

  Result<void> putValue(const std::string& key, const std::string& value) override {
    data_->values[key] = value;
    return {};
  }
  Result<std::optional<std::string>> getValue(const std::string& key) override {
    auto it = data_->values.find(key);
    return it == data_->values.end() ? std::optional<std::string>() : std::optional(it->second);
  }
  Result<bool> exchangeValue(const std::string& key, const std::optional<std::string>& expected, const std::string& value) override {
    TRY(now, getValue(key));
    if (now != expected) return false;
    data_->values[key] = value;
    return true;
  }

 private:
  lifecycle::Intent* find(const std::string& id) {
    auto it = std::find_if(data_->intents.begin(), data_->intents.end(), [&id](const auto& intent) { return intent.id == id; });
    return it == data_->intents.end() ? nullptr : &*it;
  }

  std::shared_ptr<Data> data_;
};

}  // namespace muster::test
