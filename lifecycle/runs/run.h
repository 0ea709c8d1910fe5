// SPDX-License-Identifier: Apache-2.0
// Run: work that outlives terminal, process and host. A run is a row in the store: what was asked
// for, by whom, the plan that is to be carried out, who said yes to it, how far it is.
// docs/runs.md, docs/adr/0295
#pragma once

#include "base/clock.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/plan_impact.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::lifecycle {

inline constexpr std::size_t kMaxRunProblems = 200;  ///< lines of a report that are kept
inline constexpr std::size_t kMaxRunStamps = 200;    ///< changes of state that are kept, the newest
inline constexpr std::size_t kMaxRunHostlistBytes = 4u << 20;
inline constexpr std::size_t kMaxRunTextBytes = 4096;
/// Of a text that is cut to fit: a byte that is no UTF-8 takes three when it is written.
inline constexpr std::size_t kCutRunTextBytes = kMaxRunTextBytes / 4;
inline constexpr std::size_t kMaxIdempotencyKeyBytes = 255;
inline constexpr std::size_t kMaxErasedDisks = 256;
inline constexpr std::size_t kMaxValidatedGates = 64;
inline constexpr std::size_t kMaxIssuers = 16;  ///< persons who have seen one token
inline constexpr std::size_t kMaxRolloutChangeBytes = 1u << 20;
inline constexpr std::size_t kMaxLiftedFailures = 100'000;

enum class RunKind {
  Apply,
  Erase,          ///< the disks of one node, for good
  Rollout,        ///< a change in waves, or its undoing
  Validate,       ///< gates again, also those that have passed
  Isolate,        ///< tests between nodes, to find what is bad
  FirmwareRetry,  ///< firmware again whose installation has failed for good
  ImageBuild,     ///< images that are not in the cache
  BmcPassword,    ///< BMCs get the next password of their credential
  BmcCertificate  ///< BMCs get a certificate, which is trusted from then on
};
std::string_view toString(RunKind kind);
std::optional<RunKind> parseRunKind(std::string_view text);

enum class RunState {
  Queued,         ///< nobody works on it yet
  Planning,       ///< the nodes are looked at
  Planned,        ///< its plan is known; what it needs is decided next
  NeedsApproval,  ///< it waits for people: RunReason says for whom
  Approved,       ///< it may begin
  Waiting,        ///< for its time: Run::waits_until
  Running,
  Paused,
  Done,       ///< nothing is left to do
  WorkLeft,   ///< something is left that cannot be done now
  Failed,     ///< an action failed, or it could not be planned
  Cancelled,  ///< by a person
  Outdated    ///< what its plan was made from has changed
};
std::string_view toString(RunState state);
std::optional<RunState> parseRunState(std::string_view text);
/// Nothing follows it.
bool isEnd(RunState state);

/// Who or what may change a run from one state to another.
enum class RunMover { Person, Executor };
/// The one table of what may follow what.
bool mayChange(RunState from, RunState to, RunMover mover);

/// Why a run is in its state.
enum class RunReason {
  None,
  AwaitsConfirmation,  ///< of who asked for it
  AwaitsApproval,      ///< of somebody else
  NothingToDo,
  LimitsExceeded,  ///< it would take too many nodes out of work
  ActionFailed,    ///< the report says which
  Blocked,         ///< what is left cannot be done without a person
  FaultsFound,     ///< what was tested is bad, or could not be cleared
  OthersWork,      ///< other workers had the nodes for too long
  CannotPlan,      ///< the nodes could not be looked at, or there is no such plan
  CancelledByPerson,
  PausedByPerson,
  PausedAfterRestart,  ///< its policy says so
  FactsMoved,          ///< after the plan was made
  InventoryChanged,    ///< after the plan was made
  OutsideWindow,       ///< its pools' maintenance windows are closed
  NoCommonWindow,      ///< they are never open together
  RolloutHalted,       ///< a gate of it failed
  RolledBack,          ///< a gate of it failed, and its policy has undone it
  PlanGrew,            ///< a later round would disturb more than was agreed to
  ApprovalVoid,        ///< what somebody agreed with was revoked before the run began
  Unreadable           ///< its row cannot be read by this muster
};
std::string_view toString(RunReason reason);
std::optional<RunReason> parseRunReason(std::string_view text);

/// What was asked of a run that a process works on; it obeys within a second or two.
enum class RunOrder { None, Pause, Cancel };
std::string_view toString(RunOrder order);

/// What happens to it when the process or host that works on it dies.
enum class AfterRestart { Continue, Pause };
std::string_view toString(AfterRestart policy);
std::optional<AfterRestart> parseAfterRestart(std::string_view text);

