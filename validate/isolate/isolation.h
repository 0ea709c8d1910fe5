// SPDX-License-Identifier: Apache-2.0
// Isolation: finds what is bad among nodes, NICs, switches, cables and pairs from tests between
// nodes, in few rounds.
//
// A pure state machine: `next` plans a round, whoever runs it brings the result to `learn`. It
// knows no clock, no agent and no network, and the same seed and results give the same rounds.
// docs/adr/0042 says why rounds, not tests, are what it saves.
//
// What a test of two nodes reaches is the least of what it uses: two NICs and the cables between.
// So the *maximum* over a thing's tests says what the thing can do, and one good test clears all
// that took part in it. What is not cleared is tested again with what is (a control), and only
// those tests decide: they were not chosen for being slow, so their noise is fair.
//
// Who is cleared was good in so many rounds that a fault that comes and goes would have shown
// itself (docs/adr/0362); a run that has found a culprit ends earlier, and then all others are good
// so far.
//
// One bad test accuses nobody: how often tests between good parts are bad is measured in the run,
// and who is accused was bad more often than that explains (docs/adr/0260). Whoever is bad after it
// was cleared is watched, and passes only when congestion explains it.
#pragma once

#include "validate/isolate/design.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate::isolate {

/// Where the nodes hang, as numbers from 0.
struct Layout {
  int rails = 1;
  std::vector<int> leaf;  ///< of each node; its size is the number of nodes
  std::vector<int> pod;   ///< of each node; a pod has one or more leaves
  /// Cables between switches that a test of a with b uses on this rail, in either direction. Empty:
  /// routes are not known.
  std::function<std::vector<int>(int a, int b, int rail)> cables;
  int nodes() const { return static_cast<int>(leaf.size()); }
};

/// Rounds after which a fault that is there in `share` of them has shown itself, but for `chance`.
constexpr int roundsToExclude(double share, double chance) {
  int rounds = 0;
  for (double hidden = 1; hidden > chance; hidden *= 1 - share) ++rounds;
  return rounds;
}
/// A fault that is there in three of ten rounds was away in all of these in less than one of a
/// million runs. Rounds count, not tests: all tests of a round may meet the same hour.
inline constexpr double kIntermittentShare = 0.3;
inline constexpr int kClearRounds = roundsToExclude(kIntermittentShare, 1e-6);
/// Where nobody needs to be cleared (docs/adr/0378): such a fault was away in all of these in 0.33
/// % of the runs.
inline constexpr int kGoodRounds = 16;

/// The same for a node that was bad in `bad` of its rounds: as many rounds as a node that is bad in
/// kIntermittentShare of them comes through with so few bad ones as seldom as with none in
/// `rounds`, over 2^bad: so often is it looked at. docs/adr/0425
int roundsWithBad(int rounds, int bad);

/// What a run without a culprit ends with.
enum class Proof { Cleared, Good };
std::string_view toString(Proof proof);               ///< "cleared", "good"
std::optional<Proof> proofOf(std::string_view word);  ///< empty: cleared, the default
constexpr int roundsOf(Proof proof) { return proof == Proof::Good ? kGoodRounds : kClearRounds; }
/// The chance that a node which is bad in kIntermittentShare of its rounds was good in so many.
double missedWith(int rounds);

struct Options {
  bool groups = true;  ///< the engine runs collectives of many nodes, and an all-to-all tells the
                       ///< rate of every pair
  double tolerance =
      0.0125;  ///< a share that a part may lack of what its peers reach; with noise, at least 2.5 σ
  std::optional<double>
      least_gbits;        ///< what a healthy pair reaches at least; absent: only peers are compared
  int watch_rounds = 16;  ///< where a fault was found: tests of each node, and rounds, before the
                          ///< run ends with that
  int clear_rounds = kClearRounds;  ///< in which a node was good before it is cleared
  int end_rounds = kClearRounds;    ///< in which each node was, when a run without a culprit ends
  int max_rounds = 2 * kClearRounds;
  int few_nodes = 64;  ///< fewer measure no background that would explain a bad round: it must be
                       ///< outweighed by good ones
  double most_noise = 0.05;  ///< σ of one test, relative, beyond which nobody is cleared
  std::uint64_t seed = 1;
};

