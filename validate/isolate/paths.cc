// SPDX-License-Identifier: Apache-2.0
// Bad ways between good NICs: which cable, whose uplinks, or only these two.
#include "validate/isolate/state.h"

#include <algorithm>
#include <map>

namespace muster::validate::isolate {
namespace {

constexpr std::size_t kSharedByLeaf =
    2;  ///< other leaves that bad ways of a leaf lead to: then it is its uplinks

}  // namespace

bool Isolation::State::isPathOpen(const PathSuspect& path) const {
  return !path.explained && nic(path.a, path.rail).status != PartStatus::Accused &&
         nic(path.b, path.rail).status != PartStatus::Accused;
}

void Isolation::State::raisePath(int a, int b, int rail, double share) {
  if (paths.size() >= kMaxPaths) return;
  if (!raised.insert({std::min(a, b), std::max(a, b), rail}).second) return;
  paths.push_back({.a = a, .b = b, .rail = rail, .share = share, .again = std::nullopt});
}

void Isolation::State::findPaths() {
  const double least = 1 - margins().path;
  for (const auto& sample : evidence.samples()) {
    if (sample.share >= least || dead_rails[static_cast<std::size_t>(sample.rail)]) continue;
    if (nic(sample.a, sample.rail).status == PartStatus::Clear &&
        nic(sample.b, sample.rail).status == PartStatus::Clear)
      raisePath(sample.a, sample.b, sample.rail, sample.share);
  }
}

/// Every cable of an open bad way that no test has shown to be good.
void Isolation::State::raiseCables() {
  if (!layout.cables) return;
  for (const auto& path : paths) {
    if (!isPathOpen(path) || (path.again && !isBadAgain(path))) continue;
    for (const int cable : layout.cables(path.a, path.b, path.rail)) {
      if (evidence.bestCable(cable).value_or(-1) >= 1 - margins().raise) continue;
      auto known = std::find_if(cables.begin(), cables.end(),
                                [cable](const auto& each) { return each.cable == cable; });
      if (known == cables.end()) {
        if (cables.size() >= kMaxCables) continue;
        known = cables.insert(cables.end(), {.cable = cable, .rail = path.rail});
      }
      if (const Pair seen{path.a, path.b};
          known->seen.size() < kMaxSeen &&
          std::find(known->seen.begin(), known->seen.end(), seen) == known->seen.end())
        known->seen.push_back(seen);
    }
  }
}

/// What an accused cable, or the uplinks of a leaf, explain needs no test of its own.
void Isolation::State::evaluatePaths() {
  if (layout.cables) {
    bad_cables.clear();
    for (auto& cable : cables)
      if (isCableBad(cable)) bad_cables.insert(cable.cable);
    for (auto& path : paths) path.explained = isExplained(path.a, path.b, path.rail);
    return;
  }
  for (;;) {
    std::map<std::pair<int, int>, std::set<int>>
        shared;  // (leaf, rail) → the leaves that its bad ways lead to
    for (const auto& path : paths) {
      const int from = leafOf(path.a), to = leafOf(path.b);
      if (from != to && isPathOpen(path) && isBadAgain(path))
        shared[{from, path.rail}].insert(to), shared[{to, path.rail}].insert(from);
    }
    const auto most = std::max_element(
        shared.begin(), shared.end(),
        [](const auto& x, const auto& y) { return x.second.size() < y.second.size(); });
    if (most == shared.end() || most->second.size() < kSharedByLeaf) break;
    uplinks.push_back({most->first.first, most->first.second, {}, 0});
    auto& found = uplinks.back();
    for (auto& path : paths) {
      if (!isPathOpen(path) || !isExplained(path.a, path.b, path.rail)) continue;
      path.explained = true;
      if (isBadAgain(path))
        found.seen.emplace_back(path.a, path.b), found.share = std::max(found.share, *path.again);
    }
  }
  for (auto& path : paths)
    path.explained = path.explained || isExplained(path.a, path.b, path.rail);
}

bool Isolation::State::isExplained(int a, int b, int rail) const {
  if (!bad_cables.empty()) {
    const auto used = layout.cables(a, b, rail);
    return std::any_of(used.begin(), used.end(),
                       [this](int cable) { return bad_cables.contains(cable); });
  }
  return leafOf(a) != leafOf(b) &&
         std::any_of(uplinks.begin(), uplinks.end(), [&](const auto& each) {
           return each.rail == rail && (each.leaf == leafOf(a) || each.leaf == leafOf(b));
         });
}

bool Isolation::State::isCableBad(const CableSuspect& cable) const {
  return cable.fresh > 0 && cable.share < 1 - margins().path &&
         evidence.bestCable(cable.cable).value_or(-1) < 1 - margins().path;
}

}  // namespace muster::validate::isolate
