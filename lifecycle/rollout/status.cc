// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/status.h"

#include "base/json_input.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::lifecycle {
namespace {

/// The wave that the node belongs to; waves.size(): to none.
std::size_t waveOf(const Rollout& rollout, const NodeName& node) {
  const auto found =
      std::find_if(rollout.waves.begin(), rollout.waves.end(), [&node](const Wave& wave) {
        return std::find(wave.nodes.begin(), wave.nodes.end(), node) != wave.nodes.end();
      });
  return static_cast<std::size_t>(found - rollout.waves.begin());
}

std::string waitsFor(const RolloutRecord& record, std::size_t wave, WallTime now) {
  const auto& rollout = record.rollout();
  if (rollout.state == RolloutState::Halted)
    return fmt::format(
        "it waits because the rollout is halted: {}",
        rollout.reasons.empty() ? "see `muster rollout status`" : rollout.reasons.front());
  if (rollout.state == RolloutState::Paused)
    return "it waits until the rollout is resumed: `muster rollout resume`";
  if (rollout.direction == RolloutDirection::Back)
    return "it was not changed and will not be: the rollout is being rolled back";
  if (wave > rollout.wave && rollout.soak_until && *rollout.soak_until > now)
    return fmt::format("it waits until {}: the wave before it is soaking",
                       muster::toString(*rollout.soak_until));
  if (wave > rollout.wave)
    return fmt::format("it waits for wave '{}' to pass its gate", rollout.waves[rollout.wave].name);
  return "it starts when the limits of max_unavailable allow it";
}

}  // namespace

std::string heldByPerson(const FactSet& facts, const NodeName& node) {
  const auto* fact = facts.find(Subject(node), FacetName(std::string(kPoolFacet)));
  if (!fact) return {};
  const auto evidence = jsonOrNone(fact->evidence, kKeptJson);
  if (!evidence.is_object() || evidence.value("by_person", nlohmann::json()) != true) return {};
  const auto reason = evidence.value("reason", nlohmann::json());
  return fmt::format("a person has drained it{}; a person must resume it",
                     reason.is_string() ? fmt::format(" ('{}')", reason.get<std::string>()) : "");
}

std::string rolloutStatusOf(const RolloutRecord& record, const NodeName& node, WallTime now) {
  const auto& rollout = record.rollout();
  const auto found = record.progress().find(node);
  if (!rollout.isOpen() || found == record.progress().end()) return {};
  const auto& progress = found->second;
  const auto wave = waveOf(rollout, node);
  const auto place = wave < rollout.waves.size()
                         ? fmt::format("wave '{}', {} of {}: ", rollout.waves[wave].name, wave + 1,
                                       rollout.waves.size())
                         : "";
  std::string words(toString(progress.state));
  switch (progress.state) {
    case RolloutNodeState::Waiting:
      words = waitsFor(record, wave, now);
      break;
    case RolloutNodeState::Started:
      words = fmt::format("it is being changed since {}", muster::toString(progress.started_at));
      break;
    case RolloutNodeState::Returning:
      words = "it is being rolled back";
      break;
    case RolloutNodeState::Untouched:
      words = "it has all of the change already";
      break;
    default:
      words = fmt::format("{}{}", words, progress.why.empty() ? "" : ": " + progress.why);
  }
  return fmt::format("rollout {} ({}), {}{}", rollout.id, toString(rollout.state), place, words);
}

Result<std::string> rolloutStatusOf(Store& store, const NodeName& node, WallTime now) {
  auto record = RolloutRecord::current(store);
  if (!record && record.error().code() == ErrorCode::NotFound) return std::string();
  if (!record) return fail(std::move(record).error());
  return rolloutStatusOf(*record, node, now);
}

}  // namespace muster::lifecycle
