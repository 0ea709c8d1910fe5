// SPDX-License-Identifier: Apache-2.0
// Store: facts, journal, events, findings, permissions. One contract; SQL databases behind it
// (lifecycle/store/sql/).
//
// Called on the control thread; every write is committed when the call returns. A store that groups
// may also be given a batch of writes by one other thread (journal.h); a call meanwhile waits for
// it.
#pragma once

#include "base/clock.h"
#include "lifecycle/model/facet.h"
#include "lifecycle/model/finding.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::lifecycle {

enum class IntentState {
  Open,
  Done,
  Failed,
  Abandoned,
  Blocked,  ///< it cannot go on without a person, or another action
};
std::string_view toString(IntentState state);
std::optional<IntentState> parseIntentState(std::string_view text);

/// A journaled intent: written before the outside effect, closed after it was verified.
struct Intent {
  std::string id;
  std::string plan_hash;
  std::string inventory_digest;
  Action action;          ///< with the value that it really goes for (engine.h)
  std::string operation;  ///< id of the outside work, when known
  IntentState state = IntentState::Open;
  std::string outcome;     ///< words for people
  bool uses_wipe = false;  ///< the node's wipe permission was used up by this intent
  WallTime opened_at{};
  WallTime closed_at{};
  std::string request;     ///< id of the Request that it was begun for
  std::int64_t fence = 0;  ///< token of the claim that it was begun under; stamped by the store
};

/// Somebody asked for something: one run of apply.
struct Request {
  std::string id;
  WallTime at{};
  std::string user, host, command;
  std::string plan_hash;
  std::string outcome;  ///< empty while it runs, and for ever when it was killed
  WallTime ended_at{};
};

enum class EventKind {
  PlanStarted,
  PlanFinished,
  ActionStarted,
  ActionProgress,
  ActionWaiting,
  ActionDone,
  ActionFailed,
  ActionBlocked,
  Observed,
  FindingRaised,
  Note
};
std::string_view toString(EventKind kind);
std::optional<EventKind> parseEventKind(std::string_view text);

struct Event {
  std::int64_t sequence = 0;
  WallTime at{};
  EventKind kind = EventKind::Note;
  Subject subject;
  std::string action_id;
  std::string text;
  double fraction = -1;  ///< progress 0…1, negative when it has none
};

/// An entry of the log as it is kept (audit.h). Progress is no evidence: it has no link, no hash,
/// and is dropped with time.
struct AuditEntry {
  Event event;
  std::int64_t link = 0;  ///< its place in the chain, from 1 without gaps; 0: not chained
  std::string hash;
};
/// A place in the chain.
struct AuditMark {
  std::int64_t link = 0;
  std::string hash;
  friend bool operator==(const AuditMark&, const AuditMark&) = default;
};
struct AuditEnds {
  std::int64_t begins_after = 0;  ///< sequence of the last event from before there was a chain, or
                                  ///< of the last that was archived
  AuditMark
      archived;  ///< what the first entry that is here follows from; link 0: the chain begins here
  std::int64_t link = 0;  ///< of the newest entry
  std::string hash;
};

/// A subject that one controller works on.
struct Claim {
  Subject subject;
  std::string holder;
  std::int64_t token =
      0;  ///< grows with every claim of the subject, whoever takes it; never goes back
  bool ours = false;
  std::string taken_from;  ///< the other controller that held it last, when it has just become ours
};

/// A Store is one controller's (or one looking person's) session on the shared data. What it
/// claims, it writes with the claim's token: each write about a subject that another controller has
/// taken since, or holds now, is refused (Conflict) and changes nothing. Facts seen by somebody who
/// does not hold their subject are left out while another does: the holder knows better.
class Store {
 public:
  virtual ~Store() = default;

  /// Whether `together` is one commit.
  virtual bool groups() const { return false; }
  /// Runs the works in order; when it returns, what they wrote is committed. A work answers whether
  /// all its calls succeeded; one that did not leaves nothing behind and does not touch the others.
  /// It may run more than once, and only calls this store.
  virtual void together(const std::vector<std::function<bool()>>& works) {
    for (const auto& work : works) work();
  }

  virtual Result<FactSet> facts() = 0;
  virtual Result<std::vector<Fact>> factsOf(const Subject& subject) = 0;
  virtual Result<void> putFacts(const std::vector<Fact>& facts) = 0;
  virtual Result<void> forgetFacts(const Subject& subject,
                                   const std::vector<FacetName>& facets) = 0;

  /// Commits the intent; with `uses_wipe` the permission of its node is used up in the same commit.
  /// Errors: Conflict (the id exists, the claim is lost), Denied (uses_wipe without a permission;
  /// nothing is written)
  virtual Result<void> openIntent(const Intent& intent) = 0;
  /// Errors: NotFound (no open intent with this id); the same for closeIntent
  virtual Result<void> recordOperation(const std::string& intent_id,
                                       const std::string& operation) = 0;
  virtual Result<void> closeIntent(const std::string& intent_id, IntentState state,
                                   const std::string& outcome, WallTime at) = 0;
  /// Oldest first.
  virtual Result<std::vector<Intent>> openIntents() = 0;
  /// Those of one subject: reads no others, however many the site has.
  virtual Result<std::vector<Intent>> openIntentsOf(const Subject& subject) = 0;
  /// Open and closed ones, newest first.
  virtual Result<std::vector<Intent>> intentsOf(const Subject& subject, std::size_t limit) = 0;

