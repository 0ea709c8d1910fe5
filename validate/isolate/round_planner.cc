// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/round_planner.h"

#include "validate/isolate/test_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace muster::validate::isolate {
namespace {

constexpr int kMatchings = 3;  ///< with two a node is a false suspect too often (its partners may
                               ///< be bad), a fourth gains nothing
constexpr int kGrids = 2;      ///< rows and columns
constexpr int kMaxConfirms = 12;
constexpr int kMaxCableTries = 4;
constexpr int kMaxExchanges = 4;  ///< at 10 % congestion half a million pairs are 5 then
constexpr int kOrders = 32;       ///< of few nodes, to find one in which no two meet again
constexpr std::size_t kFewNodes = 16;
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
std::optional<Round> RoundPlanner::plan() {
  if (state_.round >= state_.options.max_rounds || state_.layout.nodes() < 2) return std::nullopt;
  if (state_.matchings < kMatchings) return matching();
  const auto clear = state_.clearNodes().size();
  if (clear < 2) return std::nullopt;  // nobody is good enough to test others with
  if (state_.confirm_due && hasPending() && state_.confirms < kMaxConfirms) return confirm();
  state_.confirm_due = false;
  if (state_.options.groups && clear >= kFewestOfGroups) {
    if (!state_.slow_groups.empty() && state_.rechecks == 0)
      return ++state_.rechecks, allPairs(std::exchange(state_.slow_groups, {}),
                                         "every pair of the groups that were slow");
    if (state_.grids < kGrids) return grid();
    if (state_.ladders < static_cast<int>(ladderSizes(static_cast<int>(clear)).size()))
      return ladder();
    if (state_.exchange_due && state_.exchanges < kMaxExchanges) return exchangeAgain();
  }
  if (needsCubes() && state_.cubes < hypercubeRounds(state_.clearNodes(), state_.layout.leaf))
    return cube();
  if ((hasUndecided() || !state_.ask_near.empty()) && state_.confirms < kMaxConfirms)
    return confirm();
  if (needsWatch()) return watch();
  return std::nullopt;
}

/// A fault that comes and goes shows itself when a node is tested often enough: in many rounds
/// where the run would pass, for all tests of one round may meet the same hour. With a culprit, or
/// where the run is no measure, it does not pass, and is made again.
bool RoundPlanner::needsWatch() const {
  const auto& options = state_.options;
  const bool passes_not = hasCulprit() || isNoMeasure();
  if (passes_not && state_.round >= options.watch_rounds) return false;
  for (int node = 0; node < state_.layout.nodes(); ++node)
    for (int rail = 0; rail < state_.layout.rails; ++rail) {
      const auto& nic = state_.nic(node, rail);
      if (nic.status != PartStatus::Clear || state_.dead_rails[static_cast<std::size_t>(rail)])
        continue;
      if (passes_not ? nic.watched || nic.tests < options.watch_rounds
                     : !state_.hasProved(nic, options.end_rounds))
        return true;
    }
  return false;
}

/// Nobody is cleared by such a run, however long it takes.
bool RoundPlanner::isNoMeasure() const {
  return state_.evidence.sigma() > state_.options.most_noise || state_.evidence.fasterPairs() > 0 ||
         state_.proving_tests == kNoNumberProves;
}

/// What the verdict would name: a pair that is only bad again is not named yet.
bool RoundPlanner::hasCulprit() const {
  const auto is_bad = [this](const PathSuspect& path) {
    return state_.isPathOpen(path) && state_.isBadAgain(path);
  };
  if (!state_.uplinks.empty() || state_.isBelowFloor() || !state_.railsBehind().empty() ||
      std::any_of(state_.nics.begin(), state_.nics.end(),
                  [](const Nic& nic) { return nic.status == PartStatus::Accused; }) ||
      std::any_of(state_.cables.begin(), state_.cables.end(),
                  [this](const auto& cable) { return state_.isCableBad(cable); }))
    return true;
  if (std::none_of(state_.paths.begin(), state_.paths.end(), is_bad)) return false;
  const TestHistory history(state_);
  return std::any_of(state_.paths.begin(), state_.paths.end(), [&](const PathSuspect& path) {
    return is_bad(path) && history.isProven(path.a, path.b, path.rail);
  });
}

/// Those that were bad once with those that never were; all others among themselves.
Round RoundPlanner::watch() {
  auto made = named(Stage::Confirm, "pairs again, for faults that come and go");
  auto free = shuffled(state_.clearNodes());
  std::vector<int> watched;
  for (const int node : free)
    if (state_.isWatched(node)) watched.push_back(node);
  std::erase_if(free, [this](int node) { return state_.isWatched(node); });
  addSuspects(made, free);
  if (state_.round % 2 == 0) {  // by turns with nodes of the own leaf
    for (const auto& [node, partner] : state_.ask_again) {
      const auto has_both = has(watched, node) && (has(watched, partner) || has(free, partner));
      if (!has_both) continue;
      made.groups.push_back({Collective::Pair, {node, partner}});
      for (const int each : {node, partner}) std::erase(watched, each), std::erase(free, each);
    }
  }
  addPartners(made, free, watched);
  state_.controls = made.groups.size();
  if (free.size() % 2)  // who was tested most stays out
    free.erase(std::max_element(free.begin(), free.end(), [this](int x, int y) {
      return state_.roundsOf(x) < state_.roundsOf(y);
    }));
  addControls(made, free);
  return made;
}

Round RoundPlanner::exchangeAgain() {
  ++state_.exchanges;
  state_.exchange_due = false;
  auto active = state_.clearNodes();
  auto made = allPairs(
      {active}, fmt::format("all-to-all of all {} again: which bad pairs stay bad", active.size()));
  made.stage = Stage::Ladder;
  return made;
}

/// With few nodes the order decides whether everybody meets everybody.
std::vector<int> RoundPlanner::shuffled(std::vector<int> nodes) {
  std::shuffle(nodes.begin(), nodes.end(), state_.random);
  if (nodes.size() > kFewNodes) return nodes;
  std::vector<int> best;
  int fewest = std::numeric_limits<int>::max();
  for (int order = 0; order < kOrders && fewest > 0; ++order) {
    std::shuffle(nodes.begin(), nodes.end(), state_.random);
    int met = 0;
    for (std::size_t k = 0; k < nodes.size() / 2; ++k) {
      const auto [a, b] = std::minmax(nodes[k], nodes[nodes.size() / 2 + k]);
      met += state_.met.contains({a, b});
    }
    if (met < fewest) fewest = met, best = nodes;
  }
  return best;
}

bool RoundPlanner::hasPending() const {
  return std::any_of(state_.nics.begin(), state_.nics.end(),
                     [](const Nic& nic) {
                       return nic.status == PartStatus::Suspect && nic.fresh() == 0 &&
                              nic.silent < kMaxSilent;
                     }) ||
         std::any_of(state_.paths.begin(), state_.paths.end(),
                     [this](const auto& path) {
                       return state_.isPathOpen(path) && !path.again && path.silent < kMaxSilent;
                     }) ||
         std::any_of(state_.cables.begin(), state_.cables.end(), [this](const auto& cable) {
           return state_.isCableOpen(cable) && cable.tries < kMaxCableTries;
         });
}

bool RoundPlanner::hasUndecided() const {
  return hasPending() || std::any_of(state_.nics.begin(), state_.nics.end(), [](const Nic& nic) {
           return nic.status == PartStatus::Suspect && nic.silent < kMaxSilent;
         });
}

/// An engine of pairs has no other way to load all uplinks. Else they are for a bad way whose
/// cables are not known, unless every pair was seen in one all-to-all: bad uplinks show there as
/// many bad pairs.
bool RoundPlanner::needsCubes() const {
  if (!state_.options.groups) return true;
  if (state_.layout.cables || state_.saw_all_pairs) return false;
  return std::any_of(state_.paths.begin(), state_.paths.end(), [this](const auto& path) {
    return state_.isPathOpen(path) && state_.leafOf(path.a) != state_.leafOf(path.b);
  });
}

Round RoundPlanner::matching() {
  std::vector<int> all(static_cast<std::size_t>(state_.layout.nodes()));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int> one_class(all.size(), 0);
  Round made;
  switch (state_.matchings++) {
    case 0:
      made = named(Stage::Matching, "pairs within leaves");
      addPairs(made, matchWithin(all, state_.layout.leaf, state_.met, state_.random));
      break;
    case 1: {
      const bool is_one_leaf = std::ranges::all_of(
          state_.layout.leaf, [this](int leaf) { return leaf == state_.layout.leaf.front(); });
      made = named(Stage::Matching, is_one_leaf ? "other pairs" : "pairs of different leaves");
      std::vector<Pair> pairs;
      std::vector<int> left = all;
      for (int pod = *std::min_element(state_.layout.pod.begin(), state_.layout.pod.end());
           pod <= *std::max_element(state_.layout.pod.begin(), state_.layout.pod.end()); ++pod) {
        std::vector<int> members;
        std::set<int> leaves;
        for (const int node : all)
          if (state_.layout.pod[static_cast<std::size_t>(node)] == pod)
            members.push_back(node), leaves.insert(state_.leafOf(node));
        if (leaves.size() < 2) continue;
        for (const auto& pair : matchAcross(members, state_.layout.leaf, state_.met, state_.random))
          pairs.push_back(pair);
      }
      for (const auto& [a, b] : pairs) take(left, a), take(left, b);
      addPairs(made, pairs);
      if (state_.layout.nodes() <= static_cast<int>(kFewNodes) && pairs.empty())
        addPairs(made, pairHalves(shuffled(left), state_.met));
      else
        addPairs(made, matchAcross(left, state_.layout.leaf, state_.met, state_.random));
      break;
    }
    default: {
      made = named(Stage::Matching, "pairs at random");
      all = shuffled(all);
      std::stable_partition(all.begin(), all.end(), [this](int node) {
        return state_.evidence.best(node, 0) < 0;
      });  // who sat out before does not now
      addPairs(made, pairHalves(all, state_.met));
    }
  }
  return made;
}

/// Suspects with proven good nodes, nearest first: what is between leaves is evaluated by itself.
void RoundPlanner::addSuspects(Round& made, std::vector<int>& free) {
  addPartners(made, free, state_.suspects());
}

/// Partners that were never bad are preferred, then new ones, then near ones.
void RoundPlanner::addPartners(Round& made, std::vector<int>& free, const std::vector<int>& nodes) {
  std::erase_if(free, [&nodes](int node) { return has(nodes, node); });
  for (const int suspect : nodes) {
    const auto leaf = state_.leafOf(suspect);
    const auto& used = state_.nic(suspect, 0).partners;
    const auto rank = [&](int node) {
      return (state_.isWatched(node) ? 4 : 0) + (has(used, node) ? 2 : 0) +
             (state_.leafOf(node) == leaf ? 0 : 1);
    };
    const auto best =
        std::min_element(free.begin(), free.end(), [&](int x, int y) { return rank(x) < rank(y); });
    if (best == free.end()) return;
    made.groups.push_back({Collective::Pair, {suspect, *best}});
    for (int rail = 0; rail < state_.layout.rails; ++rail)
      state_.nic(suspect, rail).partners.push_back(*best);
    free.erase(best);
  }
}

/// Ends of a pair that was bad again, before it is tested once more: who has become bad since is
/// bad with others, too.
std::vector<int> RoundPlanner::withOthers() {
  std::vector<int> out;
  for (auto& path : state_.paths) {
    if (!state_.isPathOpen(path) || path.is_asked || path.repeated <= path.seen_before ||
        path.best >= 1 - state_.margins().path)
      continue;
    path.is_asked = true;
    for (const auto& [node, partner] : {Pair{path.a, path.b}, Pair{path.b, path.a}})
      if (!has(out, node) && !state_.isGoodElsewhere(node, path.rail, partner, path.round))
        out.push_back(node);
  }
  return out;
}

void RoundPlanner::addPaths(Round& made, std::vector<int>& free) {
  for (const auto& path : state_.paths) {
    if (!state_.isPathOpen(path) || path.again || path.silent >= kMaxSilent || !has(free, path.a) ||
        !has(free, path.b))
      continue;
    made.groups.push_back({Collective::Pair, {path.a, path.b}});
    take(free, path.a), take(free, path.b);
  }
}

/// For every cable that may be it, a pair that uses it and otherwise only what is good.
void RoundPlanner::addCables(Round& made, std::vector<int>& free) {
  const auto isGood = [&](int cable) {
    return state_.evidence.bestCable(cable).value_or(-1) >= 1 - state_.margins().raise;
  };
  for (std::size_t c = 0; c < state_.cables.size(); ++c) {
    auto& suspect = state_.cables[c];
    if (!state_.isCableOpen(suspect) || suspect.tries >= kMaxCableTries) continue;
    ++suspect.tries;
    std::vector<int> near;  // nodes of the leaves at its ends, as far as its tests tell
    std::set<int> leaves;
    for (const auto& [a, b] : suspect.seen)
      leaves.insert(state_.leafOf(a)), leaves.insert(state_.leafOf(b));
    for (const int node : free)
      if (leaves.contains(state_.leafOf(node))) near.push_back(node);
    std::optional<Pair> found;
    std::size_t looked = 0;
    for (const bool strict : {true, false})
      for (const int a : near)
        for (const int b : free) {
          if (found || a == b || state_.leafOf(a) == state_.leafOf(b) || ++looked > kCableSearch)
            continue;
          const auto used = state_.layout.cables(a, b, suspect.rail);
          if (!has(used, suspect.cable)) continue;
          if (!strict || std::all_of(used.begin(), used.end(), [&](int cable) {
                return cable == suspect.cable || isGood(cable);
              }))
            found = {a, b};
        }
    if (!found) continue;
    state_.cable_tests.emplace_back(made.groups.size(), c);
    addPairs(made, {*found});
    take(free, found->first), take(free, found->second);
  }
}

Round RoundPlanner::confirm() {
  ++state_.confirms;
  auto made = named(Stage::Confirm, "suspects with proven good nodes, beside controls");
  auto free = state_.clearNodes();
  std::shuffle(free.begin(), free.end(), state_.random);
  addSuspects(made, free);
  if (state_.layout.cables) addCables(made, free);
  addPartners(made, free, state_.ask_near);
  auto with_others = withOthers();
  std::erase_if(with_others, [&free](int node) { return !has(free, node); });  // tested already
  addPartners(made, free, with_others);
  addPaths(made, free);
  state_.controls = made.groups.size();
  addControls(made, free);
  return made;
}

void RoundPlanner::addControls(Round& made, const std::vector<int>& free) {
  std::set<Pair> fresh;
  const std::span<const int> all(free);
  const std::size_t within = free.size() / 2 & ~std::size_t{1};
  addPairs(made, matchWithin(all.first(within), state_.layout.leaf, fresh, state_.random));
  addPairs(made, matchAcross(all.subspan(within), state_.layout.leaf, fresh, state_.random));
}

Round RoundPlanner::allPairs(std::vector<std::vector<int>> groups, std::string what) {
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
void RoundPlanner::addRiders(Round& made, const Round& riders) {
  made.groups.insert(made.groups.end(), riders.groups.begin(), riders.groups.end());
  state_.controls = made.groups.size();
}

Round RoundPlanner::grid() {
  Round riders;
  auto active = state_.clearNodes();
  addSuspects(riders, active);
  std::sort(active.begin(), active.end(), [this](int x, int y) {
    return std::pair(state_.leafOf(x), x) < std::pair(state_.leafOf(y), y);
  });
  auto lines = AffinePlane(static_cast<int>(active.size())).lines(state_.grids);
  for (auto& line : lines)
    for (auto& point : line) point = active[static_cast<std::size_t>(point)];
  auto made = allPairs(std::move(lines), state_.grids == 0 ? "all-to-all in the rows of a grid"
                                                           : "all-to-all in its columns");
  ++state_.grids;
  addRiders(made, riders);
  return made;
}

Round RoundPlanner::ladder() {
  Round riders;
  auto active = state_.clearNodes();
  const auto sizes = ladderSizes(static_cast<int>(active.size()));
  const int size = sizes[static_cast<std::size_t>(state_.ladders++)];
  addSuspects(riders, active);
  const bool last = state_.ladders == static_cast<int>(sizes.size());
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

Round RoundPlanner::cube() {
  auto made = named(Stage::Hypercube,
                    fmt::format("leaves in pairs, all uplinks loaded ({})", state_.cubes + 1));
  addPairs(made, hypercube(state_.clearNodes(), state_.layout.leaf, state_.cubes++));
  return made;
}

}  // namespace muster::validate::isolate
