// SPDX-License-Identifier: Apache-2.0
// Runs, as people and programs meet them: submit, look, follow, confirm, approve, pause, cancel.
// They only read and write rows; the process that serves the site carries runs out
// (app/runs/run_executor.h). docs/runs.md
#pragma once

#include "app/site/options.h"
#include "lifecycle/store/runs.h"
#include "lifecycle/store/store.h"

#include <memory>
#include <string>
#include <vector>

namespace muster::app {

/// Errors: NotFound (nothing was done here yet), those of the store
Result<std::unique_ptr<lifecycle::RunStore>> openRunStore(const Options& options);

/// This process's user on this host: way "local".
lifecycle::RunActor localActor();

struct RunRequest {
  lifecycle::RunKind kind = lifecycle::RunKind::Apply;
  lifecycle::ApplyParams apply;
  lifecycle::EraseParams erase = {};
  lifecycle::RolloutParams rollout = {};  ///< without `back`: a new id is made
  lifecycle::ValidateParams validate = {};
  lifecycle::IsolateParams isolate = {};
  lifecycle::FirmwareRetryParams firmware_retry = {};
  lifecycle::ImageBuildParams image_build = {};
  lifecycle::AfterRestart after_restart = lifecycle::AfterRestart::Continue;
  std::string idempotency_key;  ///< empty: none
};

/// Answers the run; with a key that its author has used before for the same request: the run of
/// then. Errors: InvalidInput (no hostlist, a key that is too long), Conflict (the key was used for
/// another request), Unavailable (too many runs are open)
Result<lifecycle::Run> submitRun(lifecycle::RunStore& runs, const RunRequest& request,
                                 const lifecycle::RunActor& actor, WallTime now);

/// Why a person's word about a run is refused, where somebody can do something about it: a reason
/// of the Error, whose text ends with what to do.
enum class RunRefusal {
  OwnRun,       ///< nobody approves what they asked for
  OwnOverride,  ///< nobody acknowledges what they overrode
  OthersRun,    ///< only its author confirms a run
  OtherPlan     ///< what was named is not the run's newest plan
};
/// Empty: `error` is of another kind.
std::string whatToDo(const Error& error, const std::string& id);

/// Newest first.
Result<std::vector<lifecycle::Run>> listRuns(lifecycle::RunStore& runs,
                                             const lifecycle::RunFilter& filter);
/// Errors: NotFound
Result<lifecycle::Run> readRun(lifecycle::RunStore& runs, const std::string& id);

/// Marks, in runs that were read and have not begun, what was said with tokens that are revoked by
/// now: it counts no more when the run is to begin, and is shown so before. The rows stay as they
/// are.
Result<void> markVoidWords(lifecycle::Store& store, std::vector<lifecycle::Run>& runs);
Result<lifecycle::Run> withVoidWords(lifecycle::Store& store, lifecycle::Run run);

/// A part of what has happened in a run.
struct RunEvents {
  lifecycle::Run run;                    ///< read before the events
  std::vector<lifecycle::Event> events;  ///< in order; of other work: none
  std::int64_t next = 0;                 ///< the `after` of the next part
  bool ended = false;                    ///< the run is over and this was its last part
};
/// Events of the journal after a sequence number (0: from the run's beginning) that belong to the
/// run: changes of its state, and what happens to the nodes of its plans. At most `limit` entries
/// of the journal are looked at. Errors: NotFound
Result<RunEvents> followRun(lifecycle::RunStore& runs, lifecycle::Store& store,
                            const std::string& id, std::int64_t after, std::size_t limit);

// Each answers the run as it is then. Errors: NotFound; Conflict (the run's state forbids it, or
// the row is of a newer muster)

/// One that nobody works on is cancelled at once; of one under way no new action begins, what has
/// begun is left as by Ctrl-C, and a later apply takes it up.
Result<lifecycle::Run> cancelRun(lifecycle::RunStore& runs, const std::string& id,
                                 const lifecycle::RunActor& actor, WallTime now);
Result<lifecycle::Run> pauseRun(lifecycle::RunStore& runs, const std::string& id,
                                const lifecycle::RunActor& actor, WallTime now);
Result<lifecycle::Run> resumeRun(lifecycle::RunStore& runs, const std::string& id,
                                 const lifecycle::RunActor& actor, WallTime now);

// A plan is named by its hash, or by the first digits of it, eight at least.

/// The author's own yes to a plan (ApplyParams::confirm). Errors: also Denied (somebody else's run)
Result<lifecycle::Run> confirmRun(lifecycle::RunStore& runs, const std::string& id,
                                  const std::string& plan_hash, const lifecycle::RunActor& actor,
                                  WallTime now);
/// Somebody else's yes. Errors: also Denied (the author), Conflict (the plan is another one by now)
Result<lifecycle::Run> approveRun(lifecycle::RunStore& runs, const std::string& id,
                                  const std::string& plan_hash, const lifecycle::RunActor& actor,
                                  WallTime now);

/// Lets the newest plan of a run begin without its approvals, or outside a maintenance window. For
/// admins: who calls it has seen to that. Shown until it is acknowledged. Errors: also InvalidInput
/// (no reason, or a long one), Conflict (the plan is another one by now; it waits for nobody)
Result<lifecycle::Run> overrideRun(lifecycle::RunStore& runs, const std::string& id,
                                   const std::string& plan_hash, const std::string& reason,
                                   const lifecycle::RunActor& actor, WallTime now);
/// Somebody else knows of the overrides of a run. Errors: also Conflict (there is none to
/// acknowledge), Denied (they are this person's own)
Result<lifecycle::Run> acknowledgeRun(lifecycle::RunStore& runs, const std::string& id,
                                      const lifecycle::RunActor& actor, WallTime now);
/// One line for each run with an override that nobody has acknowledged, newest first; of many the
/// newest.
Result<std::vector<std::string>> loudOverrides(lifecycle::RunStore& runs);

}  // namespace muster::app
