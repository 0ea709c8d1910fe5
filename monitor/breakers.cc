// SPDX-License-Identifier: Apache-2.0
#include "monitor/breakers.h"

#include "base/json_input.h"
#include "inventory/model/node.h"
#include "lifecycle/model/json.h"

#include <algorithm>

namespace muster::monitor {
namespace {

using namespace lifecycle;
using nlohmann::json;

constexpr const char* kKey = "monitor.breakers";
constexpr std::string_view kFacetPrefix = "monitor.breaker.";
constexpr int kMaxTries = 16;
constexpr std::size_t kLastEvents =
    16;  ///< events among which one that was killed has left its own
constexpr std::string_view kBreakerPrefix = "CIRCUIT BREAKER: ";
constexpr std::string_view kAdvice =
    "look at what these nodes have in common (an edited inventory, a driver, a power feed); then "
    "`muster monitor --acknowledge --reason TEXT`: "
    "those that are then still bad are drained";

Result<BreakerStates> parse(const std::optional<std::string>& text) {
  BreakerStates out;
  if (!text || text->empty()) return out;
  const auto all = jsonOrNone(*text, kKeptJson);
  if (!all.is_object())
    return fail(ErrorCode::Corrupt, "the state of the circuit breakers in the store is damaged");
  for (const auto& [pool, value] : all.items()) {
    const auto nodes = value.is_object() ? value.value("nodes", json::array()) : json();
    if (!nodes.is_array())
      return fail(ErrorCode::Corrupt, "the state of the circuit breakers in the store is damaged");
    auto& state = out[pool];
    state.open = value.value("open", true);
    state.published = value.value("told", true);
    for (const auto& node : nodes)
      if (node.is_string()) state.nodes.insert(NodeName(node.get<std::string>()));
  }
  return out;
}

std::string print(const BreakerStates& states) {
  json all = json::object();
  for (const auto& [pool, state] : states) {
    json nodes = json::array();
    for (const auto& node : state.nodes) nodes.push_back(node.str());
    all[pool] = {{"open", state.open}, {"nodes", std::move(nodes)}, {"told", state.published}};
  }
  return canonical(all);
}

}  // namespace

FacetRef breakerFacet(const std::string& pool) {
  return {Subject::cluster(), FacetName(std::string(kFacetPrefix) + pool)};
}

Result<BreakerStates> Breakers::read() const {
  TRY(text, store_.getValue(kKey));
  return parse(text);
}

Result<void> Breakers::update(const std::function<bool(BreakerStates&)>& change) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    TRY(before, store_.getValue(kKey));
    TRY(states, parse(before));
    if (!change(states)) return {};
    TRY(done, store_.exchangeValue(kKey, before, print(states)));
    if (done) return {};
  }
  return fail(ErrorCode::Unavailable,
              "other processes keep changing the state of the circuit breakers");
}

Result<void> Breakers::trip(const Trip& trip, WallTime at) {
  bool published = false;
  TRY_OK(update([&](BreakerStates& states) {
    auto& state = states[trip.pool];
    const auto before = std::exchange(state, BreakerState{true, trip.nodes, false});
    if (before.open) {
      state.nodes.insert(before.nodes.begin(), before.nodes.end());
      state.published = before.published;
    }
    published = state.published;
    return before != state;
  }));
  if (!published) TRY_OK(publish(trip, at));
  return raise(trip, at);
}

/// One that was killed between the trip and its event has not told it; one that was killed right
/// after the event has not noted that.
Result<void> Breakers::publish(const Trip& trip, WallTime at) {
  const auto cluster = Subject::cluster();
  const auto text = std::string(kBreakerPrefix) + trip.text();
  TRY(events, store_.lastEvents(kLastEvents, &cluster));
  const bool is_said = std::any_of(events.begin(), events.end(),
                                   [&](const Event& event) { return event.text == text; });
  if (!is_said)
    if (const auto said = store_.addEvent({0, at, EventKind::FindingRaised, cluster, "", text});
        !said)
      return fail(said.error());
  return update(
      [&trip](BreakerStates& states) { return !std::exchange(states[trip.pool].published, true); });
}

/// Once, and also where an earlier look could not: another controller may have worked on the
/// cluster, or this one was killed in between.
Result<void> Breakers::raise(const Trip& trip, WallTime at) {
  const auto cluster = Subject::cluster();
  const auto facet = breakerFacet(trip.pool);
  TRY(findings, store_.findings(&cluster));
  if (std::any_of(findings.begin(), findings.end(),
                  [&facet](const Finding& finding) { return finding.facet == facet; }))
    return {};
  json nodes = json::array();
  for (const auto& node : trip.nodes) nodes.push_back(node.str());
  const auto evidence = canonical({{"nodes", std::move(nodes)},
                                   {"would_be_out", trip.would_be_out},
                                   {"of", trip.of},
                                   {"allowed", trip.allowed}});
  const auto raised = store_.addFinding(
      {facet, Severity::Error, trip.text(), evidence, std::string(kAdvice), at, kMonitorSource});
  return raised || raised.error().code() == ErrorCode::Conflict ? Result<void>() : raised;
}

Result<BreakerStates> Breakers::acknowledge(const std::string& who, const std::string& reason,
                                            WallTime at) {
  BreakerStates said;
  TRY_OK(update([&said](BreakerStates& states) {
    said.clear();
    for (auto& [pool, state] : states) {
      if (!state.open) continue;
      state.open = false;
      said.emplace(pool, state);
    }
    return !said.empty();
  }));
  for (const auto& [pool, state] : said) {
    const auto text = fmt::format("{} acknowledges the circuit breaker of pool {} ({} nodes): {}",
                                  who, pool, state.nodes.size(), reason);
    TRY(sequence, store_.addEvent({0, at, EventKind::Note, Subject::cluster(), "", text}));
    (void)sequence;
    const auto cleared = store_.clearFindings(breakerFacet(pool));
    if (!cleared && cleared.error().code() != ErrorCode::Conflict)
      return fail(cleared.error());  // the monitor clears it when the cluster is free
  }
  return said;
}

Result<std::set<FacetRef>> Breakers::over(const std::vector<Finding>& findings) const {
  TRY(states, read());
  std::set<FacetRef> open, out;
  for (const auto& [pool, state] : states)
    if (state.open) open.insert(breakerFacet(pool));
  for (const auto& finding : findings)
    if (finding.facet.subject.isCluster() && finding.facet.facet.str().starts_with(kFacetPrefix) &&
        !open.contains(finding.facet))
      out.insert(finding.facet);
  return out;
}

Result<void> Breakers::forgetHealthy(const std::set<NodeName>& in_trouble) {
  return update([&in_trouble](BreakerStates& states) {
    bool changed = false;
    for (auto it = states.begin(); it != states.end();) {
      auto& state = it->second;
      if (!state.open)
        changed =
            std::erase_if(state.nodes,
                          [&](const NodeName& node) { return !in_trouble.contains(node); }) > 0 ||
            changed;
      const bool over = !state.open && state.nodes.empty();
      changed = changed || over;
      it = over ? states.erase(it) : std::next(it);
    }
    return changed;
  });
}

}  // namespace muster::monitor
