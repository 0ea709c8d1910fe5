// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_erasure.h"

#include "app/runs/run_kinds.h"
#include "app/runs/run_scope.h"

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

}  // namespace

Result<PlannedErasure> planErasure(const RunWork& work, const Run& run, const FactSet& facts) {
  TRY(node, nodeOf(run));
  if (run.erase.reason.empty())
    return fail(ErrorCode::InvalidInput, "an erasure needs a reason; nothing was erased");
  const auto& id = run.erase.request.empty() ? run.id : run.erase.request;
  return planErasure(work.cluster, work.store, facts,
                     {node, id, run.erase.disks, whoAsked(run), run.erase.reason});
}

namespace {

/// What the run has asked for and its node has not begun, as a line for people; nothing: there is
/// none.
Result<std::optional<std::string>> takeBack(Store& store, const Run& run, WallTime now) {
  if (run.kind != RunKind::Erase || run.erase.request.empty() || !run.begun)
    return std::optional<std::string>();
  TRY(node, nodeOf(run));
  return provision::withdrawErasure(store, node, run.erase.request, fmt::format("run {}", run.id),
                                    now);
}

}  // namespace

Result<void> restErasures(RunStore& runs, Store& store, WallTime now,
                          const std::function<void(const NodeName&)>& forget) {
  TRY(open, runs.list({.open_only = true, .limit = kMostOpenRuns}));
  for (const auto& run : open) {
    TRY(taken, takeBack(store, run, now));
    if (taken) forget(NodeName(run.apply.nodes));
  }
  return {};
}

Result<std::vector<std::string>> leaveErasure(RunWork& work, const Run& run) {
  TRY(taken, takeBack(work.store, run, work.clock.now()));
  std::vector<std::string> out;
  if (!taken) return out;
  if (work.erasures) work.erasures->forget(NodeName(run.apply.nodes));
  out.push_back(std::move(*taken));
  return out;
}

namespace {

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

}  // namespace

Async<void> eraseDisks(RunWork& work, RunRows& rows, Run run, ApplyOfRun apply) {
  CO_TRY(is_complete, isErasureComplete(work, run));
  ApplyReport report;
  if (!is_complete) {
    CO_TRY(policy, policyFor(work, run));
    auto facts = co_await work.observe(policy);
    if (!facts) co_return std::unexpected(std::move(facts).error());
    CO_TRY(planned, planErasure(work, run, *facts));
    CO_TRY_OK(askForErasure(work, run, planned));
    auto applied = co_await apply(run, std::move(planned.plan));
    if (!applied) co_return std::unexpected(std::move(applied).error());
    report = std::move(*applied);
  }
  co_return endErasure(work, rows, run, report);
}

}  // namespace muster::app