/// A person or robot, and how they came.
struct RunActor {
  std::string principal;  ///< "anna", "token:ci", as the way has proved it
  std::string way;        ///< "local", "token", …
  std::string address;    ///< where from; a host's name for "local"
  std::string person;     ///< who stands behind the principal: a token's owner; empty: itself
  std::vector<std::string> issuers;  ///< who made the token, or a token by which it was made, and
                                     ///< so has seen it; empty: nobody else has
  std::string account = {};  ///< what proved who it is and never changes hands (the subject of a
                             ///< provider, the key of a certificate); empty: the principal alone
  std::string token = {};    ///< id of the token that they came with; empty: none
  friend bool operator==(const RunActor&, const RunActor&) = default;
};

/// Who the actor is, whatever they came with.
const std::string& personOf(const RunActor& actor);
/// Whether both are one person: by name, or by account.
bool isSamePerson(const RunActor& a, const RunActor& b);
/// Whether one person may be behind both: they are the same, a token's owner is the other, or the
/// one has made the other's token, and so has seen it; or both came by one account, whatever it was
/// called then.
bool mayBeOnePerson(const RunActor& a, const RunActor& b);

/// Of every kind: what it is about, and how it was asked for.
struct ApplyParams {
  std::string nodes;      ///< hostlist; empty: all
  bool confirm = false;   ///< the author is to be asked when the plan is known
  std::string command;    ///< as typed, without secrets; for the journal
  std::string inventory;  ///< digest of the cluster that the author means; empty: whatever is there
  friend bool operator==(const ApplyParams&, const ApplyParams&) = default;
};

/// Of RunKind::Erase: of the one node that ApplyParams::nodes names.
struct EraseParams {
  std::vector<std::string> disks;  ///< serials; empty: all that are built in
  std::string reason;              ///< kept in the journal and in the report
  std::string request;             ///< id of what the node is told, once it is planned
  friend bool operator==(const EraseParams&, const EraseParams&) = default;
};

/// Of RunKind::Rollout, over the nodes of ApplyParams.
struct RolloutParams {
  std::string id;           ///< of the rollout
  bool back = false;        ///< undo it; nothing of what follows but wipe_reason
  std::string change;       ///< a fragment of an inventory; or
  std::string driver;       ///< a declared driver, in place of the one of its kind
  std::string change_file;  ///< where relative paths of the change start
  // In place of what the change declares; nothing: as it declares.
  std::size_t canaries = 0;
  std::optional<inventory::OnFailure> on_failure;
  std::optional<inventory::OnInconclusive> on_inconclusive;
  std::string wipe_reason;  ///< each node's disk may be wiped once; empty: it may not
  friend bool operator==(const RolloutParams&, const RolloutParams&) = default;
};

/// "halt", "roll-back"
std::string_view toString(inventory::OnFailure policy);
std::optional<inventory::OnFailure> parseOnFailure(std::string_view text);
/// "halt", "continue"
std::string_view toString(inventory::OnInconclusive policy);
std::optional<inventory::OnInconclusive> parseOnInconclusive(std::string_view text);

/// Of RunKind::Validate, over the nodes of ApplyParams: gates that were last seen before the run
/// was asked for run again.
struct ValidateParams {
  std::vector<std::string> gates;  ///< names; empty: all of the nodes' profiles
  bool synchronized_load = false;  ///< each rack's nodes begin a gate at one moment
  friend bool operator==(const ValidateParams&, const ValidateParams&) = default;
};

/// Of RunKind::Isolate, over the nodes of ApplyParams; without any: those of fabrics that may be
/// disturbed.
struct IsolateParams {
  std::string engine;      ///< "rdma", "nccl", "tcp"; empty: what the nodes have
  double min_gbps = 0;     ///< of a healthy pair; 0: the floor of device and link
  std::uint64_t seed = 0;  ///< 0: by the run's id
  std::string until = {};  ///< "good": sixteen rounds, and nobody is cleared; empty: "cleared"
  friend bool operator==(const IsolateParams&, const IsolateParams&) = default;
};

/// What says that an installation of firmware has failed: a fact, as it was before a run took it
/// away to try again.
struct LiftedFailure {
  std::string node;
  std::string facet;  ///< "firmware-failed.BIOS", "left.firmware.BIOS"
  std::string value;
  WallTime observed_at{};
  std::string source;
  friend bool operator==(const LiftedFailure&, const LiftedFailure&) = default;
};

/// Of RunKind::FirmwareRetry, over the nodes of ApplyParams: what had failed there before the run
/// was asked for is installed again.
struct FirmwareRetryParams {
  std::string reason;                 ///< what was found, or repaired
  std::vector<LiftedFailure> lifted;  ///< since it runs; nothing else is ever lifted by it
  friend bool operator==(const FirmwareRetryParams&, const FirmwareRetryParams&) = default;
};

/// Of RunKind::ImageBuild, which is about no nodes.
struct ImageBuildParams {
  std::string image;  ///< a name, or "ramos"; empty: all that is missing, and the RAM OS
  std::string over;   ///< of one image: whose layout goes on (a digest), or "none"; empty: the
                      ///< newest of its name
  friend bool operator==(const ImageBuildParams&, const ImageBuildParams&) = default;
};

