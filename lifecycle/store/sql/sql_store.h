// SPDX-License-Identifier: Apache-2.0
// Store on any SQL database through SOCI: one connection, and a class for each kind of row. The SQL
// is shared; what differs between databases is a Backend.
#pragma once

#include "lifecycle/store/sql/claim_table.h"
#include "lifecycle/store/sql/event_log.h"
#include "lifecycle/store/sql/fact_table.h"
#include "lifecycle/store/sql/finding_table.h"
#include "lifecycle/store/sql/intent_table.h"
#include "lifecycle/store/sql/request_table.h"
#include "lifecycle/store/sql/value_table.h"

namespace muster::lifecycle::sql {

class SqlStore final : public Store {
 public:
  explicit SqlStore(std::unique_ptr<Backend> backend) : db_(std::move(backend)) {}
  /// Connects, migrates, looks for damage.
  Result<void> open();
  /// storeLoss (lifecycle/store/store_loss.h).
  std::optional<Error> loss() const { return db_.backend().loss(); }

  bool groups() const override { return true; }
  void together(const std::vector<std::function<bool()>>& works) override { db_.together(works); }
  Result<FactSet> facts() override { return facts_.facts(); }
  Result<std::vector<Fact>> factsOf(const Subject& subject) override {
    return facts_.factsOf(subject);
  }
  Result<void> putFacts(const std::vector<Fact>& facts) override { return facts_.putFacts(facts); }
  Result<void> forgetFacts(const Subject& subject, const std::vector<FacetName>& facets) override {
    return facts_.forgetFacts(subject, facets);
  }
  Result<void> openIntent(const Intent& intent) override { return intents_.openIntent(intent); }
  Result<void> recordOperation(const std::string& intent_id,
                               const std::string& operation) override {
    return intents_.recordOperation(intent_id, operation);
  }
  Result<void> closeIntent(const std::string& intent_id, IntentState state,
                           const std::string& outcome, WallTime at) override {
    return intents_.closeIntent(intent_id, state, outcome, at);
  }
  Result<std::vector<Intent>> openIntents() override { return intents_.openIntents(); }
  Result<std::vector<Intent>> openIntentsOf(const Subject& subject) override {
    return intents_.openIntentsOf(subject);
  }
  Result<std::vector<Intent>> intentsOf(const Subject& subject, std::size_t limit) override {
    return intents_.intentsOf(subject, limit);
  }
  Result<std::vector<Intent>> intentsOfPlan(const std::string& hash_prefix,
                                            std::size_t limit) override {
    return intents_.intentsOfPlan(hash_prefix, limit);
  }
  Result<void> openRequest(const Request& request) override {
    return requests_.openRequest(request);
  }
  Result<void> closeRequest(const std::string& id, const std::string& outcome,
                            WallTime at) override {
    return requests_.closeRequest(id, outcome, at);
  }
  Result<std::vector<Request>> requests(std::size_t limit) override {
    return requests_.requests(limit);
  }
  Result<std::int64_t> addEvent(const Event& event) override { return log_.addEvent(event); }
  Result<std::vector<Event>> events(std::int64_t after_sequence, std::size_t limit,
                                    const Subject* subject) override {
    return log_.events(after_sequence, limit, subject);
  }
  Result<std::vector<Event>> lastEvents(std::size_t limit, const Subject* subject) override {
    return log_.lastEvents(limit, subject);
  }
  Result<std::vector<AuditEntry>> auditTrail(std::int64_t after_sequence,
                                             std::size_t limit) override {
    return log_.auditTrail(after_sequence, limit);
  }
  Result<AuditEnds> auditEnds() override { return log_.auditEnds(); }
  Result<void> dropArchived(std::int64_t through_sequence, const AuditMark& end) override {
    return log_.dropArchived(through_sequence, end);
  }
  Result<void> signOn(const std::string& holder, std::chrono::milliseconds lease) override {
    return claims_.signOn(holder, lease);
  }
  Result<void> renewLease() override { return claims_.renewLease(); }
  Result<Claim> claim(const Subject& subject) override { return claims_.claim(subject); }
  Result<void> release(const Subject& subject) override { return claims_.release(subject); }
  Result<void> checkClaim(const Subject& subject) override { return claims_.checkClaim(subject); }
  Result<std::vector<Claim>> claims() override { return claims_.claims(); }
  std::int64_t fenceOf(const Subject& subject) const override { return claims_.fenceOf(subject); }
  Result<void> addFinding(const Finding& finding) override { return findings_.addFinding(finding); }
  Result<std::vector<Finding>> findings(const Subject* subject) override {
    return findings_.findings(subject);
  }
  Result<void> clearFindings(const FacetRef& facet) override {
    return findings_.clearFindings(facet);
  }
  Result<void> clearFindingsOf(const FacetRef& facet, const std::string& source) override {
    return findings_.clearFindingsOf(facet, source);
  }
  Result<void> grantWipe(const NodeName& node, const std::string& reason, WallTime at) override {
    return wipes_.grantWipe(node, reason, at);
  }
  Result<bool> revokeWipe(const NodeName& node, const std::string& reason) override {
    return wipes_.revokeWipe(node, reason);
  }
  Result<std::vector<NodeName>> wipeGrants() override { return wipes_.wipeGrants(); }
  Result<void> putValue(const std::string& key, const std::string& value) override {
    return values_.putValue(key, value);
  }
  Result<std::optional<std::string>> getValue(const std::string& key) override {
    return values_.getValue(key);
  }
  Result<bool> exchangeValue(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& value) override {
    return values_.exchangeValue(key, expected, value);
  }

 private:
  SqlConnection db_;
  ClaimTable claims_{db_};
  ValueTable values_{db_};
  WipeTable wipes_{db_};
  FactTable facts_{db_, claims_};
  IntentTable intents_{db_, claims_};
  FindingTable findings_{db_, claims_};
  EventLog log_{db_, values_};
  RequestTable requests_{db_};
};

}  // namespace muster::lifecycle::sql
