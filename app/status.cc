// SPDX-License-Identifier: Apache-2.0
#include "app/status.h"

#include "base/limits.h"
#include "inventory/model/cluster.h"
#include "lifecycle/rollout/status.h"

namespace muster::app {
namespace {

Result<std::unique_ptr<Session>> openStored(const Options& options) {
  TRY(live, effectiveCluster(options));
  return Session::openStored(options, std::move(live));
}

Result<std::vector<NodeStatus>> nodeStatus(Session& session) {
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
  for (const auto& node : session.cluster().nodes) {
    const lifecycle::Subject subject(node.name);
    const auto& findings = findings_of[subject];
    const auto value = [&](std::string_view facet) {
      return facts.value(subject, FacetName(std::string(facet))).value_or("-");
    };
    const auto certificate = value("certificate");
    rows.push_back({node.name.str(),
                    lifecycle::nodeState(subject, facts, session.controller->goals(subject, facts),
                                         findings, intents_of[subject]),
                    value("pool"), value("image"), certificate.substr(0, certificate.find(':')),
                    findings.size()});
  }
  return rows;
}

std::optional<std::string> runningRollout(lifecycle::Store& store) {
  const auto book = lifecycle::RolloutRecord::current(store);
  if (!book || book->rollout().state != lifecycle::RolloutState::Running) return std::nullopt;
  return book->rollout().id;
}

}  // namespace

Result<StatusReader> StatusReader::open(const Options& options) {
  TRY(session, openStored(options));
  return StatusReader(std::move(session));
}

Result<SiteStatus> StatusReader::read() {
  SiteStatus out;
  TRY(nodes, nodeStatus(*session_));
  out.nodes = std::move(nodes);
  TRY(monitor, monitor::monitorStatus(session_->store(), session_->controller->clock().now()));
  out.monitor = std::move(monitor);
  if (!out.monitor.running && !out.monitor.text.empty())
    out.monitor_waits_for_rollout = runningRollout(session_->store());
  out.several_controllers = hasSeveralControllers(session_->cluster());
  if (out.several_controllers) out.leader = lifecycle::currentLeader(session_->store());
  return out;
}

Result<lifecycle::Explanation> explainSubject(const Options& options, const std::string& name) {
  TRY(session, openStored(options));
  if (name != lifecycle::Subject::kCluster) TRY_OK(requireNode(session->cluster(), name));
  auto& controller = *session->controller;
  const auto subject = lifecycle::Subject::parse(name);
  TRY(gathered, lifecycle::gatherExplanation(session->cluster(), controller.phases(),
                                             controller.store(), subject, controller.clock().now(),
                                             slownessOf(controller.clock())));
  auto explanation = lifecycle::explain(gathered);
  if (!subject.isCluster()) {
    TRY(standing,
        lifecycle::rolloutStatusOf(controller.store(), subject.node(), controller.clock().now()));
    explanation.rollout = std::move(standing);
  }
  return explanation;
}

}  // namespace muster::app