/// Of RunKind::BmcPassword and BmcCertificate, over the nodes of ApplyParams.
struct BmcChangeParams {
  std::string done;  ///< hostlist: whose BMC has it; grows while it runs
  friend bool operator==(const BmcChangeParams&, const BmcChangeParams&) = default;
};

/// Somebody said yes to one plan.
struct RunApproval {
  RunActor by;
  WallTime at{};
  std::string plan_hash;
  bool confirmation = false;      ///< by the author: it never counts as an approval
  std::string void_because = {};  ///< why it does not count any more; empty: it counts
  friend bool operator==(const RunApproval&, const RunApproval&) = default;
};

/// An admin let one plan begin against the inventory: without its approvals, or outside a window.
/// It is shown wherever people look until somebody has acknowledged it.
struct RunOverride {
  RunActor by;
  WallTime at{};
  std::string plan_hash;
  RunReason against = RunReason::None;  ///< what the run waited for: OutsideWindow, else people
  std::string reason;                   ///< of who did it
  std::string acknowledged_by;          ///< principal; empty: nobody has
  WallTime acknowledged_at{};
  std::string void_because = {};  ///< why it does not count any more; empty: it counts
  friend bool operator==(const RunOverride&, const RunOverride&) = default;
};

struct RunStamp {
  RunState state = RunState::Queued;
  RunReason reason = RunReason::None;
  WallTime at{};
  std::string by;  ///< principal, or the host that worked on it
  friend bool operator==(const RunStamp&, const RunStamp&) = default;
};

/// How far it is, over all rounds.
struct RunProgress {
  std::size_t rounds = 0, planned = 0, done = 0, failed = 0, blocked = 0, skipped = 0, held = 0;
  friend bool operator==(const RunProgress&, const RunProgress&) = default;
};

struct Run {
  std::string id;  ///< "r-" and ten characters
  RunKind kind = RunKind::Apply;
  ApplyParams apply;
  EraseParams erase;
  RolloutParams rollout;
  ValidateParams validate;
  IsolateParams isolate;
  FirmwareRetryParams firmware_retry;
  ImageBuildParams image_build;
  BmcChangeParams bmc_change;
  RunActor asked_by;
  std::string idempotency_key;  ///< of who asked; empty: none
  WallTime asked_at{};
  AfterRestart after_restart = AfterRestart::Continue;

  RunState state = RunState::Queued;
  RunReason reason = RunReason::None;
  std::string text;  ///< for people: what the reason leaves out
  RunOrder order = RunOrder::None;
  std::string ordered_by;
  std::string worked_on_by;  ///< holder of the store's session (app::holderOf)
  bool begun = false;        ///< it has been Running: a cancel may leave work half done

  std::string inventory_digest, plan_hash;  ///< of the newest plan
  WallTime planned_at{};
  std::string subjects;  ///< hostlist of the nodes that its plans have named
  std::optional<PlanImpact> impact;
  std::size_t approvals_needed = 0;  ///< by others
  std::vector<RunApproval> approvals;
  std::vector<RunOverride> overrides;
  WallTime waits_until{};  ///< of RunState::Waiting
  /// What was agreed to: later rounds may disturb no other nodes.
  std::string agreed_out, agreed_wipes, agreed_resets;  ///< hostlists

  RunProgress progress;
  std::vector<std::string> problems;  ///< one line each: action, why, what to do
  std::vector<RunStamp> stamps;       ///< oldest first
  std::int64_t first_event = 0;       ///< of the journal: where its events begin
  std::int64_t last_event = 0;        ///< its last change of state; of an ended run its last event

  std::int64_t revision = 0;  ///< grows with every change of the row; set by the store
  std::string unreadable;     ///< why the rest of the row is not known; empty: it is

  WallTime changedAt() const { return stamps.empty() ? asked_at : stamps.back().at; }
};

/// A new state with its stamp; an order that it fulfils is over. Errors: Conflict (the table
/// forbids it: says what the run is)
Result<Run> changed(Run run, RunState to, RunReason reason, RunMover mover, std::string by,
                    WallTime at);

/// Whether the plan may be carried out: confirmed where that was asked for, and approved by as many
/// others as are needed; or an admin has let it begin without. Only words about this very plan
/// count.
bool isAgreed(const Run& run);
/// Whether an admin has let the run go on while its windows are closed.
bool mayIgnoreWindows(const Run& run);
/// Whether somebody still has to acknowledge that.
bool hasLoudOverride(const Run& run);
/// Those of others about the newest plan, each person once; a person who asked for the run is none,
/// with whatever token they came.
std::size_t approvalsOf(const Run& run);

/// What the row keeps, as a JSON object; without id, revision and what has a column.
std::string recordOf(const Run& run);
/// Refuses what could not be read again. Errors: InvalidInput (names the member)
Result<std::string> checkedRecordOf(const Run& run);
/// Errors: Corrupt (no JSON object), InvalidInput (names the member), Conflict (a newer muster has
/// written it)
Result<Run> runFromRecord(std::string_view record);

}  // namespace muster::lifecycle
