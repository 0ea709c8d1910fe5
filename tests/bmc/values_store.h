// SPDX-License-Identifier: Apache-2.0
// The part of a Store that bmc/ uses, in memory: values only. Everything else is refused, so that a
// test notices.
#pragma once

#include "lifecycle/store/store.h"

#include <functional>
#include <map>

namespace muster::test {

class ValuesStore final : public lifecycle::Store {
 public:
  std::map<std::string, std::string> values;
  std::function<void()> written = [] {};  ///< after each write; may throw, as if muster died there

  Result<void> putValue(const std::string& key, const std::string& value) override {
    values[key] = value;
    written();
    return {};
  }
  Result<std::optional<std::string>> getValue(const std::string& key) override {
    auto it = values.find(key);
    return it == values.end() ? std::optional<std::string>() : std::optional(it->second);
  }
  Result<bool> exchangeValue(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& value) override {
    TRY(now, getValue(key));
    if (now != expected) return false;
    values[key] = value;
    written();
    return true;
  }

  Result<lifecycle::FactSet> facts() override { return no(); }
  Result<void> putFacts(const std::vector<lifecycle::Fact>&) override { return no(); }
  Result<void> forgetFacts(const lifecycle::Subject&, const std::vector<FacetName>&) override {
    return no();
  }
  Result<void> openIntent(const lifecycle::Intent&) override { return no(); }
  Result<void> recordOperation(const std::string&, const std::string&) override { return no(); }
  Result<void> closeIntent(const std::string&, lifecycle::IntentState, const std::string&,
                           WallTime) override {
    return no();
  }
  Result<std::vector<lifecycle::Intent>> openIntents() override { return no(); }
  Result<std::vector<lifecycle::Intent>> openIntentsOf(const lifecycle::Subject&) override {
    return no();
  }
  Result<std::vector<lifecycle::Intent>> intentsOf(const lifecycle::Subject&,
                                                   std::size_t) override {
    return no();
  }
  Result<std::vector<lifecycle::Fact>> factsOf(const lifecycle::Subject&) override { return no(); }
  Result<std::vector<lifecycle::Intent>> intentsOfPlan(const std::string&, std::size_t) override {
    return no();
  }
  Result<void> openRequest(const lifecycle::Request&) override { return no(); }
  Result<void> closeRequest(const std::string&, const std::string&, WallTime) override {
    return no();
  }
  Result<std::vector<lifecycle::Request>> requests(std::size_t) override { return no(); }
  Result<std::vector<lifecycle::AuditEntry>> auditTrail(std::int64_t, std::size_t) override {
    return no();
  }
  Result<lifecycle::AuditEnds> auditEnds() override { return no(); }
  Result<void> signOn(const std::string&, std::chrono::milliseconds) override { return no(); }
  Result<void> renewLease() override { return no(); }
  Result<lifecycle::Claim> claim(const lifecycle::Subject&) override { return no(); }
  Result<void> release(const lifecycle::Subject&) override { return no(); }
  Result<void> checkClaim(const lifecycle::Subject&) override { return no(); }
  Result<std::vector<lifecycle::Claim>> claims() override { return no(); }
  std::int64_t fenceOf(const lifecycle::Subject&) const override { return 0; }
  Result<std::int64_t> addEvent(const lifecycle::Event&) override { return no(); }
  Result<std::vector<lifecycle::Event>> events(std::int64_t, std::size_t,
                                               const lifecycle::Subject*) override {
    return no();
  }
  Result<std::vector<lifecycle::Event>> lastEvents(std::size_t,
                                                   const lifecycle::Subject*) override {
    return no();
  }
  Result<void> addFinding(const lifecycle::Finding&) override { return no(); }
  Result<std::vector<lifecycle::Finding>> findings(const lifecycle::Subject*) override {
    return no();
  }
  Result<void> clearFindings(const lifecycle::FacetRef&) override { return no(); }
  Result<void> clearFindingsOf(const lifecycle::FacetRef&, const std::string&) override {
    return no();
  }
  Result<void> grantWipe(const NodeName&, const std::string&, WallTime) override { return no(); }
  Result<bool> revokeWipe(const NodeName&, const std::string&) override { return no(); }
  Result<std::vector<NodeName>> wipeGrants() override { return no(); }

 private:
  static std::unexpected<Error> no() {
    return fail(ErrorCode::Internal, "bmc/ has no business with this part of the store");
  }
};

}  // namespace muster::test
