// SPDX-License-Identifier: Apache-2.0
// What the isolation knows between rounds. Internal.
#pragma once

#include "validate/isolate/evidence.h"

#include <array>
#include <limits>
#include <map>
#include <set>

namespace muster::validate::isolate {

enum class PartStatus { Unknown, Clear, Suspect, Accused };

/// One node's port on one rail.
struct Nic {
  PartStatus status = PartStatus::Unknown;
  std::vector<double>
      shares;      ///< of its fresh tests: those made to decide it, against what is proven good
  int silent = 0;  ///< fresh tests that said nothing
  int tests = 0;   ///< of any kind that gave a number; an entry of an all-to-all is one
  int rounds = 0;  ///< in which so many did that a fault would have shown itself
  bool intermittent = false;  ///< accused because it is bad too often, though not always
  bool watched = false;       ///< clear, and has been bad since as good parts are not
  std::map<int, std::set<int>>
      bad_exchanges;   ///< all-to-alls of too few to evaluate its row: round, with whom it was bad
  int bad_rounds = 0;  ///< in which it was bad and nothing else explains it
  std::vector<int> partners;
  /// What one round gave; `enough`: of these tests a bad one would be seen.
  void count(std::size_t tests_of_round, bool enough) {
    tests += static_cast<int>(tests_of_round), rounds += enough;
  }
  void suspectAgain() { status = PartStatus::Suspect, shares.clear(), silent = 0; }
  int fresh() const { return static_cast<int>(shares.size()); }
  /// By the better half of its fresh tests: the others may have met congestion.
  double lacks() const;
};

/// How a NIC did in an all-to-all, over all that it met.
struct RowResult {
  int round, node, rail;
  bool bad;            ///< slow, or with more slow ones among them than others have
  int near, bad_near;  ///< of its own leaf that it met, and those of them that were bad
  float share;         ///< median; of an intermittent one, of what was slow
};

/// A test that was bad although both NICs are good: the way between them is, or the two do not get
/// on.
struct PathSuspect {
  int a, b, rail;
  double share;                      ///< of the test that raised it
  std::optional<double> again = {};  ///< the best of its repetitions, alone, once they decide
  double best = 0;                   ///< of the repetitions so far
  int repeated = 0;                  ///< times that it was tested after the first
  int seen_before = 0;               ///< of these, all-to-alls in which it was bad
  bool explained = false;            ///< by a cable or the uplinks of a leaf
  int silent = 0;
  int round = 0;          ///< in which it was bad first
  bool is_asked = false;  ///< both ends were given other partners since
};

struct CableSuspect {
  int cable, rail;
  double share = 1;  ///< best of its fresh tests
  int fresh = 0;
  int tries = 0;
  std::vector<Pair> seen;
};

/// A leaf whose ways to others are bad, where routes are not known.
struct UplinkSuspect {
  int leaf, rail;
  std::vector<Pair> seen;
  double share;  ///< best of its bad ways
};

struct RailBehind {
  int rail;
  double reached;        ///< share of what the others do
  bool between = false;  ///< only between leaves: within them it is as fast as the others
};

/// The newest all-to-all of all, of a rail: who was in it, and which pairs were bad.
struct Exchange {
  std::vector<bool> nodes;  ///< empty: there was none
  std::vector<Pair> bad;    ///< sorted
  double least = 0;         ///< share below which a pair was bad
};

/// The margins that decisions keep, from the noise as it was measured.
struct Margins {
  double boundary;  ///< who lacks more than this is bad
  double raise;     ///< a best share that is lower by this is looked at again
  double row;       ///< the same for the median of a node's row of an all-to-all
  double path;  ///< the same for a single test between good NICs. Wider: a node that was just not
                ///< slow enough must not become a bad pair
  double sigma;
  /// Around the boundary after so many fresh tests; within it one more is needed.
  double open(int fresh) const { return fresh >= kEnoughFresh ? 0 : 1.5 * sigma / fresh; }
  static constexpr int kEnoughFresh = 4;
};

struct Isolation::State {
  State(Layout layout_in, Options options_in);

