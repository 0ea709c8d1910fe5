// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/status.h"

#include "base/limits.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/node_state.h"
#include "lifecycle/rollout/status.h"

#include <set>

namespace muster::app {
namespace {

Result<std::unique_ptr<Session>> openStored(const Options& options) {
  TRY(live, effectiveCluster(options));
  return Session::openStored(options, std::move(live));
}

std::string namesOf(const auto& table) {
  std::string out;
  for (const auto& [name, value] : table) out += (out.empty() ? "" : ", ") + name;
  return out;
}

/// The nodes that the declared part of the filter chooses.
Result<std::vector<const inventory::Node*>> declaredNodes(const inventory::Cluster& cluster,
                                                          const NodeFilter& filter) {
  if (!filter.pool.empty() && !cluster.pools.contains(filter.pool))
    return fail(ErrorCode::NotFound, fmt::format("the inventory has no pool '{}'; it has: {}",
                                                 filter.pool, namesOf(cluster.pools)));
  if (!filter.profile.empty() && !cluster.profiles.contains(filter.profile))
    return fail(ErrorCode::NotFound, fmt::format("the inventory has no profile '{}'; it has: {}",
                                                 filter.profile, namesOf(cluster.profiles)));
  TRY(chosen, selectedNodes(cluster, filter.nodes));
  const std::set<NodeName> named(chosen.begin(), chosen.end());
  std::vector<const inventory::Node*> out;
  bool is_rack = filter.rack.empty();
  for (const auto& node : cluster.nodes) {
    is_rack = is_rack || node.rack == filter.rack;
    if ((named.empty() || named.contains(node.name)) &&
        (filter.rack.empty() || node.rack == filter.rack) &&
        (filter.profile.empty() || node.profile == filter.profile) &&
        (filter.pool.empty() || cluster.profileOf(node).pool == filter.pool))
      out.push_back(&node);
  }
  if (!is_rack)
    return fail(ErrorCode::NotFound,
                fmt::format("no node of the inventory is in rack '{}'", filter.rack));
  return out;
}

Result<std::vector<NodeStatus>> nodeStatus(Session& session, const NodeFilter& filter) {
  TRY(chosen, declaredNodes(session.cluster(), filter));
  auto& store = session.store();
  TRY(facts, store.facts());
  TRY(all_open, store.openIntents());
  TRY(all_findings, store.findings(nullptr));
  std::map<lifecycle::Subject, std::vector<lifecycle::Intent>> intents_of;
  std::map<lifecycle::Subject, std::vector<lifecycle::Finding>> findings_of;
  for (auto& intent : all_open)
    intents_of[intent.action.facet.subject].push_back(std::move(intent));
  for (auto& finding : all_findings)
    findings_of[finding.facet.subject].push_back(std::move(finding));
  std::vector<NodeStatus> rows;
  for (const auto* node : chosen) {
    const lifecycle::Subject subject(node->name);
    rows.push_back(
        nodeStatusOf(*session.controller, *node, facts, findings_of[subject], intents_of[subject]));
    if (!filter.state.empty() && rows.back().state != filter.state) rows.pop_back();
  }
  if (rows.empty() && !filter.state.empty() && !lifecycle::isNodeState(filter.state))
    return fail(ErrorCode::InvalidInput, fmt::format("no node is in the state '{}'; states: {}",
                                                     filter.state, lifecycle::nodeStateWords()));
  return rows;
}

std::optional<std::string> runningRollout(lifecycle::Store& store) {
  const auto book = lifecycle::RolloutRecord::current(store);
  if (!book || book->rollout().state != lifecycle::RolloutState::Running) return std::nullopt;
  return book->rollout().id;
}

}  // namespace

NodeStatus nodeStatusOf(const Controller& controller, const inventory::Node& node,
                        const lifecycle::FactSet& facts,
                        const std::vector<lifecycle::Finding>& findings,
                        const std::vector<lifecycle::Intent>& intents) {
  const lifecycle::Subject subject(node.name);
  const auto value = [&](std::string_view facet) {
    return facts.value(subject, FacetName(std::string(facet))).value_or("-");
  };
  const auto certificate = value("certificate");
  return {node.name.str(),
          lifecycle::nodeState(subject, facts, controller.goals(subject, facts), findings, intents),
          value("pool"),
          value("image"),
          certificate.substr(0, certificate.find(':')),
          findings.size(),
          lifecycle::unreadOf(facts, subject),
          node.rack,
          node.profile};
}

Result<StatusReader> StatusReader::open(const Options& options) {
  TRY(session, openStored(options));
  return StatusReader(std::move(session));
}

Result<SiteStatus> StatusReader::read(const NodeFilter& filter) {
  return readStatus(*session_, filter);
}

Result<SiteStatus> readStatus(Session& session, const NodeFilter& filter) {
  TRY(nodes, nodeStatus(session, filter));
  TRY(out, readWatch(session));
  out.nodes = std::move(nodes);
  return std::move(out);
}

Result<SiteStatus> readWatch(Session& session) {
  SiteStatus out;
  TRY(monitor, monitor::monitorStatus(session.store(), session.controller->clock().now()));
  out.monitor = std::move(monitor);
  if (!out.monitor.running && !out.monitor.text.empty())
    out.monitor_waits_for_rollout = runningRollout(session.store());
  out.several_controllers = hasSeveralControllers(session.cluster());
  if (out.several_controllers) out.leader = lifecycle::currentLeader(session.store());
  return out;
}

Result<lifecycle::Explanation> explainSubject(Session& session, const lifecycle::FactSet& facts,
                                              const lifecycle::Subject& subject) {
  auto& controller = *session.controller;
  TRY(gathered, lifecycle::gatherExplanation(
                    {session.cluster(), session.roster(), controller.phases(), controller.store(),
                     facts, session.durations, controller.clock().now(),
                     controller.clock().steady(), slownessOf(controller.clock())},
                    subject));
  auto explanation = lifecycle::explain(gathered);
  if (!subject.isCluster()) {
    TRY(standing,
        lifecycle::rolloutStatusOf(controller.store(), subject.node(), controller.clock().now()));
    explanation.rollout = std::move(standing);
  }
  return explanation;
}

Result<void> requireChoice(const NodeFilter& filter) {
  if (!filter.empty()) return {};
  return fail(ErrorCode::InvalidInput,
              "name nodes (hostlist) or @cluster, or choose some by --state, --rack, --pool or "
              "--profile");
}

Result<void> requireExplainable(std::size_t nodes, std::size_t max) {
  if (nodes == 0) return fail(ErrorCode::NotFound, "no node matches");
  if (nodes <= max) return {};
  return fail(ErrorCode::InvalidInput,
              fmt::format("these are {} nodes, and `why` explains at most {}; choose fewer, or see "
                          "`muster status`",
                          nodes, max));
}

Result<std::vector<lifecycle::Explanation>> explainSubjects(const Options& options,
                                                            const NodeFilter& filter,
                                                            std::size_t max) {
  TRY_OK(requireChoice(filter));
  std::vector<lifecycle::Explanation> out;
  TRY(session, openStored(options));
  TRY(facts, session->store().facts());
  if (filter.nodes == lifecycle::Subject::kCluster) {
    TRY(one, explainSubject(*session, facts, lifecycle::Subject::cluster()));
    out.push_back(std::move(one));
    return out;
  }
  TRY(rows, nodeStatus(*session, filter));
  TRY_OK(requireExplainable(rows.size(), max));
  for (const auto& row : rows) {
    TRY(one, explainSubject(*session, facts, lifecycle::Subject(NodeName(row.node))));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace muster::app
