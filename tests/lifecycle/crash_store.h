// SPDX-License-Identifier: Apache-2.0
// CrashStore: passes everything on to another store until the k-th write, where the process "dies":
// the write is lost or just made it, and nothing that comes after happens. See runInVirtualTime's
// `stop`. Grouping, many writes are one (journal.h).
#pragma once

#include "lifecycle/store/store.h"

#include <functional>
#include <optional>

namespace muster::test {

/// Not a std::exception: nothing in muster may catch a death.
struct Crash {};

class CrashStore final : public lifecycle::Store {
 public:
  static constexpr int kNever = -1;
  /// `lost`: the write at the crash did not make it to the disk.
  CrashStore(lifecycle::Store& inner, int crash_at_write, bool lost, bool grouping = false)
      : inner_(inner), left_(crash_at_write), lost_(lost), groups_(grouping) {}

  bool crashed = false;
  int writes = 0;
  int full_from = kNever;  ///< from this write on nothing is stored: the disk is full

  /// What a store in trouble answers instead.
  struct Refusal {
    Error error;
    bool made = false;   ///< the write is in the store all the same: only its answer is lost
    bool reads = false;  ///< it cannot be read either
  };
  std::function<std::optional<Refusal>(int write)>
      refuses;      ///< asked at every write with its number, and at reads with that of the last
  int refused = 0;  ///< so often

  bool groups() const override { return groups_; }
  void together(const std::vector<std::function<bool()>>& works) override {
    ++batches;
    largest_batch = std::max(largest_batch, works.size());
    auto all = [&]() -> Result<void> {
      inside_ = true;
      for (const auto& work : works) work();
      inside_ = false;
      return {};
    };
    if (auto written = write(all); written) return;
    for (const auto& work : works) work();  // the disk is full: each is told so
  }
  int batches = 0;
  std::size_t largest_batch = 0;

