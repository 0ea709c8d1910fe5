// SPDX-License-Identifier: Apache-2.0
// The course of a rollout: waves, gates, orders.
#include "lifecycle/rollout/runner.h"

#include "base/async/await_all.h"
#include "lifecycle/rollout/gate.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

bool isUnderWay(NodeState state) {
  return state == NodeState::Started || state == NodeState::Returning;
}

}  // namespace

void RolloutRunner::say(const NodeName& node, std::string text) const {
  Event event{0,
              services_.clock.now(),
              EventKind::Note,
              {},
              "",
              fmt::format("rollout {}: {}", book_.rollout().id, text)};
  if (!node.empty()) event.subject = Subject(node);
  if (auto stored = services_.store.addEvent(event))
    event.sequence = *stored;  // the book holds what matters
  if (services_.sink) services_.sink(event);
}

Async<void> RolloutRunner::run(RolloutWay way) {
  CO_TRY_OK(book_.takeOver(way));
  window_.emplace(domainsOf(services_.live.cluster(), services_.leaves),
                  book_.rollout().policy.max_unavailable);
  CO_TRY_OK(co_await lookAtPools());
  if (way == RolloutWay::Forward) {
    CO_TRY_OK(co_await forward());
  }
  if (book_.rollout().way == RolloutWay::Back && book_.rollout().state == RolloutState::Running) {
    CO_TRY_OK(co_await back());
  }
  co_return Result<void>();
}

/// One wave after the other, each through its gate. A wave whose nodes are all settled goes through
/// its gate at once, so that a runner that died in between judges again.
Async<void> RolloutRunner::forward() {
  while (book_.rollout().state == RolloutState::Running &&
         book_.rollout().way == RolloutWay::Forward) {
    const auto& rollout = book_.rollout();
    if (rollout.wave >= rollout.waves.size()) co_return end(RolloutState::Done, {});
    const auto& wave = rollout.waves[rollout.wave];
    fell_out_.clear();
    if (rollout.soak_until) {
      CO_TRY_OK(co_await soak());
      if (order_.order == Order::Pause)
        co_return end(RolloutState::Paused, {"paused by " + order_.by});
      if (order_.order == Order::Abort)
        co_return end(RolloutState::Aborted, {"aborted by " + order_.by});
      CO_TRY_OK(gate());
      continue;
    }
    say(fmt::format("wave '{}', {} of {}: {} nodes", wave.name, rollout.wave + 1,
                    rollout.waves.size(), wave.nodes.size()));
    CO_TRY_OK(co_await workOff(wave.nodes));
    if (order_.order == Order::Pause)
      co_return end(RolloutState::Paused, {"paused by " + order_.by});
    if (order_.order == Order::Abort)
      co_return end(RolloutState::Aborted, {"aborted by " + order_.by});
    CO_TRY_OK(gate());
  }
  co_return Result<void>();
}

/// The time is in the book: a runner that dies and comes back waits for what is left of it.
Async<void> RolloutRunner::soak() {
  lookAtOrders();
  while (!stopped() && services_.clock.now() < *book_.rollout().soak_until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*book_.rollout().soak_until -
                                                                   services_.clock.now());
    co_await services_.clock.sleep(std::min<std::chrono::milliseconds>(left, kLookWhileSoaking));
    lookAtOrders();
  }
  if (trouble_) co_return fail(*trouble_);
  if (stopped()) co_return Result<void>();
  co_return co_await lookAtChanged();
}

