#include "lifecycle/rollout/overlay.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster::lifecycle {
namespace {

/// Is there a node that has the change, or still has to lose it?
bool matters(const RolloutBook& book) {
  return book.rollout().isOpen() || std::any_of(book.progress().begin(), book.progress().end(), [&book](const auto& p) {
           return isCrossed(book.rollout(), p.second.state) || p.second.state == NodeState::Returning || p.second.state == NodeState::Stuck;
         });
}

/// Profiles of which the inventory still says what it said when the rollout began.
std::set<std::string> unedited(const Rollout& rollout, const inventory::Cluster& cluster) {
  std::set<std::string> out;
  for (const auto& [name, was] : rollout.declared)
    if (const auto profile = cluster.profiles.find(name); profile != cluster.profiles.end() && declarationOf(profile->second) == was) out.insert(name);
  return out;
}

Error misfit(const Rollout& rollout, const Diagnostics& diagnostics) {
  const auto& all = diagnostics.all();
  const auto first = std::find_if(all.begin(), all.end(), [](const Diagnostic& one) { return one.severity == Severity::Error; });
  return Error(ErrorCode::Conflict,
               fmt::format("rollout {} has changed nodes, and its change does not fit the inventory any more: {}. Put into the inventory what was "
                           "rolled out, or take the inventory's edit back and then: muster rollout rollback",
                           rollout.id, first == all.end() ? "" : first->str()));
}

}  // namespace

Result<void> layRollouts(LiveCluster& live, Store& store) {
  TRY(ids, RolloutBook::list(store));
  for (const auto& id : ids) {
    TRY(book, RolloutBook::open(store, id));
    const auto& rollout = book.rollout();
    const auto profiles = unedited(rollout, live.cluster());
    if (!matters(book) || profiles.empty()) continue;
    auto loaded = inventory::loadChangeText(rollout.change_text, rollout.change_file, live.cluster());
    if (!loaded.change) return fail(misfit(rollout, loaded.diagnostics));
    std::erase_if(loaded.change->profiles, [&profiles](const auto& entry) { return !profiles.contains(entry.first); });
    live.add(id, std::move(*loaded.change));
    for (const auto& [node, progress] : book.progress())
      if (isCrossed(rollout, progress.state)) live.cross(id, node);
  }
  return {};
}

Result<std::string> rolloutsMark(Store& store) {
  TRY(ids, RolloutBook::list(store));
  std::string mark;
  for (const auto& id : ids) {
    TRY(book, RolloutBook::open(store, id));
    mark += id;
    for (const auto& [node, progress] : book.progress())
      if (isCrossed(book.rollout(), progress.state)) mark += " " + node.str();
    mark += "\n";
  }
  return mark;
}

Result<void> dropAbsorbed(LiveCluster& live, Store& store) {
  TRY(ids, RolloutBook::list(store));
  std::vector<std::string> over;
  for (const auto& id : ids) {
    TRY(book, RolloutBook::open(store, id));
    if (book.rollout().isOpen()) continue;
    const bool differs = std::any_of(book.progress().begin(), book.progress().end(), [&](const auto& p) {
      return isCrossed(book.rollout(), p.second.state) && live.cluster().findNode(p.first) && live.concerns(id, p.first);
    });
    if (!differs) over.push_back(id);
  }
  return RolloutBook::drop(store, over);
}

Result<std::string> orderRollout(RolloutBook& book, Order order, const std::string& by, bool alone) {
  const auto& rollout = book.rollout();
  const bool runs = rollout.state == RolloutState::Running;
  if (!rollout.isOpen() || (order == Order::Pause && !runs))
    return fail(ErrorCode::Conflict, fmt::format("rollout {} is {}; there is nothing to {}", rollout.id, toString(rollout.state), toString(order)));
  if (runs && !alone) {
    TRY_OK(book.give({order, by}));
    auto told = fmt::format("rollout {} was told to {}: nodes under way are finished, no others start", rollout.id, toString(order));
    if (order == Order::Abort) told += "; if none runs it: `muster rollout resume` finishes what is under way and ends it";
    return told;
  }
  if (order == Order::Abort)
    for (const auto& [node, progress] : book.progress())
      if (progress.state == NodeState::Started || progress.state == NodeState::Returning) TRY_OK(book.takeBackWipe(node));
  Rollout next = rollout;
  next.state = order == Order::Pause ? RolloutState::Paused : RolloutState::Aborted;
  next.reasons = {fmt::format("{} by {}", toString(next.state), by)};
  TRY_OK(book.save(std::move(next)));
  return fmt::format("rollout {} is {}; nodes that have changed stay changed (undo: muster rollout rollback)", rollout.id, toString(book.rollout().state));
}

Result<RolloutWay> prepareResume(RolloutBook& book, const std::string& accepted_by) {
  const auto& rollout = book.rollout();
  if (!rollout.isOpen())
    return fail(ErrorCode::Conflict, fmt::format("rollout {} is {}; there is nothing to go on with", rollout.id, toString(rollout.state)));
  if (!accepted_by.empty() && rollout.state != RolloutState::Halted)
    return fail(ErrorCode::Conflict, fmt::format("rollout {} is {}: it has no failed gate that could be accepted; resume it without --accept",
                                                 rollout.id, toString(rollout.state)));
  const auto way = rollout.way;
  if (way == RolloutWay::Back || rollout.wave >= rollout.waves.size()) return way;
  if (!accepted_by.empty()) {
    Rollout next = rollout;
    next.accepted_by = accepted_by;
    TRY_OK(book.save(std::move(next)));
    return way;
  }
  if (rollout.state != RolloutState::Halted) return way;
  for (const auto& node : rollout.waves[rollout.wave].nodes) {
    auto progress = book.of(node);
    if (progress.state != NodeState::Failed) continue;
    progress.state = NodeState::Started;
    progress.why.clear();
    TRY_OK(book.put(node, std::move(progress)));
  }
  return way;
}

}  // namespace muster::lifecycle
