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

void RolloutRunner::note(const NodeName& node, std::string text) const {
  Event event{0,
              services_.clock.now(),
              EventKind::Note,
              {},
              "",
              fmt::format("rollout {}: {}", record_.rollout().id, text)};
  if (!node.empty()) event.subject = Subject(node);
  if (auto stored = services_.store.addEvent(event))
    event.sequence = *stored;  // the record holds what matters
  if (services_.sink) services_.sink(event);
}

Async<void> RolloutRunner::run(RolloutDirection direction) {
  CO_TRY_OK(record_.takeOver(direction));
  window_.emplace(domainsOf(services_.effective.cluster(), services_.leaves),
                  record_.rollout().policy.max_unavailable);
  CO_TRY_OK(co_await pollPools());
  if (direction == RolloutDirection::Forward) {
    CO_TRY_OK(co_await forward());
  }
  if (record_.rollout().direction == RolloutDirection::Back &&
      record_.rollout().state == RolloutState::Running) {
    CO_TRY_OK(co_await back());
  }
  co_return Result<void>();
}

/// One wave after the other, each through its gate. A wave whose nodes are all settled goes through
/// its gate at once, so that a runner that died in between judges again.
Async<void> RolloutRunner::forward() {
  while (record_.rollout().state == RolloutState::Running &&
         record_.rollout().direction == RolloutDirection::Forward) {
    const auto& rollout = record_.rollout();
    if (rollout.wave >= rollout.waves.size()) co_return end(RolloutState::Done, {});
    const auto& wave = rollout.waves[rollout.wave];
    left_pool_.clear();
    if (rollout.soak_until) {
      CO_TRY_OK(co_await soak());
      if (order_.order == Order::Pause)
        co_return end(RolloutState::Paused, {"paused by " + order_.by});
      if (order_.order == Order::Abort)
        co_return end(RolloutState::Aborted, {"aborted by " + order_.by});
      CO_TRY_OK(gate());
      continue;
    }
    note(fmt::format("wave '{}', {} of {}: {} nodes", wave.name, rollout.wave + 1,
                     rollout.waves.size(), wave.nodes.size()));
    CO_TRY_OK(co_await runNodes(wave.nodes));
    if (order_.order == Order::Pause)
      co_return end(RolloutState::Paused, {"paused by " + order_.by});
    if (order_.order == Order::Abort)
      co_return end(RolloutState::Aborted, {"aborted by " + order_.by});
    CO_TRY_OK(gate());
  }
  co_return Result<void>();
}

/// The time is in the record: a runner that dies and comes back waits for what is left of it.
Async<void> RolloutRunner::soak() {
  readOrders();
  while (!stopped() && services_.clock.now() < *record_.rollout().soak_until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*record_.rollout().soak_until -
                                                                   services_.clock.now());
    co_await services_.clock.sleep(std::min<std::chrono::milliseconds>(left, kSoakPoll));
    readOrders();
  }
  if (error_) co_return fail(*error_);
  if (stopped()) co_return Result<void>();
  co_return co_await checkChangedNodes();
}

