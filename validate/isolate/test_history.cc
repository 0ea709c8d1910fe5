// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/test_history.h"

#include <algorithm>
#include <cmath>

namespace muster::validate::isolate {
namespace {

constexpr double kFalseOfRun = 1e-3;     ///< parts accused wrongly that a run may expect
constexpr double kFalsePairs = 1e-2;     ///< the same of pairs
constexpr double kNotBackground = 0.02;  ///< a good part does so in one of so many runs
constexpr int kFewestBad = 2;
constexpr std::size_t kNodesOfLeaf = 3;  ///< others of a leaf that are bad: then it is common there
constexpr int kLeastProving = 4, kMostProving = 8;
/// Where hosts' stacks are in every rate they stall, the oftener the less is promised.
constexpr double kUsualTolerance = 0.0125;

double logBeta(double a, double b) { return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b); }

}  // namespace

double Background::tail(int bad_of_it, int tests_of_it) const {
  if (bad_of_it <= 0) return 1;
  if (bad_of_it > tests_of_it) return 0;
  const double a = bad + prior_bad, b = std::max(0.0, tests - bad) + prior_tests - prior_bad;
  const double n = tests_of_it, k = bad_of_it;
  double term = std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                         logBeta(k + a, n - k + b) - logBeta(a, b));
  double sum = 0;
  for (double each = k; each <= n; ++each) {
    sum += term;
    if (term < 1e-6 * sum) break;
    term *= (n - each) / (each + 1) * (each + a) / (n - each - 1 + b);
  }
  return std::min(1.0, sum);
}

TestHistory::TestHistory(const Isolation::State& state) : state_(state), nics_(state.nics.size()) {
  const double stalls = state.options.tolerance / kUsualTolerance;
  pairs_.prior_bad *= stalls * stalls;
  std::map<int, std::size_t> numbers;
  for (const int leaf : state.layout.leaf)
    leaf_numbers_.push_back(numbers.try_emplace(leaf, numbers.size()).first->second);
  leaves_.resize(numbers.size() * static_cast<std::size_t>(state.layout.rails));
  collect();
  collectRows();
  rate();
}

/// Pairs that are to blame themselves: bad again and again, while neither end is bad with others.
std::set<TestHistory::Key> TestHistory::findProven(double least) const {
  std::set<Key> out;
  for (const auto& path : state_.paths)
    if (state_.isPathOpen(path) && state_.isBadAgain(path) && !state_.wasGoodTogether(path) &&
        state_.isGoodElsewhere(path.a, path.rail, path.b, path.round) &&
        state_.isGoodElsewhere(path.b, path.rail, path.a, path.round))
      out.insert({std::min(path.a, path.b), std::max(path.a, path.b), path.rail});
  if (out.empty()) return out;
  std::map<std::pair<int, int>, std::set<int>> partners;
  for (const auto& sample : state_.evidence.samples())
    if (sample.share < least && state_.nic(sample.a, sample.rail).status == PartStatus::Clear &&
        state_.nic(sample.b, sample.rail).status == PartStatus::Clear)
      partners[{sample.a, sample.rail}].insert(sample.b),
          partners[{sample.b, sample.rail}].insert(sample.a);
  std::set<std::pair<int, int>> bad_rows;  // it is bad with many then, not with one
  for (const auto& row : state_.rows)
    if (row.bad) bad_rows.insert({row.node, row.rail});
  std::erase_if(out, [&](const Key& pair) {
    if (bad_rows.contains({pair[0], pair[2]}) || bad_rows.contains({pair[1], pair[2]})) return true;
    return partners[{pair[0], pair[2]}].size() > 1 || partners[{pair[1], pair[2]}].size() > 1;
  });
  return out;
}

