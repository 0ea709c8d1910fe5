// SPDX-License-Identifier: Apache-2.0
// Store on any SQL database through SOCI. The SQL here is shared; what differs is a Backend.
//
// Every write is one transaction, done when the call returns. SOCI throws: `read` and `write` are
// the seam where that becomes an Error that says what to do. A connection that was lost is made
// again there, for as long as the backend has patience: the work of a transaction that cannot have
// been committed is done again; of one that was being committed the server is asked. So a lambda
// given to `write` may run more than once and must change nothing but the database.
//
// `together` is one `write` around the writes of many: inside it they join its transaction. What a
// transaction knows (the head of the log, claims that it has locked) is read once and kept until
// its end.
#pragma once

#include "lifecycle/store/sql/backend.h"
#include "lifecycle/store/sql/prepared.h"
#include "lifecycle/store/sql/value_reader.h"
#include "lifecycle/store/store.h"

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace muster::lifecycle::sql {

inline constexpr std::size_t kMaxRows = 1'000'000;
inline constexpr std::chrono::milliseconds kReconnectPause{100};
inline constexpr std::chrono::hours kForgetControllers{
    24 * 7};  ///< rows of controllers that have not come back

inline std::int64_t toMillis(WallTime time) { return time.time_since_epoch().count(); }
inline WallTime fromMillis(long long value) { return WallTime(std::chrono::milliseconds(value)); }
inline long long bounded(std::size_t limit) {
  return static_cast<long long>(std::min(limit, kMaxRows));
}

/// What every database can keep: UTF-8 without NUL. Other bytes (output of broken tools) become
/// replacement characters.
std::string storable(const std::string& text);

/// Rolled back unless committed.
class Transaction {
 public:
  Transaction(soci::session& sql, const char* begin) : sql_(sql) { sql_ << begin; }
  Transaction(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  soci::session& sql_;
  bool done_ = false;
};

class SqlStore final : public Store {
 public:
  explicit SqlStore(std::unique_ptr<Backend> backend)
      : backend_(std::move(backend)), values_(*backend_) {}
  ~SqlStore() override {
    (void)intact();
  }  // a store that was taken away must not be tidied up at the end
  /// Connects, migrates, looks for damage.
  Result<void> open();
  /// storeLoss (lifecycle/store/store_loss.h).
  std::optional<Error> loss() const { return backend_->loss(); }

  bool groups() const override { return true; }
  void together(const std::vector<std::function<bool()>>& works) override;
  Result<FactSet> facts() override;
  Result<std::vector<Fact>> factsOf(const Subject& subject) override;
  Result<void> putFacts(const std::vector<Fact>& facts) override;
  Result<void> forgetFacts(const Subject& subject, const std::vector<FacetName>& facets) override;
  Result<void> openIntent(const Intent& intent) override;
  Result<void> recordOperation(const std::string& intent_id, const std::string& operation) override;
  Result<void> closeIntent(const std::string& intent_id, IntentState state,
                           const std::string& outcome, WallTime at) override;
  Result<std::vector<Intent>> openIntents() override;
  Result<std::vector<Intent>> intentsOf(const Subject& subject, std::size_t limit) override;
  Result<std::vector<Intent>> intentsOfPlan(const std::string& hash_prefix,
                                            std::size_t limit) override;
  Result<void> openRequest(const Request& request) override;
  Result<void> closeRequest(const std::string& id, const std::string& outcome,
                            WallTime at) override;
  Result<std::vector<Request>> requests(std::size_t limit) override;
  Result<std::int64_t> addEvent(const Event& event) override;
  Result<std::vector<Event>> events(std::int64_t after_sequence, std::size_t limit,
                                    const Subject* subject) override;
  Result<std::vector<Event>> lastEvents(std::size_t limit, const Subject* subject) override;
  Result<std::vector<AuditEntry>> auditTrail(std::int64_t after_sequence,
                                             std::size_t limit) override;
  Result<AuditEnds> auditEnds() override;
  Result<void> dropArchived(std::int64_t through_sequence, const AuditMark& end) override;
  Result<void> signOn(const std::string& holder, std::chrono::milliseconds lease) override;
  Result<void> renewLease() override;
  Result<Claim> claim(const Subject& subject) override;
  Result<void> release(const Subject& subject) override;
  Result<void> checkClaim(const Subject& subject) override;
  Result<std::vector<Claim>> claims() override;
  std::int64_t fenceOf(const Subject& subject) const override;
  Result<void> addFinding(const Finding& finding) override;
  Result<std::vector<Finding>> findings(const Subject* subject) override;
  Result<void> clearFindings(const FacetRef& facet) override;
  Result<void> clearFindingsOf(const FacetRef& facet, const std::string& source) override;
  Result<void> grantWipe(const NodeName& node, const std::string& reason, WallTime at) override;
  Result<bool> revokeWipe(const NodeName& node, const std::string& reason) override;
  Result<std::vector<NodeName>> wipeGrants() override;
  Result<void> putValue(const std::string& key, const std::string& value) override;
  Result<std::optional<std::string>> getValue(const std::string& key) override;
  Result<bool> exchangeValue(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& value) override;

 private:
  /// Known within a transaction.
  struct Head {
    long long link = 0;
    std::string hash;
    bool moved = false;
  };
  using Steady = std::chrono::steady_clock;
  using Writer = std::atomic<std::thread::id>;
  struct Writing {
    explicit Writing(Writer& mark) : writer(mark) { writer = std::this_thread::get_id(); }
    Writing(const Writing&) = delete;
    ~Writing() { writer = std::thread::id(); }
    Writer& writer;
  };

  template <class Work>
  auto read(std::string_view doing, Work work) -> decltype(work());
  template <class Work>
  auto write(std::string_view doing, Work work) -> decltype(work());
  /// Handles what the driver threw. Answers the error when there is no use in trying again; else
  /// the connection stands, or will be made by the next try.
  std::optional<Error> recover(const soci::soci_error& thrown, std::string_view doing,
                               Steady::time_point until);
  Result<void> connected();
  /// The files are still there and still these. Errors: Unavailable, for good
  Result<void> intact();
  /// After a COMMIT that met a lost connection: was it done? Waits for the server. Errors:
  /// Unavailable (nobody knows)
  Result<bool> outcomeOf(const std::string& mark, Steady::time_point until);

  Result<void> migrate(int version);
  Result<int> knownVersion();
  void dropOldEvents();
  /// `where_and_order` uses :s, the text to compare with.
  Result<std::vector<Intent>> readIntents(const std::string& where_and_order,
                                          const std::string& text, std::size_t limit);
  Result<std::vector<Event>> readEvents(const std::string& tail, std::int64_t after,
                                        std::size_t limit, const Subject* subject);
  Result<FactSet> readFacts(const Subject* subject);
  Error unreadable(const std::string& what) const;

  /// Works [first, last) in one transaction. Answers the first that did not succeed, then nothing
  /// is written; `last`: all did.
  std::size_t runGroup(const std::vector<std::function<bool()>>& works, std::size_t first,
                       std::size_t last);
  void holds(const Subject& subject, std::optional<std::int64_t> token);
  void restoreHeld();

  // Inside a transaction.
  Head& head();
  void storeHead();
  template <class... Out, class... In>
  bool ask(const std::string& query, std::tuple<Out&...> out, const In&... in) {
    return prepared_.ask(sql_, query, out, in...);
  }
  template <class... In>
  long long run(const std::string& query, const In&... in) {
    return prepared_.run(sql_, query, in...);
  }
  std::string nowPlus(std::chrono::milliseconds duration) const;
  bool isLive(const std::string& session);
  bool extendLease();
  /// May this store write about the subject? Nobody can take it from here to the commit. Errors:
  /// Conflict
  Result<void> fence(const Subject& subject);
  std::set<std::string> heldByOthers();

  std::unique_ptr<Backend> backend_;
  soci::session sql_;
  PreparedStatements prepared_;
  bool connected_ = false;
  ValueReader values_;
  std::string holder_, session_;  ///< of signOn
  std::chrono::milliseconds lease_{};
  std::map<Subject, std::int64_t> held_;  ///< subject → token

  mutable std::recursive_mutex mutex_;  ///< the control thread and the journal's
  mutable std::mutex held_mutex_;  ///< taken with the other to change held_, alone to read it: a
                                   ///< look never waits for a batch
  bool grouping_ = false;
  Writer writing_{};  ///< the thread that is in a transaction: it sees what it has written
  std::vector<std::pair<Subject, std::optional<std::int64_t>>>
      held_before_;  ///< what the group has changed in held_, oldest first
  std::optional<Head> head_;
  std::set<Subject> fenced_;
};

template <class Work>
auto SqlStore::read(std::string_view doing, Work work) -> decltype(work()) {
  const std::lock_guard lock(mutex_);
  if (grouping_) return work();
  const auto until = Steady::now() + backend_->patience();
  for (;;) {
    try {
      TRY_OK(connected());
      TRY_OK(intact());
      return work();
    } catch (const soci::soci_error& thrown) {
      if (auto error = recover(thrown, doing, until)) return fail(std::move(*error));
    }
  }
}

template <class Work>
auto SqlStore::write(std::string_view doing, Work work) -> decltype(work()) {
  const std::lock_guard lock(mutex_);
  if (grouping_) return work();
  const Writing mine(writing_);
  const auto until = Steady::now() + backend_->patience();
  for (;;) {
    std::string mark;  // set when the transaction is being committed
    std::optional<decltype(work())> answer;
    try {
      TRY_OK(connected());
      head_.reset();
      fenced_.clear();
      Transaction transaction(sql_, backend_->begin());
      TRY_OK(intact());
      answer.emplace(work());
      if (!*answer) return std::move(*answer);
      storeHead();
      mark = backend_->mark(sql_);
      transaction.commit();
      TRY_OK(intact());  // an answer says that others can read it: what went into files without a
                         // name is not written
      return std::move(*answer);
    } catch (const soci::soci_error& thrown) {
      if (auto error = recover(thrown, doing, until)) return fail(std::move(*error));
    }
    if (mark.empty()) continue;
    auto done = outcomeOf(mark, until);
    if (!done) return fail(std::move(done).error().within(std::string(doing)));
    if (*done) return std::move(*answer);
  }
}

}  // namespace muster::lifecycle::sql
