// SPDX-License-Identifier: Apache-2.0
#include "app/validation/validate_run.h"

#include "app/site/effective_cluster.h"
#include "app/site/session.h"
#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"
#include "validate/synchronized_load.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace muster::app {
namespace {

constexpr std::string_view kGatePrefix = "gate.";

/// A run that was not finished goes on: what has passed since it began is not run again.
std::string markOf(const ValidateRunRequest& request) {
  return "validate.run." +
         io::sha256Hex(fmt::format("{}|{}", request.nodes, fmt::join(request.gates, ",")))
             .substr(0, 16);
}

Result<std::set<FacetName>> gatesOf(const inventory::Cluster& cluster,
                                    const std::vector<NodeName>& nodes,
                                    const std::vector<std::string>& wanted) {
  std::set<std::string> declared;
  for (const auto& node : nodes)
    for (const auto& gate : cluster.profileOf(*cluster.findNode(node)).gates) declared.insert(gate);
  std::set<FacetName> out;
  for (const auto& gate : wanted) {
    if (!declared.contains(gate))
      return fail(ErrorCode::NotFound,
                  fmt::format("no profile of these nodes has a gate {}; they have {}", gate,
                              fmt::join(declared, ", ")));
    out.insert(FacetName(std::string(kGatePrefix) + gate));
  }
  if (wanted.empty())
    for (const auto& gate : declared) out.insert(FacetName(std::string(kGatePrefix) + gate));
  if (out.empty())
    return fail(ErrorCode::InvalidInput, "the profiles of these nodes have no gates");
  return out;
}

/// Only gates, and what goes with them: leaving and joining the pool, and the certificate. Anything
/// else is apply's.
Result<void> onlyGates(const lifecycle::Plan& plan) {
  std::set<std::string> others;
  for (const auto& action : plan.actions) {
    const auto& facet = action.facet.facet.str();
    if (!facet.starts_with(kGatePrefix) && facet != "certificate" && facet != lifecycle::kPoolFacet)
      others.insert(action.id);
  }
  if (others.empty()) return {};
  return fail(
      ErrorCode::Conflict,
      fmt::format(
          "these nodes are not as declared yet; `muster apply` does that and runs their gates: {}",
          fmt::join(others, ", ")));
}

/// The planned nodes of each rack start their gates at one moment.
Result<void> synchronizeLoad(Controller& controller, const inventory::Cluster& cluster,
                             const lifecycle::Plan& plan, ProgressListener& progress) {
  std::set<NodeName> nodes;
  for (const auto& action : plan.actions)
    if (action.facet.facet.str().starts_with(kGatePrefix))
      nodes.insert(action.facet.subject.node());
  TRY(told, controller.synchronizedLoad().request(cluster, {nodes.begin(), nodes.end()}));
  for (const auto& line : told) progress.onNotice(line);
  return {};
}

}  // namespace

Result<ValidateRunResult> runGates(const Options& options, const ValidateRunRequest& request,
                                   ProgressListener& progress) {
  TRY(live, effectiveCluster(options));
  TRY(session, Session::open(options, std::move(live), Role::Active, progress));
  auto& controller = *session->controller;
  if (request.minutes)
    controller.stopAfter(std::chrono::minutes(*request.minutes), request.time_is_over_status);
  auto& store = controller.store();
  TRY(nodes, selectedNodes(session->cluster(), request.nodes));
  TRY(gates, gatesOf(session->cluster(), nodes, request.gates));
  std::set<lifecycle::Subject> only;
  for (const auto& node : nodes) only.insert(lifecycle::Subject(node));
  TRY(policy, lifecycle::policyOf(store, only));

  const auto mark = markOf(request);
  TRY(began, store.getValue(mark));
  WallTime since = controller.clock().now();
  if (began && !began->empty()) {
    TRY(earlier, parseWallTime(*began));
    since = earlier;
    progress.onNotice(fmt::format("goes on with the run of {}", *began));
  }
  TRY(facts, controller.run(controller.observe(policy)));
  std::map<lifecycle::Subject, std::vector<FacetName>> again;
  auto if_forgotten = facts;
  for (const auto& subject : only)
    for (const auto& fact : facts.of(subject))
      if (gates.contains(fact.facet) && fact.observed_at < since) {
        again[subject].push_back(fact.facet);
        if_forgotten.forget(subject, fact.facet);
      }
  TRY(plan, controller.plan(if_forgotten, policy));
  TRY_OK(onlyGates(plan));
  progress.onPlan(plan);
  if (request.synchronized_load)
    TRY_OK(synchronizeLoad(controller, session->cluster(), plan, progress));
  if (request.dry_run) return ValidateRunResult{};

  TRY_OK(store.putValue(mark, toString(since)));
  for (const auto& [subject, facets] : again) TRY_OK(store.forgetFacts(subject, facets));
  TRY(now, controller.run(controller.observe(policy)));
  TRY(real, controller.plan(now, policy));
  TRY_OK(onlyGates(real));
  TRY(done, controller.run(controller.apply(std::move(real))));
  progress.onReport(done);
  if (!done.ok()) return ValidateRunResult{false};
  TRY_OK(store.putValue(mark, ""));
  return ValidateRunResult{};
}

}  // namespace muster::app
