// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/round_learner.h"

#include "validate/isolate/collective_learner.h"
#include "validate/isolate/path_finder.h"
#include "validate/isolate/test_history.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace muster::validate::isolate {
namespace {

constexpr double kDeadRailGbits = 0;
constexpr int kFewestFresh = 2;
constexpr int kFirstTests = 2;  ///< of three that made it a suspect: one may have had a bad partner
constexpr double kFalseSuspects = 0.01;

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
    watch();
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
  proving_tests_ = state_.proving_tests ? *state_.proving_tests : provingTests(TestHistory(state_));
  std::vector<bool> reference(groups.size(), true);
  std::fill(reference.begin(), reference.begin() + static_cast<std::ptrdiff_t>(state_.controls),
            false);
  state_.evidence.add(*state_.current, result, reference);
  const auto keyOf = [](int a, int b, int rail) {
    return (static_cast<std::uint64_t>(a) << 36) ^ (static_cast<std::uint64_t>(b) << 8) ^
           static_cast<std::uint64_t>(rail);
  };
  std::unordered_map<std::uint64_t, double> shares;
  shares.reserve(samples.size() - begin);
  for (std::size_t s = begin; s < samples.size(); ++s)
    shares[keyOf(samples[s].a, samples[s].b, samples[s].rail)] = samples[s].share;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].kind != Collective::Pair) continue;
    const int a = groups[g].members[0], b = groups[g].members[1];
    for (int rail = 0; rail < state_.layout.rails; ++rail) {
      if (state_.dead_rails[static_cast<std::size_t>(rail)]) continue;
      const auto found = shares.find(keyOf(a, b, rail));
      const bool silent = found == shares.end();
      for (const auto& [node, partner] : {Pair{a, b}, Pair{b, a}}) {
        auto& each = state_.nic(node, rail);
        each.count(silent ? 0 : 1, !silent);
        if (each.status != PartStatus::Suspect ||
            state_.nic(partner, rail).status != PartStatus::Clear)
          continue;
        if (silent)
          ++each.silent;
        else
          each.shares.push_back(found->second);
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
    const auto found = shares.find(keyOf(groups[g].members[0], groups[g].members[1], cable.rail));
    if (found == shares.end()) continue;
    cable.share = cable.fresh++ ? std::max(cable.share, found->second) : found->second;
    cable.seen.emplace_back(groups[g].members[0], groups[g].members[1]);
  }
}

/// One good repetition clears a pair; as many bad ones accuse it as congestion does not explain.
void RoundLearner::learnRepetition(PathSuspect& path, double share) const {
  path.best = std::max(path.best, share);
  ++path.repeated;
  if (path.best >= 1 - state_.margins().path || path.repeated + 1 >= proving_tests_)
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

/// Suspects first, by fresh tests; then what all tests together say of those that are clear: who
/// has been bad since loses it.
void RoundLearner::decide() {
  const auto margin = state_.margins();
  const auto low = lowTests();
  for (int node = 0; node < state_.layout.nodes(); ++node)
    for (int rail = 0; rail < state_.layout.rails; ++rail) {
      auto& each = state_.nic(node, rail);
      if (each.status != PartStatus::Suspect || each.fresh() == 0) continue;
      const double open = margin.open(each.fresh());
      if (each.fresh() >= kFewestFresh && each.lacks() > margin.boundary + open) {
        const auto bad = static_cast<int>(
            std::count_if(each.shares.begin(), each.shares.end(),
                          [&](double share) { return share < 1 - margin.boundary; }));
        // It was chosen because its three first tests were low as well.
        if (low.tail(bad + kFirstTests, each.fresh() + kFirstTests) *
                static_cast<double>(state_.nics.size()) <
            kFalseSuspects)
          each.status = PartStatus::Accused;
      } else if (each.lacks() <= margin.boundary - open) {
        each.status = PartStatus::Clear;
      }
    }
  const TestHistory history(state_);
  for (int node = 0; node < state_.layout.nodes(); ++node)
    for (int rail = 0; rail < state_.layout.rails; ++rail) {
      auto& each = state_.nic(node, rail);
      if (each.status != PartStatus::Clear) continue;
      if (!state_.dead_rails[static_cast<std::size_t>(rail)] &&
          state_.evidence.best(node, rail) < 1 - margin.boundary) {
        // What is typical is known better now, and it never reached it.
        each.suspectAgain();
        continue;
      }
      if (!history.isFaulty(node, rail)) continue;
      each.status = PartStatus::Accused;
      each.intermittent = true;
    }
}

int RoundLearner::provingTests(const TestHistory& history) {
  return history.provingTests().value_or(kNoNumberProves);
}

/// What an accused part or way explains is nobody else's.
void RoundLearner::watch() {
  const TestHistory history(state_);
  state_.proving_tests = provingTests(history);
  for (int node = 0; node < state_.layout.nodes(); ++node)
    for (int rail = 0; rail < state_.layout.rails; ++rail) {
      auto& each = state_.nic(node, rail);
      each.watched = each.status == PartStatus::Clear && history.isWatched(node, rail);
      if (state_.areFew()) each.bad_rounds = history.badRounds(node, rail);
    }
  askNear(history);
  state_.ask_again.clear();
  for (int node = 0; node < state_.layout.nodes(); ++node)
    for (int rail = 0; rail < state_.layout.rails; ++rail)
      if (const auto& own = history.of(node, rail); state_.nic(node, rail).watched &&
                                                    own.partners.size() > 1 && own.bad_near == 0 &&
                                                    !TestHistory::hasRecovered(own))
        state_.ask_again.emplace_back(node, *own.partners.begin());
}

/// Nodes that are bad with several, or again and again with one, and have not been tested with
/// their own leaf since.
void RoundLearner::askNear(const TestHistory& history) {
  std::set<int> out;
  const auto ask = [&](int node, int rail) {
    if (const auto& own = history.of(node, rail);
        own.good_near + own.bad_near == 0 && !history.isGoodNear(node, rail))
      out.insert(node);
  };
  for (const auto& path : state_.paths)
    if (state_.isPathOpen(path) && path.repeated > path.seen_before &&
        path.best < 1 - state_.margins().path && state_.leafOf(path.a) != state_.leafOf(path.b))
      ask(path.a, path.rail), ask(path.b, path.rail);
  for (int node = 0; node < state_.layout.nodes(); ++node)
    for (int rail = 0; rail < state_.layout.rails; ++rail)
      if (state_.nic(node, rail).watched && history.of(node, rail).partners.size() > 1)
        ask(node, rail);
  state_.ask_near.assign(out.begin(), out.end());
}

/// How often tests of good parts are so low that a suspect's would count.
Background RoundLearner::lowTests() const {
  Background low;
  const double least = 1 - state_.margins().boundary;
  for (const auto& sample : state_.evidence.samples())
    if (state_.nic(sample.a, sample.rail).status == PartStatus::Clear &&
        state_.nic(sample.b, sample.rail).status == PartStatus::Clear)
      ++low.tests, low.bad += sample.share < least;
  return low;
}

}  // namespace muster::validate::isolate