/// Judges the wave and takes the step that follows, in one write.
Result<void> RolloutRunner::gate() {
  auto gate = evaluateWave(record_, record_.rollout().wave);
  const bool soaked = record_.rollout().soak_until.has_value();
  if (const auto changed = record_.count(RolloutNodeState::Done);
      tooManyFailed(left_pool_.size(), changed, record_.rollout().policy))
    blameChange(gate, fmt::format("{} of {} changed nodes left their pools within {} minutes; {}",
                                  left_pool_.size(), changed, record_.rollout().policy.soak_minutes,
                                  left_pool_.front()));
  else
    std::copy(left_pool_.begin(), left_pool_.end(), std::back_inserter(gate.notes));
  if (failed_ > accepted_failed_ &&
      tooManyFailed(failed_ - accepted_failed_, wave_size_, record_.rollout().policy))
    gate.accepted_by.clear();
  if (!stop_reason_.empty() && (gate.passed || no_room_since_))
    gate.reasons.push_back(stop_reason_);
  gate.passed = gate.reasons.empty();
  Rollout next = record_.rollout();
  std::erase_if(next.gates,
                [&gate](const GateReport& earlier) { return earlier.wave == gate.wave; });
  next.gates.push_back(gate);
  const auto& nodes = next.waves[next.wave].nodes;
  const bool finished = std::none_of(nodes.begin(), nodes.end(), [this](const auto& node) {
    return record_.of(node).state == RolloutNodeState::Waiting;
  });
  const bool goes_on = finished && (gate.passed || !gate.accepted_by.empty());
  const bool watches = goes_on && !soaked && gate.accepted_by.empty() &&
                       next.policy.soak_minutes > 0 && next.wave + 1 < next.waves.size();
  const bool rolls_back = next.policy.on_failure == inventory::OnFailure::RollBack;
  next.soak_until.reset();
  if (watches) {
    next.soak_until = services_.clock.now() + std::chrono::minutes(next.policy.soak_minutes);
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
  TRY_OK(record_.save(std::move(next)));
  note(textOf(gate));
  if (watches)
    note(fmt::format("its nodes soak until {}, then the next wave begins",
                     muster::toString(*record_.rollout().soak_until)));
  if (record_.rollout().state == RolloutState::Halted && rolls_back)
    note(
        "not rolled back, although the policy says so for failures: the reason for the halt is not "
        "the change");
  if (record_.rollout().state == RolloutState::Halted)
    note(
        "halted; nodes that have changed stay changed. Go on: muster rollout resume. Undo: muster "
        "rollout rollback");
  if (record_.rollout().direction == RolloutDirection::Back)
    note("rolling back, as its policy says");
  return {};
}

/// The last nodes first: what was changed last has been tried least.
Async<void> RolloutRunner::back() {
  std::vector<NodeName> nodes;
  const auto& waves = record_.rollout().waves;
  for (auto wave = waves.rbegin(); wave != waves.rend(); ++wave)
    for (auto node = wave->nodes.rbegin(); node != wave->nodes.rend(); ++node) {
      const auto state = record_.of(*node).state;
      if (isChanged(record_.rollout(), state) || state == RolloutNodeState::Returning ||
          state == RolloutNodeState::RollbackFailed)
        nodes.push_back(*node);
    }
  note(fmt::format("rolling back {} nodes", nodes.size()));
  for (const auto& [node, progress] : record_.progress())
    if (progress.state == RolloutNodeState::Untouched)
      services_.effective.revert(record_.rollout().id, node);
  CO_TRY_OK(co_await runNodes(std::move(nodes)));
  if (order_.order == Order::Pause) co_return end(RolloutState::Paused, {"paused by " + order_.by});
  if (order_.order == Order::Abort)
    co_return end(RolloutState::Aborted, {"aborted by " + order_.by});
  auto reasons = record_.rollout().reasons;
  if (!stop_reason_.empty()) {
    reasons.push_back(stop_reason_);
    co_return end(RolloutState::Halted, std::move(reasons));
  }
  for (const auto& [node, progress] : record_.progress())
    if (progress.state == RolloutNodeState::RollbackFailed)
      reasons.push_back(fmt::format("{} could not be rolled back: {}", node.str(), progress.why));
  for (const auto& stays : record_.rollout().irreversible)
    reasons.push_back("not rolled back: " + stays);
  co_return end(RolloutState::RolledBack, std::move(reasons));
}

Result<void> RolloutRunner::end(RolloutState state, std::vector<std::string> reasons) {
  Rollout next = record_.rollout();
  next.state = state;
  next.reasons = std::move(reasons);
  TRY_OK(record_.save(std::move(next)));
  note(fmt::format(
      "{}: {} done, {} failed, {} skipped, {} untouched, {} waiting{}", toString(state),
      record_.count(RolloutNodeState::Done), record_.count(RolloutNodeState::Failed),
      record_.count(RolloutNodeState::Skipped), record_.count(RolloutNodeState::Untouched),
      record_.count(RolloutNodeState::Waiting),
      record_.rollout().direction == RolloutDirection::Back
          ? fmt::format(", {} returned, {} rollback-failed",
                        record_.count(RolloutNodeState::Returned),
                        record_.count(RolloutNodeState::RollbackFailed))
          : ""));
  for (const auto& reason : record_.rollout().reasons) note(reason);
  return {};
}

// ---- nodes of a wave
// ---------------------------------------------------------------------------------------------------

Async<void> RolloutRunner::runNodes(std::vector<NodeName> nodes) {
  queue_.clear();
  stop_reason_.clear();
  no_room_since_.reset();
  wave_size_ = nodes.size();
  failed_ = 0;
  const bool forward = record_.rollout().direction == RolloutDirection::Forward;
  for (const auto& node : nodes) {
    const auto state = record_.of(node).state;
    if (state == RolloutNodeState::Failed && forward) ++failed_;
    const bool open = isUnderWay(state) || (forward ? state == RolloutNodeState::Waiting : true);
    if (open) queue_.push_back(node);
  }
  accepted_failed_ = record_.rollout().accepted_by.empty() ? 0 : failed_;
  std::stable_partition(queue_.begin(), queue_.end(), [this](const NodeName& node) {
    return isUnderWay(record_.of(node).state);
  });
  std::vector<Task<void>> lanes;
  for (std::size_t i = 0; i < std::min(queue_.size(), kMaxNodesUnderWay); ++i)
    lanes.push_back(lane());
  co_await async::awaitAll(std::move(lanes));
  if (error_) co_return fail(*error_);
  co_return Result<void>();
}

Task<void> RolloutRunner::lane() {
  for (;;) {
    readOrders();
    const auto picked = pick();
    if (picked.next == Next::Finished) co_return;
    if (picked.next == Next::Go) {
      co_await runNode(picked.node);
      continue;
    }
    if (auto looked = co_await pollPools(); !looked) error_ = std::move(looked).error();
    co_await services_.clock.sleep(kRoomPoll);
  }
}

void RolloutRunner::readOrders() {
  auto order = record_.order();
  if (order)
    order_ = std::move(*order);
  else if (!error_)
    error_ = order.error();
}

/// Nodes that were under way when an earlier runner died go on even when an order says stop:
/// half-way is no place to be left.
RolloutRunner::Pick RolloutRunner::pick() {
  if (error_) return {};
  if (record_.rollout().direction == RolloutDirection::Forward && stop_reason_.empty() &&
      tooManyFailed(failed_ - accepted_failed_, wave_size_, record_.rollout().policy))
    stop_reason_ =
        accepted_failed_ == 0
            ? fmt::format("{} nodes of {} failed: no more were started", failed_, wave_size_)
            : fmt::format(
                  "{} nodes of {} failed besides those that were accepted: no more were started",
                  failed_ - accepted_failed_, wave_size_);
  std::string why;
  for (auto node = queue_.begin(); node != queue_.end(); ++node) {
    const bool left_half_way = isUnderWay(record_.of(*node).state);
    if (stopped() && !left_half_way) return {};
    if (auto not_now = window_->whyNot(*node); !not_now.empty() && !left_half_way) {
      if (why.empty()) why = std::move(not_now);
      continue;
    }
    const Pick picked{Next::Go, *node};
    queue_.erase(node);
    under_way_.insert(picked.node);
    window_->out(picked.node);
    no_room_since_.reset();
    return picked;
  }
  if (queue_.empty()) return {};
  if (!under_way_.empty()) return {Next::Wait, {}};
  const auto now = services_.clock.steady();
  if (!no_room_since_) {
    no_room_since_ = now;
    note("no node may be drained now: " + why);
  }
  if (now - *no_room_since_ < kNoRoomLimit) return {Next::Wait, {}};
  stop_reason_ =
      fmt::format("no node could be drained for {} minutes: {}", kNoRoomLimit.count(), why);
  return {};
}

}  // namespace muster::lifecycle
