// SPDX-License-Identifier: Apache-2.0
// Engine: carries out a plan, one coroutine a subject, journaling each intent before its effect.
//
// What an action wants is decided when it starts. Some goals depend on facts that the same run
// learns (a gate's scope holds hardware serials that only the inspection reads), so Action::to of
// the plan may be a value that could not be known yet. When an action starts, the engine asks its
// phase for the goal of the same facet again (goals() is pure) and acts towards and verifies
// against that value. This is sound because the engine runs a plan only with the inventory it was
// computed from (same digest), so only facts can have moved the value. The value is journaled with
// the intent. A goal that is gone, or that would now disturb more than the plan said, stops the
// action: plan again.
//
// Order of what is committed for one action, so that kill -9 at any point is harmless
// (docs/adr/0003):
//   intent open (with the wipe permission it uses) → facts that a wipe makes worthless are
//   forgotten → outside effect, its id recorded → facts re-read by verify → findings of the facet
//   cleared → intent closed.
#pragma once

#include "base/clock.h"
#include "lifecycle/model/node_state.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/store/journal.h"
#include "lifecycle/store/store.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace muster::lifecycle {

inline constexpr int kMaxActionRetries = 3;
inline constexpr std::size_t kMaxConcurrentSubjects =
    16'384;  ///< what a run may have under way; what is dear has budgets (apply_run.h)
