// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_erasure.h"

#include "app/nodes/erase_plan.h"
#include "app/runs/run_rounds.h"
#include "app/runs/run_scope.h"
#include "app/site/effective_cluster.h"
#include "base/printable.h"

#include <fmt/format.h>

namespace muster::app {

using namespace lifecycle;

namespace {

constexpr std::size_t kMostOpenRuns = 100'000;

Result<NodeName> nodeOf(const Run& run) {
  const auto names = namesOf(run.apply.nodes);
  if (names.size() == 1) return NodeName(*names.begin());
  return fail(ErrorCode::InvalidInput, "an erasure is of one node; nothing was erased");
}

std::string whoAsked(const Run& run) {
  return fmt::format("{}@{} (run {})", run.asked_by.principal, run.asked_by.address, run.id);
}

Result<PlannedErasure> planErasureOf(const RunWork& work, const Run& run, const FactSet& facts) {
  TRY(node, nodeOf(run));
  if (run.erase.reason.empty())
    return fail(ErrorCode::InvalidInput, "an erasure needs a reason; nothing was erased");
  const auto& id = run.erase.request.empty() ? run.id : run.erase.request;
  return planErasure(work.cluster, work.store, facts,
                     {node, id, run.erase.disks, whoAsked(run), run.erase.reason});
}

/// What the run has asked for and its node has not begun, as a line for people; nothing: there is
/// none.
Result<std::optional<std::string>> withdraw(Store& store, const Run& run, WallTime now) {
  if (run.erase.request.empty() || !run.begun) return std::optional<std::string>();
  TRY(node, nodeOf(run));
  return provision::withdrawErasure(store, node, run.erase.request, fmt::format("run {}", run.id),
                                    now);
}

}  // namespace

Result<void> restErasures(RunStore& runs, Store& store, WallTime now,
                          const std::function<void(const NodeName&)>& forget) {
  TRY(open, runs.list({.open_only = true, .limit = kMostOpenRuns}));
  for (const auto& run : open) {
    if (run.kind != RunKind::Erase) continue;
    TRY(taken, withdraw(store, run, now));
    if (taken) forget(NodeName(run.apply.nodes));
  }
  return {};
}

namespace {

Result<std::vector<std::string>> leaveErasure(const RunWork& work, const Run& run) {
  TRY(taken, withdraw(work.store, run, work.clock.now()));
  std::vector<std::string> out;
  if (!taken) return out;
  if (work.erasures) work.erasures->forget(NodeName(run.apply.nodes));
  out.push_back(std::move(*taken));
  return out;
}

Result<void> askForErasure(RunWork& work, const Run& run, const PlannedErasure& planned) {
  if (!work.erasures)
    return fail(ErrorCode::Internal, "this process cannot erase disks; nothing was erased");
  TRY(node, nodeOf(run));
  if (planned.request.id != run.erase.request)
    return fail(ErrorCode::Conflict,
                fmt::format("another erasure of {} was asked for meanwhile", node.str()));
  TRY_OK(
      provision::beginErasure(work.store, planned.plan, node, planned.request, work.clock.now()));
  work.erasures->ask(node, planned.request);
  return {};
}

Result<bool> isErasureComplete(RunWork& work, const Run& run) {
  TRY(node, nodeOf(run));
  return provision::isComplete(work.store, node, run.erase.request);
}

Result<void> endErasure(RunWork& work, RunRows& rows, const Run& run, const ApplyReport& report) {
  TRY(is_complete, isErasureComplete(work, run));
  TRY(taken_back, leaveErasure(work, run));
  const auto note = [&](Run& row) { addProblems(row, taken_back); };
  const auto why = report.problems.empty() ? std::string() : report.problems.front();
  if (is_complete && work.erasures) work.erasures->forget(NodeName(run.apply.nodes));
  if (is_complete && report.ok() && report.held == 0) {
    TRY_OK(rows.move(run.id, RunState::Done, RunReason::None,
                     fmt::format("every disk that was meant is erased; `muster erase {} --report`",
                                 run.apply.nodes)));
    return {};
  }
  const bool has_failed = report.failed > 0;
  const auto reason = has_failed        ? RunReason::ActionFailed
                      : report.held > 0 ? RunReason::OthersWork
                                        : RunReason::Blocked;
  TRY_OK(rows.move(run.id, has_failed ? RunState::Failed : RunState::WorkLeft, reason, why, note));
  return {};
}

Result<Policy> policyForErasure(const RunWork& work, const Run& run) {
  TRY(selected, selectedNodes(work.cluster, run.apply.nodes));
  if (selected.size() != 1)
    return fail(ErrorCode::InvalidInput, "an erasure is of one node; nothing was erased");
  return erasurePolicy(selected.front());
}

Async<void> eraseDisks(RunRounds& rounds, Run run) {
  auto& work = rounds.work();
  CO_TRY(is_complete, isErasureComplete(work, run));
  ApplyReport report;
  if (!is_complete) {
    CO_TRY(policy, policyForErasure(work, run));
    auto facts = co_await work.observe(policy);
    if (!facts) co_return std::unexpected(std::move(facts).error());
    CO_TRY(planned, planErasureOf(work, run, *facts));
    CO_TRY_OK(askForErasure(work, run, planned));
    auto applied = co_await rounds.apply(run, std::move(planned.plan));
    if (!applied) co_return std::unexpected(std::move(applied).error());
    report = std::move(*applied);
  }
  co_return endErasure(work, rounds.rows(), run, report);
}

Result<void> requireDisks(const std::vector<std::string>& disks) {
  std::set<std::string> serials;
  for (const auto& disk : disks)
    if (disk.find_first_not_of(" \t\r\n") == std::string::npos || !serials.insert(disk).second)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("\"{}\" is no serial of a disk, or stands there twice: name each "
                              "disk once, by its serial; nothing was done",
                              printable(disk)));
  return {};
}

class ErasureRules final : public RunKindRules {
 public:
  Result<void> accept(Run& run) const override {
    if (namesOf(run.apply.nodes).size() != 1)
      return fail(ErrorCode::InvalidInput, "an erasure is of one node: name it; nothing was done");
    if (!isRunReason(run.erase.reason))
      return fail(ErrorCode::InvalidInput,
                  fmt::format("an erasure needs a reason, of at most {} bytes; it is kept in the "
                              "report; nothing was done",
                              kMaxRunReasonBytes));
    return requireDisks(run.erase.disks);
  }
  Run asAsked(Run run) const override {
    run.erase.request.clear();  // planning adds it
    return run;
  }
  Result<Policy> policy(const RunWork& work, const Run& run) const override {
    return policyForErasure(work, run);
  }
  Async<RunPlan> plan(RunWork& work, Run run, FactSet facts, Policy) const override {
    CO_TRY(planned, planErasureOf(work, run, facts));
    co_return RunPlan{std::move(planned.plan),
                      [request = planned.request.id](Run& row) { row.erase.request = request; }};
  }
  std::optional<std::string> nothingLeft(const Run&, const Plan& plan,
                                         const std::set<std::string>&) const override {
    return plan.empty() ? std::optional<std::string>("") : std::nullopt;
  }
  Async<void> carryOut(RunRounds& rounds, Run run, std::optional<Plan>) const override {
    co_return co_await eraseDisks(rounds, std::move(run));
  }
  Result<std::vector<std::string>> takeBack(const RunWork& work, const Run& run) const override {
    return leaveErasure(work, run);
  }
};

}  // namespace

const RunKindRules& erasureRules() {
  static const ErasureRules rules;
  return rules;
}

}  // namespace muster::app
