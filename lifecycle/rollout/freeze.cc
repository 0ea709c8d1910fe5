// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/freeze.h"

#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/rollout/status.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

constexpr std::size_t kIntentsForBoot =
    64;  ///< of a node, newest first, among which its last start is looked for
constexpr std::string_view kBootFacet = "os";
constexpr const char* kBootMeasure = "boot_seconds";

/// All nodes with the change, for as long as it lives.
class AllChanged {
 public:
  AllChanged(EffectiveCluster& effective, std::string id, const std::vector<NodeName>& nodes)
      : live_(effective), id_(std::move(id)), nodes_(nodes) {
    for (const auto& node : nodes_) live_.change(id_, node);
  }
  ~AllChanged() {
    for (const auto& node : nodes_) live_.revert(id_, node);
  }
  AllChanged(const AllChanged&) = delete;

 private:
  EffectiveCluster& live_;
  std::string id_;
  const std::vector<NodeName>& nodes_;
};

/// All of these nodes that have the change, without it, for as long as it lives.
class AllReverted {
 public:
  AllReverted(EffectiveCluster& effective, std::string id, const std::vector<NodeName>& nodes)
      : live_(effective), id_(std::move(id)) {
    for (const auto& node : nodes)
      if (live_.has(id_, node)) nodes_.push_back(node);
    for (const auto& node : nodes_) live_.revert(id_, node);
  }
  ~AllReverted() {
    for (const auto& node : nodes_) live_.change(id_, node);
  }
  AllReverted(const AllReverted&) = delete;

 private:
  EffectiveCluster& live_;
  std::string id_;
  std::vector<NodeName> nodes_;
};

std::vector<std::string> whatStays(EffectiveCluster& effective, const std::string& id,
                                   const std::vector<NodeName>& nodes) {
  std::map<std::string, std::vector<std::string>> said;
  for (const auto& node : nodes)
    for (auto& text :
         inventory::irreversible(effective.cluster(), effective.profileWithout(id, node),
                                 effective.profileWith(id, node)))
      said[std::move(text)].push_back(node.str());
  std::vector<std::string> out;
  for (auto& [text, names] : said)
    out.push_back(fmt::format("{}: {}", inventory::foldHostlist(std::move(names)), text));
  return out;
}

}  // namespace

std::string newRolloutId() { return "r" + io::sha256Hex(io::randomToken()).substr(0, 6); }

Result<Measures> nodeMeasures(Store& store, const Subject& node, const std::vector<Fact>& facts,
                              WallTime since) {
  std::vector<Fact> fresh;
  std::copy_if(facts.begin(), facts.end(), std::back_inserter(fresh),
               [since](const Fact& fact) { return fact.observed_at >= since; });
  auto out = measuresOf(fresh);
  TRY(intents, store.intentsOf(node, kIntentsForBoot));
  for (const auto& intent : intents) {
    if (intent.action.facet.facet.str() != kBootFacet || intent.state != IntentState::Done)
      continue;
    if (intent.opened_at < since) break;
    const double seconds =
        std::chrono::duration<double>(intent.closed_at - intent.opened_at).count();
    if (seconds > 0) out[kBootMeasure] = seconds;
    break;
  }
  return out;
}

std::vector<std::string> beyondFrozen(const Plan& plan, const FrozenNode* frozen, bool begun) {
  std::vector<std::string> out;
  auto most = Disruption::None;
  if (frozen)
    for (const auto& each : frozen->actions) most = std::max(most, each.disruption);
  for (const auto& action : plan.actions) {
    if (action.facet.subject.isCluster()) {
      if (!begun)
        out.push_back(fmt::format("the cluster itself has work left: {}; do it with `muster apply`",
                                  action.id));
      continue;
    }
    const FrozenAction* same = nullptr;
    if (frozen)
      for (const auto& each : frozen->actions)
        if (each.id == action.id) same = &each;
    if (begun && action.disruption <= most) continue;
    if (!same)
      out.push_back(
          fmt::format("{} is needed now and was not when the plan was frozen", action.id));
    else if (action.disruption > same->disruption)
      out.push_back(fmt::format("{} would be a {} now, the frozen plan says {}", action.id,
                                toString(action.disruption), toString(same->disruption)));
    else if (action.to != same->to)
      out.push_back(fmt::format("{} goes for '{}' now, the frozen plan says '{}'", action.id,
                                action.to, same->to));
  }
  return out;
}

