// SPDX-License-Identifier: Apache-2.0
// Which run is worked on, and what orders do to it. What happens in it: run_rounds.cc.
#include "app/runs/run_executor.h"

#include "app/runs/run_agreement.h"
#include "app/runs/run_change.h"
#include "app/runs/run_kind.h"
#include "app/runs/run_scope.h"
#include "lifecycle/model/plan.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <algorithm>
#include <array>

namespace muster::app {

using namespace lifecycle;

namespace {

constexpr std::chrono::seconds kRowPoll{1};        ///< rows are looked at so often
constexpr std::chrono::seconds kAfterTrouble{10};  ///< the store may be away

/// What has begun goes first, then what may begin, then what is to be planned.
constexpr std::array kFirst{RunState::Running,      RunState::Planning, RunState::Approved,
                            RunState::Planned,      RunState::Waiting,  RunState::Queued,
                            RunState::NeedsApproval};

bool isWorkedOn(const Run& run) {
  return run.state == RunState::Planning || run.state == RunState::Running;
}

}  // namespace

RunExecutor::RunExecutor(RunWork work, std::shared_ptr<RunMemory> memory)
    : work_(std::move(work)),
      rows_(work_.runs, work_.clock, work_.holder, work_.notice),
      memory_(std::move(memory)),
      rounds_(work_, rows_, *memory_) {}

RunExecutor::~RunExecutor() {
  memory_->hear = {};
  memory_->under_way.clear();
}

Task<void> RunExecutor::run() {
  for (;;) {
    auto worked = co_await step();
    if (!worked && std::exchange(last_trouble_, worked.error().str()) != last_trouble_)
      rows_.tell("runs could not be carried on: " + last_trouble_ + "; it is tried again");
    if (worked) last_trouble_.clear();
    if (worked && *worked) continue;
    co_await work_.clock.sleep(worked ? kRowPoll : kAfterTrouble);
  }
}

Async<bool> RunExecutor::step() {
  using namespace asio::experimental::awaitable_operators;
  CO_TRY(due, next());
  if (!due) co_return false;
  const auto id = due->id;
  memory_->under_way = id;
  auto work = rounds_.carryOut(std::move(*due));
  auto order = awaitOrder(id);
  auto either = std::move(work) || std::move(order);
  auto first = co_await std::move(either);
  memory_->under_way.clear();
  memory_->hear = {};
  if (first.index() == 1) {
    CO_TRY_OK(obey(id));
    co_return true;
  }
  if (const auto& done = std::get<0>(first); !done) {
    CO_TRY_OK(giveUp(id, done.error()));
  }
  co_return true;
}

/// Oldest first.
Result<std::optional<Run>> RunExecutor::next() {
  TRY(open, work_.runs.list({.open_only = true, .limit = kMaxOpenRuns}));
  std::reverse(open.begin(), open.end());
  for (const auto& run : open)  // a person's word about what nobody works on
    if (run.order == RunOrder::Cancel && !isWorkedOn(run) && run.unreadable.empty())
      TRY_OK(obey(run.id));
  // Who asked for a run after a reload is answered with the inventory as it is by then.
  const bool begin_none =
      memory_->begin_none || (memory_->is_reload_due && memory_->is_reload_due());
  for (const auto state : kFirst)
    for (auto& run : open) {
      const bool is_due = run.state == state && run.unreadable.empty();
      if (!is_due || (run.order == RunOrder::Cancel && !isWorkedOn(run))) continue;
      if (begin_none && state != RunState::Running && state != RunState::Planning) continue;
      TRY(taken, adopt(std::move(run), begin_none));
      if (taken) return taken;
    }
  return std::optional<Run>();
}

Result<std::optional<Run>> RunExecutor::adopt(Run run, bool begin_none) {
  const auto id = run.id;
  const bool was_worked_on = isWorkedOn(run);
  const auto& rules = rulesOf(run.kind);
  if (run.state == RunState::Waiting || run.state == RunState::NeedsApproval)
    return endWaiting(rows_, run, rules.isOutdated(work_, run));
  if (!was_worked_on) return std::optional(std::move(run));
  const bool obeys_itself = rules.obeysWhileRunning() && run.state == RunState::Running;
  if (run.order != RunOrder::None && !obeys_itself) {
    TRY_OK(obey(id));
    return std::optional<Run>();
  }
  if (run.state == RunState::Planning) {
    TRY(queued, rows_.move(id, RunState::Queued, RunReason::None, "it is planned anew"));
    if (begin_none) return std::optional<Run>();
    return std::optional(std::move(queued));
  }
  if (memory_->begun.contains(id)) return std::optional(std::move(run));
  if (run.after_restart == AfterRestart::Pause) {
    TRY_OK(rules.takeBack(work_, run));
    TRY_OK(rows_.move(id, RunState::Paused, RunReason::PausedAfterRestart,
                      "the process that worked on it has ended; `muster run resume " + id + "`"));
    return std::optional<Run>();
  }
  TRY(taken, changeRun(work_.runs, id, [&](Run row, std::string& note) -> Result<Run> {
        note = fmt::format("run {}: {} goes on with it", id, work_.holder);
        row.worked_on_by = work_.holder;
        return row;
      }));
  memory_->begun.insert(id);
  rows_.tell(fmt::format("run {} goes on", id));
  return std::optional(std::move(taken));
}

Task<RunOrder> RunExecutor::awaitOrder(std::string id) {
  for (;;) {
    co_await work_.clock.sleep(kRowPoll);
    rounds_.saveProgress(id);
    const auto run = work_.runs.read(id);
    if (!run || !*run) continue;
    const auto order = (*run)->order;
    if (!rounds_.obeys(order, (*run)->ordered_by) && order != RunOrder::None) co_return order;
  }
}

/// What the run has asked for and nobody has begun is taken back before its state says that it is
/// over: killed in between, it is tried again.
Result<void> RunExecutor::giveUp(const std::string& id, const Error& error) {
  if (!error.canRetry()) {
    TRY(run, rows_.read(id));
    TRY_OK(rulesOf(run.kind).takeBack(work_, run));
  }
  return rows_.endWith(id, error);
}

/// What is under way was dropped, as by a crash: nothing new begins, the journal knows the rest.
Result<void> RunExecutor::obey(const std::string& id) {
  TRY(ordered, rows_.read(id));
  const auto& rules = rulesOf(ordered.kind);
  TRY(taken_back, rules.takeBack(work_, ordered));
  if (ordered.order == RunOrder::Cancel) TRY_OK(rules.cancel(work_, ordered));
  TRY(begun, openActionsOf(work_.store, ordered));
  auto obeyed = changeRun(work_.runs, id, [&](Run run, std::string& note) -> Result<Run> {
    if (run.order == RunOrder::None || isEnd(run.state)) return run;
    const bool cancels = run.order == RunOrder::Cancel;
    const bool worked_on = isWorkedOn(run);
    const auto by = run.ordered_by;
    run.text = run.begun
                   ? fmt::format("{} actions were done; {} had begun and are left as they are",
                                 run.progress.done, begun.size())
                   : "nothing was done";
    std::vector<std::string> left;
    for (const auto& action : begun)
      left.push_back(action + ": had begun; the next `muster apply` looks at it");
    if (cancels) addProblems(run, left);
    addProblems(run, taken_back);
    note = fmt::format("run {}: {} by {}; {}", id, cancels ? "cancelled" : "paused", by, run.text);
    return changed(std::move(run), cancels ? RunState::Cancelled : RunState::Paused,
                   cancels ? RunReason::CancelledByPerson : RunReason::PausedByPerson,
                   worked_on ? RunMover::Executor : RunMover::Person, by, work_.clock.now());
  });
  if (!obeyed) return std::unexpected(obeyed.error());
  rows_.tell(fmt::format("run {} is {}", id, toString(obeyed->state)));
  return {};
}

}  // namespace muster::app
