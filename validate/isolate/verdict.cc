// SPDX-License-Identifier: Apache-2.0
// From what is known to culprits: as few as explain it, each with how sure that is.
#include "validate/isolate/round_learner.h"
#include "validate/isolate/round_planner.h"
#include "validate/isolate/state.h"
#include "validate/isolate/test_history.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace muster::validate::isolate {
namespace {

constexpr double kMostCertain =
    0.9999;  ///< what is said at most: the noise was measured, not proven to be normal
constexpr double kLeafShare = 0.6;  ///< of a leaf's nodes on one rail: then it is the switch
constexpr std::size_t kLeafFewest = 3;
constexpr double kNothing = 0.02;  ///< reached less than this: dead, not slow

struct Book {
  const Isolation::State& state;
  Verdict& verdict;
  TestHistory history;
  double tests = 1;  ///< that could have accused somebody

  double certain(double chance) const { return std::clamp(1 - tests * chance, 0.0, kMostCertain); }
  /// What is clearly bad could be congestion, what is little could be noise.
  double confidence(double lacks, int fresh, int bad) const {
    const auto margin = state.margins();
    if (lacks > margin.path) return certain(std::pow(history.pairs().rate(), std::max(bad, 1)));
    const double kept = state.evidence.persistentSigma();
    return certain(
        tail(lacks / std::sqrt(kept * kept + margin.sigma * margin.sigma / std::max(fresh, 1))));
  }
};

std::vector<Pair> worstTests(const Isolation::State& state, int node, int rail) {
  std::vector<Sample> own;
  for (const auto& sample : state.evidence.samples())
    if (sample.rail == rail && (sample.a == node || sample.b == node)) own.push_back(sample);
  std::sort(own.begin(), own.end(), [](const auto& x, const auto& y) { return x.share < y.share; });
  std::vector<Pair> out;
  for (const auto& sample : own)
    if (out.size() < kMaxSeen) out.emplace_back(sample.a, sample.b);
  return out;
}

/// Tests of this NIC with good ones that were bad.
int badTestsOf(const Isolation::State& state, int node, int rail) {
  const double least = 1 - state.margins().path;
  return static_cast<int>(std::count_if(
      state.evidence.samples().begin(), state.evidence.samples().end(), [&](const Sample& sample) {
        return sample.rail == rail && sample.share < least &&
               (sample.a == node || sample.b == node) &&
               state.nic(sample.a == node ? sample.b : sample.a, rail).status == PartStatus::Clear;
      }));
}

Culprit ofNic(const Book& book, int node, int rail) {
  const auto& nic = book.state.nic(node, rail);
  const auto& seen = book.history.of(node, rail);
  Culprit out{.kind = CulpritKind::Nic,
              .a = node,
              .rail = rail,
              .tests = nic.fresh(),
              .seen = worstTests(book.state, node, rail)};
  if (nic.intermittent) {
    out.tests = seen.tests + seen.rows, out.bad = seen.bad + seen.bad_rows;
    out.reached = seen.bad ? seen.sum / seen.bad : seen.worst;
    out.confidence = book.certain(seen.chance);
  } else if (nic.fresh() == 0) {  // by what all its tests said together
    out.reached = std::clamp(std::min(book.state.evidence.best(node, rail), seen.worst), 0.0, 1.0);
    out.tests = seen.tests + seen.rows;
    out.confidence = book.certain(seen.chance);
  } else {
    out.reached = std::max(0.0, 1 - nic.lacks());
    out.confidence = book.confidence(nic.lacks(), nic.fresh(), badTestsOf(book.state, node, rail));
  }
  if (out.reached < kNothing) out.reached = 0;
  return out;
}

/// Several culprits as one that explains them.
Culprit merged(CulpritKind kind, int a, int rail, const std::vector<Culprit>& parts) {
  Culprit out{.kind = kind, .a = a, .rail = rail, .reached = 1, .confidence = 0};
  for (const auto& part : parts) {
    out.reached = std::min(out.reached, part.reached);
    out.confidence = std::max(out.confidence, part.confidence);
    out.tests += part.tests;
    out.bad += part.bad;
    for (const auto& seen : part.seen)
      if (out.seen.size() < kMaxSeen) out.seen.push_back(seen);
  }
  return out;
}

void addNics(const Book& book) {
  const auto& state = book.state;
  std::map<std::pair<int, int>, std::vector<Culprit>> of_leaf;  // (leaf, rail)
  std::map<int, std::size_t> leaf_size;
  for (const int leaf : state.layout.leaf) ++leaf_size[leaf];
  for (int node = 0; node < state.layout.nodes(); ++node) {
    std::vector<Culprit> of_node;
    for (int rail = 0; rail < state.layout.rails; ++rail)
      if (state.nic(node, rail).status == PartStatus::Accused)
        of_node.push_back(ofNic(book, node, rail));
    const bool whole = static_cast<int>(of_node.size()) == state.layout.rails;
    if (whole && state.layout.rails > 1)
      book.verdict.culprits.push_back(merged(CulpritKind::Node, node, -1, of_node));
    else
      for (auto& culprit : of_node) of_leaf[{state.leafOf(node), culprit.rail}].push_back(culprit);
  }
  for (auto& [place, culprits] : of_leaf) {
    const bool whole = leaf_size.size() > 1 && culprits.size() >= kLeafFewest &&
                       static_cast<double>(culprits.size()) >=
                           kLeafShare * static_cast<double>(leaf_size[place.first]);
    if (whole) {
      book.verdict.culprits.push_back(
          merged(CulpritKind::Leaf, place.first, place.second, culprits));
      continue;
    }
    for (auto& culprit : culprits) {
      if (state.layout.rails == 1) culprit.kind = CulpritKind::Node, culprit.rail = -1;
      book.verdict.culprits.push_back(std::move(culprit));
    }
  }
}

void addRails(const Book& book) {
  const auto& state = book.state;
  for (const auto& [rail, reached, between] : state.railsBehind()) {
    const double tests = static_cast<double>(state.evidence.samples().size()) / state.layout.rails;
    book.verdict.culprits.push_back(
        {.kind = CulpritKind::Rail,
         .rail = rail,
         .between = between,
         .reached = reached,
         .confidence = std::clamp(
             1 - book.tests *
                     tail((1 - reached) / (1.25 * state.margins().sigma / std::sqrt(tests))),
             0.0, kMostCertain),
         .tests = static_cast<int>(tests)});
  }
}

void addWays(const Book& book) {
  const auto& state = book.state;
  const auto add = [&](Culprit culprit, double share, int fresh) {
    culprit.reached = share < kNothing ? 0 : share;
    culprit.tests = fresh;
    culprit.confidence = book.confidence(1 - share, fresh, fresh + 1);
    if (culprit.seen.size() > kMaxSeen) culprit.seen.resize(kMaxSeen);
    book.verdict.culprits.push_back(std::move(culprit));
  };
  for (const auto& cable : state.cables)
    if (state.isCableBad(cable))
      add({.kind = CulpritKind::Cable, .a = cable.cable, .rail = cable.rail, .seen = cable.seen},
          cable.share, cable.fresh);
  for (const auto& uplink : state.uplinks)
    add({.kind = CulpritKind::Uplinks, .a = uplink.leaf, .rail = uplink.rail, .seen = uplink.seen},
        uplink.share, static_cast<int>(uplink.seen.size()));
  for (const auto& path : state.paths) {
    if (!state.isPathOpen(path)) continue;
    const bool cable_open =
        state.layout.cables &&
        std::any_of(state.cables.begin(), state.cables.end(), [&](const auto& cable) {
          const auto used = state.layout.cables(path.a, path.b, path.rail);
          return state.isCableOpen(cable) &&
                 std::find(used.begin(), used.end(), cable.cable) != used.end();
        });
    if (!path.again)
      book.verdict.unclear.push_back(
          {.a = path.a,
           .b = path.b,
           .rail = path.rail,
           .why = "the test between them was bad and could not be repeated"});
    else if (state.isBadAgain(path) && cable_open)
      book.verdict.unclear.push_back(
          {.a = path.a,
           .b = path.b,
           .rail = path.rail,
           .why = "the test between them is bad; no other pair that uses the same cables was free "
                  "to tell a cable from the pair"});
    else if (state.isBadAgain(path) && book.history.isProven(path.a, path.b, path.rail))
      add({.kind = CulpritKind::Pair,
           .a = path.a,
           .b = path.b,
           .rail = path.rail,
           .seen = {{path.a, path.b}}},
          *path.again, path.repeated);
  }
}

void addUnclear(const Book& book) {
  const auto& state = book.state;
  for (int node = 0; node < state.layout.nodes(); ++node)
    for (int rail = 0; rail < state.layout.rails; ++rail) {
      const auto& nic = state.nic(node, rail);
      if (nic.status == PartStatus::Accused || (nic.status == PartStatus::Clear && !nic.watched))
        continue;
      std::string_view why = "its tests are too close to the boundary for their noise";
      if (nic.watched)
        why =
            "it has been bad with a good node, more often than good nodes are and too seldom to "
            "name it: an intermittent fault is not excluded";
      else if (nic.status == PartStatus::Unknown)
        why = "its tests have not ended yet";
      else if (state.evidence.best(node, rail) < 0 || nic.silent >= kMaxSilent)
        why = "its tests gave no result";
      else if (nic.fresh() == 0 && state.layout.nodes() == 2)
        why =
            "two nodes alone cannot be told apart: name more nodes, or what is enough (--min-gbps)";
      else if (nic.fresh() == 0)
        why = "its tests were bad, and no proven good node was there to test it with";
      book.verdict.unclear.push_back({.a = node, .rail = rail, .why = why});
    }
}

/// A culprit among its members, or between them, explains why a collective failed.
bool isExplained(const std::vector<int>& members, const Verdict& verdict) {
  const auto has = [&members](int node) {
    return std::find(members.begin(), members.end(), node) != members.end();
  };
  return std::any_of(verdict.culprits.begin(), verdict.culprits.end(), [&](const Culprit& culprit) {
    switch (culprit.kind) {
      case CulpritKind::Node:
      case CulpritKind::Nic:
        return has(culprit.a);
      case CulpritKind::Pair:
        return has(culprit.a) && has(culprit.b);
      default:
        return true;
    }
  });
}

void addFailed(const Book& book) {
  for (const auto& members : book.state.failed_groups) {
    if (isExplained(members, book.verdict)) continue;
    for (const int node : members)
      book.verdict.unclear.push_back(
          {.a = node,
           .others = node == members.front() ? static_cast<int>(members.size()) - 1 : kToldBefore,
           .why = "a collective of all of them failed, and each is good with a partner: what each "
                  "node said is in the evidence"});
    std::erase_if(book.verdict.cleared, [&members](int node) {
      return std::find(members.begin(), members.end(), node) != members.end();
    });
  }
}

/// Where many nodes are bad, a pair or the uplinks of a leaf may only be two of them.
void demoteWays(const Book& book) {
  constexpr double kManyBad = 0.25;
  constexpr std::string_view kWhy =
      "tests between them are bad, but so many nodes are that it cannot be told from theirs: "
      "repair "
      "those first";
  const auto& state = book.state;
  int bad = 0;
  for (int node = 0; node < state.layout.nodes(); ++node) bad += !state.isClear(node);
  if (bad < kManyBad * state.layout.nodes()) return;
  std::erase_if(book.verdict.culprits, [&](const Culprit& culprit) {
    if (culprit.kind != CulpritKind::Pair && culprit.kind != CulpritKind::Uplinks) return false;
    const auto& first = culprit.seen.front();
    book.verdict.unclear.push_back(
        {.a = first.first, .b = first.second, .rail = culprit.rail, .why = kWhy});
    return true;
  });
}

/// When the run itself is no measure, nobody has passed; what is named by many tests stays named.
void addFleet(const Book& book) {
  const auto& state = book.state;
  if (!state.begun()) return;
  std::string_view why;
  if (state.evidence.sigma() > state.options.most_noise)
    why = "the results of equal tests differ more than those of a healthy network do";
  else if (state.evidence.fasterPairs() > 0)
    why = "some pairs reach far more than most: most nodes may be slow";
  else if (!book.history.provingTests())
    why = "so many tests between good nodes are bad that congestion hides single faults";
  if (why.empty()) return;
  book.verdict.unclear.insert(book.verdict.unclear.begin(), {.a = -1, .why = why});
  book.verdict.cleared.clear();
  std::erase_if(book.verdict.culprits, [](const Culprit& culprit) {
    return culprit.kind == CulpritKind::Pair || culprit.kind == CulpritKind::Uplinks;
  });
}

/// Good so far is not cleared: a fault that comes and goes was perhaps away.
void dropTooSeldomTested(const Book& book) {
  const auto& state = book.state;
  auto& verdict = book.verdict;
  const auto seldom = std::stable_partition(
      verdict.cleared.begin(), verdict.cleared.end(),
      [&state](int node) { return state.hasProved(node, state.options.clear_rounds); });
  for (auto node = seldom; node != verdict.cleared.end(); ++node)
    if (state.hasProved(*node, state.options.end_rounds) ||
        (!verdict.culprits.empty() && !state.wasBad(*node)))
      verdict.good.push_back(*node);
    else
      verdict.unclear.push_back(
          {.a = *node,
           .why = state.wasBad(*node)
                      ? "it was bad in some rounds, which nothing explains, and good in too few to "
                        "exclude a fault that comes and goes"
                      : "it was good in every round, but in too few of them to exclude a fault "
                        "that comes and goes"});
  verdict.cleared.erase(seldom, verdict.cleared.end());
  for (const int node : verdict.good)
    verdict.good_rounds = verdict.good_rounds == 0
                              ? state.roundsOf(node)
                              : std::min(verdict.good_rounds, state.roundsOf(node));
}

}  // namespace

