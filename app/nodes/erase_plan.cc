// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/erase_plan.h"

#include "inventory/model/cluster.h"

#include <fmt/format.h>

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

}  // namespace

lifecycle::Policy erasurePolicy(const NodeName& node) {
  lifecycle::Policy policy;
  policy.only = {Subject(node)};
  policy.wipe_allowed = {node};
  policy.intents_to_end = std::set<std::string>();
  return policy;
}

Result<PlannedErasure> planErasure(const inventory::Cluster& cluster, lifecycle::Store& store,
                                   const lifecycle::FactSet& facts, const ErasureOrder& order) {
  const auto* node = cluster.findNode(order.node);
  if (!node)
    return fail(ErrorCode::NotFound, order.node.str() + " is not in the inventory any more");
  if (const auto why = provision::whyNotErase(cluster, node->name, facts))
    return fail(ErrorCode::Denied, *why + "; nothing was erased");
  TRY(serial, serialOf(*node, facts));
  TRY(request, provision::requestToGoOnWith(
                   store, node->name, {order.id, serial, order.disks, order.who, order.reason}));
  const auto draft = provision::makeErasureDraft(node->name, request);
  TRY(plan, lifecycle::makePlan(cluster, facts, erasurePolicy(node->name), {draft.get()}));
  for (const auto& action : plan.actions)
    if (!action.blocked.empty())
      return fail(ErrorCode::Denied, action.blocked + "; nothing was erased");
  return PlannedErasure{std::move(request), std::move(plan)};
}

}  // namespace muster::app