/// Judges the wave and takes the step that follows, in one write.
Result<void> RolloutRunner::gate() {
  auto gate = judgeWave(book_, book_.rollout().wave);
  const bool soaked = book_.rollout().soak_until.has_value();
  if (const auto changed = book_.count(NodeState::Done);
      tooManyFailed(fell_out_.size(), changed, book_.rollout().policy))
    speakAgainst(
        gate,
        fmt::format("{} of {} changed nodes no longer work in their pools after {} minutes; {}",
                    fell_out_.size(), changed, book_.rollout().policy.soak_minutes,
                    fell_out_.front()));
  else
    std::copy(fell_out_.begin(), fell_out_.end(), std::back_inserter(gate.notes));
  if (failed_ > accepted_failed_ &&
      tooManyFailed(failed_ - accepted_failed_, wave_size_, book_.rollout().policy))
    gate.accepted_by.clear();
  if (!stop_.empty() && (gate.passed || no_room_since_)) gate.reasons.push_back(stop_);
  gate.passed = gate.reasons.empty();
  Rollout next = book_.rollout();
  std::erase_if(next.gates,
                [&gate](const GateReport& earlier) { return earlier.wave == gate.wave; });
  next.gates.push_back(gate);
  const auto& nodes = next.waves[next.wave].nodes;
  const bool finished = std::none_of(nodes.begin(), nodes.end(), [this](const auto& node) {
    return book_.of(node).state == NodeState::Waiting;
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
  } else if (rolls_back && gate.speaks_against && gate.accepted_by.empty()) {
    next.way = RolloutWay::Back;
    next.reasons = gate.reasons;
  } else {
    next.state = RolloutState::Halted;
    next.accepted_by.clear();  // for what was known then, not for what has come since
    next.reasons = gate.reasons;
  }
  TRY_OK(book_.save(std::move(next)));
  say(textOf(gate));
  if (watches)
    say(fmt::format("its nodes are watched until {}, then the next wave begins",
                    muster::toString(*book_.rollout().soak_until)));
  if (book_.rollout().state == RolloutState::Halted && rolls_back)
    say("not rolled back as its policy says for failures: what keeps it from going on does not "
        "speak against the change");
  if (book_.rollout().state == RolloutState::Halted)
    say("halted; nodes that have changed stay changed. Go on: muster rollout resume. Undo: muster "
        "rollout rollback");
  if (book_.rollout().way == RolloutWay::Back) say("its policy is to roll back");
  return {};
}

/// The last nodes first: what was changed last has been tried least.
Async<void> RolloutRunner::back() {
  std::vector<NodeName> nodes;
  const auto& waves = book_.rollout().waves;
  for (auto wave = waves.rbegin(); wave != waves.rend(); ++wave)
    for (auto node = wave->nodes.rbegin(); node != wave->nodes.rend(); ++node) {
      const auto state = book_.of(*node).state;
      if (isCrossed(book_.rollout(), state) || state == NodeState::Returning ||
          state == NodeState::Stuck)
        nodes.push_back(*node);
    }
  say(fmt::format("rolling back {} nodes", nodes.size()));
  for (const auto& [node, progress] : book_.progress())
    if (progress.state == NodeState::Untouched) services_.live.uncross(book_.rollout().id, node);
  CO_TRY_OK(co_await workOff(std::move(nodes)));
  if (order_.order == Order::Pause) co_return end(RolloutState::Paused, {"paused by " + order_.by});
  if (order_.order == Order::Abort)
    co_return end(RolloutState::Aborted, {"aborted by " + order_.by});
  auto reasons = book_.rollout().reasons;
  if (!stop_.empty()) {
    reasons.push_back(stop_);
    co_return end(RolloutState::Halted, std::move(reasons));
  }
  for (const auto& [node, progress] : book_.progress())
    if (progress.state == NodeState::Stuck)
      reasons.push_back(fmt::format("{} could not be brought back: {}", node.str(), progress.why));
  for (const auto& stays : book_.rollout().irreversible)
    reasons.push_back("not brought back: " + stays);
  co_return end(RolloutState::RolledBack, std::move(reasons));
}

Result<void> RolloutRunner::end(RolloutState state, std::vector<std::string> reasons) {
  Rollout next = book_.rollout();
  next.state = state;
  next.reasons = std::move(reasons);
  TRY_OK(book_.save(std::move(next)));
  say(fmt::format("{}: {} done, {} failed, {} skipped, {} untouched, {} waiting{}", toString(state),
                  book_.count(NodeState::Done), book_.count(NodeState::Failed),
                  book_.count(NodeState::Skipped), book_.count(NodeState::Untouched),
                  book_.count(NodeState::Waiting),
                  book_.rollout().way == RolloutWay::Back
                      ? fmt::format(", {} returned, {} stuck", book_.count(NodeState::Returned),
                                    book_.count(NodeState::Stuck))
                      : ""));
  for (const auto& reason : book_.rollout().reasons) say(reason);
  return {};
}

// ---- nodes of a wave
// ---------------------------------------------------------------------------------------------------

Async<void> RolloutRunner::workOff(std::vector<NodeName> nodes) {
  queue_.clear();
  stop_.clear();
  no_room_since_.reset();
  wave_size_ = nodes.size();
  failed_ = 0;
  const bool forward = book_.rollout().way == RolloutWay::Forward;
  for (const auto& node : nodes) {
    const auto state = book_.of(node).state;
    if (state == NodeState::Failed && forward) ++failed_;
    const bool open = isUnderWay(state) || (forward ? state == NodeState::Waiting : true);
    if (open) queue_.push_back(node);
  }
  accepted_failed_ = book_.rollout().accepted_by.empty() ? 0 : failed_;
  std::stable_partition(queue_.begin(), queue_.end(),
                        [this](const NodeName& node) { return isUnderWay(book_.of(node).state); });
  std::vector<Task<void>> lanes;
  for (std::size_t i = 0; i < std::min(queue_.size(), kMaxNodesUnderWay); ++i)
    lanes.push_back(lane());
  co_await async::awaitAll(std::move(lanes));
  if (trouble_) co_return fail(*trouble_);
  co_return Result<void>();
}

Task<void> RolloutRunner::lane() {
  for (;;) {
    lookAtOrders();
    const auto picked = pick();
    if (picked.next == Next::Finished) co_return;
    if (picked.next == Next::Go) {
      co_await carry(picked.node);
      continue;
    }
    if (auto looked = co_await lookAtPools(); !looked) trouble_ = std::move(looked).error();
    co_await services_.clock.sleep(kLookForRoom);
  }
}

void RolloutRunner::lookAtOrders() {
  auto order = book_.order();
  if (order)
    order_ = std::move(*order);
  else if (!trouble_)
    trouble_ = order.error();
}

/// Nodes that were under way when an earlier runner died go on even when an order says stop:
/// half-way is no place to be left.
RolloutRunner::Pick RolloutRunner::pick() {
  if (trouble_) return {};
  if (book_.rollout().way == RolloutWay::Forward && stop_.empty() &&
      tooManyFailed(failed_ - accepted_failed_, wave_size_, book_.rollout().policy))
    stop_ =
        accepted_failed_ == 0
            ? fmt::format("{} nodes of {} failed: no more were started", failed_, wave_size_)
            : fmt::format(
                  "{} nodes of {} failed besides those that were accepted: no more were started",
                  failed_ - accepted_failed_, wave_size_);
  std::string why;
  for (auto node = queue_.begin(); node != queue_.end(); ++node) {
    const bool left_half_way = isUnderWay(book_.of(*node).state);
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
    say("nobody may be taken out now: " + why);
  }
  if (now - *no_room_since_ < kNoRoomLimit) return {Next::Wait, {}};
  stop_ = fmt::format("nobody could be taken out for {} minutes: {}", kNoRoomLimit.count(), why);
  return {};
}

}  // namespace muster::lifecycle
