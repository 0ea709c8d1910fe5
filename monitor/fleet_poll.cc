// SPDX-License-Identifier: Apache-2.0
#include "monitor/fleet_poll.h"

#include "base/async/await_all.h"
#include "base/async/deadline.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "lifecycle/executor/exception_boundary.h"
#include "lifecycle/model/unread.h"
#include "monitor/health_phase.h"

namespace muster::monitor {
namespace {

using namespace lifecycle;

constexpr std::chrono::seconds kPollDeadline{
    30};  ///< for one phase and node; a minute is all there is

}  // namespace

FleetPoll::FleetPoll(const inventory::Cluster& cluster, Phases phases, Store& store, Clock& clock,
                     EventSink sink)
    : cluster_(cluster),
      phases_(std::move(phases)),
      store_(store),
      clock_(clock),
      sink_(std::move(sink)) {}

Async<FleetSnapshot> FleetPoll::poll() {
  if (!primed_) {
    CO_TRY(known, store_.facts());
    stored_ = std::move(known);
    primed_ = true;
  }
  FleetSnapshot snapshot;
  for (Phase* phase : phases_) {
    co_await readAll(phase, snapshot);
  }
  carryOver(snapshot);
  CO_TRY_OK(store(snapshot));
  reportTroubles(snapshot.troubles);
  co_return std::move(snapshot);
}

/// All nodes at once, so that a phase can ask its other side for all of them in one go.
Task<void> FleetPoll::readAll(Phase* phase, FleetSnapshot& snapshot) {
  std::vector<Task<void>> reads;
  reads.reserve(cluster_.nodes.size());
  for (const auto& node : cluster_.nodes)
    reads.push_back(readOne(phase, Subject(node.name), snapshot));
  co_await async::awaitAll(std::move(reads));
}

Task<void> FleetPoll::readOne(Phase* phase, Subject subject, FleetSnapshot& snapshot) {
  auto work = catchExceptions(std::string(phase->name()), phase->observe(subject));
  auto facts = co_await withDeadline(clock_, kPollDeadline, "looking", std::move(work));
  if (!facts) {
    snapshot.troubles.emplace(fmt::format("{}: {}", phase->name(), facts.error().str()),
                              subject.str());
    auto unread = unreadFact(subject, phase->name(), facts.error(), clock_.now());
    keepSince(unread, stored_);
    snapshot.facts.put(std::move(unread));
    co_return;
  }
  if (auto again = readAgainFact(subject, phase->name(), clock_.now());
      stored_.find(subject, again.facet))
    snapshot.facts.put(std::move(again));
  for (auto& fact : *facts)
    if (!fact.value.empty()) snapshot.facts.put(std::move(fact));
}

/// A node whose agent has fallen silent is no healthier than it was when it was last heard.
void FleetPoll::carryOver(FleetSnapshot& snapshot) const {
  for (const auto& [facet, fact] : stored_.all())
    if (facet.facet.str().starts_with(kHealthPrefix) &&
        !snapshot.facts.find(facet.subject, facet.facet))
      snapshot.facts.put(fact);
}

Result<void> FleetPoll::store(const FleetSnapshot& snapshot) {
  std::vector<Fact> batch;
  std::map<Subject, std::string> changes;
  for (const auto& [facet, fact] : snapshot.facts.all()) {
    const auto* before = stored_.find(facet.subject, facet.facet);
    const bool changed = !before || before->value != fact.value;
    if (changed && !isUnreadFacet(facet.facet)) {
      auto& words = changes[facet.subject];
      words += fmt::format("{}{} {}'{}'", words.empty() ? "" : ", ", facet.facet.str(),
                           before ? "'" + before->value + "' → " : "", fact.value);
    }
    if (changed || before->evidence != fact.evidence ||
        before->observed_at + kStoreUnchangedAfter <= fact.observed_at ||
        invalidated_.contains(facet.subject))
      batch.push_back(fact);
  }
  if (!batch.empty()) TRY_OK(store_.putFacts(batch));
  invalidated_.clear();
  for (auto& fact : batch) stored_.put(std::move(fact));
  for (auto& [subject, words] : changes) emit(subject, std::move(words), EventKind::Observed);
  return {};
}

void FleetPoll::reportTroubles(const std::map<std::string, std::string>& troubles) {
  std::set<std::string> now;
  for (const auto& [trouble, node] : troubles) {
    now.insert(trouble);
    if (!reported_.contains(trouble))
      emit(Subject::cluster(),
           fmt::format("the monitor could not read all facts, first of {}: {}; it tries again",
                       node, trouble),
           EventKind::Note);
  }
  for (const auto& trouble : reported_)
    if (!now.contains(trouble)) emit(Subject::cluster(), "over: " + trouble, EventKind::Note);
  reported_ = std::move(now);
}

void FleetPoll::emit(const Subject& subject, std::string text, EventKind kind) {
  Event event{0, clock_.now(), kind, subject, "", std::move(text)};
  if (auto sequence = store_.addEvent(event); sequence)
    event.sequence = *sequence;
  else
    logWarning("monitor", "an event could not be stored: {}", sequence.error().str());
  if (sink_) sink_(event);
}

}  // namespace muster::monitor
