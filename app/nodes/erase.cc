// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/erase.h"

#include "app/site/effective_cluster.h"
#include "base/json_input.h"
#include "inventory/model/cluster.h"
#include "provision/storage/erase.h"

#include <nlohmann/json.hpp>

namespace muster::app {
namespace {

using lifecycle::Subject;

/// The serial that the node's firmware must report: what the inventory declares, else what its
/// agent has reported.
Result<std::string> serialOf(const inventory::Node& node, const lifecycle::FactSet& facts) {
  if (!node.serial.empty()) return node.serial;
  if (const auto reported = facts.value(Subject(node.name), FacetName("hw.serial"));
      reported && !reported->empty())
    return *reported;
  return fail(ErrorCode::NotFound,
              fmt::format("the serial of {} is not known, so it cannot be verified that this is "
                          "the right machine; declare it in the inventory",
                          node.name.str()));
}

/// Only this one action: whatever else is open belongs to somebody's apply.
Result<lifecycle::Plan> planOf(Session& session, const NodeName& node,
                               const lifecycle::FactSet& facts) {
  lifecycle::Policy policy;
  policy.only = {Subject(node)};
  policy.wipe_allowed = {node};
  policy.intents_to_end = std::set<std::string>();
  return lifecycle::makePlan(session.cluster(), facts, policy, {&session.controller->erasures()});
}

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
  if (const auto why = provision::whyNotErase(session->cluster(), node.name, facts))
    return fail(ErrorCode::Denied, *why + "; nothing was erased");
  TRY(serial, serialOf(node, facts));
  TRY(request, provision::requestToGoOnWith(
                   controller.store(), node.name,
                   {io::randomToken(6), serial, wanted.disks, actorText(), wanted.reason}));
  controller.erasures().ask(node.name, request);
  TRY(plan, planOf(*session, node.name, facts));
  progress.onPlan(plan);
  if (!wanted.confirmed) return EraseResult{};
  TRY_OK(provision::beginErasure(controller.store(), plan, node.name, request,
                                 controller.clock().now()));
  TRY(report, controller.run(controller.apply(plan)));
  progress.onReport(report);
  return resultOf(*session, only, request.id, node.name, report.ok() && report.held == 0);
}

Result<std::string> cancelErasure(const Options& options, const NodeName& node) {
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