std::string_view toString(Proof proof) { return proof == Proof::Good ? "good" : "cleared"; }

std::optional<Proof> proofOf(std::string_view word) {
  if (word.empty() || word == toString(Proof::Cleared)) return Proof::Cleared;
  if (word == toString(Proof::Good)) return Proof::Good;
  return std::nullopt;
}

double missedWith(int rounds) { return std::pow(1 - kIntermittentShare, rounds); }

int roundsWithBad(int rounds, int bad) {
  const double chance = missedWith(rounds) * std::pow(0.5, bad), share = kIntermittentShare;
  constexpr double kRounding = 1 + 1e-9;
  for (int n = rounds;; ++n) {
    double each = std::pow(1 - share, n), sum = 0;  // of no bad one, then of one more
    for (int k = 0; k <= bad; ++k) {
      sum += each;
      each *= share / (1 - share) * (n - k) / (k + 1);
    }
    if (sum <= chance * kRounding) return n;
  }
}

std::string_view toString(CulpritKind kind) {
  switch (kind) {
    case CulpritKind::Node:
      return "node";
    case CulpritKind::Nic:
      return "nic";
    case CulpritKind::Leaf:
      return "leaf";
    case CulpritKind::Rail:
      return "rail";
    case CulpritKind::Cable:
      return "cable";
    case CulpritKind::Uplinks:
      return "uplinks";
    case CulpritKind::Pair:
      return "pair";
    case CulpritKind::Fleet:
      return "fleet";
  }
  return "?";
}