/// A test counts for a NIC when nothing else that is known explains it.
void TestHistory::collect() {
  const double least = 1 - state_.margins().path;
  proven_ = findProven(least);
  std::set<int> open_cables;  // what they carry is not evaluated yet
  for (const auto& cable : state_.cables)
    if (state_.isCableOpen(cable)) open_cables.insert(cable.cable);
  const auto isOpen = [&](const Sample& sample) {
    if (open_cables.empty()) return false;
    const auto used = state_.layout.cables(sample.a, sample.b, sample.rail);
    return std::any_of(used.begin(), used.end(),
                       [&](int cable) { return open_cables.contains(cable); });
  };
  for (const auto& sample : state_.evidence.samples()) {
    const int rail = sample.rail;
    if (state_.dead_rails[static_cast<std::size_t>(rail)]) continue;
    const bool bad = sample.share < least;
    const bool near = state_.leafOf(sample.a) == state_.leafOf(sample.b);
    for (const auto& [node, partner] : {Pair{sample.a, sample.b}, Pair{sample.b, sample.a}}) {
      if (state_.nic(partner, rail).status != PartStatus::Clear) continue;
      auto& own = nics_[state_.evidence.index(node, rail)];
      if (bad && own.first_bad == 0) own.first_bad = sample.round;
      if (own.first_bad > 0 && near) ++(bad ? own.bad_near : own.good_near);
    }
    if (bad && (state_.isExplained(sample.a, sample.b, rail) ||
                isProven(sample.a, sample.b, rail) || isOpen(sample)))
      continue;
    const bool clear_a = state_.nic(sample.a, rail).status == PartStatus::Clear,
               clear_b = state_.nic(sample.b, rail).status == PartStatus::Clear;
    if (clear_a && clear_b) {
      pairs_.bad += bad, ++pairs_.tests;
      for (const int node : {sample.a, sample.b}) {
        auto& leaf = leafOf(node, rail);
        if (!near || node == sample.a) leaf.pairs.bad += bad, ++leaf.pairs.tests;
        if (bad) leaf.bad.insert(node);
      }
    }
    for (const auto& [node, partner, partner_clear] :
         {std::tuple{sample.a, sample.b, clear_b}, std::tuple{sample.b, sample.a, clear_a}}) {
      if (!partner_clear) continue;
      auto& own = nics_[state_.evidence.index(node, rail)];
      ++own.tests, own.bad += bad;
      own.entries.push_back({sample.round, false, bad});
      if (!bad) {
        own.good_partners.push_back(partner);
        continue;
      }
      own.partners.insert(partner);
      own.worst = std::min(own.worst, sample.share), own.sum += sample.share;
    }
  }
}

void TestHistory::collectRows() {
  std::set<std::pair<int, int>> explained;  // leaves whose uplinks are bad, by rail
  for (const auto& uplink : state_.uplinks) explained.insert({uplink.leaf, uplink.rail});
  for (const auto& cable : state_.cables)
    if (state_.isCableBad(cable))
      for (const auto& [a, b] : cable.seen)
        explained.insert({state_.leafOf(a), cable.rail}),
            explained.insert({state_.leafOf(b), cable.rail});
  for (const auto& row : state_.rows) {
    if (row.bad && explained.contains({state_.leafOf(row.node), row.rail})) continue;
    auto& own = nics_[state_.evidence.index(row.node, row.rail)];
    if (state_.nic(row.node, row.rail).status == PartStatus::Clear) {
      rows_.bad += row.bad, ++rows_.tests;
      auto& leaf = leafOf(row.node, row.rail);
      leaf.rows.bad += row.bad, ++leaf.rows.tests;
      if (row.bad) leaf.bad.insert(row.node);
    }
    ++own.rows, own.bad_rows += row.bad;
    own.entries.push_back({row.round, true, row.bad});
    if (row.bad && (own.first_bad == 0 || own.first_bad > row.round)) own.first_bad = row.round;
    if (own.first_bad > 0 && row.round >= own.first_bad && row.near > 0)
      ++(row.bad && row.bad_near > 0 ? own.bad_near : own.good_near);
    if (row.bad) own.worst = std::min(own.worst, static_cast<double>(row.share));
  }
}

