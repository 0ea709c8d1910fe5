// SPDX-License-Identifier: Apache-2.0
// Designs: who is tested with whom in a round. Pure combinatorics; nodes are numbers.
//
// A round is a set of disjoint groups that run at once, so rounds cost time and tests do not.
// Matchings give every node one partner; the lines of an affine plane AG(2, q) put every two of q²
// points into a common group exactly once in q + 1 rounds; a hypercube over leaves loads every
// uplink at once.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace muster::validate::isolate {

using Pair = std::pair<int, int>;
using Random = std::mt19937_64;

/// A matching of `order`: its first half with its second. `order` decides who can meet: sorted by
/// leaf, partners are of different leaves as long as no leaf has more than half. Pairs of `known`
/// are avoided where that is possible, and the new ones are added. One of an odd number stays out.
std::vector<Pair> pairHalves(std::span<const int> order, std::set<Pair>& known);

/// Partners of the same class (class_of[node]); who is left over in a class meets the leftovers of
/// others.
std::vector<Pair> matchWithin(std::span<const int> nodes, std::span<const int> class_of,
                              std::set<Pair>& known, Random& random);
/// Partners of different classes, as far as there are.
std::vector<Pair> matchAcross(std::span<const int> nodes, std::span<const int> class_of,
                              std::set<Pair>& known, Random& random);

/// The affine plane over the smallest field that has room for so many points; places without a
/// point stay empty. Class 0 holds the rows (blocks of `order()` consecutive points), class 1 the
/// columns, the others slopes.
class AffinePlane {
 public:
  explicit AffinePlane(int points);
  int order() const { return order_; }        ///< q: a prime or a power of two, q² ≥ points
  int classes() const { return order_ + 1; }  ///< rounds that cover all pairs, each once
  /// The groups of one round: disjoint, together all points.
  std::vector<std::vector<int>> lines(int parallel_class) const;

 private:
  int add(int a, int b) const;
  int multiply(int a, int b) const;

  int points_, order_;
  int bits_ = 0, polynomial_ = 0;  ///< of GF(2^bits); 0: the order is a prime
};

/// Round `bit` of the hypercube over the leaves: nodes of leaf a with those of leaf a xor 2^bit,
/// place by place.
std::vector<Pair> hypercube(std::span<const int> nodes, std::span<const int> leaf_of, int bit);
/// Rounds of it: the binary logarithm of the number of leaves, upwards.
int hypercubeRounds(std::span<const int> nodes, std::span<const int> leaf_of);

/// Group sizes of a ladder to all nodes: a sixteenth, a quarter, all (64, 256, 1024 of 1024); too
/// small ones are left out.
std::vector<int> ladderSizes(int nodes);
/// Consecutive groups of about this size; a remainder that is too small for a group joins the one
/// before it.
std::vector<std::vector<int>> blocks(std::span<const int> nodes, int size);

}  // namespace muster::validate::isolate
