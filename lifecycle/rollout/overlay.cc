// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/overlay.h"

#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/firmware.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace muster::lifecycle {
namespace {

/// Is there a node that has the change, or still has to lose it?
bool matters(const RolloutRecord& record) {
  return record.rollout().isOpen() ||
         std::any_of(record.progress().begin(), record.progress().end(), [&record](const auto& p) {
           return isChanged(record.rollout(), p.second.state) ||
                  p.second.state == RolloutNodeState::Returning ||
                  p.second.state == RolloutNodeState::RollbackFailed;
         });
}

/// Profiles of which the inventory still says what it said when the rollout began.
std::set<std::string> unedited(const Rollout& rollout, const inventory::Cluster& cluster) {
  std::set<std::string> out;
  for (const auto& [name, was] : rollout.declared)
    if (const auto profile = cluster.profiles.find(name);
        profile != cluster.profiles.end() && declarationOf(profile->second) == was)
      out.insert(name);
  return out;
}

Error mismatch(const Rollout& rollout, const Diagnostics& diagnostics) {
  const auto& all = diagnostics.all();
  const auto first = std::find_if(all.begin(), all.end(), [](const Diagnostic& one) {
    return one.severity == Severity::Error;
  });
  return Error(
      ErrorCode::Conflict,
      fmt::format(
          "rollout {} has changed nodes, and its change no longer fits the "
          "inventory: {}. Put into the inventory what was "
          "rolled out, or revert the edit of the inventory and then: muster rollout rollback",
          rollout.id, first == all.end() ? "" : first->str()));
}

/// What of a profile the change sets, in the inventory's words.
std::set<std::string> setBy(const inventory::ProfileChange& change) {
  std::set<std::string> out;
  if (change.image) out.insert("image");
  if (change.firmware) out.insert("firmware");
  if (change.drivers) out.insert("drivers");
  return out;
}

/// The rollout's change as it lies over the inventory, read over those before it; nullopt: it makes
/// no difference any more.
Result<std::optional<inventory::Change>> changeOf(const RolloutRecord& record,
                                                  const EffectiveCluster& effective) {
  const auto& rollout = record.rollout();
  const auto profiles = unedited(rollout, effective.cluster());
  if (!matters(record) || profiles.empty()) return std::optional<inventory::Change>();
  auto loaded =
      inventory::loadChangeText(rollout.change_text, rollout.change_file, effective.cluster());
  if (!loaded.change) return fail(mismatch(rollout, loaded.diagnostics));
  std::erase_if(loaded.change->profiles,
                [&profiles](const auto& entry) { return !profiles.contains(entry.first); });
  return std::move(loaded.change);
}

using SetByProfile = std::map<std::string, std::set<std::string>>;

/// Of each rollout what it sets of which profile.
Result<std::map<std::string, SetByProfile>> setByAll(const inventory::Cluster& declared,
                                                     Store& store,
                                                     const std::vector<std::string>& ids) {
  EffectiveCluster effective(declared);
  std::map<std::string, SetByProfile> out;
  for (const auto& id : ids) {
    TRY(record, RolloutRecord::open(store, id));
    TRY(change, changeOf(record, effective));
    if (!change) continue;
    for (const auto& [name, each] : change->profiles) out[id].emplace(name, setBy(each));
    effective.add(id, std::move(*change));
  }
  return out;
}

/// What `later` has set on top of `record` on nodes that have both: node names, and what.
struct Overlap {
  std::vector<std::string> nodes;
  std::set<std::string> what;
};
Overlap overlapOf(const RolloutRecord& record, const RolloutRecord& later,
                  std::map<std::string, SetByProfile>& set_by, const inventory::Cluster& declared) {
  Overlap out;
  auto &mine = set_by[record.rollout().id], &theirs = set_by[later.rollout().id];
  for (const auto& [name, progress] : record.progress()) {
    const auto* node = declared.findNode(name);
    const auto other = later.progress().find(name);
    const bool is_to_lose_it = progress.state == RolloutNodeState::Returning ||
                               progress.state == RolloutNodeState::RollbackFailed ||
                               (isChanged(record.rollout(), progress.state) &&
                                progress.state != RolloutNodeState::Untouched);
    if (!node || !is_to_lose_it || other == later.progress().end() ||
        !isChanged(later.rollout(), other->second.state))
      continue;
    std::vector<std::string> both;
    std::set_intersection(mine[node->profile].begin(), mine[node->profile].end(),
                          theirs[node->profile].begin(), theirs[node->profile].end(),
                          std::back_inserter(both));
    out.what.insert(both.begin(), both.end());
    if (!both.empty()) out.nodes.push_back(name.str());
  }
  return out;
}

}  // namespace