/// From every round on: who has died lately was good before. What is common in a leaf is no fault
/// of one of its nodes.
void TestHistory::rate() {
  for (std::size_t n = 0; n < nics_.size(); ++n) {
    auto& own = nics_[n];
    if (own.bad + own.bad_rows == 0) continue;
    auto pairs = pairs_.without(own.bad, own.tests), rows = rows_.without(own.bad_rows, own.rows);
    const auto rails = static_cast<std::size_t>(state_.layout.rails);
    const int node = static_cast<int>(n / rails);
    const auto& leaf = leafOf(node, static_cast<int>(n % rails));
    if (leaf.bad.size() - leaf.bad.contains(node) >= kNodesOfLeaf) {
      const auto near_pairs = leaf.pairs.without(own.bad, own.tests),
                 near_rows = leaf.rows.without(own.bad_rows, own.rows);
      if (near_pairs.rate() > pairs.rate()) pairs = near_pairs;
      if (near_rows.rate() > rows.rate()) rows = near_rows;
    }
    std::stable_sort(own.entries.begin(), own.entries.end(),
                     [](const auto& x, const auto& y) { return x.round < y.round; });
    int tests = 0, bad = 0, in_rows = 0, bad_rows = 0, windows = 0, last = -1;
    double worst = 1;
    for (auto each = own.entries.rbegin(); each != own.entries.rend(); ++each) {
      windows += each->round != last, last = each->round;
      if (each->row)
        ++in_rows, bad_rows += each->bad;
      else
        ++tests, bad += each->bad;
      if (each->bad &&
          bad + bad_rows >= kFewestBad)  // a window is worst where it begins with a bad one
        worst = std::min(worst, pairs.tail(bad, tests) * rows.tail(bad_rows, in_rows));
    }
    const double whole = pairs.tail(own.bad, own.tests) * rows.tail(own.bad_rows, own.rows);
    own.chance = std::min({1.0, 2 * whole, 2 * windows * worst});
  }
}

bool TestHistory::hasNeighbours(int node, int rail) const {
  for (int other = 0; other < state_.layout.nodes(); ++other)
    if (other != node && state_.leafOf(other) == state_.leafOf(node) &&
        state_.nic(other, rail).status == PartStatus::Clear)
      return true;
  return false;
}

/// Bad and good with the same partner.
bool TestHistory::hasRecovered(const NicHistory& own) {
  return std::any_of(own.good_partners.begin(), own.good_partners.end(),
                     [&own](int partner) { return own.partners.contains(partner); });
}

bool TestHistory::isGoodNear(int node, int rail) const {
  const auto& own = of(node, rail);
  return own.bad_near == 0 && (own.good_near > 0 || !hasNeighbours(node, rail));
}

bool TestHistory::isFaulty(int node, int rail) const {
  const auto& own = of(node, rail);
  if (own.bad + own.bad_rows < kFewestBad || (own.bad_rows == 0 && own.partners.size() < 2))
    return false;
  if (own.chance * static_cast<double>(nics_.size()) >= kFalseOfRun) return false;
  // Who is bad only across leaves has perhaps a bad way. A way is bad again, or, where each flow
  // takes another one, bad for others of the leaf as well.
  return own.bad_near > 0 || !hasNeighbours(node, rail) || hasRecovered(own);
}

bool TestHistory::isWatched(int node, int rail) const {
  const auto& own = of(node, rail);
  return own.bad + own.bad_rows > 0 && own.chance < 2 * kNotBackground;
}

int TestHistory::badRounds(int node, int rail) const {
  std::set<int> rounds;
  for (const auto& [round, others] : state_.nic(node, rail).bad_exchanges)
    if (std::ranges::any_of(others, [&](int other) {
          return state_.nic(other, rail).status == PartStatus::Clear &&
                 !isProven(node, other, rail);
        }))
      rounds.insert(round);
  for (const auto& each : of(node, rail).entries)
    if (each.bad) rounds.insert(each.round);
  return static_cast<int>(rounds.size());
}

std::optional<int> TestHistory::provingTests() const {
  const double pairs = std::max<double>(static_cast<double>(state_.evidence.samples().size()),
                                        static_cast<double>(state_.entries));
  const double needed = std::log(kFalsePairs / std::max(pairs, 2.0)) / std::log(pairs_.rate());
  const int tests = std::max(kLeastProving, static_cast<int>(std::ceil(needed)));
  return tests > kMostProving ? std::nullopt : std::optional(tests);
}

}  // namespace muster::validate::isolate