inline constexpr std::size_t kMaxConcurrentObservations = 256;       ///< subjects
inline constexpr std::chrono::milliseconds kFirstRetryDelay{2'000};  ///< doubles with every retry
inline constexpr std::chrono::milliseconds kShortestPoll{10};        ///< floor of Again::after
inline constexpr std::chrono::milliseconds kProgressStoreInterval{
    500};  ///< at most 2 progress events a second and action are stored
inline constexpr std::chrono::seconds kSameProgressStoreInterval{
    10};  ///< … and of those that say the same, one in this time
inline constexpr std::chrono::seconds kObserveDeadline{120};  ///< for one phase and subject
inline constexpr std::chrono::seconds kVerifyDeadline{120};

inline constexpr std::chrono::seconds kLease{
    30};  ///< a controller that has been away so long loses its claims

using EventSink = std::function<void(const Event&)>;

/// Which controller works, and who asked it to.
struct Origin {
  std::string holder =
      "this controller";  ///< unique among the controllers of one store, the same after a restart
  std::chrono::milliseconds lease = kLease;
  std::string user, host, command;
};

/// Who carries a plan out within one controller: its monitor, one of its runs.
struct Worker {
  std::string name;  ///< "run r-…"; those of one name share what they hold. Empty: a command
  std::string user, host, command;  ///< who asked for it; no user: as the Origin says
};

/// Which worker of this controller has a subject now, and which had it last.
struct SubjectBook {
  std::map<Subject, std::string> held, last;
};

/// What engine code works with; borrowed, so it must outlive every run.
/// Machines that start, or are written, at the same time, in the whole cluster.
struct DisruptionBudget;
std::shared_ptr<DisruptionBudget> makeDisruptionBudget(const inventory::Cluster& cluster,
                                                       Clock& clock);

struct Services {
  const inventory::Cluster& cluster;
  Phases phases;
  Store& store;
  Clock& clock;
  EventSink sink;
  Origin origin = {};
  std::shared_ptr<std::size_t> runs =
      std::make_shared<std::size_t>(0);  ///< plans being carried out under one session of the store
  Journal* journal = nullptr;            ///< without one each write is a commit of its own
  std::size_t subjects_at_once = kMaxConcurrentSubjects;
  ConsoleLines console = {};
  std::shared_ptr<DisruptionBudget> disruption_budget =
      {};  ///< of all plans that are carried out at the same time: a rollout's nodes have one each
  std::string worker = {};  ///< Worker::name
  std::shared_ptr<SubjectBook> book = std::make_shared<SubjectBook>();

  /// Fills time, stores the event (a store that refuses costs only the event) and shows it when it
  /// is stored, in order.
  void emit(Event event, bool stored = true) const;
  Phase* phase(std::string_view name) const;
};

struct ApplyReport {
  int done = 0;
  int failed = 0;
  int blocked = 0;
  int skipped = 0;  ///< not started because something before them failed or was blocked
  int held = 0;     ///< left alone because another controller works on their subject
  std::vector<std::string> problems;  ///< one line each: action id, why, what to do
  bool ok() const { return failed == 0 && blocked == 0 && skipped == 0; }
};

/// Why `Engine::holding` has not begun: a reason of its Error.
enum class HoldRefusal { OthersWork };

class Engine {
 public:
  Engine(const inventory::Cluster& cluster, Phases phases, Store& store, Clock& clock,
         EventSink sink)
      : journal_(std::make_unique<Journal>(store)),
        services_{cluster,
                  std::move(phases),
                  store,
                  clock,
                  std::move(sink),
                  {},
                  std::make_shared<std::size_t>(0),
                  journal_.get()} {
    services_.disruption_budget = makeDisruptionBudget(cluster, clock);
  }

  /// The journal writes on the control thread: for virtual time, which must not pass while a thread
  /// works.
  void useOneThread() {
    journal_ = std::make_unique<Journal>(services_.store, false);
    services_.journal = journal_.get();
  }

  /// A ceiling for the runs that follow.
  void limitSubjects(std::size_t at_once) { services_.subjects_at_once = at_once; }

  /// For the runs that follow.
  void actFor(Origin origin) { services_.origin = std::move(origin); }

  /// For the findings of the runs that follow.
  void readConsoles(ConsoleLines console) { services_.console = std::move(console); }

  /// Observes every subject of the policy through every phase, stores what was seen, answers all
  /// facts. What a phase cannot read now is noted as an event; its older facts stay. Findings of
  /// facets that are met again are cleared. Errors: only of the store
  Async<FactSet> observe(Policy policy);

  /// The same for these nodes alone, without the cluster: what a run over many nodes asks before
  /// and after each of them.
  Async<FactSet> observeNodes(std::set<Subject> nodes);

  /// Carries out the plan. Several may be carried out at once: a subject that another worker of
  /// this controller has is left alone and counts as held, as one of another controller does; two
  /// plans of one worker must not share a subject.
  /// Open intents of an earlier run are taken up again: the facet is re-read first, and only if the
  /// goal is not met does the phase act, with the same intent id and its recorded operation. Open
  /// intents of the plan's subjects that the plan no longer names are closed after a look; call it
  /// with an empty plan too. Each subject is claimed while it is worked on; one that another
  /// controller holds is left alone and told of, with its dependents. A failing action stops its
  /// subject (what comes after it is not started), not the others; its facts are re-read, so that
  /// none from before the attempt stays. Errors: Conflict (the plan is of another inventory), and
  /// those of the store before anything was started
  Async<ApplyReport> apply(Plan plan, Worker worker = {});

  /// Claims these subjects for the worker while `work` goes on, which is no plan: tests between
  /// nodes. Nobody else works on them meanwhile. Errors: Conflict with HoldRefusal::OthersWork
  /// (somebody has one of them: who), and those of `work`
  Async<void> holding(std::set<Subject> subjects, Worker worker, std::function<Async<void>()> work);

  /// Ends the session of this holder's earlier life, which may be a moment old: until then what it
  /// had claimed is another's, and nothing can be written about it. Each plan's run does so when it
  /// begins; call it where something is written about nodes before that. Does nothing while a run
  /// goes on. Errors: of the store
  Result<void> signOn();

  /// What other workers of this controller have now.
  std::set<Subject> heldByOthers(const std::string& worker) const;

 private:
  Async<FactSet> observeAll(std::vector<Subject> subjects);

  std::unique_ptr<Journal> journal_;
  Services services_;
};

/// The policy for planning now: permissions given and not used, and nodes whose journaled image
/// action is not finished.
Result<Policy> policyOf(Store& store, std::set<Subject> only);
/// The same, of what was read already.
Policy policyOf(std::set<Subject> only, const std::vector<NodeName>& wipe_grants,
                const std::vector<Intent>& open);

}  // namespace muster::lifecycle
