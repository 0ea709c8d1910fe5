// SPDX-License-Identifier: Apache-2.0
// The course of a rollout: waves, gates, orders.
#include "lifecycle/rollout/runner.h"

#include "base/async/await_all.h"
#include "inventory/model/gates.h"
#include "inventory/model/node.h"
#include "inventory/model/rollout_policy.h"
#include "lifecycle/rollout/gate.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

bool isUnderWay(RolloutNodeState state) {
  return state == RolloutNodeState::Started || state == RolloutNodeState::Returning;
}

}  // namespace

Async<void> RolloutRunner::run(RolloutDirection direction) {
  CO_TRY_OK(course_.services.engine.signOn());
  CO_TRY_OK(course_.record.takeOver(direction));
  course_.window.emplace(domainsOf(course_.services.effective.cluster(), course_.services.leaves),
                         course_.record.rollout().policy.max_unavailable);
  CO_TRY_OK(co_await pools_.poll());
  if (direction == RolloutDirection::Forward) {
    CO_TRY_OK(co_await forward());
  }
  if (course_.record.rollout().direction == RolloutDirection::Back &&
      course_.record.rollout().state == RolloutState::Running) {
    CO_TRY_OK(co_await back());
  }
  co_return Result<void>();
}

/// One wave after the other, each through its gate. A wave whose nodes are all settled goes through
/// its gate at once, so that a runner that died in between evaluates again.
Async<void> RolloutRunner::forward() {
  while (course_.record.rollout().state == RolloutState::Running &&
         course_.record.rollout().direction == RolloutDirection::Forward) {
    const auto& rollout = course_.record.rollout();
    if (rollout.wave >= rollout.waves.size()) co_return end(RolloutState::Done, {});
    const auto& wave = rollout.waves[rollout.wave];
    left_pool_.clear();
    if (rollout.soak_until) {
      CO_TRY_OK(co_await soak());
      if (isOrderedToStop()) co_return stop();
      CO_TRY_OK(gate());
      continue;
    }
    course_.note(fmt::format("wave '{}', {} of {}: {} nodes", wave.name, rollout.wave + 1,
                             rollout.waves.size(), wave.nodes.size()));
    CO_TRY_OK(co_await runNodes(wave.nodes));
    if (isOrderedToStop()) co_return stop();
    CO_TRY_OK(gate());
  }
  co_return Result<void>();
}

/// The time is in the record: a runner that dies and comes back waits for what is left of it.
Async<void> RolloutRunner::soak() {
  course_.readOrders();
  while (!course_.stopped() &&
         course_.services.clock.now() < *course_.record.rollout().soak_until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        *course_.record.rollout().soak_until - course_.services.clock.now());
    co_await course_.services.clock.sleep(std::min<std::chrono::milliseconds>(left, kSoakPoll));
    course_.readOrders();
  }
  if (course_.error) co_return fail(*course_.error);
  if (course_.stopped()) co_return Result<void>();
  CO_TRY(left, co_await pools_.changedNodesThatLeft());
  left_pool_ = std::move(left);
  co_return Result<void>();
}

/// Evaluates the wave and takes the step that follows, in one write.
Result<void> RolloutRunner::gate() {
  auto gate = evaluateWave(course_.record, course_.record.rollout().wave);
  const bool soaked = course_.record.rollout().soak_until.has_value();
  if (const auto changed = course_.record.count(RolloutNodeState::Done);
      tooManyFailed(left_pool_.size(), changed, course_.record.rollout().policy))
    blameChange(
        gate, fmt::format("{} of {} changed nodes left their pools within {} minutes; {}",
                          left_pool_.size(), changed, course_.record.rollout().policy.soak_minutes,
                          left_pool_.front()));
  else
    std::copy(left_pool_.begin(), left_pool_.end(), std::back_inserter(gate.notes));
  if (failed_ > accepted_failed_ &&
      tooManyFailed(failed_ - accepted_failed_, wave_size_, course_.record.rollout().policy))
    gate.accepted_by.clear();
  if (!course_.stop_reason.empty() && (gate.passed || course_.no_room_since))
    gate.reasons.push_back(course_.stop_reason);
  gate.passed = gate.reasons.empty();
  Rollout next = course_.record.rollout();
  std::erase_if(next.gates,
                [&gate](const GateReport& earlier) { return earlier.wave == gate.wave; });
  next.gates.push_back(gate);
  const auto& nodes = next.waves[next.wave].nodes;
  const bool finished = std::none_of(nodes.begin(), nodes.end(), [this](const auto& node) {
    return course_.record.of(node).state == RolloutNodeState::Waiting;
  });
  const bool goes_on = finished && (gate.passed || !gate.accepted_by.empty());
  const bool watches = goes_on && !soaked && gate.accepted_by.empty() &&
                       next.policy.soak_minutes > 0 && next.wave + 1 < next.waves.size();
  const bool rolls_back = next.policy.on_failure == inventory::OnFailure::RollBack;
  next.soak_until.reset();
  if (watches) {
    next.soak_until = course_.services.clock.now() + std::chrono::minutes(next.policy.soak_minutes);
  } else if (goes_on) {
    ++next.wave;
    next.accepted_by.clear();
  } else if (rolls_back && gate.blames_change && gate.accepted_by.empty()) {
    next.direction = RolloutDirection::Back;
    next.reasons = gate.reasons;
  } else {
    next.state = RolloutState::Halted;
    next.accepted_by.clear();  // for what was known then, not for what has come since
    next.reasons = gate.reasons;
  }
  TRY_OK(course_.record.save(std::move(next)));
  course_.note(textOf(gate));
  if (watches)
    course_.note(fmt::format("its nodes soak until {}, then the next wave begins",
                             muster::toString(*course_.record.rollout().soak_until)));
  if (course_.record.rollout().state == RolloutState::Halted && rolls_back)
    course_.note(
        "not rolled back, although the policy says so for failures: the reason for the halt is not "
        "the change");
  if (course_.record.rollout().state == RolloutState::Halted)
    course_.note(
        "halted; nodes that have changed stay changed. Go on: muster rollout resume. Undo: muster "
        "rollout rollback");
  if (course_.record.rollout().direction == RolloutDirection::Back)
    course_.note("rolling back, as its policy says");
  return {};
}

