// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/round_learner.h"

#include "validate/isolate/collective_learner.h"
#include "validate/isolate/path_finder.h"

#include <algorithm>

namespace muster::validate::isolate {
namespace {

constexpr double kDeadRailGbits = 0;

}  // namespace

void RoundLearner::learn(const RoundResult& result) {
  if (!state_.current) return;
  learnPairs(result);
  const auto stage = state_.current->stage;
  const bool was_begun = state_.begun();
  if (stage == Stage::Matching && state_.matchings == 3) {
    findDeadRails();
    classify();
  }
  if (stage == Stage::Grid || stage == Stage::Ladder) {
    CollectiveLearner(state_).learn(result);
  }
  if (was_begun) decide();
  if (state_.begun()) {
    PathFinder(state_).find();
  }
  // A stage that is over, or a look again that has raised something new.
  const auto rungs =
      static_cast<int>(ladderSizes(static_cast<int>(state_.clearNodes().size())).size());
  state_.confirm_due = stage == Stage::Matching || stage == Stage::Confirm ||
                       stage == Stage::Hypercube ||
                       (stage == Stage::Grid && (state_.grids >= 2 || state_.rechecks)) ||
                       (stage == Stage::Ladder && state_.ladders >= rungs);
  state_.cable_tests.clear();
  state_.current.reset();
}

void RoundLearner::learnPairs(const RoundResult& result) {
  const auto& groups = state_.current->groups;
  const auto& samples = state_.evidence.samples();
  const std::size_t begin = samples.size();
  std::vector<bool> reference(groups.size(), true);
  std::fill(reference.begin(), reference.begin() + static_cast<std::ptrdiff_t>(state_.controls),
            false);
  state_.evidence.add(*state_.current, result, reference);
  std::map<std::tuple<int, int, int>, double> shares;
  for (std::size_t s = begin; s < samples.size(); ++s)
    shares[{samples[s].a, samples[s].b, samples[s].rail}] = samples[s].share;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].kind != Collective::Pair) continue;
    const int a = groups[g].members[0], b = groups[g].members[1];
    for (int rail = 0; rail < state_.layout.rails; ++rail) {
      if (state_.dead_rails[static_cast<std::size_t>(rail)]) continue;
      const auto found = shares.find({a, b, rail});
      const bool silent = found == shares.end();
      for (const auto& [node, partner] : {Pair{a, b}, Pair{b, a}}) {
        auto& each = state_.nic(node, rail);
        if (each.status != PartStatus::Suspect ||
            state_.nic(partner, rail).status != PartStatus::Clear)
          continue;
        if (silent)
          ++each.silent;
        else
          each.sum += found->second, ++each.fresh;
      }
      for (auto& path : state_.paths) {
        if (path.rail != rail || path.again ||
            !((path.a == a && path.b == b) || (path.a == b && path.b == a)))
          continue;
        if (silent)
          ++path.silent;
        else
          learnRepetition(path, found->second);
      }
    }
  }
  for (const auto& [g, c] : state_.cable_tests) {
    auto& cable = state_.cables[c];
    const auto found = shares.find({groups[g].members[0], groups[g].members[1], cable.rail});
    if (found == shares.end()) continue;
    cable.share = cable.fresh++ ? std::max(cable.share, found->second) : found->second;
    cable.seen.emplace_back(groups[g].members[0], groups[g].members[1]);
  }
}

/// One good repetition clears a pair; so many bad ones accuse it.
void RoundLearner::learnRepetition(PathSuspect& path, double share) const {
  path.best = std::max(path.best, share);
  ++path.repeated;
  if (path.best >= 1 - state_.margins().path || path.repeated >= kPathRepeats)
    path.again = path.best;
}

/// A rail on which nothing worked is one culprit, not one for every node.
void RoundLearner::findDeadRails() {
  for (int rail = 0; rail < state_.layout.rails; ++rail)
    state_.dead_rails[static_cast<std::size_t>(rail)] =
        state_.layout.rails > 1 && state_.evidence.medianGbits(rail) <= kDeadRailGbits &&
        state_.evidence.medianGbits() > 0;
}

void RoundLearner::classify() {
  const double least = 1 - state_.margins().raise;
  for (int node = 0; node < state_.layout.nodes(); ++node)
    for (int rail = 0; rail < state_.layout.rails; ++rail) {
      const bool good = state_.dead_rails[static_cast<std::size_t>(rail)] ||
                        state_.evidence.best(node, rail) >= least;
      state_.nic(node, rail).status = good ? PartStatus::Clear : PartStatus::Suspect;
    }
}

void RoundLearner::decide() {
  const auto margin = state_.margins();
  for (auto& each : state_.nics) {
    if (each.status != PartStatus::Suspect || each.fresh == 0) continue;
    if (each.lacks() > margin.boundary + margin.open(each.fresh))
      each.status = PartStatus::Accused;
    else if (each.lacks() <= margin.boundary - margin.open(each.fresh))
      each.status = PartStatus::Clear;
  }
}

}  // namespace muster::validate::isolate