  Result<lifecycle::FactSet> facts() override {
    return read([&] { return inner_.facts(); });
  }
  Result<void> putFacts(const std::vector<lifecycle::Fact>& facts) override {
    return write([&] { return inner_.putFacts(facts); });
  }
  Result<void> forgetFacts(const lifecycle::Subject& subject,
                           const std::vector<FacetName>& facets) override {
    return write([&] { return inner_.forgetFacts(subject, facets); });
  }
  Result<void> openIntent(const lifecycle::Intent& intent) override {
    return write([&] { return inner_.openIntent(intent); });
  }
  Result<void> recordOperation(const std::string& id, const std::string& operation) override {
    return write([&] { return inner_.recordOperation(id, operation); });
  }
  Result<void> closeIntent(const std::string& id, lifecycle::IntentState state,
                           const std::string& outcome, WallTime at) override {
    return write([&] { return inner_.closeIntent(id, state, outcome, at); });
  }
  Result<std::vector<lifecycle::Intent>> openIntents() override {
    return read([&] { return inner_.openIntents(); });
  }
  Result<std::vector<lifecycle::Intent>> openIntentsOf(const lifecycle::Subject& subject) override {
    return read([&] { return inner_.openIntentsOf(subject); });
  }
  Result<std::vector<lifecycle::Intent>> intentsOf(const lifecycle::Subject& subject,
                                                   std::size_t limit) override {
    return read([&] { return inner_.intentsOf(subject, limit); });
  }
  Result<std::vector<lifecycle::Fact>> factsOf(const lifecycle::Subject& subject) override {
    return read([&] { return inner_.factsOf(subject); });
  }
  Result<std::vector<lifecycle::Intent>> intentsOfPlan(const std::string& prefix,
                                                       std::size_t limit) override {
    return read([&] { return inner_.intentsOfPlan(prefix, limit); });
  }
  Result<void> openRequest(const lifecycle::Request& request) override {
    return write([&] { return inner_.openRequest(request); });
  }
  Result<void> closeRequest(const std::string& id, const std::string& outcome,
                            WallTime at) override {
    return write([&] { return inner_.closeRequest(id, outcome, at); });
  }
  Result<std::vector<lifecycle::Request>> requests(std::size_t limit) override {
    return read([&] { return inner_.requests(limit); });
  }
  Result<std::vector<lifecycle::AuditEntry>> auditTrail(std::int64_t after,
                                                        std::size_t limit) override {
    return read([&] { return inner_.auditTrail(after, limit); });
  }
  Result<lifecycle::AuditEnds> auditEnds() override {
    return read([&] { return inner_.auditEnds(); });
  }
  Result<void> dropArchived(std::int64_t through, const lifecycle::AuditMark& end) override {
    return write([&] { return inner_.dropArchived(through, end); });
  }
  Result<void> signOn(const std::string& holder, std::chrono::milliseconds lease) override {
    return write([&] { return inner_.signOn(holder, lease); });
  }
  Result<void> renewLease() override {
    return write([&] { return inner_.renewLease(); });
  }
  Result<lifecycle::Claim> claim(const lifecycle::Subject& subject) override {
    return write([&] { return inner_.claim(subject); });
  }
  Result<void> release(const lifecycle::Subject& subject) override {
    return write([&] { return inner_.release(subject); });
  }
  Result<void> checkClaim(const lifecycle::Subject& subject) override {
    return write([&] { return inner_.checkClaim(subject); });
  }
  Result<std::vector<lifecycle::Claim>> claims() override {
    return read([&] { return inner_.claims(); });
  }
  std::int64_t fenceOf(const lifecycle::Subject& subject) const override {
    return inner_.fenceOf(subject);
  }
  Result<std::int64_t> addEvent(const lifecycle::Event& event) override {
    return write([&] { return inner_.addEvent(event); });
  }
  Result<std::vector<lifecycle::Event>> events(std::int64_t after, std::size_t limit,
                                               const lifecycle::Subject* subject) override {
    return read([&] { return inner_.events(after, limit, subject); });
  }
  Result<std::vector<lifecycle::Event>> lastEvents(std::size_t limit,
                                                   const lifecycle::Subject* subject) override {
    return read([&] { return inner_.lastEvents(limit, subject); });
  }
  Result<void> addFinding(const lifecycle::Finding& finding) override {
    return write([&] { return inner_.addFinding(finding); });
  }
  Result<std::vector<lifecycle::Finding>> findings(const lifecycle::Subject* subject) override {
    return read([&] { return inner_.findings(subject); });
  }
  Result<void> clearFindings(const lifecycle::FacetRef& facet) override {
    return write([&] { return inner_.clearFindings(facet); });
  }
  Result<void> clearFindingsOf(const lifecycle::FacetRef& facet,
                               const std::string& source) override {
    return write([&] { return inner_.clearFindingsOf(facet, source); });
  }
  Result<void> grantWipe(const NodeName& node, const std::string& reason, WallTime at) override {
    return write([&] { return inner_.grantWipe(node, reason, at); });
  }
  Result<bool> revokeWipe(const NodeName& node, const std::string& reason) override {
    return write([&] { return inner_.revokeWipe(node, reason); });
  }
  Result<std::vector<NodeName>> wipeGrants() override {
    return read([&] { return inner_.wipeGrants(); });
  }
  Result<void> putValue(const std::string& key, const std::string& value) override {
    return write([&] { return inner_.putValue(key, value); });
  }
  Result<std::optional<std::string>> getValue(const std::string& key) override {
    return read([&] { return inner_.getValue(key); });
  }
  Result<bool> exchangeValue(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& value) override {
    return write([&] { return inner_.exchangeValue(key, expected, value); });
  }

 private:
  template <class Work>
  auto read(Work work) -> decltype(work()) {
    if (inside_) return work();
    if (crashed) throw Crash{};
    if (auto refusal = refuses ? refuses(writes) : std::nullopt; refusal && refusal->reads)
      return std::unexpected(std::move(refusal->error));
    return work();
  }
  template <class Work>
  auto write(Work work) -> decltype(work()) {
    if (inside_) return work();
    if (crashed) throw Crash{};
    ++writes;
    if (full_from != kNever && writes > full_from)
      return fail(Error(ErrorCode::Unavailable, "database or disk is full").retryable(false));
    if (auto refusal = refuses ? refuses(writes) : std::nullopt) {
      ++refused;
      if (refusal->made) (void)work();
      return std::unexpected(std::move(refusal->error));
    }
    if (left_ != kNever && left_-- == 0) {
      crashed = true;
      if (!lost_) (void)work();
      throw Crash{};
    }
    return work();
  }

  lifecycle::Store& inner_;
  int left_;
  bool lost_;
  bool groups_;
  bool inside_ = false;  ///< a batch
};

}  // namespace muster::test
