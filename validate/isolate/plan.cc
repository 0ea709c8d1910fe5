// SPDX-License-Identifier: Apache-2.0
// Which round comes next, and who is in it.
#include "validate/isolate/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace muster::validate::isolate {
namespace {

constexpr int kMatchings = 3;  ///< with two a node is a false suspect too often (its partners may
                               ///< be bad), a fourth gains nothing
constexpr int kGrids = 2;      ///< rows and columns
constexpr int kMaxConfirms = 8;
constexpr int kMaxCableTries = 3;
constexpr std::size_t kCableSearch = 20'000;  ///< pairs looked at to find one over a cable
constexpr std::chrono::seconds kPairSeconds{20};
constexpr std::chrono::milliseconds kStep{200};  ///< of an all-to-all, for one peer

void take(std::vector<int>& free, int node) {
  free.erase(std::find(free.begin(), free.end(), node));
}
bool has(const std::vector<int>& nodes, int node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

void addPairs(Round& round, const std::vector<Pair>& pairs) {
  for (const auto& [a, b] : pairs) round.groups.push_back({Collective::Pair, {a, b}});
}

Round named(Stage stage, std::string what) {
  return {
      .number = 0, .stage = stage, .what = std::move(what), .groups = {}, .expected = kPairSeconds};
}

}  // namespace

/// What is open is looked at again where a stage ends, not after each of its rounds.
std::optional<Round> Isolation::State::plan() {
  if (round >= options.max_rounds || layout.nodes() < 2) return std::nullopt;
  if (matchings < kMatchings) return matching();
  const auto clear = clearNodes().size();
  if (clear < 2) return std::nullopt;  // nobody is good enough to test others with
  if (confirm_due && hasPending() && confirms < kMaxConfirms) return confirm();
  confirm_due = false;
  if (options.groups && clear >= 4) {
    if (!slow_groups.empty() && rechecks == 0)
      return ++rechecks,
             allPairs(std::exchange(slow_groups, {}), "every pair of the groups that were slow");
    if (grids < kGrids) return grid();
    if (ladders < static_cast<int>(ladderSizes(static_cast<int>(clear)).size())) return ladder();
  }
  if (needsCubes() && cubes < hypercubeRounds(clearNodes(), layout.leaf)) return cube();
  if (hasUndecided() && confirms < kMaxConfirms) return confirm();
  return std::nullopt;
}

bool Isolation::State::hasPending() const {
  return std::any_of(nics.begin(), nics.end(),
                     [](const Nic& nic) {
                       return nic.status == PartStatus::Suspect && nic.fresh == 0 &&
                              nic.silent < kMaxSilent;
                     }) ||
         std::any_of(paths.begin(), paths.end(),
                     [this](const auto& path) {
                       return isPathOpen(path) && !path.again && path.silent < kMaxSilent;
                     }) ||
         std::any_of(cables.begin(), cables.end(), [](const auto& cable) {
           return cable.fresh == 0 && cable.tries < kMaxCableTries;
         });
}

bool Isolation::State::hasUndecided() const {
  return hasPending() || std::any_of(nics.begin(), nics.end(), [](const Nic& nic) {
           return nic.status == PartStatus::Suspect && nic.silent < kMaxSilent;
         });
}

/// An engine of pairs has no other way to load all uplinks. Else they are for a bad way whose
/// cables are not known, unless every pair was seen in one all-to-all: bad uplinks show there as
/// many bad pairs.
bool Isolation::State::needsCubes() const {
  if (!options.groups) return true;
  if (layout.cables || saw_all_pairs) return false;
  return std::any_of(paths.begin(), paths.end(), [this](const auto& path) {
    return isPathOpen(path) && leafOf(path.a) != leafOf(path.b);
  });
}

Round Isolation::State::matching() {
  std::vector<int> all(static_cast<std::size_t>(layout.nodes()));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int> one_class(all.size(), 0);
  Round made;
  switch (matchings++) {
    case 0:
      made = named(Stage::Matching, "pairs within leaves");
      addPairs(made, matchWithin(all, layout.leaf, met, random));
      break;
    case 1: {
      made = named(Stage::Matching, "pairs of different leaves");
      std::vector<Pair> pairs;
      std::vector<int> left = all;
      for (int pod = *std::min_element(layout.pod.begin(), layout.pod.end());
           pod <= *std::max_element(layout.pod.begin(), layout.pod.end()); ++pod) {
        std::vector<int> members;
        std::set<int> leaves;
        for (const int node : all)
          if (layout.pod[static_cast<std::size_t>(node)] == pod)
            members.push_back(node), leaves.insert(leafOf(node));
        if (leaves.size() < 2) continue;
        for (const auto& pair : matchAcross(members, layout.leaf, met, random))
          pairs.push_back(pair);
      }
      for (const auto& [a, b] : pairs) take(left, a), take(left, b);
      addPairs(made, pairs);
      addPairs(made, matchAcross(left, layout.leaf, met, random));
      break;
    }
    default: {
      made = named(Stage::Matching, "pairs at random");
      std::shuffle(all.begin(), all.end(), random);
      std::stable_partition(all.begin(), all.end(), [this](int node) {
        return evidence.best(node, 0) < 0;
      });  // who sat out before does not now
      addPairs(made, pairHalves(all, met));
    }
  }
  return made;
}

/// Suspects with proven good nodes, nearest first: what is between leaves is evaluated by itself.
void Isolation::State::addSuspects(Round& made, std::vector<int>& free) {
  for (const int suspect : suspects()) {
    const auto leaf = leafOf(suspect);
    const auto& used = nic(suspect, 0).partners;
    const auto rank = [&](int node) {
      return (has(used, node) ? 2 : 0) + (leafOf(node) == leaf ? 0 : 1);
    };
    const auto best =
        std::min_element(free.begin(), free.end(), [&](int x, int y) { return rank(x) < rank(y); });
    if (best == free.end()) return;
    made.groups.push_back({Collective::Pair, {suspect, *best}});
    for (int rail = 0; rail < layout.rails; ++rail) nic(suspect, rail).partners.push_back(*best);
    free.erase(best);
  }
}

void Isolation::State::addPaths(Round& made, std::vector<int>& free) {
  for (const auto& path : paths) {
    if (!isPathOpen(path) || path.again || path.silent >= kMaxSilent || !has(free, path.a) ||
        !has(free, path.b))
      continue;
    made.groups.push_back({Collective::Pair, {path.a, path.b}});
    take(free, path.a), take(free, path.b);
  }
}

/// For every cable that may be it, a pair that uses it and otherwise only what is good.
void Isolation::State::addCables(Round& made, std::vector<int>& free) {
  const auto isGood = [&](int cable) {
    return evidence.bestCable(cable).value_or(-1) >= 1 - margins().raise;
  };
  for (std::size_t c = 0; c < cables.size(); ++c) {
    auto& suspect = cables[c];
    if (suspect.fresh > 0 || suspect.tries >= kMaxCableTries) continue;
    ++suspect.tries;
    std::vector<int> near;  // nodes of the leaves at its ends, as far as its tests tell
    std::set<int> leaves;
    for (const auto& [a, b] : suspect.seen) leaves.insert(leafOf(a)), leaves.insert(leafOf(b));
    for (const int node : free)
      if (leaves.contains(leafOf(node))) near.push_back(node);
    std::optional<Pair> found;
    std::size_t looked = 0;
    for (const bool strict : {true, false})
      for (const int a : near)
        for (const int b : free) {
          if (found || a == b || leafOf(a) == leafOf(b) || ++looked > kCableSearch) continue;
          const auto used = layout.cables(a, b, suspect.rail);
          if (!has(used, suspect.cable)) continue;
          if (!strict || std::all_of(used.begin(), used.end(), [&](int cable) {
                return cable == suspect.cable || isGood(cable);
              }))
            found = {a, b};
        }
    if (!found) continue;
    cable_tests.emplace_back(made.groups.size(), c);
    addPairs(made, {*found});
    take(free, found->first), take(free, found->second);
  }
}

Round Isolation::State::confirm() {
  ++confirms;
  auto made = named(Stage::Confirm, "suspects with proven good nodes, beside controls");
  auto free = clearNodes();
  std::shuffle(free.begin(), free.end(), random);
  addSuspects(made, free);
  if (layout.cables) addCables(made, free);
  addPaths(made, free);
  controls = made.groups.size();
  std::set<Pair> fresh;
  const std::span<const int> all(free);
  const std::size_t within = free.size() / 2 & ~std::size_t{1};
  addPairs(made, matchWithin(all.first(within), layout.leaf, fresh, random));
  addPairs(made, matchAcross(all.subspan(within), layout.leaf, fresh, random));
  return made;
}

Round Isolation::State::allPairs(std::vector<std::vector<int>> groups, std::string what) {
  auto made = named(Stage::Grid, std::move(what));
  std::size_t largest = 0;
  for (auto& members : groups) {
    if (members.size() < 2) continue;
    largest = std::max(largest, members.size());
    made.groups.push_back({Collective::AllToAll, std::move(members)});
  }
  made.expected = std::max(kPairSeconds, std::chrono::ceil<std::chrono::seconds>(kStep * largest));
  return made;
}

/// Who is not decided yet is tested beside the groups: that costs no round.
void Isolation::State::addRiders(Round& made, const Round& riders) {
  made.groups.insert(made.groups.end(), riders.groups.begin(), riders.groups.end());
  controls = made.groups.size();
}

Round Isolation::State::grid() {
  Round riders;
  auto active = clearNodes();
  addSuspects(riders, active);
  std::sort(active.begin(), active.end(),
            [this](int x, int y) { return std::pair(leafOf(x), x) < std::pair(leafOf(y), y); });
  auto lines = AffinePlane(static_cast<int>(active.size())).lines(grids);
  for (auto& line : lines)
    for (auto& point : line) point = active[static_cast<std::size_t>(point)];
  auto made = allPairs(std::move(lines), grids == 0 ? "all-to-all in the rows of a grid"
                                                    : "all-to-all in its columns");
  ++grids;
  addRiders(made, riders);
  return made;
}

Round Isolation::State::ladder() {
  Round riders;
  auto active = clearNodes();
  const auto sizes = ladderSizes(static_cast<int>(active.size()));
  const int size = sizes[static_cast<std::size_t>(ladders++)];
  addSuspects(riders, active);
  const bool last = ladders == static_cast<int>(sizes.size());
  if (last && static_cast<int>(active.size()) <= kMaxExchange) {
    auto made = allPairs({active}, fmt::format("all-to-all of all {}", active.size()));
    made.stage = Stage::Ladder;
    addRiders(made, riders);
    return made;
  }
  auto made = named(Stage::Ladder, last ? fmt::format("all-reduce of all {}", active.size())
                                        : fmt::format("all-reduce in groups of {}", size));
  for (auto& members : blocks(active, last ? static_cast<int>(active.size()) : size))
    made.groups.push_back({Collective::AllReduce, std::move(members)});
  addRiders(made, riders);
  return made;
}

Round Isolation::State::cube() {
  auto made =
      named(Stage::Hypercube, fmt::format("leaves in pairs, all uplinks loaded ({})", cubes + 1));
  addPairs(made, hypercube(clearNodes(), layout.leaf, cubes++));
  return made;
}

}  // namespace muster::validate::isolate