Result<void> mayRollBack(const inventory::Cluster& declared, Store& store,
                         const RolloutRecord& record) {
  const auto& id = record.rollout().id;
  if (record.rollout().state == RolloutState::RolledBack &&
      record.count(RolloutNodeState::RollbackFailed) == 0)
    return fail(ErrorCode::Conflict, fmt::format("rollout {} is rolled back already", id));
  TRY(ids, RolloutRecord::list(store));
  const auto mine = std::find(ids.begin(), ids.end(), id);
  if (mine == ids.end())
    return fail(ErrorCode::Conflict,
                fmt::format("rollout {} is over: what it changed is the inventory's own by now, or "
                            "was undone; change the inventory instead",
                            id));
  TRY(set_by, setByAll(declared, store, ids));
  for (auto i = ids.size(); i-- > 0;) {  // the newest first: it is the one that can go
    const auto& each = ids[i];
    if (each == id) continue;
    TRY(other, RolloutRecord::open(store, each));
    if (other.rollout().isOpen())
      return fail(ErrorCode::Conflict, fmt::format("rollout {} is {}; let it end, or end it with "
                                                   "`muster rollout abort`, then roll {} back",
                                                   each, toString(other.rollout().state), id));
    if (std::find(mine, ids.end(), each) == ids.end()) continue;  // an earlier one
    auto overlap = overlapOf(record, other, set_by, declared);
    if (!overlap.nodes.empty())
      return fail(
          ErrorCode::Conflict,
          fmt::format("rollout {0} cannot be rolled back now: rollout {1} has set {2} of {3} "
                      "since. Roll that back first: muster rollout rollback --id {1}",
                      id, each, fmt::join(overlap.what, " and "),
                      inventory::foldHostlist(std::move(overlap.nodes))));
  }
  EffectiveCluster bare(declared);
  if (auto laid = applyOverlays(bare, store, id); !laid)
    return fail(std::move(laid).error().within(fmt::format(
        "rollout {} cannot be rolled back, because a later change needs what it brought", id)));
  return {};
}

Result<void> applyOverlays(EffectiveCluster& effective, Store& store, const std::string& without) {
  TRY(ids, RolloutRecord::list(store));
  for (const auto& id : ids) {
    if (id == without) continue;
    TRY(record, RolloutRecord::open(store, id));
    TRY(change, changeOf(record, effective));
    if (!change) continue;
    effective.add(id, std::move(*change));
    for (const auto& [node, progress] : record.progress())
      if (isChanged(record.rollout(), progress.state)) effective.change(id, node);
  }
  return {};
}

Result<std::string> overlaysMark(Store& store) {
  TRY(ids, RolloutRecord::list(store));
  std::string mark;
  for (const auto& id : ids) {
    TRY(record, RolloutRecord::open(store, id));
    mark += id;
    for (const auto& [node, progress] : record.progress())
      if (isChanged(record.rollout(), progress.state)) mark += " " + node.str();
    mark += "\n";
  }
  return mark;
}

Result<void> dropMerged(EffectiveCluster& effective, Store& store) {
  TRY(ids, RolloutRecord::list(store));
  std::vector<std::string> over;
  for (const auto& id : ids) {
    TRY(record, RolloutRecord::open(store, id));
    if (record.rollout().isOpen()) continue;
    const bool differs =
        std::any_of(record.progress().begin(), record.progress().end(), [&](const auto& p) {
          return isChanged(record.rollout(), p.second.state) &&
                 effective.cluster().findNode(p.first) && effective.affects(id, p.first);
        });
    if (!differs) over.push_back(id);
  }
  return RolloutRecord::drop(store, over);
}

Result<std::string> orderRollout(RolloutRecord& record, Order order, const std::string& by,
                                 bool alone) {
  const auto& rollout = record.rollout();
  const bool runs = rollout.state == RolloutState::Running;
  if (!rollout.isOpen() || (order == Order::Pause && !runs))
    return fail(ErrorCode::Conflict,
                fmt::format("rollout {} is {}; there is nothing to {}", rollout.id,
                            toString(rollout.state), toString(order)));
  if (runs && !alone) {
    TRY_OK(record.give({order, by}));
    auto told =
        fmt::format("rollout {} was ordered to {}: nodes under way are finished, no others start",
                    rollout.id, toString(order));
    if (order == Order::Abort)
      told += "; if none runs it: `muster rollout resume` finishes what is under way and ends it";
    return told;
  }
  if (order == Order::Abort)
    for (const auto& [node, progress] : record.progress())
      if (progress.state == RolloutNodeState::Started ||
          progress.state == RolloutNodeState::Returning)
        TRY_OK(record.revokeWipe(node));
  Rollout next = rollout;
  next.state = order == Order::Pause ? RolloutState::Paused : RolloutState::Aborted;
  next.reasons = {fmt::format("{} by {}", toString(next.state), by)};
  TRY_OK(record.save(std::move(next)));
  return fmt::format(
      "rollout {} is {}; nodes that have changed stay changed (undo: muster rollout rollback)",
      rollout.id, toString(record.rollout().state));
}

Result<RolloutDirection> prepareResume(RolloutRecord& record, const std::string& accepted_by) {
  const auto& rollout = record.rollout();
  if (!rollout.isOpen())
    return fail(ErrorCode::Conflict, fmt::format("rollout {} is {}; there is nothing to resume",
                                                 rollout.id, toString(rollout.state)));
  if (!accepted_by.empty() && rollout.state != RolloutState::Halted)
    return fail(ErrorCode::Conflict, fmt::format("rollout {} is {}: it has no failed gate that "
                                                 "could be accepted; resume it without --accept",
                                                 rollout.id, toString(rollout.state)));
  const auto direction = rollout.direction;
  if (direction == RolloutDirection::Back || rollout.wave >= rollout.waves.size()) return direction;
  if (!accepted_by.empty()) {
    Rollout next = rollout;
    next.accepted_by = accepted_by;
    TRY_OK(record.save(std::move(next)));
    return direction;
  }
  if (rollout.state != RolloutState::Halted) return direction;
  for (const auto& node : rollout.waves[rollout.wave].nodes) {
    auto progress = record.of(node);
    if (progress.state != RolloutNodeState::Failed) continue;
    progress.state = RolloutNodeState::Started;
    progress.why.clear();
    TRY_OK(record.put(node, std::move(progress)));
  }
  return direction;
}

}  // namespace muster::lifecycle