/// The last nodes first: what was changed last has been tried least.
Async<void> RolloutRunner::back() {
  std::vector<NodeName> nodes;
  const auto& waves = course_.record.rollout().waves;
  for (auto wave = waves.rbegin(); wave != waves.rend(); ++wave)
    for (auto node = wave->nodes.rbegin(); node != wave->nodes.rend(); ++node) {
      const auto state = course_.record.of(*node).state;
      if (isChanged(course_.record.rollout(), state) || state == RolloutNodeState::Returning ||
          state == RolloutNodeState::RollbackFailed)
        nodes.push_back(*node);
    }
  course_.note(fmt::format("rolling back {} nodes", nodes.size()));
  for (const auto& [node, progress] : course_.record.progress())
    if (progress.state == RolloutNodeState::Untouched)
      course_.services.effective.revert(course_.record.rollout().id, node);
  CO_TRY_OK(co_await runNodes(std::move(nodes)));
  if (isOrderedToStop()) co_return stop();
  auto reasons = course_.record.rollout().reasons;
  if (!course_.stop_reason.empty()) {
    reasons.push_back(course_.stop_reason);
    co_return end(RolloutState::Halted, std::move(reasons));
  }
  for (const auto& [node, progress] : course_.record.progress())
    if (progress.state == RolloutNodeState::RollbackFailed)
      reasons.push_back(fmt::format("{} could not be rolled back: {}", node.str(), progress.why));
  for (const auto& stays : course_.record.rollout().irreversible)
    reasons.push_back("not rolled back: " + stays);
  co_return end(RolloutState::RolledBack, std::move(reasons));
}

bool RolloutRunner::isOrderedToStop() const {
  return course_.order.order != Order::None || !course_.held.empty();
}

Result<void> RolloutRunner::stop() {
  if (course_.order.order == Order::Abort)
    return end(RolloutState::Aborted, {"aborted by " + course_.order.by});
  if (course_.order.order == Order::Pause)
    return end(RolloutState::Paused, {"paused by " + course_.order.by});
  return end(RolloutState::Paused, {course_.held});
}

Result<void> RolloutRunner::end(RolloutState state, std::vector<std::string> reasons) {
  Rollout next = course_.record.rollout();
  next.state = state;
  next.reasons = std::move(reasons);
  TRY_OK(course_.record.save(std::move(next)));
  course_.note(fmt::format("{}: {} done, {} failed, {} skipped, {} untouched, {} waiting{}",
                           toString(state), course_.record.count(RolloutNodeState::Done),
                           course_.record.count(RolloutNodeState::Failed),
                           course_.record.count(RolloutNodeState::Skipped),
                           course_.record.count(RolloutNodeState::Untouched),
                           course_.record.count(RolloutNodeState::Waiting),
                           course_.record.rollout().direction == RolloutDirection::Back
                               ? fmt::format(", {} returned, {} rollback-failed",
                                             course_.record.count(RolloutNodeState::Returned),
                                             course_.record.count(RolloutNodeState::RollbackFailed))
                               : ""));
  for (const auto& reason : course_.record.rollout().reasons) course_.note(reason);
  return {};
}

