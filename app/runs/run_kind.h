// SPDX-License-Identifier: Apache-2.0
// RunKindRules: what one kind of run does in its own way, from its request to its end. What a kind
// does not override it does as an apply. `rulesOf` is the one place that knows every kind; whoever
// carries runs out asks the object. docs/development/how-to-add.md, docs/adr/0383. Internal to
// app/.
#pragma once

#include "base/async/task.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/runs/run.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::app {

class RunRounds;
struct RunWork;

inline constexpr std::size_t kMaxRunReasonBytes = 1000;  ///< of what a person gives as a reason
/// Whether it says something, in no more bytes than that.
bool isRunReason(const std::string& text);

/// What a run would do now.
struct RunPlan {
  lifecycle::Plan plan;
  /// What the row keeps of it beside what it keeps of every plan; empty: nothing.
  std::function<void(lifecycle::Run&)> note = {};
};

/// What holds while a plan is carried out; its destruction ends it.
class ApplyScope {
 public:
  ApplyScope() = default;
  virtual ~ApplyScope() = default;
  ApplyScope(const ApplyScope&) = delete;
};

/// Without state: there is one object a kind. `run` is always of that kind.
class RunKindRules {
 public:
  RunKindRules() = default;
  virtual ~RunKindRules() = default;
  RunKindRules(const RunKindRules&) = delete;

  // When somebody asks for it.

  /// Completes a new row, whose nodes are a folded hostlist. Errors: InvalidInput (says what to do)
  virtual Result<void> accept(lifecycle::Run& run) const;
  /// The run without what its own members got beside what was asked for: of two orders that are the
  /// same, the same.
  virtual lifecycle::Run asAsked(lifecycle::Run run) const;
  /// What it is about, for people.
  virtual std::string subject(const lifecycle::Run& run) const;

  // Before it begins.

  /// Whether the limits of pools, racks and units hold for each of its steps, which it keeps by
  /// itself; else for all that its plan takes out at once.
  virtual bool keepsLimitsByStep() const;
  /// Whether nodes are to be looked at for its plan.
  virtual bool isAboutNodes() const;
  /// Whether the inventory that this process has read holds what the plan is made from; if not, it
  /// is read again. Errors: InvalidInput (what was asked for does not fit it: each diagnostic)
  virtual Result<bool> isInventoryRead(const RunWork& work, const lifecycle::Run& run) const;
  /// What its plan counts as made from.
  virtual std::string digest(const RunWork& work) const;
  /// Whether its plan is void because the inventory is another one by now.
  virtual bool isOutdated(const RunWork& work, const lifecycle::Run& run) const;
  /// Which nodes are looked at. Errors: NotFound (a node), those of the kind
  virtual Result<lifecycle::Policy> policy(const RunWork& work, const lifecycle::Run& run) const;
  /// Errors: also why it must not do it
  virtual Async<RunPlan> plan(RunWork& work, lifecycle::Run run, lifecycle::FactSet facts,
                              lifecycle::Policy policy) const;
  /// Where nothing is left to do: what is to be said of it. `open`: intents that others have begun
  /// and not ended (declaredIntents).
  virtual std::optional<std::string> nothingLeft(const lifecycle::Run& run,
                                                 const lifecycle::Plan& plan,
                                                 const std::set<std::string>& open) const;

  // While it runs, and where it stops.

  /// Whether it obeys orders while it runs, between two nodes; else its executor stops it.
  virtual bool obeysWhileRunning() const;
  /// Whether one that is cancelled after it has begun has work to end first, which whoever serves
  /// the site does, also where nobody works on it at the moment.
  virtual bool hasWorkToEnd() const;
  /// Whether notes about its nodes belong to its events.
  virtual bool isToldByNotes() const;
  /// People have let it begin, or go on, and its row is about to say that it is running: what it
  /// keeps outside its row says so first. So a process that dies between the two leaves a run that
  /// has yet to go on, and no order is lost. Idempotent.
  virtual Result<void> prepareToGoOn(const RunWork& work, const lifecycle::Run& run) const;
  /// Of a run that is agreed to and begun, to its end. `first`: the plan that was agreed to, where
  /// it was made just now. May be dropped anywhere, and begun again.
  virtual Async<void> carryOut(RunRounds& rounds, lifecycle::Run run,
                               std::optional<lifecycle::Plan> first) const;
  /// Before the engine gets a plan of it. Null: nothing holds meanwhile.
  virtual Result<std::unique_ptr<ApplyScope>> prepareApply(const RunWork& work,
                                                           const lifecycle::Run& run,
                                                           const lifecycle::Plan& plan) const;
  /// Before the run rests or ends: what it has allowed or asked for, and nobody has begun, is taken
  /// back. Answers lines for people. Idempotent.
  virtual Result<std::vector<std::string>> takeBack(const RunWork& work,
                                                    const lifecycle::Run& run) const;
  /// Of a run that a person cancels (Run::ordered_by), after takeBack: what it keeps outside its
  /// row comes to its end too. Idempotent.
  virtual Result<void> cancel(const RunWork& work, const lifecycle::Run& run) const;
};

const RunKindRules& rulesOf(lifecycle::RunKind kind);

}  // namespace muster::app
