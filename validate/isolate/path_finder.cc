// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/path_finder.h"

#include "validate/isolate/test_history.h"

#include <algorithm>
#include <map>

namespace muster::validate::isolate {
namespace {

// Bad ways of a leaf are its uplinks when they lead to several other leaves, and from several of
// its nodes: one node that is bad with many is that node.
constexpr std::size_t kSharedByLeaf = 2, kSharedByNodes = 3;

constexpr std::size_t kPartnersOfNode = 3;
constexpr double kByCongestion = 1e-6;  ///< that it makes any leaf look so
constexpr double kMostByChance = 2;     ///< bad tests of a round that are looked at one by one

/// What the ways of a leaf that were tested again have in common.
struct Shared {
  std::set<int> leaves, nodes;  ///< of the bad ones
  int bad = 0, tested = 0;      ///< repetitions
  double chance = 1;            ///< that congestion makes so many of them bad
  bool isUplinks() const {
    return chance < kByCongestion && leaves.size() >= kSharedByLeaf &&
           nodes.size() >= kSharedByNodes;
  }
};

}  // namespace

void PathFinder::find() {
  findPaths();
  evaluatePaths();
  accuseCommonNodes();
  raiseCables();
}

void PathFinder::findPaths() {
  if (state_.willSeeAllPairs()) return;
  const double least = 1 - state_.margins().path;
  // Where congestion is common, tests that only watch would raise new ones for ever.
  const bool is_common = TestHistory(state_).pairs().rate() * state_.layout.nodes() > kMostByChance;
  for (const auto& sample : state_.evidence.samples()) {
    if (sample.share >= least || (is_common && (sample.watching || state_.options.groups)) ||
        state_.dead_rails[static_cast<std::size_t>(sample.rail)])
      continue;
    if (state_.nic(sample.a, sample.rail).status == PartStatus::Clear &&
        state_.nic(sample.b, sample.rail).status == PartStatus::Clear)
      state_.raisePath(sample.a, sample.b, sample.rail, sample.share);
  }
}

/// Several bad pairs with one node in common are that node, unless they all lead away from its leaf
/// while it is good within.
void PathFinder::accuseCommonNodes() {
  std::map<std::pair<int, int>, std::set<int>> partners;  // of a node on a rail
  for (const auto& path : state_.paths)
    if (state_.isPathOpen(path) && state_.isBadAgain(path))
      partners[{path.a, path.rail}].insert(path.b), partners[{path.b, path.rail}].insert(path.a);
  for (const auto& [place, others] : partners) {
    if (others.size() < kPartnersOfNode) continue;
    const auto [node, rail] = place;
    const bool near = std::any_of(others.begin(), others.end(), [&](int other) {
      return state_.leafOf(other) == state_.leafOf(node);
    });
    const bool alone =
        std::count(state_.layout.leaf.begin(), state_.layout.leaf.end(), state_.leafOf(node)) == 1;
    if (!near && !alone) continue;
    auto& nic = state_.nic(node, rail);
    nic.status = PartStatus::Accused;
    nic.intermittent = true, nic.watched = false;
  }
}

/// Every cable of an open bad way that no test has shown to be good.
void PathFinder::raiseCables() {
  if (!state_.layout.cables) return;
  for (const auto& path : state_.paths) {
    if (!state_.isPathOpen(path) || (path.again && !state_.isBadAgain(path))) continue;
    for (const int cable : state_.layout.cables(path.a, path.b, path.rail)) {
      if (state_.evidence.bestCable(cable).value_or(-1) >= 1 - state_.margins().raise) continue;
      auto known = std::find_if(state_.cables.begin(), state_.cables.end(),
                                [cable](const auto& each) { return each.cable == cable; });
      if (known == state_.cables.end()) {
        if (state_.cables.size() >= kMaxCables) continue;
        known = state_.cables.insert(state_.cables.end(), {.cable = cable, .rail = path.rail});
      }
      if (const Pair seen{path.a, path.b};
          known->seen.size() < kMaxSeen &&
          std::find(known->seen.begin(), known->seen.end(), seen) == known->seen.end())
        known->seen.push_back(seen);
    }
  }
}

/// What an accused cable, or the uplinks of a leaf, explain needs no test of its own.
void PathFinder::evaluatePaths() {
  if (state_.layout.cables) {
    state_.bad_cables.clear();
    for (auto& cable : state_.cables)
      if (state_.isCableBad(cable)) state_.bad_cables.insert(cable.cable);
    for (auto& path : state_.paths) path.explained = state_.isExplained(path.a, path.b, path.rail);
    return;
  }
  const TestHistory history(state_);
  for (;;) {
    std::map<std::pair<int, int>, Shared> shared;  // by leaf and rail
    for (const auto& path : state_.paths) {
      const int from = state_.leafOf(path.a), to = state_.leafOf(path.b);
      if (from == to || !state_.isPathOpen(path) || path.repeated == path.seen_before) continue;
      const bool bad = path.best < 1 - state_.margins().path;
      const int again = path.repeated - path.seen_before;
      for (const auto& [node, own, other] : {std::tuple{path.a, from, to}, {path.b, to, from}}) {
        auto& each = shared[{own, path.rail}];
        each.tested += again, each.bad += again - !bad;
        if (bad && history.isGoodNear(node, path.rail))
          each.leaves.insert(other), each.nodes.insert(node);
      }
    }
    for (auto& [place, each] : shared)
      each.chance = history.pairs().without(each.bad, each.tested).tail(each.bad, each.tested) *
                    static_cast<double>(shared.size());
    const auto most =
        std::max_element(shared.begin(), shared.end(), [](const auto& x, const auto& y) {
          return std::tuple(x.second.isUplinks(), x.second.leaves.size(), x.second.bad) <
                 std::tuple(y.second.isUplinks(), y.second.leaves.size(), y.second.bad);
        });
    if (most == shared.end() || !most->second.isUplinks()) break;
    state_.uplinks.push_back({most->first.first, most->first.second, {}, 0});
    auto& found = state_.uplinks.back();
    for (auto& path : state_.paths) {
      if (!state_.isPathOpen(path) || !state_.isExplained(path.a, path.b, path.rail)) continue;
      path.explained = true;
      if (path.repeated > path.seen_before && path.best < 1 - state_.margins().path)
        found.seen.emplace_back(path.a, path.b), found.share = std::max(found.share, path.best);
    }
  }
  for (auto& path : state_.paths)
    path.explained = path.explained || state_.isExplained(path.a, path.b, path.rail);
}

}  // namespace muster::validate::isolate