  Layout layout;
  Options options;
  Random random;
  Evidence evidence;
  std::vector<Nic> nics;
  std::vector<PathSuspect> paths;
  std::vector<RowResult> rows;
  std::vector<Pair> ask_again;  ///< watched nodes with one they were bad with: does it stay bad?
  std::vector<int> ask_near;    ///< nodes to be tested with their own leaf: is it they, or the way?
  std::size_t entries = 0;      ///< pairs that the largest all-to-all measured
  std::vector<std::set<Pair>> bad_entries;  ///< of each rail: bad in every all-to-all so far
  bool exchange_due = false;                ///< too many pairs were bad to look at one by one
  std::vector<Exchange> whole;              ///< of each rail
  int exchanges = 0;                        ///< all-to-alls of all that were made again for that
  std::set<int> bad_cables;
  std::set<std::array<int, 3>> raised;  ///< a, b, rail of paths
  std::vector<CableSuspect> cables;
  std::vector<UplinkSuspect> uplinks;
  std::vector<std::vector<int>> slow_groups;    ///< of a ladder; their every pair is looked at next
  std::vector<std::vector<int>> failed_groups;  ///< collectives that gave no number at all
  std::vector<bool> dead_rails;
  std::size_t controls = 0;  ///< of the round, the groups from here on are tests of good parts
  std::vector<std::pair<std::size_t, std::size_t>>
      cable_tests;  ///< group of the round, index in `cables`
  std::optional<int>
      proving_tests;  ///< TestHistory::provingTests after the last round, or kNoNumberProves
  std::set<Pair> met;
  std::optional<Round> current;
  bool confirm_due = false;
  bool saw_all_pairs = false;
  int round = 0, tests = 0, matchings = 0, grids = 0, ladders = 0, cubes = 0, confirms = 0,
      rechecks = 0;

  Nic& nic(int node, int rail) { return nics[evidence.index(node, rail)]; }
  const Nic& nic(int node, int rail) const { return nics[evidence.index(node, rail)]; }
  Margins margins() const;
  int leafOf(int node) const { return layout.leaf[static_cast<std::size_t>(node)]; }
  bool isClear(int node) const;
  bool isWatched(int node) const;
  /// Rounds in which it was tested, of the living rail that was tested least.
  int roundsOf(int node) const;
  /// Good in so many rounds, or in as many more as its bad ones ask for, on every living rail.
  bool hasProved(int node, int rounds) const;
  bool hasProved(const Nic& nic, int rounds) const;
  bool wasBad(int node) const;  ///< in a round, with nothing that explains it
  bool areFew() const { return layout.nodes() < options.few_nodes; }
  /// Rails that all nodes find slower than the others.
  std::vector<RailBehind> railsBehind() const;
  std::vector<std::optional<double>> railShares(
      const std::function<bool(const Sample&)>& counts) const;
  /// What is typical is less than the declared floor.
  bool isBelowFloor() const;
  std::vector<int> clearNodes() const;
  std::vector<int> suspects() const;  ///< nodes with a NIC that is not decided
  bool begun() const { return nics.front().status != PartStatus::Unknown; }

  bool isPathOpen(const PathSuspect& path) const;
  bool isBadAgain(const PathSuspect& path) const {
    return path.again && *path.again < 1 - margins().path;
  }
  /// These two were good together in a test of theirs or in an all-to-all of all, and are far worse
  /// now: one of them, or its way, comes and goes. A pair that does not get on is bad at all times.
  bool wasGoodTogether(const PathSuspect& path) const;
  /// Since this round it was good with somebody else: only then a pair may be to blame.
  bool isGoodElsewhere(int node, int rail, int partner, int since) const;
  /// An all-to-all of all will show every pair: until then single bad tests are not looked at.
  bool willSeeAllPairs() const;
  bool isExplained(int a, int b, int rail) const;  ///< by a way that is known to be bad
  bool isCableBad(const CableSuspect& cable) const;
  bool isCableOpen(const CableSuspect& cable) const;  ///< it needs a test of its own
  void raisePath(int a, int b, int rail, double share, int seen_before = 0);
};

inline constexpr int kNoNumberProves = std::numeric_limits<int>::max();
inline constexpr std::size_t kMaxPaths = 4'096;
inline constexpr std::size_t kMaxCables = 256;
inline constexpr std::size_t kFewestOfGroups = 4;  ///< nodes
inline constexpr int kCableTests = 2;              ///< bad ones before a cable is accused
inline constexpr int kMaxSilent = 3;  ///< tests that said nothing before nobody asks again
inline constexpr int kMaxExchange =
    2'048;  ///< nodes of an all-to-all; every pair takes kStep of it

}  // namespace muster::validate::isolate
