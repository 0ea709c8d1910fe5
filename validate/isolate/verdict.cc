// SPDX-License-Identifier: Apache-2.0
// From what is known to culprits: as few as explain it, each with how sure that is.
#include "validate/isolate/round_learner.h"
#include "validate/isolate/round_planner.h"
#include "validate/isolate/state.h"

#include <algorithm>
#include <map>

namespace muster::validate::isolate {
namespace {

constexpr double kMostCertain =
    0.9999;  ///< what is said at most: the noise was measured, not proven to be normal
constexpr double kRailBehind = 0.05;  ///< a rail that all nodes find slower than the others
constexpr double kLeafShare = 0.6;    ///< of a leaf's nodes on one rail: then it is the switch
constexpr std::size_t kLeafFewest = 3;
constexpr double kNothing = 0.02;  ///< reached less than this: dead, not slow

struct Book {
  const Isolation::State& state;
  Verdict& verdict;
  double failure_rate = 0;  ///< of tests between good parts
  double tests = 1;         ///< that could have accused somebody

  double confidence(double lacks, int fresh, int failures) const {
    const double chance =
        lacks > 1 - kNothing
            ? std::pow(failure_rate, std::max(failures, 1))
            : tail(lacks / (state.margins().sigma / std::sqrt(std::max(fresh, 1))));
    return std::clamp(1 - tests * chance, 0.0, kMostCertain);
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

int failuresOf(const Isolation::State& state, int node, int rail) {
  int failures = 0;
  for (const auto& sample : state.evidence.samples())
    if (sample.rail == rail && sample.gbits <= 0 && (sample.a == node || sample.b == node) &&
        state.nic(sample.a == node ? sample.b : sample.a, rail).status == PartStatus::Clear)
      ++failures;
  return failures;
}

Culprit ofNic(const Book& book, int node, int rail) {
  const auto& nic = book.state.nic(node, rail);
  const double reached = std::max(0.0, 1 - nic.lacks());
  return {.kind = CulpritKind::Nic,
          .a = node,
          .rail = rail,
          .reached = reached < kNothing ? 0 : reached,
          .confidence = book.confidence(nic.lacks(), nic.fresh, failuresOf(book.state, node, rail)),
          .tests = nic.fresh,
          .seen = worstTests(book.state, node, rail)};
}

/// Several culprits as one that explains them.
Culprit merged(CulpritKind kind, int a, int rail, const std::vector<Culprit>& parts) {
  Culprit out{.kind = kind, .a = a, .rail = rail, .reached = 1, .confidence = 0};
  for (const auto& part : parts) {
    out.reached = std::min(out.reached, part.reached);
    out.confidence = std::max(out.confidence, part.confidence);
    out.tests += part.tests;
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
  std::vector<double> medians;
  for (int rail = 0; rail < state.layout.rails; ++rail)
    medians.push_back(state.evidence.medianGbits(rail));
  auto sorted = medians;
  const double typical = quantile(sorted, 0.5);
  if (state.layout.rails == 1 || typical <= 0) return;
  for (int rail = 0; rail < state.layout.rails; ++rail) {
    const double reached = medians[static_cast<std::size_t>(rail)] / typical;
    if (reached >= 1 - kRailBehind) continue;
    const double tests = static_cast<double>(state.evidence.samples().size()) / state.layout.rails;
    book.verdict.culprits.push_back(
        {.kind = CulpritKind::Rail,
         .rail = rail,
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
          return cable.fresh == 0 && std::find(used.begin(), used.end(), cable.cable) != used.end();
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
    else if (state.isBadAgain(path))
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
      if (nic.status == PartStatus::Clear || nic.status == PartStatus::Accused) continue;
      std::string_view why = "its tests are too close to the boundary for their noise";
      if (nic.status == PartStatus::Unknown)
        why = "its tests have not ended yet";
      else if (state.evidence.best(node, rail) < 0 || nic.silent >= kMaxSilent)
        why = "its tests gave no result";
      else if (nic.fresh == 0)
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

}  // namespace

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
  Book book{state, verdict};
  double good = 0, failed = 0;
  for (const auto& sample : state.evidence.samples())
    if (state.nic(sample.a, sample.rail).status == PartStatus::Clear &&
        state.nic(sample.b, sample.rail).status == PartStatus::Clear)
      ++good, failed += sample.gbits <= 0;
  book.failure_rate = (failed + 1) / (good + 2);
  book.tests = static_cast<double>(state.layout.nodes()) * state.layout.rails;
  if (state.options.least_gbits && !state.evidence.samples().empty() &&
      verdict.typical_gbits < *state.options.least_gbits)
    verdict.culprits.push_back({.kind = CulpritKind::Fleet,
                                .reached = verdict.typical_gbits / *state.options.least_gbits,
                                .confidence = kMostCertain,
                                .tests = static_cast<int>(state.evidence.samples().size())});
  addRails(book);
  addNics(book);
  addWays(book);
  addUnclear(book);
  addFailed(book);
  std::stable_sort(verdict.culprits.begin(), verdict.culprits.end(),
                   [](const auto& x, const auto& y) { return x.confidence > y.confidence; });
  return verdict;
}

}  // namespace muster::validate::isolate
