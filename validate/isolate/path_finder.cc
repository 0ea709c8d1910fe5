// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/path_finder.h"

#include <algorithm>
#include <map>

namespace muster::validate::isolate {
namespace {

constexpr std::size_t kSharedByLeaf =
    2;  ///< other leaves that bad ways of a leaf lead to: then it is its uplinks

}  // namespace

void PathFinder::find() {
  findPaths();
  evaluatePaths();
  raiseCables();
}

void PathFinder::findPaths() {
  const double least = 1 - state_.margins().path;
  for (const auto& sample : state_.evidence.samples()) {
    if (sample.share >= least || state_.dead_rails[static_cast<std::size_t>(sample.rail)]) continue;
    if (state_.nic(sample.a, sample.rail).status == PartStatus::Clear &&
        state_.nic(sample.b, sample.rail).status == PartStatus::Clear)
      state_.raisePath(sample.a, sample.b, sample.rail, sample.share);
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
  for (;;) {
    std::map<std::pair<int, int>, std::set<int>>
        shared;  // (leaf, rail) → the leaves that its bad ways lead to
    for (const auto& path : state_.paths) {
      const int from = state_.leafOf(path.a), to = state_.leafOf(path.b);
      if (from != to && state_.isPathOpen(path) && state_.isBadAgain(path))
        shared[{from, path.rail}].insert(to), shared[{to, path.rail}].insert(from);
    }
    const auto most = std::max_element(
        shared.begin(), shared.end(),
        [](const auto& x, const auto& y) { return x.second.size() < y.second.size(); });
    if (most == shared.end() || most->second.size() < kSharedByLeaf) break;
    state_.uplinks.push_back({most->first.first, most->first.second, {}, 0});
    auto& found = state_.uplinks.back();
    for (auto& path : state_.paths) {
      if (!state_.isPathOpen(path) || !state_.isExplained(path.a, path.b, path.rail)) continue;
      path.explained = true;
      if (state_.isBadAgain(path))
        found.seen.emplace_back(path.a, path.b), found.share = std::max(found.share, *path.again);
    }
  }
  for (auto& path : state_.paths)
    path.explained = path.explained || state_.isExplained(path.a, path.b, path.rail);
}

}  // namespace muster::validate::isolate