// ---- nodes of a wave
// ---------------------------------------------------------------------------------------------------

Async<void> RolloutRunner::runNodes(std::vector<NodeName> nodes) {
  queue_.clear();
  course_.stop_reason.clear();
  course_.no_room_since.reset();
  wave_size_ = nodes.size();
  failed_ = 0;
  const bool forward = course_.record.rollout().direction == RolloutDirection::Forward;
  for (const auto& node : nodes) {
    const auto state = course_.record.of(node).state;
    if (state == RolloutNodeState::Failed && forward) ++failed_;
    const bool open = isUnderWay(state) || (forward ? state == RolloutNodeState::Waiting : true);
    if (open) queue_.push_back(node);
  }
  accepted_failed_ = course_.record.rollout().accepted_by.empty() ? 0 : failed_;
  std::stable_partition(queue_.begin(), queue_.end(), [this](const NodeName& node) {
    return isUnderWay(course_.record.of(node).state);
  });
  std::vector<Task<void>> lanes;
  for (std::size_t i = 0; i < std::min(queue_.size(), kMaxNodesUnderWay); ++i)
    lanes.push_back(lane());
  co_await async::awaitAll(std::move(lanes));
  if (course_.error) co_return fail(*course_.error);
  co_return Result<void>();
}

Task<void> RolloutRunner::lane() {
  for (;;) {
    course_.readOrders();
    const auto picked = pick();
    if (picked.next == Next::Finished) co_return;
    if (picked.next == Next::Go) {
      co_await runNode(picked.node);
      continue;
    }
    if (auto looked = co_await pools_.poll(); !looked) course_.error = std::move(looked).error();
    co_await course_.services.clock.sleep(kRoomPoll);
  }
}

/// Nodes that were under way when an earlier runner died go on even when an order says stop:
/// half-way is no place to be left.
RolloutRunner::Pick RolloutRunner::pick() {
  if (course_.error) return {};
  if (course_.record.rollout().direction == RolloutDirection::Forward &&
      course_.stop_reason.empty() &&
      tooManyFailed(failed_ - accepted_failed_, wave_size_, course_.record.rollout().policy))
    course_.stop_reason =
        accepted_failed_ == 0
            ? fmt::format("{} nodes of {} failed: no more were started", failed_, wave_size_)
            : fmt::format(
                  "{} nodes of {} failed besides those that were accepted: no more were started",
                  failed_ - accepted_failed_, wave_size_);
  std::string why;
  for (auto node = queue_.begin(); node != queue_.end(); ++node) {
    const bool left_half_way = isUnderWay(course_.record.of(*node).state);
    if (course_.stopped() && !left_half_way) return {};
    if (auto not_now = course_.window->whyNot(*node); !not_now.empty() && !left_half_way) {
      if (why.empty()) why = std::move(not_now);
      continue;
    }
    if (!left_half_way && !course_.mayBegin(*node)) return {};
    const Pick picked{Next::Go, *node};
    queue_.erase(node);
    course_.under_way.insert(picked.node);
    course_.window->out(picked.node);
    course_.no_room_since.reset();
    return picked;
  }
  if (queue_.empty()) return {};
  if (!course_.under_way.empty()) return {Next::Wait, {}};
  const auto now = course_.services.clock.steady();
  if (!course_.no_room_since) {
    course_.no_room_since = now;
    course_.note("no node may be drained now: " + why);
  }
  if (now - *course_.no_room_since < kNoRoomLimit) return {Next::Wait, {}};
  course_.stop_reason =
      fmt::format("no node could be drained for {} minutes: {}", kNoRoomLimit.count(), why);
  return {};
}

Task<void> RolloutRunner::runNode(NodeName node) {
  const bool forward = course_.record.rollout().direction == RolloutDirection::Forward;
  auto ended = co_await (forward ? nodes_.change(node) : nodes_.revert(node));
  if (ended && !*ended) {  // nothing was done to it: another turn
    course_.under_way.erase(node);
    queue_.push_back(node);
    co_return;
  }
  if (ended) {
    auto& progress = **ended;
    const auto words = fmt::format("{}{}{}", toString(progress.state),
                                   progress.why.empty() ? "" : ": ", progress.why);
    if (progress.state == RolloutNodeState::Failed) ++failed_;
    auto taken = nodes_.revokeWipe(node);  // before the record says that it is over
    auto kept = taken ? course_.record.put(node, std::move(progress)) : std::move(taken);
    if (kept) course_.note(node, words);
    if (!kept && !course_.error) course_.error = std::move(kept).error();
  } else if (!course_.error) {
    course_.error = std::move(ended).error();
  }
  course_.under_way.erase(node);
  if (course_.isDeclared(node)) pools_.updateWindow(node);
}

}  // namespace muster::lifecycle