enum class Collective { Pair, AllToAll, AllReduce };
std::string_view toString(Collective kind);

struct Group {
  Collective kind = Collective::Pair;
  std::vector<int> members;  ///< at least two; no node is in two groups of a round
};

enum class Stage { Matching, Confirm, Grid, Ladder, Hypercube };
std::string_view toString(Stage stage);

struct Round {
  int number = 0;  ///< from 1
  Stage stage = Stage::Matching;
  std::string what;  ///< for people: "matching within leaves"
  std::vector<Group> groups;
  std::chrono::seconds expected{0};
};

struct GroupResult {
  std::vector<double>
      rail_gbits;  ///< of each rail; 0: the test failed; NaN, or absent: it said nothing
  std::vector<float> peer_gbits;  ///< AllToAll: [rail][i][j] of members, i < j used; empty: the
                                  ///< engine does not tell
};
using RoundResult = std::vector<GroupResult>;  ///< as Round::groups

enum class CulpritKind { Node, Nic, Leaf, Rail, Cable, Uplinks, Pair, Fleet };
std::string_view toString(CulpritKind kind);

struct Culprit {
  CulpritKind kind = CulpritKind::Node;
  int a = -1;            ///< node; leaf of Leaf and Uplinks; cable of Cable
  int b = -1;            ///< the other node of a Pair
  int rail = -1;         ///< -1: all rails
  bool between = false;  ///< of a Rail: only between its leaves
  double reached = 0;    ///< share of what its peers reach; 0: nothing
  double confidence =
      0;          ///< 1 − the chance that noise alone accuses anything at all so in this run
  int tests = 0;  ///< that it was tested again with what is proven good
  int bad = 0;  ///< of an intermittent fault: how many of its tests were bad; 0: it is always there
  std::vector<Pair> seen;  ///< tests that show it, worst first, at most kMaxSeen
};
inline constexpr std::size_t kMaxSeen = 8;

inline constexpr int kToldBefore = -1;

/// What could not be decided: neither accused nor cleared. It has not passed.
struct Unclear {
  int a = -1, b = -1;  ///< a node, or a pair; no `a`: all nodes
  int others = 0;  ///< nodes besides `a` of a group that failed together; kToldBefore: one of those
  int rail = -1;   ///< -1: all
  std::string_view why;  ///< constant text
};

struct Verdict {
  std::vector<Culprit> culprits;  ///< most certain first
  std::vector<Unclear> unclear;
  std::vector<int> cleared;  ///< nodes that were good on every rail in Options::clear_rounds
  std::vector<int> good;     ///< that were good as well, in fewer rounds: the run ended with a
                             ///< culprit, or with Proof::Good, and a fault that comes and goes is
                             ///< not excluded
  int good_rounds = 0;       ///< of them that with the fewest
  double noise = 0;          ///< σ of one test, as measured, relative
  double typical_gbits = 0;  ///< median of all pair tests that gave a number
  int rounds = 0, tests = 0;
};

class Isolation {
 public:
  Isolation(Layout layout, Options options);
  ~Isolation();
  Isolation(Isolation&&) noexcept;

  /// The next round; nullopt when all is decided, or nothing more can be.
  std::optional<Round> next();
  /// The answer to the round that `next` gave last; groups that are missing have said nothing.
  void learn(const RoundResult& result);
  /// What is known up to here.
  Verdict verdict() const;

  struct State;  ///< its own; state.h

 private:
  std::unique_ptr<State> state_;
};

}  // namespace muster::validate::isolate