  /// Those of plans whose hash begins so, oldest first.
  virtual Result<std::vector<Intent>> intentsOfPlan(const std::string& hash_prefix,
                                                    std::size_t limit) = 0;

  virtual Result<void> openRequest(const Request& request) = 0;
  virtual Result<void> closeRequest(const std::string& id, const std::string& outcome,
                                    WallTime at) = 0;
  /// Newest first.
  virtual Result<std::vector<Request>> requests(std::size_t limit) = 0;

  /// Answers the sequence number. All but progress is chained: append-only, each entry holds the
  /// hash of the one before.
  virtual Result<std::int64_t> addEvent(const Event& event) = 0;
  /// The first `limit` events after a sequence number, in order.
  virtual Result<std::vector<Event>> events(std::int64_t after_sequence, std::size_t limit,
                                            const Subject* subject) = 0;

  /// The last `limit` events, in order.
  virtual Result<std::vector<Event>> lastEvents(std::size_t limit, const Subject* subject) = 0;

  /// The log with its hashes, by sequence.
  virtual Result<std::vector<AuditEntry>> auditTrail(std::int64_t after_sequence,
                                                     std::size_t limit) = 0;
  virtual Result<AuditEnds> auditEnds() = 0;
  /// Lets go of all events up to this one, which is in an archive that ends so; the chain goes on
  /// from `end`. One commit. Errors: Conflict (the entry is not there, or has another hash: nothing
  /// is dropped)
  virtual Result<void> dropArchived(std::int64_t through_sequence, const AuditMark& end) {
    (void)through_sequence, (void)end;
    return fail(ErrorCode::InvalidInput, "this store keeps its log as it is");
  }

  /// Begins a session of this controller; what an earlier session of the same name held is free at
  /// once.
  virtual Result<void> signOn(const std::string& holder, std::chrono::milliseconds lease) = 0;
  /// The lease counts by the database's clock. Errors: Conflict (another process has signed on
  /// under this name)
  virtual Result<void> renewLease() = 0;
  /// Takes the subject unless another controller's lease on it lasts; then Claim::ours is false and
  /// `holder` says whose it is.
  virtual Result<Claim> claim(const Subject& subject) = 0;
  virtual Result<void> release(const Subject& subject) = 0;
  /// Whether the claim still stands. Errors: Conflict (lost: to whom, since which token)
  virtual Result<void> checkClaim(const Subject& subject) = 0;
  /// Of all controllers whose lease lasts.
  virtual Result<std::vector<Claim>> claims() = 0;
  /// The token that this store writes with; 0: it does not hold the subject.
  virtual std::int64_t fenceOf(const Subject& subject) const = 0;

  virtual Result<void> addFinding(const Finding& finding) = 0;
  /// Open findings of the subject (or of all, when null), newest first.
  virtual Result<std::vector<Finding>> findings(const Subject* subject) = 0;
  /// Findings of this facet are over: it was met again.
  virtual Result<void> clearFindings(const FacetRef& facet) = 0;
  /// Only those that `source` has raised; empty: those of which nobody knows.
  virtual Result<void> clearFindingsOf(const FacetRef& facet, const std::string& source) = 0;

  /// Lets one image action wipe the node's disk. Allowing twice is allowing once; openIntent uses
  /// it up.
  virtual Result<void> grantWipe(const NodeName& node, const std::string& reason, WallTime at) = 0;
  /// Takes back the unused permission that was given for this very reason. Answers whether there
  /// was one.
  virtual Result<bool> revokeWipe(const NodeName& node, const std::string& reason) = 0;
  virtual Result<std::vector<NodeName>> wipeGrants() = 0;

  /// Small durable values: BMC pins, enrollment tokens (hashed), counters.
  virtual Result<void> putValue(const std::string& key, const std::string& value) = 0;
  virtual Result<std::optional<std::string>> getValue(const std::string& key) = 0;
  /// Sets the value only when it is now `expected` (nullopt: absent). Answers whether it was set.
  virtual Result<bool> exchangeValue(const std::string& key,
                                     const std::optional<std::string>& expected,
                                     const std::string& value) = 0;
};

inline constexpr std::size_t kMaxStoredEvents =
    200'000;  ///< older progress is dropped when the store is opened; the chain never is

inline constexpr std::chrono::milliseconds kSqliteBusyTimeout{
    5'000};  ///< another process writes: wait so long
inline constexpr std::chrono::milliseconds kPostgresPatience{
    15'000};  ///< the server is restarted: wait so long

/// WAL, every commit synced to the disk, schema migrations by version. The file is private (mode
/// 0600). Errors: Corrupt (damaged, not ours, newer schema), Unavailable (locked: retry; read-only
/// or full: do not)
Result<std::unique_ptr<Store>> openSqliteStore(
    const std::filesystem::path& file, std::chrono::milliseconds busy_timeout = kSqliteBusyTimeout);

/// "sqlite:FILE" or "postgresql://…" (a libpq URI). `patience`: how long a write waits for a server
/// that is restarted. Errors: InvalidInput (the URL), those of openSqliteStore, Denied and NotFound
/// of the server
Result<std::unique_ptr<Store>> openStore(const std::string& url,
                                         std::chrono::milliseconds patience = kPostgresPatience);

}  // namespace muster::lifecycle
