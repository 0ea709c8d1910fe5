// SPDX-License-Identifier: Apache-2.0
// What a round of pairs says about NICs.
#include "validate/isolate/state.h"

#include <algorithm>

namespace muster::validate::isolate {
namespace {

constexpr double kDeadRailGbits = 0;

}  // namespace

std::string_view toString(Collective kind) {
  switch (kind) {
    case Collective::Pair:
      return "pair";
    case Collective::AllToAll:
      return "all-to-all";
    case Collective::AllReduce:
      return "all-reduce";
  }
  return "?";
}

std::string_view toString(Stage stage) {
  switch (stage) {
    case Stage::Matching:
      return "matching";
    case Stage::Confirm:
      return "confirm";
    case Stage::Grid:
      return "grid";
    case Stage::Ladder:
      return "ladder";
    case Stage::Hypercube:
      return "hypercube";
  }
  return "?";
}

Isolation::State::State(Layout layout_in, Options options_in)
    : layout(std::move(layout_in)),
      options(options_in),
      random(options_in.seed),
      evidence(layout, options_in.least_gbits),
      nics(layout.leaf.size() * static_cast<std::size_t>(layout.rails)),
      dead_rails(static_cast<std::size_t>(layout.rails)) {}

Margins Isolation::State::margins() const {
  const double sigma = evidence.sigma();
  const double boundary = std::max(options.tolerance, 2.5 * sigma);
  return {boundary, std::max(0.8 * options.tolerance, 2 * sigma),
          std::max(2.4 * options.tolerance, 4.8 * sigma),
          std::max(4 * options.tolerance, 7 * sigma), sigma};
}

bool Isolation::State::isClear(int node) const {
  for (int rail = 0; rail < layout.rails; ++rail)
    if (nic(node, rail).status != PartStatus::Clear) return false;
  return true;
}

std::vector<int> Isolation::State::clearNodes() const {
  std::vector<int> out;
  for (int node = 0; node < layout.nodes(); ++node)
    if (isClear(node)) out.push_back(node);
  return out;
}

std::vector<int> Isolation::State::suspects() const {
  std::vector<int> out;
  for (int node = 0; node < layout.nodes(); ++node)
    for (int rail = 0; rail < layout.rails; ++rail)
      if (const auto& each = nic(node, rail);
          each.status == PartStatus::Suspect && each.silent < kMaxSilent) {
        out.push_back(node);
        break;
      }
  return out;
}

void Isolation::State::learn(const RoundResult& result) {
  if (!current) return;
  learnPairs(result);
  const auto stage = current->stage;
  const bool was_begun = begun();
  if (stage == Stage::Matching && matchings == 3) {
    findDeadRails();
    classify();
  }
  if (stage == Stage::Grid || stage == Stage::Ladder) {
    learnMatrices(result);
    learnSpread(result);
    learnFailed(result);
  }
  if (was_begun) decide();
  if (begun()) {
    findPaths();
    evaluatePaths();
    raiseCables();
  }
  // A stage that is over, or a look again that has raised something new.
  const auto rungs = static_cast<int>(ladderSizes(static_cast<int>(clearNodes().size())).size());
  confirm_due = stage == Stage::Matching || stage == Stage::Confirm || stage == Stage::Hypercube ||
                (stage == Stage::Grid && (grids >= 2 || rechecks)) ||
                (stage == Stage::Ladder && ladders >= rungs);
  cable_tests.clear();
  current.reset();
}

void Isolation::State::learnPairs(const RoundResult& result) {
  const auto& groups = current->groups;
  const auto& samples = evidence.samples();
  const std::size_t begin = samples.size();
  std::vector<bool> reference(groups.size(), true);
  std::fill(reference.begin(), reference.begin() + static_cast<std::ptrdiff_t>(controls), false);
  evidence.add(*current, result, reference);
  std::map<std::tuple<int, int, int>, double> shares;
  for (std::size_t s = begin; s < samples.size(); ++s)
    shares[{samples[s].a, samples[s].b, samples[s].rail}] = samples[s].share;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].kind != Collective::Pair) continue;
    const int a = groups[g].members[0], b = groups[g].members[1];
    for (int rail = 0; rail < layout.rails; ++rail) {
      if (dead_rails[static_cast<std::size_t>(rail)]) continue;
      const auto found = shares.find({a, b, rail});
      const bool silent = found == shares.end();
      for (const auto& [node, partner] : {Pair{a, b}, Pair{b, a}}) {
        auto& each = nic(node, rail);
        if (each.status != PartStatus::Suspect || nic(partner, rail).status != PartStatus::Clear)
          continue;
        if (silent)
          ++each.silent;
        else
          each.sum += found->second, ++each.fresh;
      }
      for (auto& path : paths) {
        if (path.rail != rail || path.again ||
            !((path.a == a && path.b == b) || (path.a == b && path.b == a)))
          continue;
        if (silent)
          ++path.silent;
        else
          path.again = found->second;
      }
    }
  }
  for (const auto& [g, c] : cable_tests) {
    auto& cable = cables[c];
    const auto found = shares.find({groups[g].members[0], groups[g].members[1], cable.rail});
    if (found == shares.end()) continue;
    cable.share = cable.fresh++ ? std::max(cable.share, found->second) : found->second;
    cable.seen.emplace_back(groups[g].members[0], groups[g].members[1]);
  }
}

/// A rail on which nothing worked is one culprit, not one for every node.
void Isolation::State::findDeadRails() {
  for (int rail = 0; rail < layout.rails; ++rail)
    dead_rails[static_cast<std::size_t>(rail)] = layout.rails > 1 &&
                                                 evidence.medianGbits(rail) <= kDeadRailGbits &&
                                                 evidence.medianGbits() > 0;
}

void Isolation::State::classify() {
  const double least = 1 - margins().raise;
  for (int node = 0; node < layout.nodes(); ++node)
    for (int rail = 0; rail < layout.rails; ++rail) {
      const bool good =
          dead_rails[static_cast<std::size_t>(rail)] || evidence.best(node, rail) >= least;
      nic(node, rail).status = good ? PartStatus::Clear : PartStatus::Suspect;
    }
}

void Isolation::State::decide() {
  const auto margin = margins();
  for (auto& each : nics) {
    if (each.status != PartStatus::Suspect || each.fresh == 0) continue;
    if (each.lacks() > margin.boundary + margin.open(each.fresh))
      each.status = PartStatus::Accused;
    else if (each.lacks() <= margin.boundary - margin.open(each.fresh))
      each.status = PartStatus::Clear;
  }
}

}  // namespace muster::validate::isolate
