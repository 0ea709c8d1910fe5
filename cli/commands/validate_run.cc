// SPDX-License-Identifier: Apache-2.0
// validate run: gates again, by the engine, so with journal, deadlines, drains and the racks' power
// like in every apply.
#include "cli/commands/commands.h"
#include "cli/session.h"
#include "cli/view/plan_view.h"

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

constexpr std::string_view kGatePrefix = "gate.";

/// A run that was not finished goes on: what has passed since it began is not run again.
std::string markOf(const ValidateFlags& flags) {
  return "validate.run." +
         io::sha256Hex(fmt::format("{}|{}", flags.nodes, fmt::join(flags.gates, ",")))
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

/// Whose gates run, those in the plan: each rack's share of them begins together.
Result<void> askTogether(app::Controller& controller, const inventory::Cluster& cluster,
                         const lifecycle::Plan& plan, bool json) {
  std::set<NodeName> nodes;
  for (const auto& action : plan.actions)
    if (action.facet.facet.str().starts_with(kGatePrefix))
      nodes.insert(action.facet.subject.node());
  TRY(told, controller.rackSteps().ask(cluster, {nodes.begin(), nodes.end()}));
  for (const auto& line : told) (json ? std::cerr : std::cout) << line << std::endl;
  return {};
}

Result<int> runGates(const app::Options& options, const ValidateFlags& flags) {
  TRY(live, effectiveCluster(options));
  TRY(session, Session::open(options, std::move(live), app::Role::Active, false));
  auto& controller = *session->controller;
  if (flags.minutes) controller.stopAfter(std::chrono::minutes(*flags.minutes), kFailed);
  auto& store = controller.store();
  TRY(nodes, selectedNodes(session->cluster(), flags.nodes));
  TRY(gates, gatesOf(session->cluster(), nodes, flags.gates));
  std::set<lifecycle::Subject> only;
  for (const auto& node : nodes) only.insert(lifecycle::Subject(node));
  TRY(policy, lifecycle::policyOf(store, only));

  const auto mark = markOf(flags);
  TRY(began, store.getValue(mark));
  WallTime since = controller.clock().now();
  if (began && !began->empty()) {
    TRY(earlier, parseWallTime(*began));
    since = earlier;
    std::cerr << fmt::format("goes on with the run of {}\n", *began);
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
  if (!options.json) std::cout << planText(plan) << std::endl;
  if (flags.synchronized_load)
    TRY_OK(askTogether(controller, session->cluster(), plan, options.json));
  if (flags.dry_run) return int{kOk};

  TRY_OK(store.putValue(mark, toString(since)));
  for (const auto& [subject, facets] : again) TRY_OK(store.forgetFacts(subject, facets));
  TRY(now, controller.run(controller.observe(policy)));
  TRY(real, controller.plan(now, policy));
  TRY_OK(onlyGates(real));
  TRY(done, controller.run(controller.apply(std::move(real))));
  session->view.finish();
  if (!options.json) std::cout << reportText(done);
  if (!done.ok()) return int{kFailed};
  TRY_OK(store.putValue(mark, ""));
  return int{kOk};
}

}  // namespace

int validateRun(const app::Options& options, const ValidateFlags& flags) {
  const auto code = runGates(options, flags);
  return code ? *code : report(code.error());
}

}  // namespace muster::cli
