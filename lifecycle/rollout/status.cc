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

std::string waitsFor(const RolloutBook& book, std::size_t wave, WallTime now) {
  const auto& rollout = book.rollout();
  if (rollout.state == RolloutState::Halted)
    return fmt::format(
        "it waits because the rollout is halted: {}",
        rollout.reasons.empty() ? "see `muster rollout status`" : rollout.reasons.front());
  if (rollout.state == RolloutState::Paused)
    return "it waits until the rollout is resumed: `muster rollout resume`";
  if (rollout.way == RolloutWay::Back)
    return "it was not changed and will not be: the rollout is on its way back";
  if (wave > rollout.wave && rollout.soak_until && *rollout.soak_until > now)
    return fmt::format("it waits until {}, for so long the wave before is watched",
                       muster::toString(*rollout.soak_until));
  if (wave > rollout.wave)
    return fmt::format("it waits for wave '{}' to pass its gate", rollout.waves[rollout.wave].name);
  return "its turn comes when the ceilings of max_unavailable let it go";
}

}  // namespace

std::string heldByPerson(const FactSet& facts, const NodeName& node) {
  const auto* fact = facts.find(Subject(node), FacetName(std::string(kPoolFacet)));
  if (!fact) return {};
  const auto evidence = jsonOrNone(fact->evidence, kKeptJson);
  if (!evidence.is_object() || evidence.value("by_person", nlohmann::json()) != true) return {};
  const auto reason = evidence.value("reason", nlohmann::json());
  return fmt::format("a person has taken it out of its pool{}; it is theirs to give back",
                     reason.is_string() ? fmt::format(" ('{}')", reason.get<std::string>()) : "");
}

std::string standingOf(const RolloutBook& book, const NodeName& node, WallTime now) {
  const auto& rollout = book.rollout();
  const auto found = book.progress().find(node);
  if (!rollout.isOpen() || found == book.progress().end()) return {};
  const auto& progress = found->second;
  const auto wave = waveOf(rollout, node);
  const auto place = wave < rollout.waves.size()
                         ? fmt::format("wave '{}', {} of {}: ", rollout.waves[wave].name, wave + 1,
                                       rollout.waves.size())
                         : "";
  std::string words(toString(progress.state));
  switch (progress.state) {
    case NodeState::Waiting:
      words = waitsFor(book, wave, now);
      break;
    case NodeState::Started:
      words = fmt::format("it is being changed since {}", muster::toString(progress.started_at));
      break;
    case NodeState::Returning:
      words = "it is being brought back to what it was";
      break;
    case NodeState::Untouched:
      words = "it has all of the change already";
      break;
    default:
      words = fmt::format("{}{}", words, progress.why.empty() ? "" : ": " + progress.why);
  }
  return fmt::format("rollout {} ({}), {}{}", rollout.id, toString(rollout.state), place, words);
}

Result<std::string> standingOf(Store& store, const NodeName& node, WallTime now) {
  auto book = RolloutBook::current(store);
  if (!book && book.error().code() == ErrorCode::NotFound) return std::string();
  if (!book) return fail(std::move(book).error());
  return standingOf(*book, node, now);
}

}  // namespace muster::lifecycle