Isolation::Isolation(Layout layout, Options options)
    : state_(std::make_unique<State>(std::move(layout), options)) {}
Isolation::~Isolation() = default;
Isolation::Isolation(Isolation&&) noexcept = default;

std::optional<Round> Isolation::next() {
  state_->cable_tests.clear();
  state_->controls = 0;
  state_->current = RoundPlanner(*state_).plan();
  if (!state_->current) return std::nullopt;
  state_->current->number = ++state_->round;
  state_->tests += static_cast<int>(state_->current->groups.size());
  return state_->current;
}

void Isolation::learn(const RoundResult& result) { RoundLearner(*state_).learn(result); }

Verdict Isolation::verdict() const {
  const auto& state = *state_;
  Verdict verdict;
  verdict.rounds = state.round, verdict.tests = state.tests;
  verdict.noise = state.evidence.sigma();
  verdict.typical_gbits = state.evidence.medianGbits();
  verdict.cleared = state.clearNodes();
  std::erase_if(verdict.cleared, [&state](int node) { return state.isWatched(node); });
  Book book{state, verdict, TestHistory(state)};
  book.tests = static_cast<double>(state.layout.nodes()) * state.layout.rails;
  if (state.isBelowFloor())
    verdict.culprits.push_back({.kind = CulpritKind::Fleet,
                                .reached = verdict.typical_gbits / *state.options.least_gbits,
                                .confidence = kMostCertain,
                                .tests = static_cast<int>(state.evidence.samples().size())});
  addRails(book);
  addNics(book);
  addWays(book);
  addUnclear(book);
  addFailed(book);
  demoteWays(book);
  addFleet(book);
  dropTooSeldomTested(book);
  std::stable_sort(verdict.culprits.begin(), verdict.culprits.end(),
                   [](const auto& x, const auto& y) { return x.confidence > y.confidence; });
  return verdict;
}

}  // namespace muster::validate::isolate
