// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/erase.h"

#include "app/nodes/erase_plan.h"
#include "app/plans/current_impact.h"
#include "app/runs/run_policy.h"
#include "app/runs/runs.h"
#include "app/site/effective_cluster.h"
#include "base/json_input.h"
#include "inventory/model/cluster.h"
#include "provision/storage/erase.h"

#include <nlohmann/json.hpp>

namespace muster::app {
namespace {

using lifecycle::Subject;

/// Whether the report is of this request, and not of an earlier one.
bool isOf(const std::string& report, const std::string& request_id) {
  const auto json = jsonOrNone(report, kKeptJson);
  return json.is_object() && json.contains("request") && json["request"] == request_id;
}

/// What the disks hold now, and what is recorded of this erasure.
Result<EraseResult> resultOf(Session& session, const lifecycle::Policy& only,
                             const std::string& request_id, const NodeName& node, bool is_ok) {
  auto& controller = *session.controller;
  (void)controller.run(controller.observe(only));
  EraseResult out;
  const auto kept = provision::erasureReport(controller.store(), node);
  if (kept && *kept && isOf(**kept, request_id)) out.report = **kept;
  TRY(complete, provision::isComplete(controller.store(), node, request_id));
  out.complete = complete && is_ok;
  return out;
}

}  // namespace

Result<EraseResult> eraseNode(const Options& options, const EraseRequest& wanted,
                              ProgressListener& progress) {
  if (wanted.confirmed && wanted.reason.empty())
    return fail(ErrorCode::InvalidInput,
                "--reason is missing; it is kept in the report; nothing was done");
  TRY(live, effectiveCluster(options));
  TRY_OK(requireNode(live->cluster(), wanted.node.str()));
  TRY(session, Session::open(options, std::move(live),
                             wanted.confirmed ? Role::Active : Role::ReadOnly, progress));
  auto& controller = *session->controller;
  const auto& node = *session->cluster().findNode(wanted.node);
  lifecycle::Policy only;
  only.only = {Subject(node.name)};
  TRY(facts, controller.run(controller.observe(only)));
  TRY(planned,
      planErasure(session->cluster(), controller.store(), facts,
                  {node.name, io::randomToken(6), wanted.disks, actorText(), wanted.reason}));
  const auto& request = planned.request;
  const auto& plan = planned.plan;
  progress.onPlan(plan);
  if (!wanted.confirmed) return EraseResult{};
  TRY(impact, controller.run(currentImpact(session->cluster(), controller.store(), facts, plan,
                                           [&controller](lifecycle::Subject subject) {
                                             return controller.observePool(std::move(subject));
                                           })));
  TRY_OK(requireNoApprovals(session->cluster(), plan, impact, controller.clock().now()));
  controller.erasures().ask(node.name, request);
  TRY_OK(provision::beginErasure(controller.store(), plan, node.name, request,
                                 controller.clock().now()));
  TRY(report, controller.run(controller.apply(plan)));
  progress.onReport(report);
  return resultOf(*session, only, request.id, node.name, report.ok() && report.held == 0);
}

namespace {

/// What a run asks for ends with the run: taken back beside it, it would be asked for again.
Result<void> requireNoRun(const Options& options, const NodeName& node) {
  TRY(runs, openRunStore(options));
  TRY(open, listRuns(*runs, {.open_only = true, .limit = lifecycle::kMaxOpenRuns}));
  for (const auto& run : open)
    if (run.kind == lifecycle::RunKind::Erase && run.apply.nodes == node.str())
      return fail(ErrorCode::Conflict,
                  fmt::format("run {0} erases {1}, or waits to: `muster run cancel {0}`; nothing "
                              "was changed",
                              run.id, node.str()));
  return {};
}

}  // namespace

Result<std::string> cancelErasure(const Options& options, const NodeName& node) {
  if (storeExists(options)) TRY_OK(requireNoRun(options, node));
  TRY(lock, acquireLock(options.state));
  (void)lock;  // held to the end
  TRY(store, openStoreForWriting(options));
  return provision::cancelErasure(*store, node, actorText(), SystemClock().now());
}

Result<std::string> erasureReport(const Options& options, const NodeName& node) {
  TRY(store, openStoreForReading(options));
  TRY(report, provision::erasureReport(*store, node));
  if (!report)
    return fail(ErrorCode::NotFound, node.str() + " was never erased: there is no report");
  return std::move(*report);
}

}  // namespace muster::app
