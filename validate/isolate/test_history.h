// SPDX-License-Identifier: Apache-2.0
// How often a NIC was bad, round by round, against how often good parts are: what tells a fault
// that comes and goes, or a node that has died since, from congestion. Internal to the isolation.
#pragma once

#include "validate/isolate/state.h"

namespace muster::validate::isolate {

/// How often tests are bad though both ends are good, as a beta distribution: few tests say little.
struct Background {
  double bad = 0, tests = 0;
  double prior_bad = 0.05, prior_tests = 50;  ///< before there are tests: one of a thousand

  double rate() const { return (bad + prior_bad) / (tests + prior_tests); }
  /// Without what one part contributed.
  Background without(double own_bad, double own_tests) const {
    return {std::max(0.0, bad - own_bad), std::max(0.0, tests - own_tests), prior_bad, prior_tests};
  }
  /// The probability that a good part is bad in at least `bad_of_it` of `tests_of_it`
  /// (beta-binomial).
  double tail(int bad_of_it, int tests_of_it) const;
};

/// What the tests of one NIC say together.
struct NicHistory {
  struct Entry {
    int round;
    bool row, bad;
  };
  int tests = 0, bad = 0;           ///< tests of two nodes that only this NIC would explain
  int rows = 0, bad_rows = 0;       ///< all-to-alls in which it met many
  double worst = 1;                 ///< share, of the bad ones
  double sum = 0;                   ///< of the shares of the bad tests
  std::set<int> partners;           ///< of the bad tests
  std::vector<int> good_partners;   ///< of the good ones, as often as there were
  int first_bad = 0;                ///< round; 0: none
  int good_near = 0, bad_near = 0;  ///< with its own leaf, since the first bad one
  std::vector<Entry> entries;
  double chance = 1;  ///< that good parts do as badly, from the round on that looks worst
};

class TestHistory {
 public:
  explicit TestHistory(const Isolation::State& state);

  const Background& pairs() const { return pairs_; }
  const NicHistory& of(int node, int rail) const {
    return nics_[state_.evidence.index(node, rail)];
  }
  /// It is bad too often for a good part, with several partners, and no way explains it.
  bool isFaulty(int node, int rail) const;
  /// What it has shown is not what good parts show; too little to accuse it, or it may be the way.
  bool isWatched(int node, int rail) const;
  /// Rounds in which it was bad, and nothing that is known explains it.
  int badRounds(int node, int rail) const;
  static bool hasRecovered(const NicHistory& own);
  /// Good with its own leaf since it was bad with others, or nobody is there to say so.
  bool isGoodNear(int node, int rail) const;
  /// These two were bad again and again, and neither was with others.
  bool isProven(int a, int b, int rail) const {
    return proven_.contains({std::min(a, b), std::max(a, b), rail});
  }
  /// Bad tests in a row that prove a pair to be bad; nullopt: congestion reaches any number.
  std::optional<int> provingTests() const;

 private:
  using Key = std::array<int, 3>;
  void collect();
  void collectRows();
  void rate();
  bool hasNeighbours(int node, int rail) const;
  std::set<Key> findProven(double least) const;

  const Isolation::State& state_;
  std::set<Key> proven_;
  Background pairs_, rows_;
  struct Leaf {
    Background pairs, rows;
    std::set<int> bad;  ///< nodes
  };
  Leaf& leafOf(int node, int rail) {
    return leaves_[leaf_numbers_[static_cast<std::size_t>(node)] *
                       static_cast<std::size_t>(state_.layout.rails) +
                   static_cast<std::size_t>(rail)];
  }
  std::vector<std::size_t> leaf_numbers_;  ///< by node: its leaf's, from 0 on without gaps
  std::vector<Leaf> leaves_;               ///< by leaf and rail
  std::vector<NicHistory> nics_;
};

}  // namespace muster::validate::isolate
