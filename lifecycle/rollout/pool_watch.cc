// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/pool_watch.h"

#include "base/async/await_all.h"
#include "base/async/deadline.h"
#include "base/limits.h"
#include "inventory/model/node.h"
#include "lifecycle/executor/exception_boundary.h"
#include "lifecycle/rollout/status.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

constexpr std::size_t kPoolPollsAtOnce = 16;

const FacetName kPool{std::string(kPoolFacet)};

}  // namespace

bool PoolWatch::works(const NodeName& node, const FactSet& facts) const {
  if (const auto pool = facts.value(Subject(node), kPool)) return *pool == kPoolIn;
  return !poolIsUnknown(node, facts);  // nobody can say: it counts as out
}

bool PoolWatch::poolIsUnknown(const NodeName& node, const FactSet& facts) const {
  const Subject subject(node);
  if (facts.value(subject, kPool)) return false;
  for (const auto* phase : course_.services.phases)
    for (const auto& goal : phase->goals(course_.services.effective.cluster(), subject, facts))
      if (goal.facet.facet == kPool) return true;
  return false;
}

void PoolWatch::updateWindow(const NodeName& node) {
  auto known = course_.services.store.factsOf(Subject(node));
  FactSet facts;
  if (known)
    for (auto& fact : *known) facts.put(std::move(fact));
  const auto it = course_.record.progress().find(node);
  const bool failed = it != course_.record.progress().end() &&
                      (it->second.state == RolloutNodeState::Failed ||
                       it->second.state == RolloutNodeState::RollbackFailed);
  const bool pooled = facts.value(Subject(node), kPool).has_value();
  const bool in = known && works(node, facts) && !(failed && !pooled);
  in ? course_.window->in(node) : course_.window->out(node);
}

Async<void> PoolWatch::poll() {
  const auto now = course_.services.clock.steady();
  const std::chrono::steady_clock::duration every =
      course_.under_way.empty() ? kPoolPollWaiting : kPoolPoll;
  if (polling_ || (polled_at_ && now - *polled_at_ < every)) co_return Result<void>();
  polling_ = true;
  std::vector<NodeName> nodes;
  for (const auto& node : course_.window->watched())
    if (!course_.under_way.contains(node)) nodes.push_back(node);
  for (std::size_t from = 0; from < nodes.size(); from += kPoolPollsAtOnce) {
    std::vector<Task<void>> looks;
    for (std::size_t i = from; i < std::min(nodes.size(), from + kPoolPollsAtOnce); ++i)
      looks.push_back(pollNode(nodes[i]));
    co_await async::awaitAll(std::move(looks));
  }
  polled_at_ = course_.services.clock.steady();
  polling_ = false;
  co_return Result<void>();
}

Async<std::vector<std::string>> PoolWatch::changedNodesThatLeft() {
  std::vector<std::string> left;
  for (const auto& [node, progress] : course_.record.progress()) {
    if (progress.state != RolloutNodeState::Done || !progress.why.empty() ||
        !course_.isDeclared(node))
      continue;
    co_await pollNode(node);
    CO_TRY(known, course_.services.store.factsOf(Subject(node)));
    FactSet facts;
    for (auto& fact : known) facts.put(std::move(fact));
    if (works(node, facts) || !heldByPerson(facts, node).empty()) continue;
    const auto pool = facts.value(Subject(node), kPool);
    left.push_back(fmt::format("{} is {} now; see `muster why {}`", node.str(),
                               pool.value_or("in a state that its pool does not report"),
                               node.str()));
  }
  if (course_.error) co_return fail(*course_.error);
  co_return left;
}

/// What the pool cannot say now counts as out: a ceiling is no ceiling when it rests on what was
/// true once.
Task<void> PoolWatch::pollNode(NodeName node) {
  const Subject subject(node);
  FactSet facts;
  for (auto* phase : course_.services.phases) {
    const auto goals = phase->goals(course_.services.effective.cluster(), subject, facts);
    if (std::none_of(goals.begin(), goals.end(),
                     [](const Goal& goal) { return goal.facet.facet == kPool; }))
      continue;
    auto observe = catchExceptions(fmt::format("{} observing {}", phase->name(), subject.str()),
                                   phase->observe(subject));
    auto seen = co_await withDeadline(course_.services.clock,
                                      limitHere(course_.services.clock, kObserveDeadline),
                                      "asking the pool about " + subject.str(), std::move(observe));
    if (!seen) continue;
    std::erase_if(*seen, [&](const Fact& fact) {
      return fact.subject != subject || fact.facet != kPool || fact.value.empty();
    });
    for (auto& fact : *seen) {
      if (fact.observed_at == WallTime{}) fact.observed_at = course_.services.clock.now();
      facts.put(fact);
    }
    if (auto stored = course_.services.store.putFacts(*seen); !stored && !course_.error)
      course_.error = stored.error();
  }
  if (course_.under_way.contains(node)) co_return;  // it was started meanwhile
  const auto it = course_.record.progress().find(node);
  const bool failed = it != course_.record.progress().end() &&
                      (it->second.state == RolloutNodeState::Failed ||
                       it->second.state == RolloutNodeState::RollbackFailed);
  const bool out = !works(node, facts) || (failed && !facts.value(subject, kPool));
  out ? course_.window->out(node) : course_.window->in(node);
}

}  // namespace muster::lifecycle
