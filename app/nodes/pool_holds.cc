// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/pool_holds.h"

#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/model/pool_hold.h"
#include "lifecycle/model/unread.h"
#include "lifecycle/store/store.h"

#include <algorithm>
#include <set>

namespace muster::app {
namespace {

using lifecycle::Subject;

const FacetName kHold{std::string(lifecycle::kPoolHoldFacet)};
const FacetName kOverride{std::string(lifecycle::kPoolOverrideFacet)};

std::optional<PoolHold> holdOf(const lifecycle::FactSet& facts, const NodeName& node) {
  const Subject subject(node);
  auto words = lifecycle::poolHoldOf(facts, subject);
  if (!words) return std::nullopt;
  PoolHold out{node, std::move(*words), facts.find(subject, kHold)->observed_at, false, {}};
  const auto* word = facts.find(subject, kOverride);
  out.overridden = word && word->value == out.hold;
  if (out.overridden) out.overridden_by = word->source;
  return out;
}

/// Whether the scheduler's last answer about the node is there, and not stale.
bool isKnown(const lifecycle::FactSet& facts, const Subject& subject) {
  if (!facts.find(subject, kHold)) return false;
  const auto unread = lifecycle::unreadOf(facts, subject);
  return std::ranges::none_of(unread,
                              [](const auto& each) { return each.what == lifecycle::kPoolFacet; });
}

}  // namespace

Result<PoolHolds> poolHolds(const Options& options) {
  TRY(cluster, loadCluster(options));
  TRY(store, openStoreForReading(options));
  TRY(facts, store->facts());
  PoolHolds out;
  for (const auto& node : cluster.nodes) {
    if (auto hold = holdOf(facts, node.name)) out.holds.push_back(std::move(*hold));
    if (!cluster.profileOf(node).pool.empty() && !isKnown(facts, Subject(node.name)))
      out.unread.push_back(node.name);
  }
  return out;
}

Result<std::vector<PoolHold>> overridePoolHolds(const Options& options, const std::string& nodes,
                                                const std::string& reason) {
  TRY(cluster, loadCluster(options));
  TRY(listed, inventory::expandHostlist(nodes));
  const std::set<std::string> names(listed.begin(), listed.end());
  TRY(store, openStoreForWriting(options));
  TRY(facts, store->facts());
  std::vector<PoolHold> out;
  for (const auto& name : names) {
    const NodeName node(name);
    if (!cluster.findNode(node))
      return fail(ErrorCode::NotFound,
                  fmt::format("node {} is not in the inventory; nothing was overridden", name));
    auto hold = holdOf(facts, node);
    if (!hold)
      return fail(ErrorCode::NotFound,
                  fmt::format("no person has drained {} as far as muster has seen; nothing was "
                              "overridden. `muster plan --nodes {}` asks its pool again",
                              name, name));
    out.push_back(std::move(*hold));
  }
  const auto now = SystemClock().now();
  for (auto& hold : out) {
    const Subject subject(hold.node);
    hold.overridden = true;
    hold.overridden_by = fmt::format("{}: {}", actorText(options), reason);
    TRY_OK(addNote(*store, subject,
                   fmt::format("{} overrides the drain by a person ({}): {}", actorText(options),
                               hold.hold, reason)));
    TRY_OK(store->putFacts({{subject, kOverride, hold.hold, now, hold.overridden_by, ""}}));
  }
  return out;
}

Result<monitor::BreakerStates> acknowledgeBreakers(const Options& options,
                                                   const std::string& reason) {
  if (reason.empty())
    return fail(ErrorCode::InvalidInput,
                "say what you have found: muster monitor --acknowledge --reason TEXT");
  TRY(store, openStoreForWriting(options));
  return monitor::Breakers(*store).acknowledge(actorText(options), reason, SystemClock().now());
}

}  // namespace muster::app