Result<RolloutDraft> draftWithPlan(EffectiveCluster& effective, const Phases& phases, Store& store,
                                   const FactSet& facts, RolloutRequest request) {
  TRY_OK(RolloutRecord::noneIsOpen(store));
  std::vector<NodeName> concerned;
  for (const auto& node : request.nodes)
    if (effective.affects(request.id, node)) concerned.push_back(node);
  if (concerned.empty())
    return fail(ErrorCode::InvalidInput,
                "the change makes no difference to any of these nodes: they are declared so "
                "already, or have other profiles");
  std::set<Subject> only;
  for (const auto& node : concerned) only.insert(Subject(node));
  TRY(policy, policyOf(store, only));
  if (!request.wipe_reason.empty()) policy.wipe_allowed.insert(concerned.begin(), concerned.end());
  Rollout rollout{.id = request.id,
                  .at = request.at,
                  .user = request.user,
                  .host = request.host,
                  .command = request.command,
                  .change_file = request.change_file,
                  .change_text = request.change_text,
                  .policy = request.policy,
                  .wipe_reason = request.wipe_reason,
                  .inventory_digest = effective.cluster().digest};
  for (const auto& node : concerned) {
    const auto& name = effective.profileWithout(request.id, node).name;
    rollout.declared.emplace(name, declarationOf(effective.cluster().profiles.at(name)));
  }
  std::map<NodeName, FrozenNode> frozen;
  std::map<NodeName, NodeProgress> progress;
  Plan frozen_plan;
  {
    const AllChanged changed(effective, request.id, concerned);
    TRY(plan, makePlan(effective.cluster(), facts, policy, phases));
    frozen_plan = plan;
    rollout.plan_hash = plan.hash();
    for (const auto& action : plan.actions) {
      if (action.facet.subject.isCluster())
        return fail(
            ErrorCode::Conflict,
            fmt::format("the cluster itself has work left, {} for one; do it first: muster apply",
                        action.id));
      const auto node = action.facet.subject.node();
      frozen[node].actions.push_back({action.id, action.to, action.disruption});
      if (!action.blocked.empty())
        progress.try_emplace(
            node, NodeProgress{RolloutNodeState::Skipped,
                               fmt::format("{} is blocked: {}", action.id, action.blocked),
                               {},
                               {}});
    }
  }
  std::vector<NodeName> going;
  for (const auto& node : concerned) {
    if (auto held = heldByPerson(facts, node); !held.empty() && frozen.contains(node))
      progress[node] = {RolloutNodeState::Skipped, std::move(held), {}, {}};
    if (progress.contains(node)) continue;
    const bool any = frozen.contains(node);
    progress[node].state = any ? RolloutNodeState::Waiting : RolloutNodeState::Untouched;
    if (!any) continue;
    going.push_back(node);
    TRY(before, nodeMeasures(store, Subject(node), facts.of(Subject(node)), {}));
    frozen[node].before = std::move(before);
  }
  const auto skipped = std::find_if(progress.begin(), progress.end(), [](const auto& p) {
    return p.second.state == RolloutNodeState::Skipped;
  });
  if (going.empty() && skipped != progress.end())
    return fail(ErrorCode::Conflict,
                fmt::format("no node can go; {}: {}", skipped->first.str(), skipped->second.why));
  rollout.waves = makeWaves(effective.cluster(), going, request.policy);
  rollout.irreversible = whatStays(effective, request.id, going);
  return RolloutDraft{
      RolloutRecord::draft(store, std::move(rollout), std::move(frozen), std::move(progress)),
      std::move(frozen_plan)};
}

Result<RolloutRecord> draftRollout(EffectiveCluster& effective, const Phases& phases, Store& store,
                                   const FactSet& facts, RolloutRequest request) {
  TRY(drafted, draftWithPlan(effective, phases, store, facts, std::move(request)));
  return std::move(drafted.record);
}

Result<Plan> planRollback(EffectiveCluster& effective, const Phases& phases, Store& store,
                          const FactSet& facts, const RolloutRecord& record, bool may_wipe) {
  std::vector<NodeName> nodes;
  std::set<Subject> only;
  for (const auto& [node, progress] : record.progress()) {
    const bool goes_back = isChanged(record.rollout(), progress.state) ||
                           progress.state == RolloutNodeState::Returning ||
                           progress.state == RolloutNodeState::RollbackFailed;
    if (!goes_back || !effective.cluster().findNode(node)) continue;
    nodes.push_back(node);
    only.insert(Subject(node));
  }
  if (nodes.empty())
    return fail(ErrorCode::Conflict, fmt::format("rollout {} has changed no node: there is nothing "
                                                 "to roll back",
                                                 record.rollout().id));
  TRY(policy, policyOf(store, only));
  if (may_wipe) policy.wipe_allowed.insert(nodes.begin(), nodes.end());
  const AllReverted reverted(effective, record.rollout().id, nodes);
  return makePlan(effective.cluster(), facts, policy, phases);
}

Result<RolloutRecord> freezeRollout(EffectiveCluster& effective, const Phases& phases, Store& store,
                                    const FactSet& facts, RolloutRequest request) {
  TRY(record, draftRollout(effective, phases, store, facts, std::move(request)));
  TRY_OK(record.begin());
  return record;
}

}  // namespace muster::lifecycle
